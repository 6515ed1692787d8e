//! The thread that exports spans.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::{Builder, Runtime};

use super::body::{encode_json, encode_protobuf};
use super::collector::{Collector, Failure, Retry};
use super::ids::Ids;
use super::settings::{Protocol, SpanSettings};
use super::span::Span;
use crate::log::{Level, Log};
use crate::metrics::{Metrics, SpanResult};
use crate::part::Part;
use crate::queue::{Gathered, Outlet, Pace};
use crate::record::{Check, Record};

/// What is told of, and its place in the trace.
#[derive(Debug)]
pub(super) enum Kept {
    /// A request.
    Request { record: Arc<Record>, trace_id: [u8; 16], id: [u8; 8] },
    /// A comparison by meaning, below a request or for a caller in another process.
    Check { check: Check, parent: Option<[u8; 8]>, is_served: bool },
}

/// Sends spans in batches, and says when that fails and when it works again.
pub(super) struct Exporter {
    settings: SpanSettings,
    collector: Collector,
    ids: Arc<Ids>,
    log: Log,
    metrics: Arc<Metrics>,
    is_failing: bool,
}

impl Exporter {
    /// Attempts for one batch.
    const MAX_ATTEMPTS: u32 = 5;
    /// The wait before the second attempt; it doubles with each.
    const BACK_OFF: Duration = Duration::from_secs(1);
    /// How often the queue is looked into while a batch is gathered.
    const TICK: Duration = Duration::from_millis(20);

    pub(super) fn new(settings: SpanSettings, ids: Arc<Ids>, log: Log, metrics: Arc<Metrics>) -> Self {
        let collector = Collector::new(&settings);
        Self { settings, collector, ids, log, metrics, is_failing: false }
    }

    /// Exports until nobody can put in anything any more.
    pub(super) fn run(mut self, kept: &Outlet<Kept>) {
        let runtime = match Builder::new_current_thread().enable_io().enable_time().build() {
            Ok(runtime) => runtime,
            // With this end of it gone, the queue takes nothing any more, and every span counts as dropped.
            Err(error) => return self.failed(&Failure { reason: error.to_string(), retry: Retry::Never }),
        };
        let mut batch = Vec::new();
        let pace = Pace { idle: None, within: self.settings.delay, tick: Self::TICK };
        loop {
            let gathered = kept.gather(&mut batch, self.settings.max_batch, &pace);
            if !batch.is_empty() {
                self.export(&batch, kept, &runtime);
                batch.clear();
            }
            match gathered {
                Gathered::Batch => {}
                Gathered::Flush(flush) => flush.done(!self.is_failing),
                Gathered::Closed => return,
            }
        }
    }

    fn export(&mut self, batch: &[Kept], kept: &Outlet<Kept>, runtime: &Runtime) {
        let spans = batch.len() as u64;
        let body = self.encode(batch);
        for attempt in 1..=Self::MAX_ATTEMPTS {
            match runtime.block_on(self.collector.send(&body)) {
                Ok(left_out) => {
                    let left_out = left_out.min(spans);
                    self.metrics.count_spans(SpanResult::Exported, spans - left_out);
                    self.metrics.count_spans(SpanResult::Failed, left_out);
                    return self.succeeded();
                }
                Err(failure) => {
                    self.failed(&failure);
                    // Who waits for the end of it all does not wait for a better time.
                    if failure.retry == Retry::Never || attempt == Self::MAX_ATTEMPTS || kept.is_urgent() {
                        break;
                    }
                    kept.pause(self.wait(attempt, failure.retry));
                }
            }
        }
        self.metrics.count_spans(SpanResult::Failed, spans);
    }

    fn encode(&self, batch: &[Kept]) -> Bytes {
        let newest_names = self.settings.newest_names;
        let spans = batch.iter().map(|kept| match kept {
            Kept::Request { record, trace_id, id } => Span::of(record, *trace_id, *id, newest_names),
            Kept::Check { check, parent, is_served } => Span::of_check(check, *parent, *is_served),
        });
        let spans: Vec<Span<'_>> = spans.collect();
        let resource = &self.settings.resource;
        self.collector.pack(match self.settings.protocol {
            Protocol::HttpJson => encode_json(resource, &spans),
            Protocol::HttpProtobuf | Protocol::Grpc => encode_protobuf(resource, &spans),
        })
    }

    /// Between half and all of the back-off, so that many processes do not come back at one moment.
    fn wait(&self, attempt: u32, retry: Retry) -> Duration {
        let most = Self::BACK_OFF * 2_u32.pow(attempt - 1);
        let share = u32::from(self.ids.span_id()[0]);
        let backed_off = most / 2 + most / 512 * share;
        if let Retry::After(named) = retry { named.max(backed_off) } else { backed_off }
    }

    fn succeeded(&mut self) {
        self.metrics.set_degraded(Part::Otlp, false);
        if std::mem::replace(&mut self.is_failing, false) {
            self.log.event(Level::Info, "spans are delivered again", &[]);
        }
    }

    fn failed(&mut self, failure: &Failure) {
        self.metrics.set_degraded(Part::Otlp, true);
        self.metrics.count_degraded(Part::Otlp);
        if !std::mem::replace(&mut self.is_failing, true) {
            let collector = self.settings.endpoint();
            let fields = [("collector", &*collector), ("reason", &failure.reason)];
            self.log.event(Level::Warn, "spans are not delivered", &fields);
        }
    }
}
