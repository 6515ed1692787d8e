//! Where texts wait for the embedder: a short queue, a thread, a model that is loaded at the first need.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use tokio::sync::oneshot;

use crate::correction::Correction;
use crate::embedder::{EmbedError, Embedder, Embedding};
use crate::keyed::Keyed;
use crate::model::ModelOptions;

/// A vector that many may hold.
pub(crate) type Vector = Arc<[f32]>;

/// Takes texts in and gives vectors back, without ever holding up who asks.
///
/// Texts that arrive together are embedded together. When so many wait that an answer would come too late, a text is
/// turned away at once. Vectors of the last texts are kept, so an identical text is not embedded again.
pub(crate) struct Desk {
    queue: SyncSender<Job>,
    shared: Arc<Shared>,
    /// The thread's side, until the first need starts it.
    idle: Mutex<Option<(Receiver<Job>, ModelOptions)>>,
}

struct Shared {
    model: OnceLock<Result<Arc<dyn Embedder>, String>>,
    waiting: AtomicUsize,
    /// Microseconds that a text took lately.
    pace: AtomicU64,
    seen: Mutex<LruCache<u128, Vector>>,
    embedded: AtomicU64,
    keyed: Keyed,
}

struct Job {
    texts: Vec<Arc<str>>,
    /// How many of them have to be embedded: what they cost.
    cost: usize,
    /// The same, as long as it is the asker's: 0 when the thread has begun, or the asker has given up.
    claim: Arc<AtomicUsize>,
    /// Nobody waits for the vectors any longer than this.
    until: Instant,
    /// Nothing waited before it: it is tried whatever the pace, which may be an old one.
    is_alone: bool,
    answer: oneshot::Sender<Result<Vec<Vector>, Refusal>>,
}

/// Texts of somebody who waits. They count no longer than that: what is left of those who gave up would turn others
/// away.
struct Claim<'a> {
    waiting: &'a AtomicUsize,
    claim: Arc<AtomicUsize>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.claim.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Why there is no vector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the model is being loaded")]
    Loading,
    #[error("too many texts wait")]
    Busy,
    #[error("{0}")]
    Failed(String),
}

/// Texts that may wait whatever their pace.
const QUEUE: usize = 256;
/// Texts that are embedded in one go.
const BATCH: usize = 16;
/// What a text is thought to take before any was measured.
const FIRST_PACE: u64 = 20_000;
const SEEN: NonZeroUsize = NonZeroUsize::new(2_048).unwrap();

impl Desk {
    /// A desk whose model is loaded when the first text comes.
    pub(crate) fn lazy(model: ModelOptions) -> Self {
        let (queue, jobs) = sync_channel(QUEUE);
        let shared = Arc::new(Shared {
            model: OnceLock::new(),
            waiting: AtomicUsize::new(0),
            pace: AtomicU64::new(FIRST_PACE),
            seen: Mutex::new(LruCache::new(SEEN)),
            embedded: AtomicU64::new(0),
            keyed: Keyed::new(),
        });
        Self { queue, shared, idle: Mutex::new(Some((jobs, model))) }
    }

    /// A desk with a model that is ready.
    pub(crate) fn with(embedder: Arc<dyn Embedder>) -> Result<Self, EmbedError> {
        let desk = Self::lazy(ModelOptions::default());
        desk.shared.model.get_or_init(|| Ok(embedder));
        desk.wake().map_err(|error| EmbedError::Inference(error.to_string()))?;
        Ok(desk)
    }

    /// What similarities of its vectors need; nothing before the model is there, for then there are no vectors.
    pub(crate) fn correction(&self) -> Correction {
        self.ready().map_or(Correction::NONE, |model| model.correction())
    }

    /// Texts that were embedded so far.
    pub(crate) fn embedded(&self) -> u64 {
        self.shared.embedded.load(Ordering::Relaxed)
    }

    /// Texts that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
    }

    /// Whether the vector of a text is there already: then it costs nothing.
    pub(crate) fn knows(&self, text: &str) -> bool {
        self.shared.vector_of(text).is_some()
    }

    /// How many more texts can be embedded `within` that time. An idle desk takes one whatever its pace, or a slow
    /// first text would close it for good.
    pub(crate) fn room(&self, within: Duration) -> usize {
        let pace = u128::from(self.shared.pace.load(Ordering::Relaxed).max(1));
        let texts = |micros: u128| usize::try_from(micros / pace).unwrap_or(usize::MAX);
        match self.waiting() {
            0 => texts(within.as_micros()).max(1),
            // Behind others a quarter is left for what the pace does not know of.
            waiting => texts(within.as_micros() * 3 / 4).saturating_sub(waiting),
        }
    }

    /// The vectors of some texts, if they can be there `within` that time. Dropping the future takes the texts back.
    pub(crate) async fn vectors(&self, texts: &[Arc<str>], within: Duration) -> Result<Vec<Vector>, Refusal> {
        if let Some(vectors) = self.shared.all_seen(texts) {
            return Ok(vectors);
        }
        self.wake()?;
        let cost = texts.iter().filter(|text| !self.knows(text)).count();
        if cost > self.room(within) {
            return Err(Refusal::Busy);
        }
        let (answer, answered) = oneshot::channel();
        let (waiting, claim) = (&self.shared.waiting, Arc::new(AtomicUsize::new(cost)));
        let is_alone = waiting.fetch_add(cost, Ordering::Relaxed) == 0;
        let (texts, until) = (texts.to_vec(), Instant::now() + within);
        let job = Job { texts, cost, claim: Arc::clone(&claim), until, is_alone, answer };
        let _claim = Claim { waiting, claim };
        if let Err(refused) = self.queue.try_send(job) {
            return Err(match refused {
                TrySendError::Full(_) => Refusal::Busy,
                TrySendError::Disconnected(_) => Refusal::Failed("the embedding thread has ended".to_owned()),
            });
        }
        answered.await.unwrap_or_else(|_| Err(Refusal::Failed("the embedding thread has ended".to_owned())))
    }

    /// Starts the thread if it has not been. Says whether the model is there.
    fn wake(&self) -> Result<(), Refusal> {
        if let Some((jobs, model)) = lock(&self.idle).take() {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("embed".to_owned());
            let started = thread.spawn(move || shared.work(&jobs, &model));
            if let Err(error) = started {
                let reason = format!("no thread for the model: {error}");
                self.shared.model.get_or_init(|| Err(reason));
            }
        }
        match self.shared.model.get() {
            Some(Ok(_)) => Ok(()),
            Some(Err(reason)) => Err(Refusal::Failed(reason.clone())),
            None => Err(Refusal::Loading),
        }
    }

    fn ready(&self) -> Option<&Arc<dyn Embedder>> {
        self.shared.model.get()?.as_ref().ok()
    }
}

impl Shared {
    /// The thread: loads the model, then embeds until nobody can ask any more.
    fn work(&self, jobs: &Receiver<Job>, options: &ModelOptions) {
        let load = || {
            let loaded = catch_unwind(AssertUnwindSafe(|| options.load()));
            loaded.map_err(|_| "loading the model panicked".to_owned())?.map_err(|error| error.to_string())
        };
        let Ok(model) = self.model.get_or_init(load) else { return };
        while let Ok(first) = jobs.recv() {
            let begin = |job: &Job| job.claim.swap(0, Ordering::Relaxed);
            let mut begun = begin(&first);
            let mut batch = vec![first];
            while begun < BATCH
                && let Ok(job) = jobs.try_recv()
            {
                begun += begin(&job);
                batch.push(job);
            }
            self.embed(model.as_ref(), batch);
            self.waiting.fetch_sub(begun, Ordering::Relaxed);
        }
    }

    fn embed(&self, model: &dyn Embedder, batch: Vec<Job>) {
        let batch = self.in_time(batch);
        let mut texts: Vec<&str> = batch.iter().flat_map(|job| job.texts.iter().map(AsRef::as_ref)).collect();
        texts.sort_unstable();
        texts.dedup();
        texts.retain(|text| self.vector_of(text).is_none());
        let started = Instant::now();
        let embedded = match texts.len() {
            0 => Ok(Vec::new()),
            _ => embed_caught(model, &texts),
        };
        let failed = match embedded {
            Ok(vectors) => {
                self.keep(&texts, vectors, started.elapsed());
                None
            }
            Err(reason) => Some(Refusal::Failed(reason)),
        };
        for job in batch {
            let vectors = failed.clone().map_or_else(
                || {
                    self.all_seen(&job.texts)
                        .ok_or_else(|| Refusal::Failed("the model gave too few vectors".to_owned()))
                },
                Err,
            );
            // Whoever asked may just have given up.
            drop(job.answer.send(vectors));
        }
    }

    /// Those of a batch that get their vectors in time. Who went away meanwhile needs no answer; who would get it too
    /// late is told at once, and keeps nobody behind it waiting.
    fn in_time(&self, batch: Vec<Job>) -> Vec<Job> {
        let pace = Duration::from_micros(self.pace.load(Ordering::Relaxed));
        let (mut taken, mut ready) = (Vec::with_capacity(batch.len()), Instant::now());
        for job in batch.into_iter().filter(|job| !job.answer.is_closed()) {
            let then = ready + pace * u32::try_from(job.cost).unwrap_or(u32::MAX);
            if job.is_alone || then <= job.until {
                ready = then;
                taken.push(job);
            } else {
                // Whoever asked may just have given up.
                drop(job.answer.send(Err(Refusal::Busy)));
            }
        }
        taken
    }

    fn keep(&self, texts: &[&str], vectors: Vec<Embedding>, took: Duration) {
        let mut seen = lock(&self.seen);
        for (text, vector) in texts.iter().zip(vectors) {
            seen.put(self.keyed.text(text), vector.as_slice().into());
        }
        drop(seen);
        if let Some(per_text) = took.as_micros().checked_div(texts.len() as u128) {
            let (old, new) = (self.pace.load(Ordering::Relaxed), u64::try_from(per_text).unwrap_or(u64::MAX));
            // It slows down at once and speeds up by and by: a text that comes too late is worse than one that is left out.
            let pace = if new > old { new } else { (3 * old).saturating_add(new) / 4 };
            self.pace.store(pace, Ordering::Relaxed);
            self.embedded.fetch_add(texts.len() as u64, Ordering::Relaxed);
        }
    }

    fn vector_of(&self, text: &str) -> Option<Vector> {
        lock(&self.seen).get(&self.keyed.text(text)).cloned()
    }

    fn all_seen(&self, texts: &[Arc<str>]) -> Option<Vec<Vector>> {
        texts.iter().map(|text| self.vector_of(text)).collect()
    }
}

fn embed_caught(model: &dyn Embedder, texts: &[&str]) -> Result<Vec<Embedding>, String> {
    let caught = catch_unwind(AssertUnwindSafe(|| model.embed(texts)));
    caught.map_err(|_| "the engine panicked".to_owned())?.map_err(|error| error.to_string())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
