//! The observatory inside the gateway: its API on our port, its orders on our sessions, our traffic in its log.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::{Request, Response};
use loopbreaker_config::{Config, LogPlace};
use loopbreaker_observatory::{Caller, Observatory, Options};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::control::json_error;
use crate::journal::{Entry, Journal};
use crate::obey::Obedience;
use crate::reply::Reply;
use crate::sessions::RunName;
use crate::timely::Timely;

/// Where decisions are kept, if they are.
pub(crate) enum Observing {
    /// They are.
    On(Running),
    /// They are not, since the config says so.
    Off,
    /// They should be, and cannot.
    Failed(String),
}

/// An observatory that works.
pub(crate) struct Running {
    pub(crate) observatory: Arc<Observatory>,
    pub(crate) journal: Journal,
    /// A thread of its own, so that nobody's model call waits for a search.
    runtime: Handle,
    _stop: oneshot::Sender<()>,
}

impl Observing {
    /// Opens the store that the config names.
    pub(crate) fn open(config: &Config, data_dir: Option<&Path>) -> Self {
        let mut options = match (&config.log.place, data_dir) {
            (LogPlace::Off, _) | (LogPlace::Sqlite, None) => return Self::Off,
            (LogPlace::Sqlite, Some(folder)) => Options::at(folder.join("decisions.db")),
            (LogPlace::Postgres(url), _) => Options::url(url.as_str()),
        };
        (options.max_age, options.max_bytes) = (config.log.max_age, config.log.max_bytes);
        (options.keep_prompts, options.pause_timeout) = (config.log.keep_prompts, config.pause.timeout);
        options.detectors = config.detectors.clone();
        match Running::start(options) {
            Ok(running) => Self::On(running),
            Err(problem) => Self::Failed(problem),
        }
    }

    /// The observatory, while it works.
    pub(crate) const fn running(&self) -> Option<&Running> {
        match self {
            Self::On(running) => Some(running),
            Self::Off | Self::Failed(_) => None,
        }
    }

    /// Why nothing is kept that should be.
    pub(crate) fn failure(&self) -> Option<String> {
        match self {
            Self::On(running) => running.observatory.health().failure().map(|error| error.to_string()),
            Self::Off => None,
            Self::Failed(problem) => Some(problem.clone()),
        }
    }

    /// Answers a request to the API.
    pub(crate) async fn answer(&self, request: Request<Timely<Incoming>>, caller: Caller) -> Response<Reply> {
        match self {
            Self::On(running) => running.answer(request, caller).await,
            Self::Off => {
                json_error(503, "log_off", "nothing is kept; set `log.url` to `sqlite` or `postgres://…`")
            }
            Self::Failed(problem) => json_error(503, "store_unavailable", problem),
        }
    }
}

impl Running {
    fn start(options: Options) -> Result<Self, String> {
        let observatory = Arc::new(Observatory::open(options).map_err(|error| error.to_string())?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("observatory".to_owned());
        let spawned = thread.spawn(move || drop(runtime.block_on(stopped)));
        spawned.map_err(|error| error.to_string())?;
        let journal = Journal::open(Arc::clone(&observatory)).map_err(|error| error.to_string())?;
        Ok(Self { observatory, journal, runtime: handle, _stop: stop })
    }

    /// Waits until what was handed over is written down, for at most `limit`.
    pub(crate) async fn catch_up(&self, limit: Duration) {
        let (done, is_done) = oneshot::channel();
        self.journal.tell(Entry::CatchUp(done));
        // Whoever waits for longer than that goes on without.
        drop(tokio::time::timeout(limit, is_done).await);
    }

    /// Answers a request to the API.
    pub(crate) async fn answer<B>(&self, request: Request<B>, caller: Caller) -> Response<Reply>
    where
        B: Body<Data = Bytes> + Send + Sync + Unpin + 'static,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let observatory = Arc::clone(&self.observatory);
        let answering = self.runtime.spawn(async move { observatory.handle(request, &caller).await });
        match answering.await {
            Ok(response) => response.map(Reply::Observed),
            Err(_) => json_error(500, "internal", "the answer could not be made; it is in the log"),
        }
    }

    /// Lets operators hold and release calls from now on, those that were held before the start included.
    pub(crate) fn obey(&self, obedience: &Arc<Obedience>) {
        let own = Arc::clone(obedience);
        self.observatory.on_order(Arc::new(move |given| own.carry_out(given)));
        for held in self.observatory.held() {
            obedience.hold(RunName::of(&held.tenant, &held.session_id));
        }
    }
}
