//! The observatory inside the gateway: its API on our port, its orders on our sessions, our traffic in its log.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::{Request, Response};
use loopbreaker_config::{Config, LogPlace};
use loopbreaker_observatory::{Caller, LoneGuard, Observatory, Options};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::agreed::Agreed;
use crate::control::json_error;
use crate::health;
use crate::journal::{Entry, Journal};
use crate::obey::Obedience;
use crate::reply::Reply;
use crate::sessions::RunName;
use crate::state::Shared;
use crate::timely::Timely;

/// Where decisions are kept, if they are.
pub(crate) struct Observing {
    /// How the store is opened; `None` when the config wants nothing to be kept.
    wanted: Option<Options>,
    /// The observatory, from the moment on at which its store was open.
    running: OnceLock<Running>,
    /// Why it is not open yet.
    problem: Mutex<String>,
    /// Requests of which nothing was written down since it was not open yet.
    missed: AtomicU64,
    /// Answers agents for as long as there is no observatory.
    guard: LoneGuard,
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
    /// What the config wants; nothing is opened yet.
    pub(crate) fn wanted(config: &Config, data_dir: Option<&Path>) -> Self {
        let place = match (&config.log.place, data_dir) {
            (LogPlace::Off, _) | (LogPlace::Sqlite, None) => None,
            (LogPlace::Sqlite, Some(folder)) => Some(Options::at(folder.join("decisions.db"))),
            (LogPlace::Postgres(url), _) => Some(Options::url(url.as_str())),
        };
        let wanted = place.map(|mut options| {
            (options.max_age, options.max_bytes) = (config.log.max_age, config.log.max_bytes);
            (options.keep_prompts, options.pause_timeout) = (config.log.keep_prompts, config.pause.timeout);
            options.detectors = config.detectors.clone();
            options.traffic_is_judged = true;
            options
        });
        let problem = Mutex::new("the store is still being opened".to_owned());
        let guard = LoneGuard::new(config.detectors.clone());
        Self { wanted, running: OnceLock::new(), problem, missed: AtomicU64::new(0), guard }
    }

    /// How the store is opened, if it is.
    pub(crate) const fn options(&self) -> Option<&Options> {
        self.wanted.as_ref()
    }

    /// The store is open: from now on everything goes there.
    pub(crate) fn begin(&self, running: Running) -> &Running {
        self.running.get_or_init(|| running)
    }

    /// The store could not be opened; says whether the reason is a new one.
    pub(crate) fn not_yet(&self, problem: String) -> bool {
        let mut known = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *known != problem;
        *known = problem;
        is_new
    }

    /// The observatory, once its store is open.
    pub(crate) fn running(&self) -> Option<&Running> {
        self.running.get()
    }

    /// Why nothing is kept that should be.
    pub(crate) fn failure(&self) -> Option<String> {
        self.wanted.as_ref()?;
        match self.running() {
            Some(running) => running.observatory.health().failure().map(|error| error.to_string()),
            None => Some(self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()),
        }
    }

    /// Nothing is written down of a request. That is counted where something should be.
    pub(crate) fn count_missed(&self) {
        if self.wanted.is_some() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many requests came before the store was open.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Waits until what was seen a moment ago is known to the log as well: an order that follows a call at once is
    /// about that session. It does not wait for long.
    pub(crate) async fn catch_up(&self) {
        let Some(running) = self.running() else { return };
        let (done, is_done) = oneshot::channel();
        running.journal.tell(Entry::CatchUp(done));
        // Whoever waits for longer than that goes on without.
        drop(tokio::time::timeout(CATCH_UP, is_done).await);
    }

    /// Ends the streams of events, for which the process would wait in vain.
    pub(crate) fn end_streams(&self) {
        if let Some(running) = self.running() {
            running.observatory.end_streams();
        }
    }

    /// The config says something else of the detectors now.
    pub(crate) fn rewritten(&self, config: &Config) {
        match self.running() {
            Some(running) => running.observatory.rewritten(config.detectors.clone()),
            None => self.guard.rewritten(config.detectors.clone()),
        }
    }

    /// Answers an agent that asks the guard where nothing is kept. `is_paused` says whether an operator holds its
    /// session.
    pub(crate) async fn guard(
        &self,
        request: Request<Timely<Incoming>>,
        caller: &Caller,
        is_paused: impl FnOnce(&str) -> bool,
    ) -> Response<Reply> {
        self.guard.answer(request, caller, is_paused).await.map(Reply::Observed)
    }

    /// Answers a request to the API.
    pub(crate) async fn answer(&self, request: Request<Timely<Incoming>>, caller: Caller) -> Response<Reply> {
        match (self.running(), self.failure()) {
            (Some(running), _) => running.answer(request, caller).await,
            (None, Some(problem)) => {
                let message = format!("{problem}; it is tried again by itself, send this again later");
                let mut response = json_error(503, "store_unavailable", &message);
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
                response
            }
            (None, None) => {
                json_error(503, "log_off", "nothing is kept; set `log.url` to `sqlite` or `postgres://…`")
            }
        }
    }
}

impl Running {
    /// Opens the store, and starts what works with it.
    pub(crate) fn start(options: Options) -> Result<Self, String> {
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

    /// Follows what operators change at other processes from now on, what they changed before included.
    pub(crate) fn agree(&self, agreed: &Arc<Agreed>) {
        // It ends with its runtime.
        drop(self.runtime.spawn(Arc::clone(agreed).follow(Arc::clone(&self.observatory))));
    }

    /// Tells the dashboard from now on which parts of the gateway do not do what they should.
    pub(crate) fn watch_over(&self, shared: &Arc<Shared>) {
        // It ends with its runtime.
        drop(self.runtime.spawn(health::tell(Arc::downgrade(shared), Arc::clone(&self.observatory))));
    }

    /// Lets operators hold and release calls from now on, those that were held before the start included.
    pub(crate) fn obey(&self, obedience: &Arc<Obedience>) {
        obedience.is_written_in(self.observatory.id());
        let own = Arc::clone(obedience);
        self.observatory.on_order(Arc::new(move |given| own.carry_out(given)));
        for held in self.observatory.held() {
            let since = Duration::from_millis(held.pause.since.try_into().unwrap_or(0));
            let lasted = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + since).unwrap_or_default();
            obedience.hold_on(held, lasted.as_millis() as u64);
        }
        for standing in self.observatory.standing() {
            let run = RunName::of(&standing.tenant, &standing.session_id);
            obedience.remember(run, &standing.order, standing.anchor);
        }
    }
}

/// An order does not wait for longer than this for what is on its way into the log.
const CATCH_UP: Duration = Duration::from_millis(500);
