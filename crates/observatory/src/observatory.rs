//! The observatory as a whole: what it is opened with, and what can be asked of it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use loopbreaker::{DetectorsConfig, Guard};
use loopbreaker_record::Rejection;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::audit::{self, AuditCheck, Deed, sha256};
use crate::chores::Orphans;
use crate::detectors;
use crate::error::{StoreError, Stored};
use crate::events::{Draft, Events, Subscription, Topic};
use crate::hitl::{Hitl, Observer, Order, OrderGiven, Pause};
use crate::ingest::{Accepted, Arrival, Refusal};
use crate::orders::Given;
use crate::sqlite::Sqlite;
use crate::store::{Session, Store};
use crate::writer::{EVENT_SETTING, Pending, Writer};

/// What the observatory is opened with.
#[derive(Clone)]
pub struct Options {
    /// The database file; made if it is not there.
    pub path: PathBuf,
    /// Logs that are older are forgotten.
    pub max_age: Duration,
    /// When the database holds more, the oldest logs are forgotten.
    pub max_bytes: u64,
    /// Whether words are kept, or only their hashes.
    pub keep_prompts: bool,
    /// A pause that nobody decided about for so long becomes a rejection.
    pub pause_timeout: Duration,
    /// The thresholds, unless they were changed at run time.
    pub detectors: DetectorsConfig,
    /// Events that are kept for listeners that come back.
    pub events_kept: usize,
    /// Milliseconds since 1970.
    pub clock: Arc<dyn Fn() -> i64 + Send + Sync>,
}

impl Options {
    /// The defaults, with this database file.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            max_age: Duration::from_secs(30 * 24 * 3_600),
            max_bytes: 10 << 30,
            keep_prompts: true,
            pause_timeout: Duration::from_secs(30 * 60),
            detectors: DetectorsConfig::default(),
            events_kept: 16_384,
            clock: Arc::new(system_clock),
        }
    }
}

fn system_clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("path", &self.path).finish_non_exhaustive()
    }
}

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
    writer: Writer,
}

/// What every thread of the observatory sees.
pub(crate) struct Shared {
    pub(crate) events: Arc<Events>,
    pub(crate) hitl: Hitl,
    pub(crate) health: Health,
    pub(crate) orphans: Orphans,
    pub(crate) keep_prompts: bool,
    pub(crate) pause_timeout: i64,
    pub(crate) max_age: i64,
    pub(crate) max_bytes: u64,
    detectors: RwLock<(Arc<DetectorsConfig>, Guard)>,
    next_retention: AtomicI64,
    clock: Arc<dyn Fn() -> i64 + Send + Sync>,
}

/// How the store is doing.
#[derive(Debug, Default)]
pub struct Health {
    failure: Mutex<Option<StoreError>>,
    unwritten: AtomicU64,
}

impl Health {
    /// Why the last batch could not be written; `None` while the store works.
    pub fn failure(&self) -> Option<StoreError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How much could not be written since the start. None of it was answered as if it had been.
    pub fn unwritten(&self) -> u64 {
        self.unwritten.load(Ordering::Relaxed)
    }

    fn set(&self, failure: Option<StoreError>) -> bool {
        let mut now = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = now.is_some() != failure.is_some();
        *now = failure;
        changed
    }
}

impl Shared {
    /// Retention looks at the store so often.
    const RETENTION_EVERY: i64 = 60_000;

    pub(crate) fn now(&self) -> i64 {
        (self.clock)()
    }

    pub(crate) fn detectors(&self) -> Arc<DetectorsConfig> {
        Arc::clone(&self.detectors.read().unwrap_or_else(PoisonError::into_inner).0)
    }

    pub(crate) fn guard(&self) -> Guard {
        self.detectors.read().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// New thresholds. The guard starts afresh only when its own have changed.
    fn set_detectors(&self, config: DetectorsConfig) {
        let mut running = self.detectors.write().unwrap_or_else(PoisonError::into_inner);
        let same_guard = running.0.sentinel == config.sentinel && running.0.redundancy == config.redundancy;
        if !same_guard {
            running.1 = Guard::new(&config);
        }
        running.0 = Arc::new(config);
    }

    pub(crate) fn store_works(&self) {
        if self.health.set(None) {
            self.tell_health("ok", None);
        }
    }

    pub(crate) fn store_failed(&self, error: StoreError, jobs: u64) {
        self.health.unwritten.fetch_add(jobs, Ordering::Relaxed);
        let code = error.code();
        if self.health.set(Some(error)) {
            self.tell_health("degraded", Some(code));
        }
    }

    fn tell_health(&self, state: &str, reason: Option<&str>) {
        let unwritten = self.health.unwritten();
        let body = json!({
            "event_type": "health", "part": "store", "state": state, "reason": reason, "unwritten": unwritten,
        });
        self.events.publish([Draft { topic: Topic::Health, kind: "health", tenant: None, body }]);
    }

    /// Holds a session although the store fails: it lasts as long as the process.
    fn pause_unwritten(&self, session: &Session, pause: Pause) -> Given {
        let given = OrderGiven {
            tenant: session.tenant_name.clone(),
            session_id: session.name.clone(),
            operator: pause.operator.clone(),
            order: Order::Pause { reason: pause.reason.clone() },
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
        let mut store: Box<dyn Store> = Box::new(Sqlite::open(&options.path)?);
        let last = store.setting(EVENT_SETTING)?.and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut config = options.detectors;
        if let Some(text) = store.setting(DETECTORS_SETTING)? {
            let kept = serde_json::from_str(&text).unwrap_or(Value::Null);
            config = detectors::changed(&config, &kept).unwrap_or(config);
        }
        let hitl = Hitl::default();
        for (session, pause) in store.pauses()? {
            hitl.set_pause(session.id, Some(pause));
        }
        for (session, number, order) in store.orders()? {
            hitl.queue(session, number, order);
        }
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 2);
        let guard = Guard::new(&config);
        let shared = Arc::new(Shared {
            events: Arc::new(Events::new(options.events_kept, last)),
            hitl,
            health: Health::default(),
            orphans: Orphans::default(),
            keep_prompts: options.keep_prompts,
            pause_timeout: millis(options.pause_timeout),
            max_age: millis(options.max_age),
            max_bytes: options.max_bytes,
            detectors: RwLock::new((Arc::new(config), guard)),
            next_retention: AtomicI64::new(0),
            clock: options.clock,
        });
        let writer = Writer::start(store, Arc::clone(&shared))?;
        let readers = Arc::new(Readers::new(options.path));
        Ok(Self { shared, readers, streams: Arc::new(Semaphore::new(MAX_STREAMS)), writer })
    }

    /// Takes a log in. The answer comes after it is safe on disk.
    pub async fn ingest(&self, arrival: Arrival) -> Result<Result<Accepted, Refusal>, StoreError> {
        self.writer.submit(|scribe| scribe.ingest(arrival)).await
    }

    /// Takes a log in behind those that were handed in before; its answer can be waited for later.
    pub(crate) async fn enqueue(&self, arrival: Arrival) -> Stored<Pending<Result<Accepted, Refusal>>> {
        self.writer.enqueue(|scribe| scribe.ingest(arrival)).await
    }

    /// Notes that something was refused, by the hash of what it was.
    pub fn refused(&self, tenant: &Arc<str>, payload: &[u8], rejection: &Rejection) {
        let (tenant, sha256, answer) = (Arc::clone(tenant), sha256(payload), rejection.answer());
        let noted = self.writer.note(move |scribe| {
            scribe.store.add_violation(scribe.now, &tenant, &sha256, &answer)?;
            let body = json!({
                "event_type": "violation", "payload_sha256": sha256, "error": answer["error"],
                "violations": answer["violations"],
            });
            scribe.tell(Topic::Violations, "violation", &tenant, body);
            Ok(())
        });
        if !noted {
            self.shared.health.unwritten.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Gives an order to a session; `None` when there is no such session, or no such step in it.
    pub async fn order(
        &self,
        tenant: &str,
        session_id: &str,
        operator: &str,
        order: Order,
    ) -> Result<Option<Given>, StoreError> {
        let written = self.write_order(tenant, session_id, operator, order.clone()).await;
        match (written, order) {
            // Whoever wants to stop an agent must be able to, also while nothing can be written down.
            (Err(_), Order::Pause { reason }) => {
                let Ok(session) = self.find(session_id, Some(tenant)).await? else { return Ok(None) };
                let pause = Pause { since: self.shared.now(), operator: operator.to_owned(), reason };
                Ok(Some(self.shared.pause_unwritten(&session, pause)))
            }
            (written, _) => written,
        }
    }

    async fn write_order(
        &self,
        tenant: &str,
        session_id: &str,
        operator: &str,
        order: Order,
    ) -> Stored<Option<Given>> {
        let (tenant, session_id, operator) = (tenant.to_owned(), session_id.to_owned(), operator.to_owned());
        self.writer
            .submit(move |scribe| {
                let found = scribe.store.sessions_named(&session_id, Some(&tenant))?.into_iter().next();
                let Some(session) = found else { return Ok(None) };
                if let Order::Rewrite { trace_id, .. } = &order {
                    let step = scribe.store.step(session.tenant, *trace_id)?;
                    if step.is_none_or(|step| step.session != session.id) {
                        return Ok(None);
                    }
                }
                scribe.give_order(session.id, &operator, order).map(Some)
            })
            .await
    }

    /// Tells of every order that took effect, so that a gateway can hold and release calls.
    pub fn on_order(&self, observer: Observer) {
        self.shared.hitl.observe(observer);
    }

    /// Keeps what a detector found elsewhere in a session of this tenant; says whether the session is known.
    pub async fn finding(&self, tenant: &str, session_id: &str, finding: Value) -> Result<bool, StoreError> {
        let (tenant, session_id) = (tenant.to_owned(), session_id.to_owned());
        self.writer
            .submit(move |scribe| {
                let found = scribe.store.sessions_named(&session_id, Some(&tenant))?.into_iter().next();
                let Some(session) = found else { return Ok(false) };
                scribe.store.add_finding(session.id, scribe.now, &finding)?;
                let body = json!({ "event_type": "finding", "session_id": session_id, "finding": finding });
                scribe.tell(Topic::Findings, "finding", &Arc::from(tenant.as_str()), body);
                Ok(true)
            })
            .await
    }

    /// Changes thresholds at run time: whole, or not at all.
    pub async fn configure(
        &self,
        operator: &str,
        change: Value,
    ) -> Result<Result<Value, Vec<(String, String)>>, StoreError> {
        let operator = operator.to_owned();
        self.writer
            .submit(move |scribe| {
                let old = scribe.shared.detectors();
                let new = match detectors::changed(&old, &change) {
                    Ok(new) => new,
                    Err(problems) => return Ok(Err(problems)),
                };
                let (before, after) = (detectors::shown(&old), detectors::shown(&new));
                scribe.store.put_setting(DETECTORS_SETTING, &after.to_string())?;
                scribe.audit(Deed {
                    operator: &operator,
                    action: "config",
                    before: Some(sha256(before.to_string().as_bytes())),
                    after: Some(sha256(after.to_string().as_bytes())),
                    ..Deed::default()
                })?;
                let shared = Arc::clone(scribe.shared);
                scribe.effects.push(Box::new(move || shared.set_detectors(new)));
                Ok(Ok(after))
            })
            .await
    }

    /// The running thresholds.
    pub fn detectors(&self) -> Arc<DetectorsConfig> {
        self.shared.detectors()
    }

    /// How the store is doing.
    pub fn health(&self) -> &Health {
        &self.shared.health
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

    /// Goes through the whole audit log.
    pub async fn verify_audit(&self) -> Result<AuditCheck, StoreError> {
        self.read(audit::verify).await
    }

    /// Forgets what is too old or too much, all of it; says how many steps that were.
    pub async fn enforce_retention(&self) -> Result<u64, StoreError> {
        let mut gone = 0;
        loop {
            match self.writer.submit(|scribe| scribe.forget_some().map(u64::from)).await? {
                0 => return Ok(gone),
                some => gone += some,
            }
        }
    }

    /// An order that the next check of a tool call hands out, once.
    pub(crate) async fn order_for_check(&self, session: i64) -> Stored<Option<Order>> {
        let fits = |_: i64, order: &Order| {
            matches!(order, Order::Reject { .. } | Order::Rewrite { tool_input: Some(_), .. })
        };
        if self.shared.hitl.find_order(session, fits).is_none() {
            return Ok(None);
        }
        self.writer
            .submit(move |scribe| {
                let told = scribe.told.clone();
                let open = |number, order: &Order| fits(number, order) && !told.contains(&number);
                let Some((number, order)) = scribe.shared.hitl.find_order(session, open) else {
                    return Ok(None);
                };
                scribe.order_told(session, number)?;
                Ok(Some(order))
            })
            .await
    }

    /// Keeps a search under a name, in place of an earlier one of that name; says whether there was room.
    pub(crate) async fn keep_search(
        &self,
        name: String,
        query: String,
        max: usize,
        setting: &'static str,
    ) -> Stored<bool> {
        self.writer
            .submit(move |scribe| {
                let kept = scribe.store.setting(setting)?;
                let mut kept: Vec<Value> =
                    kept.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
                kept.retain(|search| search["name"] != name.as_str());
                if kept.len() >= max {
                    return Ok(false);
                }
                kept.push(json!({ "name": name, "query": query }));
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

    /// Reads on a thread for that, beside the writer.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Store) -> Stored<T> + Send + 'static,
    ) -> Stored<T> {
        Arc::clone(&self.readers).read(work).await
    }
}

const DETECTORS_SETTING: &str = "detectors";
/// Streams that may be open at once.
const MAX_STREAMS: usize = 1_000;

/// Connections that only read.
pub(crate) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Box<dyn Store>>>,
    permits: Semaphore,
}

impl Readers {
    const MAX: usize = 4;

    fn new(path: PathBuf) -> Self {
        Self { path, idle: Mutex::default(), permits: Semaphore::new(Self::MAX) }
    }

    pub(crate) async fn read<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&mut dyn Store) -> Stored<T> + Send + 'static,
    ) -> Stored<T> {
        let Ok(_permit) = self.permits.acquire().await else { return Err(StoreError::Busy) };
        let readers = Arc::clone(&self);
        let reading = tokio::task::spawn_blocking(move || {
            let idle = readers.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut store = match idle {
                Some(store) => store,
                None => Box::new(Sqlite::open_reader(&readers.path)?),
            };
            let result = work(&mut *store);
            // A connection that failed is not used again.
            if result.is_ok() {
                readers.idle.lock().unwrap_or_else(PoisonError::into_inner).push(store);
            }
            result
        });
        reading.await.unwrap_or_else(|_| Err(StoreError::Other("a reader panicked".to_owned())))
    }
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers").field("path", &self.path).finish_non_exhaustive()
    }
}
