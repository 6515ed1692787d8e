//! Spans: one per request, exported by OTLP by a thread of their own.
//!
//! The encoding is written here and not taken from the OpenTelemetry crates: those bring a code generator's runtime, a
//! second random generator and an executor with them, and would still need a client, while HTTP/1.1, HTTP/2 and TLS are
//! in the gateway anyway.

mod body;
mod collector;
mod exporter;
mod ids;
mod protobuf;
mod provider;
mod sampler;
mod settings;
mod span;

use std::sync::Arc;
use std::time::Duration;

pub use settings::{SettingProblem, SpanSettings};

use crate::log::{Level, Log};
use crate::metrics::{Metrics, SpanResult};
use crate::part::Part;
use crate::queue::{Queue, queue};
use crate::record::{Check, Record};
use crate::trace_context::TraceContext;
use exporter::{Exporter, Kept};
use ids::Ids;
use sampler::Sampler;

/// Spans for a collector: puts requests into a queue and never waits.
///
/// When the queue is full, a span is dropped and counted. A batch that the collector does not take is tried a few
/// times, then counted as failed; meanwhile [`Part::Otlp`] is degraded.
#[derive(Debug, Clone)]
pub struct Spans(Option<Arc<Exporting>>);

#[derive(Debug)]
struct Exporting {
    queue: Queue<Kept>,
    sampler: Sampler,
    ids: Arc<Ids>,
    metrics: Arc<Metrics>,
}

impl Spans {
    /// Exports from now on.
    pub fn start(settings: SpanSettings, log: &Log, metrics: &Arc<Metrics>) -> Self {
        let ids = Arc::new(Ids::default());
        let sampler = settings.sampler;
        let (queue, kept) = queue(settings.max_queue);
        let (endpoint, protocol) = (settings.endpoint(), settings.protocol());
        let exporter = Exporter::new(settings, Arc::clone(&ids), log.clone(), Arc::clone(metrics));
        let thread = std::thread::Builder::new().name("spans".to_owned());
        match thread.spawn(move || exporter.run(&kept)) {
            Ok(_) => {
                let fields = [("collector", &*endpoint), ("protocol", protocol)];
                log.event(Level::Info, "spans are exported", &fields);
                Self(Some(Arc::new(Exporting { queue, sampler, ids, metrics: Arc::clone(metrics) })))
            }
            Err(error) => {
                metrics.set_degraded(Part::Otlp, true);
                log.event(Level::Error, "spans cannot be exported", &[("reason", &error.to_string())]);
                Self::off()
            }
        }
    }

    /// No spans.
    pub fn off() -> Self {
        Self(None)
    }

    /// Whether spans are exported at all.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The place in its trace of a check that begins now; `None` when no spans are exported.
    pub fn check_context(&self, caller: Option<&TraceContext>) -> Option<TraceContext> {
        let Exporting { sampler, ids, .. } = self.0.as_deref()?;
        let trace_id = caller.map_or_else(|| ids.trace_id(), |caller| caller.trace_id);
        Some(TraceContext { trace_id, span_id: ids.span_id(), sampled: sampler.keeps(trace_id, caller) })
    }

    /// Tells of a request that is over, and of the check in it, if its trace is kept.
    pub(crate) fn request(&self, record: &Arc<Record>) {
        let Some(Exporting { queue, sampler, ids, metrics }) = self.0.as_deref() else { return };
        let caller = record.ids.as_ref();
        let known = caller.or(record.check.as_ref().map(|check| &check.context));
        let trace_id = known.map_or_else(|| ids.trace_id(), |known| known.trace_id);
        if !sampler.keeps(trace_id, caller) {
            return;
        }
        let id = ids.span_id();
        let request = Kept::Request { record: Arc::clone(record), trace_id, id };
        let check = record.check.map(|check| Kept::Check { check, parent: Some(id), is_served: false });
        for kept in std::iter::once(request).chain(check) {
            if !queue.offer(kept) {
                metrics.count_spans(SpanResult::Dropped, 1);
            }
        }
    }

    /// Tells of a check that was done for somebody else, if its trace is kept. `caller` is the span that asked for it.
    pub fn served_check(&self, check: Check, caller: Option<&TraceContext>) {
        let Some(Exporting { queue, metrics, .. }) = self.0.as_deref() else { return };
        let kept = Kept::Check { check, parent: caller.map(|caller| caller.span_id), is_served: true };
        if check.context.sampled && !queue.offer(kept) {
            metrics.count_spans(SpanResult::Dropped, 1);
        }
    }

    /// Waits until every span up to now was sent; false when that took too long or failed.
    pub fn flush(&self, within: Duration) -> bool {
        self.0.as_ref().is_none_or(|exporting| exporting.queue.flush(within))
    }
}

#[cfg(test)]
mod tests;
