//! A step: one action of an agent, as the detectors see it.

/// A moment in milliseconds on any clock that the caller likes, as long as it is always the same one.
///
/// Detectors own no clock: time comes in with the event, so a replay of a recorded run gives the same findings as
/// the live run did.
///
/// ```
/// use loopbreaker::Timestamp;
/// let start = Timestamp::from_millis(1_000);
/// assert_eq!(Timestamp::from_secs(3).millis_since(start), 2_000);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// A moment that is `millis` milliseconds after the clock's zero.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// A moment that is `secs` seconds after the clock's zero.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000))
    }

    /// Milliseconds since the clock's zero.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Milliseconds from `earlier` to `self`; zero when the clock jumped backwards.
    pub const fn millis_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Who did a step.
///
/// ```
/// use loopbreaker::Role;
/// assert_eq!(Role::named("user"), Role::Outside);
/// assert_eq!(Role::named("Planner"), Role::Agent("Planner"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role<'a> {
    /// The agent of this name.
    Agent(&'a str),
    /// A person or the environment: words from outside the agent.
    Outside,
    /// The history was compacted, or the session was resumed from a summary. What the agent re-reads now, it has
    /// really forgotten.
    Compaction,
}

impl<'a> Role<'a> {
    /// The role that a speaker's name stands for: `user`, `human`, `environment` and `system` are outside, any other
    /// name is an agent.
    pub fn named(name: &'a str) -> Self {
        match name {
            "user" | "human" | "environment" | "system" | "developer" => Self::Outside,
            _ => Self::Agent(name),
        }
    }
}

impl Default for Role<'_> {
    fn default() -> Self {
        Self::Agent("assistant")
    }
}

/// How a tool call ended, where the caller knows.
///
/// ```
/// use loopbreaker::Status;
/// assert_eq!(Status::parse("failure"), Some(Status::Failure));
/// assert_eq!(Status::parse("nonsense"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// It did what was asked.
    Success,
    /// It did not.
    Failure,
    /// It has not answered yet.
    Pending,
    /// It never ran: refused by a person, by a policy or by us.
    Skipped,
}

impl Status {
    /// The status of this name, as in a decision log.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "success" | "ok" | "completed" => Some(Self::Success),
            "failure" | "error" | "failed" => Some(Self::Failure),
            "pending" => Some(Self::Pending),
            "skipped" => Some(Self::Skipped),
            _ => None,
        }
    }

    /// The status' name, as in a decision log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Pending => "pending",
            Self::Skipped => "skipped",
        }
    }
}

/// One action of an agent: what it said, which tool it called, and what came back.
///
/// A step without `tool` is text. Every field is borrowed: detectors keep hashes, never the words.
///
/// ```
/// use loopbreaker::{Status, Step};
/// let step = Step::call("bash", r#"{"command":"cargo test"}"#).answered("1 failed", Some(Status::Failure));
/// assert_eq!(step.tool, Some("bash"));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Step<'a> {
    /// The round it belongs to: steps that one model answer asked for share the number. `None` is a round of its own.
    pub round: Option<u64>,
    /// Who did it.
    pub role: Role<'a>,
    /// What was said or thought with it; for a step without `tool`, the whole answer.
    pub thought: Option<&'a str>,
    /// The tool that was called.
    pub tool: Option<&'a str>,
    /// The arguments as JSON text (an object, or a string that holds one); text that is not JSON is taken as it is.
    pub args: Option<&'a str>,
    /// What the tool answered.
    pub result: Option<&'a str>,
    /// How the call ended, where that is known apart from the result's words.
    pub status: Option<Status>,
    /// When it happened.
    pub time: Option<Timestamp>,
    /// Tokens that it consumed.
    pub tokens: Option<u64>,
    /// Money that it cost, in US dollars.
    pub cost_usd: Option<f64>,
}

impl<'a> Step<'a> {
    /// A tool call whose answer is not known yet.
    pub fn call(tool: &'a str, args: &'a str) -> Self {
        Self { tool: Some(tool), args: Some(args), ..Self::default() }
    }

    /// An answer of the agent without a tool call.
    pub fn said(text: &'a str) -> Self {
        Self { thought: Some(text), ..Self::default() }
    }

    /// Words from outside: a person, or the environment.
    pub fn heard(text: &'a str) -> Self {
        Self { role: Role::Outside, thought: Some(text), ..Self::default() }
    }

    /// The same call with its outcome.
    #[must_use]
    pub fn answered(self, result: &'a str, status: Option<Status>) -> Self {
        Self { result: Some(result), status, ..self }
    }

    /// The same step as part of round `round`.
    #[must_use]
    pub fn in_round(self, round: u64) -> Self {
        Self { round: Some(round), ..self }
    }

    /// The same step done by `role`.
    #[must_use]
    pub fn by(self, role: Role<'a>) -> Self {
        Self { role, ..self }
    }
}
