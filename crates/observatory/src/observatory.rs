//! The observatory as a whole: what it is opened with, and what can be asked of it.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loopbreaker_record::Rejection;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};

use crate::audit::{self, AuditCheck, sha256};
use crate::chores::Orphans;
use crate::error::{StoreError, Stored};
use crate::events::{Events, Subscription, Topic};
use crate::guarded::Guarded;
use crate::health::Health;
use crate::hitl::{Held, Hitl, Observer, Order, OrderGiven, Pause, Standing};
use crate::ingest::{Accepted, Arrival, Refusal};
use crate::notes::Note;
use crate::options::Options;
use crate::orders::{Given, OrderRefused, Origin};
use crate::policies::{Book, Governed, Overrides};
use crate::rates::Rates;
use crate::readers::Readers;
use crate::redact::{redacted_answer, redacted_order};
use crate::store::{SearchFilter, Session, Store};
use crate::thresholds::Thresholds;
use crate::writer::{EVENT_SETTING, Pending, Scribe, Writer};

/// Decision logs come in, and are kept, scored, searched and told.
///
/// ```
/// use loopbreaker_observatory::{Arrival, Observatory, Options};
/// use loopbreaker_record::{DecisionLog, Moment, Status, TraceId};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
/// # runtime.block_on(async {
/// # let folder = tempfile::tempdir().expect("a folder");
/// # let path = folder.path().join("log.db");
/// let observatory = Observatory::open(Options::at(path))?;
/// let log = DecisionLog::builder("builder-1", "coder", "1.4.0")
///     .intent("build")
///     .status(Status::Failure)
///     .build(TraceId::from_random_bytes([7; 16]), Moment::from_millis(0))
///     .expect("it is valid");
/// let accepted = observatory.ingest(Arrival { tenant: "acme".into(), session: None, log }).await?;
/// assert_eq!(accepted.expect("it is new").severity, "normal");
/// # Ok::<(), loopbreaker_observatory::StoreError>(())
/// # }).expect("the store works");
/// ```
#[derive(Debug)]
pub struct Observatory {
    pub(crate) shared: Arc<Shared>,
    pub(crate) readers: Arc<Readers>,
    /// Places for answers that go on.
    pub(crate) streams: Arc<Semaphore>,
    /// Whether events are told no more, since the process ends.
    pub(crate) leaving: watch::Sender<bool>,
    writer: Writer,
}

/// What every thread of the observatory sees.
pub(crate) struct Shared {
    /// Names the log among those of other processes.
    pub(crate) id: u64,
    pub(crate) events: Arc<Events>,
    pub(crate) hitl: Hitl,
    pub(crate) health: Health,
    pub(crate) orphans: Orphans,
    pub(crate) rates: Rates,
    pub(crate) governed: Governed,
    /// Whether other processes write to the same store.
    pub(crate) has_others: bool,
    pub(crate) keep_prompts: bool,
    /// Whether traffic is looked at for what it wasted only where a loop was seen in it.
    pub(crate) traffic_is_judged: bool,
    pub(crate) pause_timeout: i64,
    pub(crate) max_age: i64,
    pub(crate) max_bytes: u64,
    pub(crate) thresholds: Thresholds,
    /// Steps that are kept and cannot be found by their words yet.
    pub(crate) unindexed: AtomicUsize,
    pub(crate) guarded: Guarded,
    held: Mutex<Vec<Held>>,
    standing: Mutex<Vec<Standing>>,
    next_retention: AtomicI64,
    clock: Arc<dyn Fn() -> i64 + Send + Sync>,
}

impl Shared {
    /// Retention looks at the store so often.
    const RETENTION_EVERY: i64 = 60_000;

    pub(crate) fn now(&self) -> i64 {
        (self.clock)()
    }

    /// Puts other thresholds above those of the file, here and in the gateway.
    pub(crate) fn change_thresholds(&self, change: Value) {
        if self.thresholds.set_change(change) {
            self.governed.tell_thresholds();
        }
    }

    /// Another process has changed what is kept: takes over what it says of people and settings.
    pub(crate) fn read_again(&self, store: &mut Store) -> Stored<()> {
        let pauses = store.pauses()?;
        self.hitl.replace(
            pauses.into_iter().map(|(session, pause)| (session.id, pause)).collect(),
            store.orders()?,
        );
        self.change_thresholds(Thresholds::kept(store)?);
        self.governed.read_again(store)
    }

    /// Holds a session although the store fails: it lasts as long as the process.
    fn pause_unwritten(&self, session: &Session, pause: Pause) -> Given {
        let given = OrderGiven {
            tenant: session.tenant_name.clone(),
            session_id: session.name.clone(),
            operator: pause.operator.clone(),
            order: Order::Pause { reason: pause.reason.clone() },
            is_elsewhere: false,
            is_handed_out: false,
        };
        self.hitl.set_pause(session.id, Some(pause));
        self.hitl.tell(&given);
        let note = Some("it is paused, but the store fails: this is not in the audit log");
        Given { session_id: session.name.clone(), state: "paused".to_owned(), note }
    }

    pub(crate) fn retention_is_due(&self, now: i64) -> bool {
        now >= self.next_retention.load(Ordering::Relaxed)
    }

    /// Looks again at once while there is more to forget.
    pub(crate) fn retention_was_done(&self, now: i64, done: bool) {
        let next = if done { now + Self::RETENTION_EVERY } else { now };
        self.next_retention.store(next, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("health", &self.health).finish_non_exhaustive()
    }
}

impl Observatory {
    /// Opens the store and starts its writer.
    pub fn open(options: Options) -> Result<Self, StoreError> {
        let source = options.source.clone();
        // On a thread of its own: a client of a server must not wait inside of somebody's runtime.
        let opening = std::thread::spawn(move || source.open());
        let panicked = |_| Err(StoreError::Other("opening it panicked".to_owned()));
        let store = opening.join().unwrap_or_else(panicked)?;
        Self::with_store(options, store)
    }

    /// Starts the writer of a store that is open.
    pub(crate) fn with_store(options: Options, store: Store) -> Stored<Self> {
        let reading = std::thread::spawn(move || Opened::read(store));
        let panicked = |_| Err(StoreError::Other("reading it panicked".to_owned()));
        let opened = reading.join().unwrap_or_else(panicked)?;
        let hitl = Hitl::default();
        let mut held = Vec::new();
        for (session, pause) in opened.pauses {
            hitl.set_pause(session.id, Some(pause.clone()));
            held.push(Held { tenant: session.tenant_name, session_id: session.name, pause });
        }
        for (session, number, order) in opened.orders {
            hitl.queue(session, number, order);
        }
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 2);
        let shared = Arc::new(Shared {
            id: opened.id,
            events: Arc::new(Events::new(options.events_kept, opened.last_event)),
            hitl,
            health: Health::default(),
            orphans: Orphans::default(),
            rates: Rates::default(),
            governed: Governed::new(opened.overrides, opened.switches),
            has_others: opened.store.is_shared(),
            keep_prompts: options.keep_prompts,
            // What is kept without words cannot be read again once a loop was seen.
            traffic_is_judged: options.traffic_is_judged && options.keep_prompts,
            pause_timeout: millis(options.pause_timeout),
            max_age: millis(options.max_age),
            max_bytes: options.max_bytes,
            thresholds: Thresholds::new(options.detectors, opened.thresholds),
            guarded: Guarded::default(),
            held: Mutex::new(held),
            standing: Mutex::new(opened.standing),
            // Earlier processes may have left some.
            unindexed: AtomicUsize::new(1),
            next_retention: AtomicI64::new(0),
            clock: options.clock,
        });
        let writer = Writer::start(opened.store, Arc::clone(&shared))?;
        let readers = Arc::new(Readers::new(options.source));
        let streams = Arc::new(Semaphore::new(MAX_STREAMS));
        Ok(Self { shared, readers, streams, leaving: watch::Sender::new(false), writer })
    }

    /// Hands notes to the writer without waiting; what finds no room is counted. `relied_on` says whether they have to
    /// survive a loss of power.
    pub(crate) fn hand_over(&self, relied_on: bool, notes: Vec<Note>) -> bool {
        let count = notes.len() as u64;
        let taken = self.writer.note_all(relied_on, notes);
        if !taken {
            self.shared.health.count_dropped(count);
        }
        taken
    }

    /// Hands work to the writer that notes one thing, as [`hand_over`](Self::hand_over) does.
    pub(crate) fn hand_over_one(
        &self,
        relied_on: bool,
        work: impl FnOnce(&mut Scribe<'_>) -> Stored<()> + Send + 'static,
    ) {
        if !self.writer.note(relied_on, work) {
            self.shared.health.count_dropped(1);
        }
    }

    /// Hands work to the writer behind all that waits, also where there is no room for more.
    pub(crate) fn push_through(
        &self,
        work: impl FnOnce(&mut Scribe<'_>) -> Stored<()> + Send + 'static,
    ) -> bool {
        self.writer.push_through(work)
    }

    /// Does work in the next transaction; the answer comes after its commit.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Scribe<'_>) -> Stored<T> + Send + 'static,
    ) -> Stored<T> {
        self.writer.submit(work).await
    }

    /// Names the log among those of other processes, also after a restart.
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// The tenant has a session of this name, as another process knows: it is kept here once somebody has something to say
    /// about it.
    pub fn expect(&self, tenant: &str, session_id: &str) {
        self.shared.guarded.meet(&Arc::from(tenant), session_id);
    }

    /// Whose session this is, if it is kept and is that of one tenant only.
    pub async fn tenant_of(&self, session_id: &str, tenant: Option<&str>) -> Option<String> {
        let found = self.find(session_id, tenant).await.ok()?.ok()?;
        Some(found.tenant_name)
    }

    /// Sessions that were held when the store was opened; whoever listens to orders is told of all that came since.
    pub fn held(&self) -> Vec<Held> {
        self.shared.held.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What gateways were putting into requests when the store was opened. It is given once: whoever listens to orders
    /// is told of all that came since.
    pub fn standing(&self) -> Vec<Standing> {
        std::mem::take(&mut *self.shared.standing.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes a log in. The answer comes after it is safe on disk.
    pub async fn ingest(&self, arrival: Arrival) -> Result<Result<Accepted, Refusal>, StoreError> {
        self.writer.submit(|scribe| scribe.ingest(arrival)).await
    }

    /// Takes a log in behind those that were handed in before; its answer can be waited for later. `names_tenant` says
    /// whether its tenant is the sender's own word, and not only that of somebody who named none.
    pub(crate) async fn enqueue(
        &self,
        arrival: Arrival,
        names_tenant: bool,
    ) -> Stored<Pending<Result<Accepted, Refusal>>> {
        let take = move |scribe: &mut Scribe<'_>| {
            if names_tenant {
                return scribe.ingest(arrival);
            }
            let (asks_as, is_last) = (Arc::clone(&arrival.tenant), arrival.log.is_terminal());
            let arrival = scribe.meant(arrival)?;
            let accepted = scribe.ingest(arrival)?;
            if let (Ok(Accepted { session_id, .. }), true) = (&accepted, is_last) {
                // The guard is asked by the same agent, and knows it by the tenant that it did not name.
                let (shared, session_id) = (Arc::clone(scribe.shared), session_id.clone());
                scribe.effects.push(Box::new(move || shared.free_guard(&asks_as, &session_id)));
            }
            Ok(accepted)
        };
        self.writer.enqueue(take).await
    }

    /// Notes that something was refused, by the hash of what it was.
    pub fn refused(&self, tenant: &Arc<str>, payload: &[u8], rejection: &Rejection) {
        let (tenant, sha256, answer) = (Arc::clone(tenant), sha256(payload), redacted_answer(rejection));
        let agent = sender_of(payload);
        self.hand_over_one(false, move |scribe| {
            scribe.store.add_violation(scribe.now, &tenant, &agent, &sha256, &answer)?;
            let agent = Some(agent).filter(|agent| !agent.is_empty());
            let body = json!({
                "event_type": "violation", "agent_id": agent, "payload_sha256": sha256, "error": answer["error"],
                "violations": answer["violations"],
            });
            scribe.tell(Topic::Violations, "violation", &tenant, &body);
            Ok(())
        });
    }

    /// Gives an order to a session, or says why it can have no effect.
    pub async fn order(
        &self,
        tenant: &str,
        session_id: &str,
        operator: &str,
        order: Order,
    ) -> Result<Result<Given, OrderRefused>, StoreError> {
        let order = redacted_order(order);
        let written = self.write_order(tenant, session_id, operator, order.clone()).await;
        match (written, order) {
            // Whoever wants to stop an agent must be able to, also while nothing can be written down.
            (Err(_), Order::Pause { reason }) => {
                let Ok(session) = self.find(session_id, Some(tenant)).await? else {
                    return Ok(Err(OrderRefused::Unknown));
                };
                let pause = Pause { since: self.shared.now(), operator: operator.to_owned(), reason };
                Ok(Ok(self.shared.pause_unwritten(&session, pause)))
            }
            (written, _) => written,
        }
    }

    async fn write_order(
        &self,
        tenant: &str,
        session_id: &str,
        operator: &str,
        mut order: Order,
    ) -> Stored<Result<Given, OrderRefused>> {
        let (tenant, session_id, operator) = (tenant.to_owned(), session_id.to_owned(), operator.to_owned());
        self.writer
            .submit(move |scribe| {
                let found = scribe.store.sessions_named(&session_id, Some(&tenant))?.into_iter().next();
                let Some(session) = found else { return Ok(Err(OrderRefused::Unknown)) };
                if let Err(refused) = scribe.aim(&session, &mut order)? {
                    return Ok(Err(refused));
                }
                scribe.give_order(session.id, &operator, order, Origin::Here).map(Ok)
            })
            .await
    }

    /// Tells of every order that took effect, so that a gateway can hold and release calls.
    pub fn on_order(&self, observer: Observer) {
        self.shared.hitl.observe(observer);
    }

    /// Keeps what a detector found elsewhere in a session of this tenant.
    pub async fn finding(&self, tenant: &str, session_id: &str, finding: Value) -> Result<(), StoreError> {
        let (tenant, session_id) = (tenant.to_owned(), session_id.to_owned());
        self.write(move |scribe| scribe.keep_finding(&tenant, &session_id, finding)).await
    }

    /// Listens to what happens, from now on or behind an event that was seen before.
    pub fn subscribe(
        &self,
        topics: Vec<Topic>,
        tenant: Option<Arc<str>>,
        last_seen: Option<u64>,
    ) -> Subscription {
        self.shared.events.subscribe(topics, tenant, last_seen)
    }

    /// The process is about to end: streams of events end now, since they would never do so by themselves.
    pub fn end_streams(&self) {
        self.leaving.send_replace(true);
    }

    /// Goes through the whole audit log.
    pub async fn verify_audit(&self) -> Result<AuditCheck, StoreError> {
        self.read(audit::verify).await
    }

    /// Forgets what is too old or too much, all of it; says how many steps that were.
    pub async fn enforce_retention(&self) -> Result<u64, StoreError> {
        let mut gone = 0;
        loop {
            let tidied =
                |scribe: &mut Scribe<'_>| scribe.forget_some().map(|done| (u64::from(done.gone), done.more));
            let (some, more) = self.writer.submit(tidied).await?;
            gone += some;
            if !more {
                return Ok(gone);
            }
        }
    }

    /// Keeps a search under a name, in place of an earlier one of that name, or drops it; says whether there was room.
    pub(crate) async fn keep_search(
        &self,
        name: String,
        query: Option<String>,
        max: usize,
        setting: &'static str,
    ) -> Stored<bool> {
        self.writer
            .submit(move |scribe| {
                let kept = scribe.store.setting(setting)?;
                let mut kept: Vec<Value> =
                    kept.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
                kept.retain(|search| search["name"] != name.as_str());
                if kept.len() >= max && query.is_some() {
                    return Ok(false);
                }
                kept.extend(query.map(|query| json!({ "name": name, "query": query })));
                scribe.store.put_setting(setting, &Value::from(kept).to_string())?;
                Ok(true)
            })
            .await
    }

    /// The one session of this name; `Err` with how many there are when it is not one.
    pub(crate) async fn find(&self, name: &str, tenant: Option<&str>) -> Stored<Result<Session, usize>> {
        let (name, tenant) = (name.to_owned(), tenant.map(str::to_owned));
        self.read(move |store| {
            let mut found = store.sessions_named(&name, tenant.as_deref())?;
            Ok(if found.len() == 1 { found.pop().ok_or(0) } else { Err(found.len()) })
        })
        .await
    }

    /// Sees to it that what was answered before can be found by its words. A store that takes long over it, or fails,
    /// is searched as it is.
    pub(crate) async fn index_words_for(&self, filter: &SearchFilter) {
        if filter.text.is_some() && self.shared.unindexed.load(Ordering::Acquire) > 0 {
            let indexed = self.writer.submit(|scribe| scribe.store.index_words());
            drop(tokio::time::timeout(INDEXED_WITHIN, indexed).await);
        }
    }

    /// Reads on a thread for that, beside the writer.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Store) -> Stored<T> + Send + 'static,
    ) -> Stored<T> {
        Arc::clone(&self.readers).read(work).await
    }
}

/// What the store holds when it is opened.
struct Opened {
    store: Store,
    id: u64,
    last_event: u64,
    thresholds: Value,
    overrides: Overrides,
    switches: Overrides,
    pauses: Vec<(Session, Pause)>,
    orders: Vec<(i64, i64, Order)>,
    standing: Vec<Standing>,
}

impl Opened {
    fn read(mut store: Store) -> Stored<Self> {
        let last_event = if store.is_shared() {
            store.last_shared_event()?
        } else {
            store.setting(EVENT_SETTING)?.and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        let thresholds = Thresholds::kept(&mut store)?;
        let overrides = Governed::kept(&mut store, Book::Policies)?;
        let switches = Governed::kept(&mut store, Book::KillSwitches)?;
        let (pauses, orders, standing) = (store.pauses()?, store.orders()?, store.standing_orders()?);
        let id = store.setting(LOG_ID)?.and_then(|text| text.parse().ok());
        let id = id.unwrap_or_else(|| {
            let id = RandomState::new().hash_one(std::process::id());
            // A store that takes nothing is told of soon enough.
            store.put_setting(LOG_ID, &id.to_string()).unwrap_or_default();
            id
        });
        Ok(Self { store, id, last_event, thresholds, overrides, switches, pauses, orders, standing })
    }
}

/// Who sent something that is no log, as far as it says so: the one thing of it that is kept.
fn sender_of(payload: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Sent {
        identity: Sender,
    }
    #[derive(serde::Deserialize)]
    struct Sender {
        agent_id: String,
    }
    let agent =
        serde_json::from_slice::<Sent>(payload).map(|sent| sent.identity.agent_id).unwrap_or_default();
    loopbreaker_telemetry::mask(crate::graph::start_of(&agent, 200)).into_owned()
}

/// Where it is kept what the log is called.
const LOG_ID: &str = "log_id";
/// Streams that may be open at once.
const MAX_STREAMS: usize = 1_000;
/// How long a search waits for words of new steps: longer than a commit takes, shorter than anybody notices.
const INDEXED_WITHIN: Duration = Duration::from_millis(250);
