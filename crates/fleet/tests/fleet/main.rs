//! What several processes share, against a real Redis and a real cluster.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what fails in here ends its test")]

mod faults;
mod lost;
mod moving;
mod orders;
mod server;
mod together;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use loopbreaker_fleet::{
    Ask, AttemptAsk, ChargeAsk, ChargeOver, Fleet, Heard, Link, News, Options, Overspent, Place, Refused,
    Remembered, SharedKey, Told, Unit,
};

/// One process of a fleet.
pub(crate) struct Process {
    pub(crate) fleet: Fleet,
    pub(crate) secret: [u8; 32],
    pub(crate) link: Arc<Link>,
    pub(crate) heard: Arc<Mutex<Vec<Heard>>>,
    /// What it was told of the state: why it is away, or that it is back.
    pub(crate) states: Arc<Mutex<Vec<Option<String>>>>,
    /// What was too much, as far as it was told.
    pub(crate) overspent: Arc<Mutex<Vec<Overspent>>>,
}

/// Long enough that a busy machine is not taken for a dead Redis.
pub(crate) const PATIENT: Duration = Duration::from_secs(2);

impl Process {
    pub(crate) async fn join(url: &str) -> Self {
        let process = Self::join_with(url, PATIENT);
        process.wait_until_there().await;
        process
    }

    pub(crate) fn join_with(url: &str, limit: Duration) -> Self {
        static ORIGIN: AtomicU64 = AtomicU64::new(1);
        let origin = ORIGIN.fetch_add(1, Ordering::Relaxed);
        let (heard, states) =
            (Arc::<Mutex<Vec<Heard>>>::default(), Arc::<Mutex<Vec<Option<String>>>>::default());
        let overspent = Arc::<Mutex<Vec<Overspent>>>::default();
        let (ears, eyes, purse) = (Arc::clone(&heard), Arc::clone(&states), Arc::clone(&overspent));
        let (fleet, secret) = Fleet::join(Options {
            url: url.to_owned(),
            roots: None,
            limit,
            secret: [origin as u8; 32],
            origin,
            listener: Arc::new(move |what| ears.lock().unwrap().push(what)),
            watcher: Box::new(move |news| match news {
                News::Away(reason) => eyes.lock().unwrap().push(Some(reason.to_owned())),
                News::Back => eyes.lock().unwrap().push(None),
                News::Overspent(too_much) => purse.lock().unwrap().push(too_much),
            }),
        })
        .unwrap();
        let link = fleet.link();
        Self { fleet, secret, link, heard, states, overspent }
    }

    pub(crate) async fn wait_until_there(&self) {
        until(|| self.link.is_there()).await;
    }

    pub(crate) async fn ask(&self, ask: &Ask) -> Told {
        self.link.ask(ask).await.expect("Redis answers")
    }
}

/// How often a request was sent, in each window.
pub(crate) fn times(told: &Told) -> Vec<u32> {
    told.attempts.iter().map(|sent| sent.times).collect()
}

/// Waits until something is so, for at most half a minute.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("it becomes so");
}

/// A request whose transcript consists of these links, oldest first.
pub(crate) fn transcript(tenant: u64, links: &[u128]) -> Ask {
    Ask {
        tenant,
        place: Place::Transcript {
            anchor: links[0],
            links: links.iter().rev().copied().collect(),
            tails: Vec::new(),
            known: None,
        },
        tip: links[links.len() - 1],
        thread: None,
        awaits_answer: false,
        is_loop: false,
        strikes: Vec::new(),
        remembered: Remembered::default(),
        attempts: Vec::new(),
        charges: Vec::new(),
    }
}

pub(crate) fn attempt(key: u128, id: u64) -> AttemptAsk {
    AttemptAsk { key, by_session: false, window_millis: 60_000, id, once_in_flight: false, most: 1_000 }
}

/// So much was used of a budget although nobody could be asked.
pub(crate) fn used(key: u128, limit: u64, actual: u64) -> ChargeOver {
    ChargeOver {
        counter: SharedKey::new(key, None),
        window_millis: Some(60_000),
        estimate: 0,
        actual,
        at: 0,
        used: Instant::now(),
        unit: Unit::Requests,
        limit: Some(limit),
    }
}

/// A transcript that is refused for so long.
pub(crate) fn refused(session: u128, tip: u128, millis: u64) -> Refused {
    Refused { session, account: session, tip, until: Instant::now() + Duration::from_millis(millis) }
}

pub(crate) fn charge(key: u128, amount: u64, estimate: u64) -> ChargeAsk {
    ChargeAsk {
        key,
        by_session: false,
        window_millis: Some(60_000),
        amount,
        stops: true,
        estimate,
        stages: Vec::new(),
    }
}
