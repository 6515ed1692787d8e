//! What is told of one request when it is over.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use loopbreaker::{Action, DetectorName, Finding, Kind, Severity};

use crate::mask::mask_and_cut;
use crate::part::Degraded;
use crate::trace_context::TraceContext;

/// One request, told when its answer is over. No prompt and no credential ever stands in it.
///
/// Times are the gateway's own: `at` is when the request came, the rest are durations since or within.
///
/// ```
/// use std::time::Duration;
/// use loopbreaker::Action;
/// use loopbreaker_telemetry::{Dialect, Metrics, Record};
///
/// let record = Record {
///     session: "run-17".into(),
///     dialect: Dialect::Chat,
///     status: 200,
///     verdict: Action::Hint,
///     overhead: Duration::from_micros(85),
///     ..Record::default()
/// };
/// let metrics = Metrics::default();
/// metrics.observe(&record);
/// assert!(metrics.render().contains(r#"loopbreaker_requests_total{dialect="chat",verdict="hint"} 1"#));
/// ```
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own that a request has or has not")]
pub struct Record {
    /// When the request came.
    pub at: SystemTime,
    /// Who pays.
    pub tenant: Arc<str>,
    /// How the tenant is known.
    pub tenant_class: TenantClass,
    /// The worker that sent it.
    pub agent: Arc<str>,
    /// The run that it belongs to.
    pub session: Arc<str>,
    /// What it speaks.
    pub dialect: Dialect,
    /// The HTTP method.
    pub method: Cow<'static, str>,
    /// The path, without its query.
    pub path: Box<str>,
    /// The model that was asked for.
    pub model: Option<Arc<str>>,
    /// The model that answered, where the answer names it.
    pub response_model: Option<Box<str>>,
    /// Host of the provider, with its port where that is not the usual one.
    pub upstream: Arc<str>,
    /// The status that the client got.
    pub status: u16,
    /// What was done with it.
    pub verdict: Action,
    /// What the detectors saw; usually nothing.
    pub findings: Vec<FindingNote>,
    /// Whether its answer was cut short, since it repeated itself without end.
    pub is_cut: bool,
    /// What it used, where that is known or estimated.
    pub tokens: Option<Tokens>,
    /// What it cost, in millionths of a dollar.
    pub cost_micros: u64,
    /// Whether the model's price is known; without one, the dearest of its dialect is charged.
    pub cost_known: bool,
    /// Whether the provider reported no usage, so that tokens and cost are estimates.
    pub tokens_estimated: bool,
    /// Whether the answer was streamed.
    pub stream: bool,
    /// Our own time only: without the provider, the client and any hold.
    pub overhead: Duration,
    /// How long the request was held, by a throttle or a pause.
    pub held: Duration,
    /// From the request's first byte to the answer's last.
    pub duration: Duration,
    /// From the request's first byte to the answer's first.
    pub first_chunk: Option<Duration>,
    /// What it had to go without.
    pub degraded: Degraded,
    /// How old the answer is that was given again in place of asking the provider.
    pub cache_age: Option<Duration>,
    /// The comparison by meaning, where there was one.
    pub check: Option<Check>,
    /// The code of our own refusal, such as `loop_detected`.
    pub refusal: Option<&'static str>,
    /// Where the request belongs in the caller's trace: its `traceparent` header.
    pub ids: Option<TraceContext>,
}

impl Record {
    /// A request of which no more is known than whose it is and where it goes.
    pub fn of(tenant: Arc<str>, agent: Arc<str>, session: Arc<str>, upstream: Arc<str>) -> Self {
        Self {
            at: SystemTime::UNIX_EPOCH,
            tenant,
            tenant_class: TenantClass::Anonymous,
            agent,
            session,
            dialect: Dialect::Other,
            method: Cow::Borrowed("POST"),
            path: Box::default(),
            model: None,
            response_model: None,
            upstream,
            status: 200,
            verdict: Action::Allow,
            findings: Vec::new(),
            is_cut: false,
            tokens: None,
            cost_micros: 0,
            cost_known: true,
            tokens_estimated: false,
            stream: false,
            overhead: Duration::ZERO,
            held: Duration::ZERO,
            duration: Duration::ZERO,
            first_chunk: None,
            degraded: Degraded::default(),
            cache_age: None,
            check: None,
            refusal: None,
            ids: None,
        }
    }

    /// The longest text that is kept of what a client chose itself.
    const MAX_TEXT: usize = 256;
    /// More findings than this of one request say nothing new.
    const MAX_FINDINGS: usize = 32;

    /// The record with every text and list within its bound, so that a queue of records is bounded too.
    pub(crate) fn bounded(mut self) -> Self {
        shorten(&mut self.tenant, Self::MAX_TEXT);
        shorten(&mut self.agent, Self::MAX_TEXT);
        shorten(&mut self.session, Self::MAX_TEXT);
        shorten(&mut self.upstream, Self::MAX_TEXT);
        shorten(&mut self.path, Self::MAX_TEXT);
        self.model.iter_mut().for_each(|model| shorten(model, Self::MAX_TEXT));
        self.response_model.iter_mut().for_each(|model| shorten(model, Self::MAX_TEXT));
        shorten(&mut self.method, 32);
        self.findings.truncate(Self::MAX_FINDINGS);
        for finding in &mut self.findings {
            shorten(&mut finding.policy, Self::MAX_TEXT);
        }
        self
    }

    /// The path up to its query, whoever forgot to remove it: a query may hold a key.
    pub(crate) fn bare_path(&self) -> &str {
        self.path.split(['?', '#']).next().unwrap_or_default()
    }
}

/// Cuts a text that is too long.
fn shorten<T>(text: &mut T, max: usize)
where
    T: AsRef<str> + From<String>,
{
    if text.as_ref().len() > max {
        *text = T::from(mask_and_cut(text.as_ref(), max).into_owned());
    }
}

impl Default for Record {
    /// A request of nobody in particular that was let through.
    fn default() -> Self {
        Self::of(Arc::default(), Arc::default(), Arc::default(), Arc::default())
    }
}

/// One comparison by meaning, told as a span of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Check {
    /// Its own place in the trace; what it asks others belongs below it.
    pub context: TraceContext,
    /// When it began.
    pub at: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// How it ended, in one word.
    pub result: &'static str,
    /// Why nothing was compared, where nothing was.
    pub reason: Option<&'static str>,
    /// The largest similarity that was found.
    pub similarity: Option<f64>,
}

/// What a request speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `OpenAI` chat completions.
    Chat,
    /// `OpenAI` Responses.
    Responses,
    /// Anthropic messages.
    Anthropic,
    /// Gemini `generateContent`.
    Gemini,
    /// Anything else, passed through.
    Other,
}

impl Dialect {
    /// The dialect's name in labels and lines.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Other => "other",
        }
    }
}

/// How a tenant is known: as fine as a metric may tell tenants apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TenantClass {
    /// Nothing names it.
    Anonymous,
    /// By the keyed hash of its API key.
    Key,
    /// By its own name.
    Named,
}

impl TenantClass {
    /// The class's name in labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Key => "key",
            Self::Named => "named",
        }
    }
}

/// Whether a finding had consequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Its policy acts.
    Enforce,
    /// Its policy only looks.
    Shadow,
}

impl Mode {
    /// The mode's name on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Shadow => "shadow",
        }
    }
}

/// What is told of one finding: no texts of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingNote {
    /// In which way the agent loops.
    pub kind: Kind,
    /// How sure that is.
    pub severity: Severity,
    /// Whether it had consequences.
    pub mode: Mode,
    /// Which detector saw it.
    pub detector: DetectorName,
    /// How often the repeated unit occurred.
    pub count: u32,
    /// Steps in one copy of it.
    pub period: u32,
    /// The policy that asked for the detector.
    pub policy: Arc<str>,
}

impl FindingNote {
    /// What is told of a detector's finding.
    pub fn of(finding: &Finding, mode: Mode, policy: Arc<str>) -> Self {
        Self {
            kind: finding.kind,
            severity: finding.severity,
            mode,
            detector: finding.detector,
            count: u32::try_from(finding.count).unwrap_or(u32::MAX),
            period: u32::try_from(finding.period).unwrap_or(u32::MAX),
            policy,
        }
    }
}

/// Tokens by what they are priced as. The numbers do not overlap: `input` is without what was read from or written
/// to a cache, `output` is without reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Read by the model, neither from nor to a cache.
    pub input: u64,
    /// Read from the provider's cache.
    pub cache_read: u64,
    /// Written to the provider's cache.
    pub cache_write: u64,
    /// Written by the model, reasoning apart.
    pub output: u64,
    /// Thought by the model.
    pub reasoning: u64,
}

impl Tokens {
    /// All that the model read, from a cache or not.
    pub fn read(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// All that the model wrote, reasoning included.
    pub fn written(&self) -> u64 {
        self.output.saturating_add(self.reasoning)
    }
}

#[cfg(test)]
mod tests {
    use super::{FindingNote, Mode, Record, Tokens};
    use loopbreaker::{DetectorName, Kind, Severity};

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let record = Record { session: "é".repeat(200).into(), ..Record::default() }.bounded();
        assert_eq!(record.session.chars().count(), 129);
        assert!(record.session.ends_with('…'));
        let short = Record { session: "é".repeat(100).into(), ..Record::default() }.bounded();
        assert_eq!(short.session.chars().count(), 100);
    }

    #[test]
    fn a_credential_at_the_cut_is_masked_and_not_halved() {
        let session = format!("{}sk-{}", "x ".repeat(125), "a1".repeat(20));
        let record = Record { session: session.into(), ..Record::default() }.bounded();
        assert!(record.session.ends_with(" sk-***"), "{}", record.session);
    }

    #[test]
    fn more_findings_than_say_something_are_left_out() {
        let note = FindingNote {
            kind: Kind::Repeat,
            severity: Severity::Loop,
            mode: Mode::Enforce,
            detector: DetectorName::Redundancy,
            count: 3,
            period: 1,
            policy: "p".repeat(1_000).into(),
        };
        let record = Record { findings: vec![note; 1_000], ..Record::default() }.bounded();
        assert_eq!(record.findings.len(), Record::MAX_FINDINGS);
        assert!(record.findings.iter().all(|finding| finding.policy.len() < 300));
    }

    #[test]
    fn a_query_is_not_part_of_the_path() {
        let path = |path: &str| Record { path: path.into(), ..Record::default() }.bare_path().to_owned();
        assert_eq!(path("/v1beta/models/x:generateContent?key=abc"), "/v1beta/models/x:generateContent");
        assert_eq!(path("/v1/models#x"), "/v1/models");
    }

    #[test]
    fn absurd_counts_do_not_overflow() {
        let tokens =
            Tokens { input: u64::MAX, cache_read: 1, cache_write: 1, output: u64::MAX, reasoning: 1 };
        assert_eq!((tokens.read(), tokens.written()), (u64::MAX, u64::MAX));
    }
}
