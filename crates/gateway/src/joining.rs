//! Becoming one of several processes that share their state.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use loopbreaker_config::{State, with_tls_advice, without_roots, without_timeout};
use loopbreaker_fleet::{Fleet, FleetError, Heard, News, Options, Overspent, Unit};
use loopbreaker_telemetry::{Level, Part, Telemetry, Unit as Told};

use crate::secret::Secret;
use crate::state::Shared;

/// What other processes say, kept until somebody is there to hear it.
#[derive(Debug, Default)]
pub(crate) struct Mailbox(Mutex<Inside>);

#[derive(Debug, Default)]
struct Inside {
    reader: Option<Weak<Shared>>,
    waiting: Vec<Heard>,
}

impl Mailbox {
    /// What is said before anybody listens is little: orders of the last hour.
    const MAX_WAITING: usize = 10_000;

    /// From now on everything is told to this one, beginning with what was said before.
    pub(crate) fn open(&self, shared: &Arc<Shared>) {
        let mut inside = self.lock();
        inside.reader = Some(Arc::downgrade(shared));
        for heard in std::mem::take(&mut inside.waiting) {
            shared.hear(heard);
        }
    }

    fn take(&self, heard: Heard) {
        let mut inside = self.lock();
        match inside.reader.as_ref().map(Weak::upgrade) {
            Some(Some(shared)) => shared.hear(heard),
            None if inside.waiting.len() < Self::MAX_WAITING => inside.waiting.push(heard),
            Some(None) | None => {}
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Joins the processes that the config names; `None` when this one is alone. The secret becomes that of all.
pub(crate) fn join(
    state: &State,
    secret: &Secret,
    mailbox: &Arc<Mailbox>,
    telemetry: &Telemetry,
) -> Result<Option<Fleet>, FleetError> {
    let (State::Redis(url) | State::RedisCluster(url)) = state else { return Ok(None) };
    let (metrics, log, place) = (Arc::clone(&telemetry.metrics), telemetry.log.clone(), url.to_string());
    let watcher = move |news: News<'_>| match news {
        News::Away(reason) => {
            metrics.set_degraded(Part::State, true);
            let problem = with_tls_advice(reason);
            let fields = [("place", place.as_str()), ("problem", problem.as_str())];
            log.event(Level::Warn, "shared state is away; this process goes on with its own memory", &fields);
        }
        News::Back => {
            metrics.set_degraded(Part::State, false);
            log.event(Level::Info, "shared state is back", &[("place", place.as_str())]);
        }
        News::Overspent(Overspent { unit, amount }) => {
            let unit = match unit {
                Unit::Requests => Told::Requests,
                Unit::Tokens => Told::Tokens,
                Unit::MicroDollars => Told::Usd,
            };
            metrics.overspent(unit, amount);
        }
    };
    let letters = Arc::clone(mailbox);
    // A Redis far away may need more than the usual limit.
    let (url, limit) = without_timeout(url.as_str());
    let (url, roots) = without_roots(&url);
    let (fleet, common) = Fleet::join(Options {
        url,
        roots,
        limit: limit.unwrap_or(Fleet::LIMIT),
        secret: secret.bytes(),
        origin: Secret::random().map_err(FleetError::Thread)?.hash("origin", &[]) as u64,
        listener: Arc::new(move |heard| letters.take(heard)),
        watcher: Box::new(watcher),
    })?;
    secret.adopt(common);
    Ok(Some(fleet))
}
