//! One `CheckLoop` from question to answer.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use loopbreaker_telemetry::mask;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use super::{Observer, Served, SidecarOptions};
use crate::counters::Counters;
use crate::desk::{Desk, Refusal};
use crate::excerpt::excerpt;
use crate::history::{Entry, History, HistoryError, Key, Neighbour};
use crate::keyed::Keyed;
use crate::proto::{CheckLoopRequest, CheckLoopResponse, EmbeddingService};
use crate::reading::{Degraded, How, Skipped};
use crate::sidecars::{MODEL_FAILED, STORE_AWAY, TRACEPARENT};

/// The service; all clones are one.
#[derive(Clone)]
pub(crate) struct Service {
    inner: Arc<Inner>,
}

struct Inner {
    desk: Desk,
    store: Arc<dyn History>,
    counters: Arc<Counters>,
    observer: Observer,
    threshold: f64,
    keep_prompts: bool,
    keyed: Keyed,
    next: AtomicU64,
}

/// How long an embedding may take when the caller does not say.
const PATIENCE: Duration = Duration::from_secs(1);

impl Service {
    pub(super) fn new(
        desk: Desk,
        store: Arc<dyn History>,
        counters: Arc<Counters>,
        observer: Observer,
        options: &SidecarOptions,
    ) -> Self {
        let (threshold, keep_prompts) = (options.threshold, options.keep_prompts);
        let (keyed, next) = (Keyed::new(), AtomicU64::new(0));
        Self {
            inner: Arc::new(Inner { desk, store, counters, observer, threshold, keep_prompts, keyed, next }),
        }
    }

    /// Everything that was counted, as Prometheus reads it.
    pub(super) fn metrics(&self) -> String {
        let mut text = self.inner.counters.now().prometheus("loopbreaker_sidecar");
        let (embedded, waiting) = (self.inner.desk.embedded(), self.inner.desk.waiting());
        text.push_str("# TYPE loopbreaker_sidecar_embedded_texts_total counter\n");
        writeln!(text, "loopbreaker_sidecar_embedded_texts_total {embedded}").unwrap_or_default();
        text.push_str("# TYPE loopbreaker_sidecar_waiting_texts gauge\n");
        writeln!(text, "loopbreaker_sidecar_waiting_texts {waiting}").unwrap_or_default();
        text
    }
}

#[tonic::async_trait]
impl EmbeddingService for Service {
    async fn check_loop(
        &self,
        request: Request<CheckLoopRequest>,
    ) -> Result<Response<CheckLoopResponse>, Status> {
        let started = Instant::now();
        let within = patience(request.metadata());
        let checked = self.inner.check(request.get_ref(), within).await;
        let (how, answer) = match checked {
            Ok((how, answer)) => (how, Ok(Response::new(answer))),
            Err((how, status)) => (how, Err(status)),
        };
        let took = started.elapsed();
        self.inner.counters.count(how, took);
        let trace = request.metadata().get(TRACEPARENT).and_then(|value| value.to_str().ok());
        let max_similarity = answer.as_ref().ok().map(|answer| answer.get_ref().max_similarity);
        (self.inner.observer)(&Served { trace, how, max_similarity, took });
        answer
    }
}

impl Inner {
    async fn check(
        &self,
        request: &CheckLoopRequest,
        within: Duration,
    ) -> Result<(How, CheckLoopResponse), (How, Status)> {
        if request.tenant_id.is_empty() {
            return Err((
                How::NoText,
                Status::invalid_argument("tenant_id is empty: say whose prompt it is"),
            ));
        }
        let prompt: Arc<str> = excerpt(&request.prompt).into();
        if prompt.is_empty() {
            return Err((
                How::NoText,
                Status::invalid_argument("prompt is empty: there is nothing to compare"),
            ));
        }
        let embedded = self.desk.embedded();
        let vectors = self
            .desk
            .vectors(std::slice::from_ref(&prompt), within)
            .await
            .map_err(|refusal| refused(&refusal))?;
        let how = if self.desk.embedded() == embedded { How::Exact } else { How::Embedded };
        let vector =
            vectors.first().ok_or_else(|| refused(&Refusal::Failed("no vector came back".to_owned())))?;
        let key = Key { tenant: &request.tenant_id, session: &request.session_id };
        // Masked before it is cut: half a credential is no longer known for one.
        let kept = self.keep_prompts.then(|| excerpt(&mask(&request.prompt)));
        let entry = Entry { id: self.unique(), vector, prompt: kept.as_deref() };
        let neighbours = self.store.exchange(key, entry).await.map_err(|error| store_failed(&error))?;
        Ok((how, self.answer(neighbours)))
    }

    fn answer(&self, neighbours: Vec<Neighbour>) -> CheckLoopResponse {
        let correction = self.desk.correction();
        let similarities: Vec<f64> =
            neighbours.iter().map(|neighbour| correction.apply(neighbour.similarity)).collect();
        let nearest = similarities.iter().copied().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b));
        let max_similarity = nearest.map_or(0.0, |(_, similarity)| similarity);
        let similar = similarities.iter().filter(|similarity| **similarity > self.threshold).count();
        // Another sidecar may have kept prompts in the same store.
        let prompt = nearest
            .filter(|_| similar > 0 && self.keep_prompts)
            .and_then(|(at, _)| neighbours.into_iter().nth(at)?.prompt);
        CheckLoopResponse {
            loop_detected: similar > 0,
            max_similarity,
            similar_prompt: prompt.unwrap_or_default(),
            degraded: false,
            similar_count: u32::try_from(similar).unwrap_or(u32::MAX),
            similarities,
        }
    }

    /// A number that no other sidecar gives.
    fn unique(&self) -> u64 {
        self.keyed.text(&self.next.fetch_add(1, Ordering::Relaxed).to_string()) as u64
    }
}

fn refused(refusal: &Refusal) -> (How, Status) {
    match refusal {
        Refusal::Busy => (How::Skipped(Skipped::Busy), Status::resource_exhausted(refusal.to_string())),
        Refusal::Loading => (How::Skipped(Skipped::Loading), Status::resource_exhausted(refusal.to_string())),
        Refusal::Failed(reason) => {
            (How::Degraded(Degraded::Model), marked(Status::internal(reason.clone()), MODEL_FAILED))
        }
    }
}

fn store_failed(error: &HistoryError) -> (How, Status) {
    let status = match error {
        HistoryError::IndexLost { .. } | HistoryError::OtherDimension { .. } => {
            Status::failed_precondition(error.to_string())
        }
        _ => marked(Status::unavailable(error.to_string()), STORE_AWAY),
    };
    (How::Degraded(Degraded::Store), status)
}

fn marked(mut status: Status, mark: &'static str) -> Status {
    status.metadata_mut().insert(mark, tonic::metadata::MetadataValue::from_static("1"));
    status
}

/// What is left of the caller's own limit, as gRPC writes it: digits and a unit.
fn patience(metadata: &MetadataMap) -> Duration {
    let read = || {
        let text = metadata.get("grpc-timeout")?.to_str().ok()?;
        let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let number: u64 = digits.parse().ok()?;
        Some(match unit {
            "H" => Duration::from_secs(number.checked_mul(3_600)?),
            "M" => Duration::from_secs(number.checked_mul(60)?),
            "S" => Duration::from_secs(number),
            "m" => Duration::from_millis(number),
            "u" => Duration::from_micros(number),
            "n" => Duration::from_nanos(number),
            _ => return None,
        })
    };
    read().unwrap_or(PATIENCE)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tonic::metadata::MetadataMap;

    use super::{PATIENCE, patience};

    #[test]
    fn the_callers_limit_is_understood() {
        for (text, expected) in [
            ("50m", Duration::from_millis(50)),
            ("49999u", Duration::from_micros(49_999)),
            ("2S", Duration::from_secs(2)),
            ("1H", Duration::from_secs(3_600)),
            ("", PATIENCE),
            ("m", PATIENCE),
            ("5x", PATIENCE),
            ("99999999999999999999999m", PATIENCE),
        ] {
            let mut metadata = MetadataMap::new();
            metadata.insert("grpc-timeout", text.parse().unwrap());
            assert_eq!(patience(&metadata), expected, "{text}");
        }
        assert_eq!(patience(&MetadataMap::new()), PATIENCE);
    }
}
