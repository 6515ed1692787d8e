//! What a detector saw, in the words of the product.

use std::fmt;

use crate::fingerprint::Fingerprint;
use crate::saved::saved_as_one_of;

/// How sure a finding is that the agent loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth a look: it may become a loop.
    Warning,
    /// The same thing again, without progress.
    Loop,
}

saved_as_one_of!(Severity [Self::Warning, Self::Loop]);

impl Severity {
    /// The severity's name on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Loop => "loop",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which detector made a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DetectorName {
    /// Repeated tool call, whatever it answers.
    Sentinel,
    /// The same HTTP request again.
    IdenticalRequest,
    /// Uniqueness ratio of the last decisions.
    Entropy,
    /// The same intent in other words.
    Semantic,
    /// No progress: the same call, the same outcome, nothing changed in between.
    Redundancy,
}

impl DetectorName {
    /// The detector's name on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sentinel => "sentinel",
            Self::IdenticalRequest => "identical_request",
            Self::Entropy => "entropy",
            Self::Semantic => "semantic",
            Self::Redundancy => "redundancy",
        }
    }
}

impl fmt::Display for DetectorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// In which way the agent goes round in circles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The same call gave the same result again.
    Repeat,
    /// The same call failed again with the same class of error.
    FailingRepeat,
    /// A sequence of calls and results again and again.
    Cycle,
    /// One tool, changing arguments, the same outcome.
    Churn,
    /// A write that brings back what stood there before.
    Oscillation,
    /// Paging that wrapped round and started again over the same pages.
    Sweep,
    /// A poll whose answer no longer moves.
    StalePoll,
    /// Answers without a tool call, near-equal in words.
    Monologue,
    /// One text whose tail is one unit repeated.
    Chant,
    /// Calls of tools that do not exist or are denied.
    UnknownTool,
    /// Back-off after a transient failure: reported, never a loop.
    Retry,
    /// The same HTTP request again.
    IdenticalRequest,
    /// The same intent in other words.
    Semantic,
}

saved_as_one_of!(Kind [
    Self::Repeat,
    Self::FailingRepeat,
    Self::Cycle,
    Self::Churn,
    Self::Oscillation,
    Self::Sweep,
    Self::StalePoll,
    Self::Monologue,
    Self::Chant,
    Self::UnknownTool,
    Self::Retry,
    Self::IdenticalRequest,
    Self::Semantic,
]);

impl Kind {
    /// The kind's name on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Repeat => "repeat",
            Self::FailingRepeat => "failing_repeat",
            Self::Cycle => "cycle",
            Self::Churn => "churn",
            Self::Oscillation => "oscillation",
            Self::Sweep => "sweep",
            Self::StalePoll => "stale_poll",
            Self::Monologue => "monologue",
            Self::Chant => "chant",
            Self::UnknownTool => "unknown_tool",
            Self::Retry => "retry",
            Self::IdenticalRequest => "identical_request",
            Self::Semantic => "semantic",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a detector saw: enough to act on, to show, and to argue with.
///
/// ```
/// use loopbreaker::{Redundancy, RedundancyConfig, Severity, Status, Step};
///
/// let mut detector = Redundancy::new(&RedundancyConfig::default());
/// let step = Step::call("bash", r#"{"command":"ls"}"#).answered("a b", Some(Status::Success));
/// let mut last = None;
/// for _ in 0..3 {
///     last = detector.observe(&step).pop();
/// }
/// let finding = last.expect("the third equal answer is a loop");
/// assert_eq!(finding.severity, Severity::Loop);
/// assert_eq!(finding.evidence, [0, 1, 2]);
/// assert!(finding.message.contains("bash"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// 0-based index of the step at which it was first certain.
    pub step: usize,
    /// Which detector saw it.
    pub detector: DetectorName,
    /// In which way the agent loops.
    pub kind: Kind,
    /// The detector's rule that fired: several may see one kind of loop.
    pub rule: &'static str,
    /// How sure it is.
    pub severity: Severity,
    /// From 0 (nothing) to 1 (certain): how far the count is past the kind's threshold.
    pub score: f64,
    /// Step of the first occurrence of what is repeated.
    pub onset: usize,
    /// Steps in one copy of the repeated unit; 1 for everything but cycles and sweeps.
    pub period: usize,
    /// How often the unit occurred, the first occurrence included.
    pub count: usize,
    /// Fingerprint of *what* repeats: findings with one identity are one loop.
    pub identity: Fingerprint,
    /// The steps that prove it, in order.
    pub evidence: Vec<usize>,
    /// What repeated and how often, for the model and for the person on call.
    pub message: String,
    /// The nearest thing that would have prevented it.
    pub prevented_by: &'static str,
}

impl Finding {
    /// Units of this many steps and more are long: each of their steps is told, since the next copy is far away.
    pub(crate) const LONG: usize = 3;

    /// Whether a short cycle that is known goes on, and its next copy is not complete yet.
    pub(crate) const fn is_between_copies(&self) -> bool {
        matches!(self.kind, Kind::Cycle | Kind::StalePoll)
            && 1 < self.period
            && self.period < Self::LONG
            && !self.evidence.len().is_multiple_of(self.period)
    }
}
