//! The one thread that writes: whatever waits is done in one transaction, and answered after its commit.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loopbreaker_record::{DecisionLog, TraceId};
use lru::LruCache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::error::{StoreError, Stored};
use crate::events::{Draft, Event};
use crate::hitl::{OrderGiven, Pause};
use crate::ingest::LiveSession;
use crate::notes::Note;
use crate::observatory::Shared;
use crate::polite::{after_you, hurry};
use crate::store::{SharedEvent, Store};
use crate::traffic::MAX_OPEN;
use crate::waste::Watch;

/// Hands work to the thread.
#[derive(Debug)]
pub(crate) struct Writer {
    jobs: Option<Sender<Envelope>>,
    permits: Arc<Semaphore>,
    /// Places of those who do not wait: they take none from those who do.
    notes: Arc<Semaphore>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Work inside of a transaction, and the answer that is given once it is committed. An answer that is never given, as
/// that of a failure, is dropped: but only after the failure is shown.
type Job = Box<dyn FnOnce(&mut Scribe<'_>) -> Result<Effect, (StoreError, Effect)> + Send>;
type Effect = Box<dyn FnOnce() + Send>;

/// What an envelope holds.
enum Work {
    Job(Job),
    /// What is noted, in order. A transaction that has taken long leaves the rest to the next one.
    Notes(std::vec::IntoIter<Note>),
}

struct Envelope {
    work: Work,
    /// How much is noted with it.
    count: usize,
    /// Whether somebody is told that it is written.
    relied_on: bool,
    /// Its place in the queue; our own chores have none.
    place: Option<OwnedSemaphorePermit>,
    /// Where whoever waits for it finds why it failed.
    reason: Option<Reason>,
}

/// Why work failed, once it has. The store may fail for another reason, or work again, before anybody has looked.
type Reason = Arc<OnceLock<StoreError>>;

/// What a job works with.
pub(crate) struct Scribe<'a> {
    pub(crate) store: &'a mut Store,
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) live: &'a mut LruCache<i64, LiveSession>,
    pub(crate) watches: &'a mut LruCache<i64, Watch>,
    /// Calls that are under way, with their words, by session and step.
    pub(crate) open: &'a mut LruCache<(i64, TraceId), DecisionLog>,
    /// What to tell once it is committed.
    pub(crate) drafts: Vec<Draft>,
    /// What else to do then, before anybody is answered.
    pub(crate) effects: Vec<Effect>,
    /// Sessions that are written at the end of the batch, in the order in which they stand in the database.
    pub(crate) changed: BTreeSet<i64>,
    /// Sessions that became part of others with this batch.
    pub(crate) merged: Vec<i64>,
    /// Pauses that begin or end with this batch.
    pub(crate) pauses: HashMap<i64, Option<Pause>>,
    /// Orders that are handed out with this batch.
    pub(crate) told: Vec<i64>,
    pub(crate) now: i64,
}

/// Sessions whose windows are kept in memory; the others are read again when they go on.
const MAX_LIVE: NonZeroUsize = NonZeroUsize::new(16_384).unwrap();
/// Sessions whose last calls are kept in memory, at up to 30 kB each.
const MAX_WATCHED: NonZeroUsize = NonZeroUsize::new(2_048).unwrap();
/// What one transaction notes: far below the number of live sessions, so none is evicted before it is written. A session
/// is written once in it, and so is a page of the database, however much of both is noted.
const MAX_BATCH: usize = 8_192;
/// Where somebody waits for it, it does not gather more than this.
const MAX_AWAITED: usize = 1_024;
/// Of these, so many are written before the clock is looked at again.
const NOTES_AT_ONCE: usize = 32;
/// Jobs that may wait. Beyond that, callers wait.
const MAX_WAITING: usize = 8_192;
/// Notes that may wait. Beyond that, they are dropped and counted.
const MAX_NOTED: usize = 16_384;
/// How long a caller waits for a place.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a caller waits for its answer once it has a place. Its work may still be done later; it was not said to be.
const ANSWER_WITHIN: Duration = Duration::from_secs(8);
/// A batch that takes longer is committed as far as it is, so that a slow store keeps those at its front waiting for
/// their own work only.
const BATCH_TIME: Duration = Duration::from_secs(1);
/// How often the thread looks after what nobody asks for.
const TICK: Duration = Duration::from_millis(250);
/// How often a store that has failed is tried where nothing is to be written.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// What is written then.
const TRIED_SETTING: &str = "tried_at";
/// Event numbers are set aside in blocks, so that a restart never gives one twice.
const EVENT_BLOCK: u64 = 10_000;
/// Events of other processes that are read at a time.
const EVENTS_AT_ONCE: u32 = 1_000;
pub(crate) const EVENT_SETTING: &str = "event_seq";

impl std::fmt::Debug for Envelope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Envelope")
    }
}

impl Writer {
    pub(crate) fn start(store: Store, shared: Arc<Shared>) -> Stored<Self> {
        let (jobs, waiting) = channel();
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("observatory".to_owned())
            .spawn(move || Desk::new(store, for_thread).run(&waiting))
            .map_err(|error| StoreError::Other(error.to_string()))?;
        let permits = Arc::new(Semaphore::new(MAX_WAITING));
        let notes = Arc::new(Semaphore::new(MAX_NOTED));
        Ok(Self { jobs: Some(jobs), permits, notes, shared, thread: Some(thread) })
    }

    /// Does work in the next transaction; the answer comes after its commit.
    pub(crate) async fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Scribe<'_>) -> Stored<T> + Send + 'static,
    ) -> Stored<T> {
        self.enqueue(work).await?.answer().await
    }

    /// Puts work into the queue, in order; the answer can be waited for later.
    pub(crate) async fn enqueue<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Scribe<'_>) -> Stored<T> + Send + 'static,
    ) -> Stored<Pending<T>> {
        let place = tokio::time::timeout(PATIENCE, Arc::clone(&self.permits).acquire_owned()).await;
        let Ok(Ok(permit)) = place else { return Err(StoreError::Busy) };
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |scribe| match work(scribe) {
            // Whoever asked may have gone.
            Ok(done) => Ok(Box::new(move || drop(reply.send(done)))),
            Err(error) => Err((error, Box::new(move || drop(reply)))),
        });
        let reason = Reason::default();
        let (place, told) = (Some(permit), Some(Arc::clone(&reason)));
        self.send(Envelope { work: Work::Job(job), count: 1, relied_on: true, place, reason: told })?;
        Ok(Pending {
            answer,
            reason,
            until: tokio::time::Instant::now() + ANSWER_WITHIN,
            shared: Arc::clone(&self.shared),
        })
    }

    /// Does work some time soon if there is a place for it, and tells nobody.
    pub(crate) fn note(
        &self,
        relied_on: bool,
        work: impl FnOnce(&mut Scribe<'_>) -> Stored<()> + Send + 'static,
    ) -> bool {
        self.take_note(1, relied_on, Work::Job(unanswered(work)))
    }

    /// Writes notes down some time soon if there are places for all of them, and tells nobody.
    pub(crate) fn note_all(&self, relied_on: bool, notes: Vec<Note>) -> bool {
        self.take_note(notes.len(), relied_on, Work::Notes(notes.into_iter()))
    }

    fn take_note(&self, count: usize, relied_on: bool, work: Work) -> bool {
        let places = u32::try_from(count).unwrap_or(u32::MAX);
        let Ok(permit) = Arc::clone(&self.notes).try_acquire_many_owned(places) else { return false };
        self.send(Envelope { work, count, relied_on, place: Some(permit), reason: None }).is_ok()
    }

    /// Does work behind all that waits, whether there is a place for it or not: for the few who end with it.
    pub(crate) fn push_through(
        &self,
        work: impl FnOnce(&mut Scribe<'_>) -> Stored<()> + Send + 'static,
    ) -> bool {
        let work = Work::Job(unanswered(work));
        self.send(Envelope { work, count: 0, relied_on: false, place: None, reason: None }).is_ok()
    }

    fn send(&self, envelope: Envelope) -> Stored<()> {
        let gone = || StoreError::Other("the writer has ended".to_owned());
        self.jobs.as_ref().ok_or_else(gone)?.send(envelope).map_err(|_| gone())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been shown as a failure of the store.
            drop(thread.join());
        }
    }
}

/// An answer that comes after a commit.
#[derive(Debug)]
pub(crate) struct Pending<T> {
    answer: oneshot::Receiver<T>,
    reason: Reason,
    until: tokio::time::Instant,
    shared: Arc<Shared>,
}

impl<T> Pending<T> {
    pub(crate) async fn answer(self) -> Stored<T> {
        match tokio::time::timeout_at(self.until, self.answer).await {
            Ok(Ok(answer)) => Ok(answer),
            // Work whose transaction failed is dropped with its reply.
            Ok(Err(_)) => {
                let why = self.reason.get().cloned();
                Err(why.unwrap_or_else(|| StoreError::Other("the batch failed".to_owned())))
            }
            Err(_) => Err(self.shared.health.failure().unwrap_or(StoreError::Busy)),
        }
    }
}

/// The thread's own state.
struct Desk {
    store: Store,
    shared: Arc<Shared>,
    live: LruCache<i64, LiveSession>,
    watches: LruCache<i64, Watch>,
    open: LruCache<(i64, TraceId), DecisionLog>,
    /// Event numbers up to this one are set aside.
    reserved: u64,
    last_tick: Instant,
    /// When a store that had failed was last tried.
    last_try: Instant,
}

impl Desk {
    fn new(store: Store, shared: Arc<Shared>) -> Self {
        let reserved = shared.events.last();
        Self {
            store,
            shared,
            live: LruCache::new(MAX_LIVE),
            watches: LruCache::new(MAX_WATCHED),
            open: LruCache::new(MAX_OPEN),
            reserved,
            last_tick: Instant::now(),
            last_try: Instant::now(),
        }
    }

    fn run(mut self, jobs: &Receiver<Envelope>) {
        loop {
            match jobs.recv_timeout(TICK) {
                Ok(first) => {
                    // While one batch is synced to disk the next one gathers, so nobody has to wait for company.
                    let (mut count, mut is_awaited) = (first.count, first.relied_on);
                    let mut batch = VecDeque::from([first]);
                    let is_full =
                        |count, is_awaited| count >= if is_awaited { MAX_AWAITED } else { MAX_BATCH };
                    while !is_full(count, is_awaited)
                        && let Ok(next) = jobs.try_recv()
                    {
                        count += next.count;
                        is_awaited |= next.relied_on;
                        batch.push_back(next);
                    }
                    hurry(is_full(count, is_awaited));
                    while !batch.is_empty() {
                        self.commit(&mut batch);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.last_tick.elapsed() >= TICK {
                self.last_tick = Instant::now();
                if self.shared.has_others {
                    match self.catch_up() {
                        Ok(()) => self.shared.store_works(),
                        Err(error) => self.shared.store_failed(error, 0),
                    }
                }
                if self.shared.has_chores() {
                    let chores = unanswered(|scribe| {
                        scribe.do_chores()?;
                        Ok(())
                    });
                    self.commit(&mut [Envelope::of_our_own(chores)].into());
                } else if self.is_to_be_tried() {
                    self.last_try = Instant::now();
                    let job =
                        unanswered(|scribe| scribe.store.put_setting(TRIED_SETTING, &scribe.now.to_string()));
                    self.commit(&mut [Envelope::of_our_own(job)].into());
                } else if self.store.words_are_due() {
                    self.commit(&mut VecDeque::new());
                } else if self.store.may_shrink() {
                    // What could not be done now is done later, and nobody has to know.
                    drop(self.store.shrink());
                }
            }
        }
    }

    /// Whether the store has failed and nobody wants anything written that would show whether it works again. One that
    /// others write to shows it by what is read of them.
    fn is_to_be_tried(&self) -> bool {
        !self.shared.has_others
            && self.last_try.elapsed() >= TRY_AGAIN
            && self.shared.health.failure().is_some()
    }

    /// One transaction. Either all that it takes from the batch is committed and answered, or all of the batch fails.
    fn commit(&mut self, batch: &mut VecDeque<Envelope>) {
        let asked_for: usize = batch.iter().map(|envelope| envelope.count).sum();
        let reasons: Vec<Reason> = batch.iter().filter_map(|envelope| envelope.reason.clone()).collect();
        let mut replies = Vec::with_capacity(batch.len());
        let worked = catch_unwind(AssertUnwindSafe(|| self.work(batch, &mut replies)));
        let worked = worked.unwrap_or_else(|_| Err(StoreError::Other("a job panicked".to_owned())));
        match worked {
            Ok((drafts, effects)) => {
                for effect in effects {
                    effect();
                }
                match drafts {
                    Drafts::Ours(drafts) => self.shared.events.publish(drafts),
                    Drafts::Numbered(events) => {
                        for event in events {
                            self.shared.events.publish_numbered(event);
                        }
                    }
                }
                self.shared.store_works();
                self.shared.unindexed.store(self.store.unindexed(), Ordering::Release);
                for reply in replies {
                    reply();
                }
            }
            Err(error) => {
                self.store.rollback();
                // What was thought in this batch has not happened.
                self.forget_all();
                for reason in reasons {
                    // Each batch fails once.
                    drop(reason.set(error.clone()));
                }
                self.shared.store_failed(error, asked_for as u64);
                // Whoever waits is answered once the failure is shown.
                batch.clear();
            }
        }
    }

    fn work(
        &mut self,
        batch: &mut VecDeque<Envelope>,
        replies: &mut Vec<Effect>,
    ) -> Stored<(Drafts, Vec<Effect>)> {
        self.store.begin(batch.iter().any(|envelope| envelope.relied_on))?;
        if self.shared.has_others {
            self.catch_up()?;
        }
        let mut scribe = Scribe {
            store: &mut self.store,
            shared: &self.shared,
            live: &mut self.live,
            watches: &mut self.watches,
            open: &mut self.open,
            drafts: Vec::new(),
            effects: Vec::new(),
            changed: BTreeSet::new(),
            merged: Vec::new(),
            pauses: HashMap::new(),
            told: Vec::new(),
            now: self.shared.now(),
        };
        let started = Instant::now();
        // They are free for others only when this transaction is over.
        let mut places = Vec::with_capacity(batch.len());
        while let Some(mut envelope) = batch.pop_front() {
            match envelope.work {
                Work::Job(job) => {
                    places.push(envelope.place);
                    match job(&mut scribe) {
                        Ok(reply) => replies.push(reply),
                        Err((error, reply)) => {
                            replies.push(reply);
                            return Err(error);
                        }
                    }
                }
                Work::Notes(mut notes) => {
                    for note in notes.by_ref().take(NOTES_AT_ONCE) {
                        scribe.note(note)?;
                        after_you();
                    }
                    if notes.len() > 0 {
                        envelope = Envelope { count: notes.len(), work: Work::Notes(notes), ..envelope };
                        batch.push_front(envelope);
                    } else {
                        places.push(envelope.place);
                    }
                }
            }
            if started.elapsed() > BATCH_TIME {
                break;
            }
            after_you();
        }
        scribe.write_sessions()?;
        let Scribe { drafts, effects, .. } = scribe;
        let drafts = self.number(drafts)?;
        self.store.commit()?;
        Ok((drafts, effects))
    }

    /// Sets numbers aside for events, or writes the events down with their numbers where others tell them too.
    fn number(&mut self, drafts: Vec<Draft>) -> Stored<Drafts> {
        let before = self.shared.events.last();
        let last = before + drafts.len() as u64;
        if !self.shared.has_others {
            if last > self.reserved {
                self.reserved = last + EVENT_BLOCK;
                self.store.put_setting(EVENT_SETTING, &self.reserved.to_string())?;
            }
            return Ok(Drafts::Ours(drafts));
        }
        self.store.add_shared_events(before + 1, &drafts)?;
        if last / EVENT_BLOCK != before / EVENT_BLOCK {
            self.store.forget_shared_events(last.saturating_sub(self.shared.events.capacity()))?;
        }
        let numbered = (before + 1..).zip(drafts).map(|(seq, draft)| {
            let Draft { topic, kind, tenant, body, .. } = draft;
            Event { seq, topic, kind, tenant, body }
        });
        Ok(Drafts::Numbered(numbered.collect()))
    }

    /// Tells what other processes have written in the meantime, and forgets what that makes untrue.
    fn catch_up(&mut self) -> Stored<()> {
        let last = self.store.last_shared_event()?;
        if last <= self.shared.events.last() {
            return Ok(());
        }
        self.forget_all();
        let mut orders = Vec::new();
        while self.shared.events.last() < last {
            let found = self.store.shared_events(self.shared.events.last(), EVENTS_AT_ONCE)?;
            if found.is_empty() {
                break;
            }
            for SharedEvent { event, order } in found {
                self.shared.count_step_of(&event);
                self.shared.events.publish_numbered(event);
                orders.extend(order.and_then(|text| serde_json::from_str::<OrderGiven>(&text).ok()));
            }
        }
        self.shared.read_again(&mut self.store)?;
        for given in orders {
            self.shared.hitl.tell(&given);
        }
        Ok(())
    }

    /// What is in memory may not be true any more.
    fn forget_all(&mut self) {
        self.live.clear();
        self.watches.clear();
        self.open.clear();
        self.store.forget_places();
    }
}

impl Envelope {
    /// Work that nobody has asked for.
    const fn of_our_own(job: Job) -> Self {
        Self { work: Work::Job(job), count: 0, relied_on: true, place: None, reason: None }
    }
}

/// A job that nobody waits for.
fn unanswered(work: impl FnOnce(&mut Scribe<'_>) -> Stored<()> + Send + 'static) -> Job {
    Box::new(move |scribe| match work(scribe) {
        Ok(()) => Ok(Box::new(|| ())),
        Err(error) => Err((error, Box::new(|| ()))),
    })
}

/// Events of a batch, after its commit.
enum Drafts {
    Ours(Vec<Draft>),
    Numbered(Vec<Event>),
}
