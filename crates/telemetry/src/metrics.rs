//! Counters for Prometheus: fixed arrays of atomics, so that counting never waits and labels never grow.

mod histogram;
mod label;
mod process;
mod render;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

use loopbreaker::{Action, Kind, Severity};

pub use label::{CacheUse, ReloadResult, Resume, SpanResult, Unit, UpstreamError};

use crate::part::Part;
use crate::record::{Dialect, Mode, Record, TenantClass, Tokens};
use histogram::Histogram;
use label::{Label, TokenKind};

/// What the process counts, shared by all its threads.
///
/// ```
/// use loopbreaker_telemetry::{Metrics, Part, Record};
///
/// let metrics = Metrics::default();
/// metrics.observe(&Record::default());
/// metrics.set_degraded(Part::State, true);
/// let text = metrics.render();
/// assert!(text.contains("loopbreaker_degraded{part=\"state\"} 1\n"));
/// ```
#[derive(Debug)]
pub struct Metrics {
    traffic: [Traffic; Dialect::COUNT],
    overhead: Histogram,
    findings: Counters<{ Kind::COUNT * Severity::COUNT * Mode::COUNT }>,
    degraded: [AtomicBool; Part::COUNT],
    degraded_total: Counters<{ Part::COUNT }>,
    upstream_errors: Counters<{ UpstreamError::COUNT }>,
    overspent: Counters<{ Unit::COUNT }>,
    reloads: Counters<{ ReloadResult::COUNT }>,
    resumes: Counters<{ Resume::COUNT }>,
    cache: Counters<{ CacheUse::COUNT }>,
    cache_bytes: AtomicU64,
    spans: Counters<{ SpanResult::COUNT }>,
    lines_dropped: AtomicU64,
    panics: AtomicU64,
    held: AtomicU64,
    sessions: AtomicU64,
    started: SystemTime,
}

type Counters<const N: usize> = [AtomicU64; N];

/// What is counted of one dialect.
///
/// A request touches one cache line here and one in [`Spent`]: cores that count at the same time seldom wait for
/// each other's lines.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Traffic {
    requests: Counters<{ Action::COUNT }>,
    spent: [Spent; TenantClass::COUNT],
}

/// What one class of tenants spent in one dialect.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Spent {
    tokens: Counters<{ TokenKind::COUNT }>,
    cost_micros: AtomicU64,
}

impl Metrics {
    /// Counts a request that is over.
    pub fn observe(&self, record: &Record) {
        let traffic = &self.traffic[record.dialect.index()];
        add(&traffic.requests[record.verdict.index()], 1);
        self.overhead.observe(record.overhead);
        let spent = &traffic.spent[record.tenant_class.index()];
        if let Some(Tokens { input, cache_read, cache_write, output, reasoning }) = record.tokens {
            let counts = [input, cache_read, cache_write, output, reasoning];
            spent.tokens.iter().zip(counts).for_each(|(counter, count)| add(counter, count));
        }
        add(&spent.cost_micros, record.cost_micros);
        for finding in &record.findings {
            add(&self.findings[finding_index(finding.kind, finding.severity, finding.mode)], 1);
        }
        if !record.degraded.is_empty() {
            record.degraded.iter().for_each(|part| self.count_degraded(part));
        }
    }

    /// Everything in the text format of Prometheus.
    pub fn render(&self) -> String {
        render::render(self)
    }

    /// Says whether a part is missing now, for the gauge and for readiness.
    pub fn set_degraded(&self, part: Part, is_degraded: bool) {
        self.degraded[part.index()].store(is_degraded, Relaxed);
    }

    /// Counts one piece of work that had to go on without a part. Records count their own by themselves.
    pub fn count_degraded(&self, part: Part) {
        add(&self.degraded_total[part.index()], 1);
    }

    /// The parts that are missing now.
    pub fn degraded(&self) -> impl Iterator<Item = Part> {
        Part::ALL.into_iter().filter(|part| self.degraded[part.index()].load(Relaxed))
    }

    /// Counts a request that the provider did not answer as it should.
    pub fn upstream_error(&self, reason: UpstreamError) {
        add(&self.upstream_errors[reason.index()], 1);
    }

    /// Counts what was spent beyond a budget while the processes that share it could not ask each other; dollars in
    /// millionths.
    pub fn overspent(&self, unit: Unit, amount: u64) {
        add(&self.overspent[unit.index()], amount);
    }

    /// Counts a panic that was caught.
    pub fn panicked(&self) {
        add(&self.panics, 1);
    }

    /// Counts an attempt to load the config again.
    pub fn reloaded(&self, result: ReloadResult) {
        add(&self.reloads[result.index()], 1);
    }

    /// Counts a transcript that was, or was not, taken up where the last request ended.
    pub fn resumed(&self, resume: Resume) {
        add(&self.resumes[resume.index()], 1);
    }

    /// Counts what the result cache did.
    pub fn cached(&self, cache_use: CacheUse) {
        add(&self.cache[cache_use.index()], 1);
    }

    /// Says how many bytes of answers are kept to be given again.
    pub fn set_cache_bytes(&self, bytes: u64) {
        self.cache_bytes.store(bytes, Relaxed);
    }

    /// Says how many sessions are alive.
    pub fn set_sessions(&self, sessions: u64) {
        self.sessions.store(sessions, Relaxed);
    }

    /// Counts a request as held for as long as the guard lives, whichever way it ends.
    pub fn hold(self: &Arc<Self>) -> Held {
        add(&self.held, 1);
        Held(Arc::clone(self))
    }

    /// How many requests are held now.
    pub fn held(&self) -> u64 {
        self.held.load(Relaxed)
    }

    /// How many log lines were lost so far.
    pub fn lines_dropped(&self) -> u64 {
        self.lines_dropped.load(Relaxed)
    }

    /// How many spans ended this way so far.
    pub fn spans(&self, result: SpanResult) -> u64 {
        self.spans[result.index()].load(Relaxed)
    }

    pub(crate) fn drop_lines(&self, lines: u64) {
        add(&self.lines_dropped, lines);
    }

    pub(crate) fn count_spans(&self, result: SpanResult, spans: u64) {
        add(&self.spans[result.index()], spans);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            traffic: Default::default(),
            overhead: Histogram::default(),
            findings: std::array::from_fn(|_| AtomicU64::new(0)),
            degraded: Default::default(),
            degraded_total: Default::default(),
            upstream_errors: Default::default(),
            overspent: Default::default(),
            reloads: Default::default(),
            resumes: Default::default(),
            cache: Default::default(),
            cache_bytes: AtomicU64::new(0),
            spans: Default::default(),
            lines_dropped: AtomicU64::new(0),
            panics: AtomicU64::new(0),
            held: AtomicU64::new(0),
            sessions: AtomicU64::new(0),
            started: SystemTime::now(),
        }
    }
}

/// A request that is held; see [`Metrics::hold`].
#[derive(Debug)]
pub struct Held(Arc<Metrics>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Relaxed);
    }
}

/// Where a finding is counted.
const fn finding_index(kind: Kind, severity: Severity, mode: Mode) -> usize {
    (kind as usize * Severity::COUNT + severity as usize) * Mode::COUNT + mode as usize
}

fn add(counter: &AtomicU64, count: u64) {
    if count > 0 {
        counter.fetch_add(count, Relaxed);
    }
}

#[cfg(test)]
mod tests;
