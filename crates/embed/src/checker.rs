//! What the gateway asks: does this delta say again what was said before?

use std::sync::Arc;
use std::time::{Duration, Instant};

use loopbreaker::{SemanticConfig, similarity};
use loopbreaker_config::{SemanticBackend, SemanticService};
use loopbreaker_telemetry::mask;
use tokio::sync::{OnceCell, Semaphore};

use crate::correction::Correction;
use crate::counters::Counters;
use crate::desk::{Desk, Refusal, Vector};
use crate::embedder::{EmbedError, Embedder};
use crate::excerpt::excerpt;
use crate::history::{Entry, History, HistoryError, HistoryLimits, Key, open_history};
use crate::keyed::Keyed;
use crate::model::{Engine, ModelOptions};
use crate::proto::CheckLoopRequest;
use crate::reading::{Degraded, How, Question, Reading, Rule, Skipped};
use crate::recent::{Body, Earlier, Recent, Saying};
use crate::sidecars::{AddressError, SidecarAddress, Sidecars};

/// Compares each delta of a session with the last ones, in this process or by a sidecar.
///
/// An equal text needs no embedding, and neither does one that shares too few words with the last ones. Whatever is
/// broken or too slow makes a reading that says so, and nothing else: a check never fails and never waits longer than
/// its limit. The handle is cheap to clone.
///
/// ```
/// use loopbreaker_embed::{Checker, CheckerOptions, How, Question, Results, Rule};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let checker = Checker::new(CheckerOptions::default()).unwrap();
/// let question = Question {
///     tenant: "acme", session: "run-1", text: "let me look at the logs", results: Results::Gave(7), threshold: 0.95, rule: Rule::Intent,
///     trace: None,
/// };
/// assert_eq!(checker.check(&question).await.severity, None);
/// assert_eq!(checker.check(&question).await.how, How::Exact);
/// assert_eq!(checker.check(&question).await.severity, Some(loopbreaker::Severity::Loop));
/// # }
/// ```
#[derive(Clone)]
pub struct Checker {
    inner: Arc<Inner>,
}

/// How a checker works.
#[derive(Debug, Clone)]
pub struct CheckerOptions {
    /// Who embeds.
    pub backend: Backend,
    /// Earlier deltas that are compared.
    pub size: usize,
    /// How long a delta is remembered.
    pub ttl: Duration,
    /// How long a check may take.
    pub timeout: Duration,
    /// Whether a store may keep texts in clear.
    pub keep_prompts: bool,
    /// Bytes that may be remembered in this process.
    pub max_bytes: usize,
}

/// Who embeds.
#[derive(Debug, Clone)]
pub enum Backend {
    /// This process, with a model that is loaded at the first need.
    InProcess {
        /// Which model.
        model: ModelOptions,
        /// Where vectors are kept: `memory` or the address of a Redis.
        store: String,
    },
    /// Services beside it.
    Sidecars(Vec<SidecarAddress>),
}

/// Why there is no checker.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckerError {
    /// The store's address is wrong.
    #[error(transparent)]
    Store(#[from] HistoryError),
    /// A sidecar's address is wrong.
    #[error(transparent)]
    Sidecar(#[from] AddressError),
    /// The embedder cannot be used.
    #[error(transparent)]
    Embedder(#[from] EmbedError),
    /// A sidecar is to be asked, but none is named.
    #[error("no sidecar is named: set semantic.sidecars or LOOP_EMBEDDING_SIDECAR_UDS")]
    NoSidecar,
}

struct Inner {
    options: CheckerOptions,
    recent: Recent,
    counters: Counters,
    keyed: Keyed,
    started: Instant,
    source: Source,
    /// What is told to a store beside the request that it is about.
    beside: Arc<Semaphore>,
}

enum Source {
    /// Vectors are kept with the other facts of a delta, and made only when they are needed.
    Memory(Desk),
    Store(Desk, Arc<dyn History>),
    Sidecars(Vec<SidecarAddress>, OnceCell<Sidecars>),
}

/// Exchanges that may go on beside requests; more are left out.
const BESIDE: usize = 32;

impl Default for CheckerOptions {
    fn default() -> Self {
        let backend = Backend::InProcess { model: ModelOptions::default(), store: "memory".to_owned() };
        let (ttl, timeout) = (Duration::from_secs(3_600), Duration::from_millis(50));
        Self { backend, size: 5, ttl, timeout, keep_prompts: false, max_bytes: 64 << 20 }
    }
}

impl CheckerOptions {
    /// What the config file says. `ORT_DYLIB_PATH` names the library of ONNX Runtime.
    pub fn from_config(
        service: &SemanticService,
        detector: &SemanticConfig,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, CheckerError> {
        let backend = match service.backend {
            SemanticBackend::InProcess => {
                let path = service.model.as_ref().map(Into::into);
                let engine = Engine::choose(service.engine, environment)?;
                let model = ModelOptions { path, engine, threads: None };
                Backend::InProcess { model, store: service.store.clone() }
            }
            SemanticBackend::Sidecar => {
                let addresses = service.sidecars.iter().map(|address| address.parse());
                Backend::Sidecars(addresses.collect::<Result<_, AddressError>>()?)
            }
        };
        Ok(Self {
            backend,
            size: detector.size as usize,
            ttl: Duration::from_millis(detector.ttl_millis),
            timeout: service.timeout,
            keep_prompts: service.keep_prompts,
            ..Self::default()
        })
    }
}

impl Checker {
    /// A checker. Nothing is loaded and nobody is connected to before the first check needs it.
    pub fn new(options: CheckerOptions) -> Result<Self, CheckerError> {
        let desk = match &options.backend {
            Backend::InProcess { model, .. } => Some(Desk::lazy(model.clone())),
            Backend::Sidecars(_) => None,
        };
        Self::build(options, desk)
    }

    /// A checker in this process with an embedder of your own, instead of the model that the options name.
    pub fn with_embedder(options: CheckerOptions, embedder: Arc<dyn Embedder>) -> Result<Self, CheckerError> {
        Self::build(options, Some(Desk::with(embedder)?))
    }

    fn build(options: CheckerOptions, desk: Option<Desk>) -> Result<Self, CheckerError> {
        let ttl_millis = u64::try_from(options.ttl.as_millis()).unwrap_or(u64::MAX);
        let source = match (&options.backend, desk) {
            (Backend::InProcess { store, .. }, Some(desk)) if store == "memory" => Source::Memory(desk),
            (Backend::InProcess { store, .. }, Some(desk)) => {
                let (size, ttl, timeout) = (options.size, options.ttl, options.timeout);
                let limits = HistoryLimits { size, ttl, timeout, max_bytes: options.max_bytes };
                Source::Store(desk, open_history(store, limits)?)
            }
            (Backend::Sidecars(addresses), _) if !addresses.is_empty() => {
                Source::Sidecars(addresses.clone(), OnceCell::new())
            }
            _ => return Err(CheckerError::NoSidecar),
        };
        let inner = Inner {
            recent: Recent::new(options.size, ttl_millis, options.max_bytes),
            options,
            counters: Counters::default(),
            keyed: Keyed::new(),
            started: Instant::now(),
            source,
            beside: Arc::new(Semaphore::new(BESIDE)),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Compares a delta with the last ones within the configured time, and remembers it.
    pub async fn check(&self, question: &Question<'_>) -> Reading {
        self.check_within(question, self.inner.options.timeout).await
    }

    /// The same with another limit, for checks that no request waits for.
    pub async fn check_within(&self, question: &Question<'_>, limit: Duration) -> Reading {
        let started = Instant::now();
        let checked = tokio::time::timeout(limit, self.compare(question, limit));
        let reading = checked.await.unwrap_or(Reading::nothing(How::Degraded(Degraded::Timeout)));
        self.inner.counters.count(reading.how, started.elapsed());
        reading
    }

    /// Which of some texts is most similar to a new one, and how similar, within the configured time; `None` when that
    /// cannot be told in time. Nothing is remembered of it. Sidecars compare only with what they were told before, so
    /// with them it never can.
    pub async fn most_similar(&self, text: &str, others: &[Arc<str>]) -> Option<(usize, f64)> {
        let (Source::Memory(desk) | Source::Store(desk, _)) = &self.inner.source else { return None };
        let others = others.iter().map(AsRef::as_ref);
        let texts: Vec<Arc<str>> =
            std::iter::once(text).chain(others).map(|text| excerpt(text).into()).collect();
        let limit = self.inner.options.timeout;
        let vectors = tokio::time::timeout(limit, desk.vectors(&texts, limit)).await.ok()?.ok()?;
        let (new, others) = vectors.split_first()?;
        let correction = desk.correction();
        let similarities = others.iter().map(|other| correction.apply(similarity(new, other)));
        similarities.enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.inner.counters
    }

    /// Sessions that are remembered in this process.
    pub fn sessions(&self) -> usize {
        self.inner.recent.sessions()
    }

    async fn compare(&self, question: &Question<'_>, limit: Duration) -> Reading {
        let inner = &self.inner;
        let excerpt: Arc<str> = excerpt(question.text).into();
        if excerpt.is_empty() {
            return Reading::nothing(How::NoText);
        }
        let session = inner.keyed.pair(question.tenant, question.session);
        let saying = Saying {
            text: question.text,
            excerpt: &excerpt,
            fingerprint: inner.keyed.text(question.text),
            results: question.results,
            is_order: question.rule == Rule::Order,
            keep_text: matches!(inner.source, Source::Memory(_)),
        };
        let now = u64::try_from(inner.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (id, earlier) = inner.recent.hear(session, &saying, now);
        let said = Said { id, session, excerpt, earlier };
        if said.earlier.iter().any(Earlier::is_exact) {
            return self.compare_exact(question, said);
        }
        match &inner.source {
            Source::Memory(desk) => inner.compare_here(desk, question, &said, limit).await,
            Source::Store(desk, store) => {
                inner.compare_in_store(desk, store.as_ref(), question, &said, limit).await
            }
            Source::Sidecars(..) => inner.compare_by_sidecar(question, &said, limit).await,
        }
    }

    /// An equal text was there: what its vector was compared with is known, and where it is not, nothing is embedded.
    fn compare_exact(&self, question: &Question<'_>, said: Said) -> Reading {
        let vector_of = |earlier: &Earlier| match &earlier.body {
            Body::Vector(vector) => Some(Arc::clone(vector)),
            Body::Text(_) | Body::Elsewhere => None,
        };
        let vector = said.earlier.iter().filter(|earlier| earlier.is_exact()).find_map(vector_of);
        if let (Source::Memory(_), Some(vector)) = (&self.inner.source, &vector) {
            self.inner.recent.embedded(said.session, &[(said.id, Arc::clone(vector))]);
        }
        let correction = self.inner.correction();
        let pairs = said.earlier.iter().filter_map(|earlier| {
            let known = || Some(correction.apply(similarity(vector.as_deref()?, &vector_of(earlier)?)));
            Some((Some(earlier), if earlier.is_exact() { 1.0 } else { known()? }))
        });
        let reading = Reading::from_pairs(question, How::Exact, pairs);
        self.tell_beside(question, said);
        reading
    }

    /// Stores and sidecars keep their own history: they hear of the equal text too, without anybody waiting for it.
    fn tell_beside(&self, question: &Question<'_>, said: Said) {
        if matches!(self.inner.source, Source::Memory(_)) {
            return;
        }
        let Ok(permit) = Arc::clone(&self.inner.beside).try_acquire_owned() else { return };
        let inner = Arc::clone(&self.inner);
        let (tenant, session) = (question.tenant.to_owned(), question.session.to_owned());
        let (results, threshold, rule) = (question.results, question.threshold, question.rule);
        tokio::spawn(async move {
            let (tenant, session) = (&*tenant, &*session);
            let question = Question { tenant, session, text: "", results, threshold, rule, trace: None };
            let limit = inner.options.timeout;
            match &inner.source {
                Source::Memory(_) => {}
                Source::Store(desk, store) => {
                    inner.compare_in_store(desk, store.as_ref(), &question, &said, limit).await;
                }
                Source::Sidecars(..) => {
                    inner.compare_by_sidecar(&question, &said, limit).await;
                }
            }
            drop(permit);
        });
    }
}

/// A delta that was heard.
struct Said {
    id: u64,
    session: u128,
    excerpt: Arc<str>,
    /// How it stands to the last ones, newest first.
    earlier: Vec<Earlier>,
}

impl Inner {
    /// In this process only what may be similar is embedded: the new text, and those of before that never were.
    async fn compare_here(
        &self,
        desk: &Desk,
        question: &Question<'_>,
        said: &Said,
        limit: Duration,
    ) -> Reading {
        let may_count = |earlier: &&Earlier| match question.rule {
            Rule::Literal => true,
            Rule::Intent | Rule::Order => earlier.has_same_names() || earlier.is_unchanged(),
        };
        let candidates: Vec<&Earlier> = said.earlier.iter().filter(may_count).collect();
        if candidates.is_empty() {
            return Reading::nothing(How::Prefiltered);
        }
        let unembedded = |earlier: &&Earlier| match &earlier.body {
            Body::Text(text) => Some((earlier.id, Arc::clone(text))),
            Body::Vector(_) | Body::Elsewhere => None,
        };
        let mut room = desk.room(limit).saturating_sub(1);
        // When time is short the newest are compared; the others have their turn with the next delta. What was embedded
        // too late for an earlier check costs nothing now.
        let mut fits = |(_, text): &(u64, Arc<str>)| {
            let is_free = desk.knows(text);
            let fits = is_free || room > 0;
            room -= usize::from(fits && !is_free);
            fits
        };
        let (ids, texts): (Vec<u64>, Vec<Arc<str>>) = [(said.id, Arc::clone(&said.excerpt))]
            .into_iter()
            .chain(candidates.iter().filter_map(unembedded).filter(|pair| fits(pair)))
            .unzip();
        let vectors = match desk.vectors(&texts, limit).await {
            Ok(vectors) => vectors,
            Err(refusal) => return Reading::nothing(how_of(&refusal)),
        };
        let embedded: Vec<(u64, Vector)> = ids.into_iter().zip(vectors).collect();
        self.recent.embedded(said.session, &embedded);
        let find =
            |id: u64| embedded.iter().find(|(known, _)| *known == id).map(|(_, vector)| Arc::clone(vector));
        let Some(new) = find(said.id) else { return Reading::nothing(How::Degraded(Degraded::Model)) };
        let correction = desk.correction();
        let pairs: Vec<_> = candidates
            .into_iter()
            .filter_map(|earlier| {
                let vector = match &earlier.body {
                    Body::Vector(vector) => Arc::clone(vector),
                    Body::Text(_) | Body::Elsewhere => find(earlier.id)?,
                };
                Some((Some(earlier), correction.apply(similarity(&new, &vector))))
            })
            .collect();
        if pairs.is_empty() {
            return Reading::nothing(How::Skipped(Skipped::Busy));
        }
        Reading::from_pairs(question, How::Embedded, pairs)
    }

    /// A shared store needs every vector, for others may ask about it.
    async fn compare_in_store(
        &self,
        desk: &Desk,
        store: &dyn History,
        question: &Question<'_>,
        said: &Said,
        limit: Duration,
    ) -> Reading {
        let vectors = match desk.vectors(&[Arc::clone(&said.excerpt)], limit).await {
            Ok(vectors) => vectors,
            Err(refusal) => return Reading::nothing(how_of(&refusal)),
        };
        let Some(vector) = vectors.first() else { return Reading::nothing(How::Degraded(Degraded::Model)) };
        // Masked before it is cut: half a credential is no longer known for one.
        let prompt = self.options.keep_prompts.then(|| excerpt(&mask(question.text)));
        let entry = Entry { id: self.id_for_all(said.id), vector, prompt: prompt.as_deref() };
        let key = Key { tenant: question.tenant, session: question.session };
        let Ok(neighbours) = store.exchange(key, entry).await else {
            return Reading::nothing(How::Degraded(Degraded::Store));
        };
        let correction = desk.correction();
        let pairs = neighbours.iter().map(|neighbour| {
            let earlier = said.earlier.iter().find(|earlier| self.id_for_all(earlier.id) == neighbour.id);
            (earlier, correction.apply(neighbour.similarity))
        });
        Reading::from_pairs(question, How::Embedded, pairs)
    }

    async fn compare_by_sidecar(&self, question: &Question<'_>, said: &Said, limit: Duration) -> Reading {
        let Source::Sidecars(addresses, connected) = &self.source else {
            return Reading::nothing(How::Degraded(Degraded::Unavailable));
        };
        let sidecars = connected.get_or_init(async || Sidecars::connect(addresses)).await;
        let request = CheckLoopRequest {
            tenant_id: question.tenant.to_owned(),
            prompt: said.excerpt.as_ref().to_owned(),
            session_id: question.session.to_owned(),
        };
        let answer = match sidecars.ask(&request, question.trace, limit).await {
            Ok(answer) => answer,
            Err(how) => return Reading::nothing(how),
        };
        let believable = |similarity: f64| (0.0..=1.0).contains(&similarity);
        if !believable(answer.max_similarity) {
            return Reading::nothing(How::Degraded(Degraded::Garbage));
        }
        // A sidecar of another make may give no more than the largest one and how many. The literal rule asks for no
        // more either: what it is about may have been said to another gateway.
        if question.rule != Rule::Literal
            && !answer.similarities.is_empty()
            && answer.similarities.len() == said.earlier.len()
            && answer.similarities.iter().copied().all(believable)
        {
            let pairs = said.earlier.iter().map(Some).zip(answer.similarities);
            return Reading::from_pairs(question, How::Embedded, pairs);
        }
        let over = answer.similarities.iter().filter(|similarity| **similarity > question.threshold).count();
        let similar = match (answer.max_similarity > question.threshold, over) {
            (false, _) => 0,
            // The sidecar counts by its own threshold.
            (true, 0) => (answer.similar_count as usize).clamp(1, self.options.size.max(1)),
            (true, over) => over,
        };
        Reading::from_counts(question, answer.max_similarity, similar, &said.earlier)
    }

    fn correction(&self) -> Correction {
        match &self.source {
            Source::Memory(desk) | Source::Store(desk, _) => desk.correction(),
            Source::Sidecars(..) => Correction::NONE,
        }
    }

    /// Numbers of this process begin at 1; in a store they meet those of others.
    fn id_for_all(&self, id: u64) -> u64 {
        self.keyed.pair("id", &id.to_string()) as u64
    }
}

fn how_of(refusal: &Refusal) -> How {
    match refusal {
        Refusal::Busy => How::Skipped(Skipped::Busy),
        Refusal::Loading => How::Skipped(Skipped::Loading),
        Refusal::Failed(_) => How::Degraded(Degraded::Model),
    }
}

#[cfg(test)]
mod tests;
