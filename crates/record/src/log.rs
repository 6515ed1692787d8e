//! The six sections of a decision log.

use loopbreaker::Fingerprint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::moment::Moment;
use crate::schema;
use crate::trace_id::TraceId;

/// One decision of an agent: what it wanted, what it did, and what came of it.
///
/// ```
/// use loopbreaker_record::{DecisionLog, Status};
///
/// let log = DecisionLog::parse(br#"{
///     "meta": {"trace_id": "3f2a9c1e-7b54-4e0d-9a61-0c5d8e2f7a10", "timestamp": "2026-02-21T10:00:00Z"},
///     "identity": {"agent_id": "builder-1", "agent_type": "coder", "capability_version": "1.4.0"},
///     "cognition": {"intent": "build"},
///     "action": {"tool_call": "make", "tool_input": {"target": "all"}, "status": "failure"}
/// }"#)?;
/// assert_eq!(log.action.status, Status::Failure);
/// assert_eq!(log.action.tool_input.as_deref(), Some(r#"{"target":"all"}"#));
/// # Ok::<(), loopbreaker_record::Rejection>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionLog {
    /// Which step this is.
    pub meta: Meta,
    /// Who took it.
    pub identity: Identity,
    /// Why.
    pub cognition: Cognition,
    /// What was done.
    pub action: Action,
    /// What it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_delta: Option<StateDelta>,
    /// What people have to say in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// Fields that this version does not know, by their path; from version 2 on.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "schema::extensions")]
    pub extensions: Map<String, Value>,
}

/// Which step a log is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Meta {
    /// Names this step.
    pub trace_id: TraceId,
    /// The `trace_id` of the step that led to this one; absent, `null` or empty for a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::parent_step_id")]
    pub parent_step_id: Option<TraceId>,
    /// When the step was taken.
    pub timestamp: Moment,
    /// The cluster that the agent runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = DecisionLog::MAX_TEXT))]
    pub cluster_id: Option<String>,
    /// The run that the step belongs to; otherwise that of its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = DecisionLog::MAX_SESSION_ID))]
    pub session_id: Option<String>,
}

/// Who took a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Identity {
    /// The agent's name.
    #[schemars(length(min = 1, max = DecisionLog::MAX_TEXT))]
    pub agent_id: String,
    /// What kind of agent it is.
    #[schemars(length(min = 1, max = DecisionLog::MAX_TEXT))]
    pub agent_type: String,
    /// The version of this log's form that the agent speaks, as semantic version.
    #[schemars(length(min = 1, max = DecisionLog::MAX_TEXT))]
    pub capability_version: String,
}

/// Why a step was taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cognition {
    /// What the agent wants.
    #[schemars(length(min = 1, max = DecisionLog::MAX_TEXT))]
    pub intent: String,
    /// How it came to that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = DecisionLog::MAX_ITEMS), inner(length(max = DecisionLog::MAX_TEXT)))]
    pub reasoning_chain: Option<Vec<String>>,
    /// How sure it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence_score: Option<f64>,
    /// `ReAct`, `CoT`, `Plan-Execute` and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = DecisionLog::MAX_TEXT))]
    pub strategy_used: Option<String>,
    /// How many of its last decisions differ; overwritten by what is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub entropy_score: Option<f64>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Action {
    /// The tool that was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = DecisionLog::MAX_TEXT))]
    pub tool_call: Option<String>,
    /// Its input as JSON text; an object is encoded on arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::tool_input")]
    pub tool_input: Option<String>,
    /// What came back, in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = DecisionLog::MAX_TEXT))]
    pub tool_output_summary: Option<String>,
    /// How it ended.
    pub status: Status,
}

/// What a step changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateDelta {
    /// What the agent remembers from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = DecisionLog::MAX_ITEMS), inner(length(max = DecisionLog::MAX_TEXT)))]
    pub added_to_memory: Option<Vec<String>>,
    /// Tokens of this step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::tokens_consumed")]
    pub tokens_consumed: Option<u64>,
    /// What the session has cost so far, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = DecisionLog::MAX_COST))]
    pub cumulative_session_cost: Option<f64>,
}

/// What people have to say in a step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Control {
    /// The agent asks for a person: its session is paused.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(schema_with = "schema::flag")]
    pub hitl_required: bool,
    /// What the agent has been told to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt_signal: Option<Interrupt>,
    /// The session ends with this step.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(schema_with = "schema::flag")]
    pub is_terminal: bool,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It did what was asked.
    Success,
    /// It did not.
    Failure,
    /// It has not answered yet.
    Pending,
    /// It never ran.
    Skipped,
}

/// What an agent is told to do by a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Interrupt {
    /// Wait.
    Pause,
    /// Take another result or input for a step.
    Rewrite,
    /// Read a message.
    Inject,
}

impl DecisionLog {
    /// Bytes of one text.
    pub const MAX_TEXT: usize = 64 << 10;
    /// Members of one list.
    pub const MAX_ITEMS: usize = 1_000;
    /// Bytes of one log.
    pub const MAX_BYTES: usize = 1 << 20;
    /// Bytes of a session's name.
    pub const MAX_SESSION_ID: usize = 200;
    /// Tokens of one step: what JSON carries exactly.
    pub const MAX_TOKENS: u64 = (1 << 53) - 1;
    /// Dollars of one session.
    pub const MAX_COST: f64 = 1e12;

    /// What makes two logs the same: every field, whatever their order and spacing was, also inside of `tool_input`.
    pub fn content(&self) -> Fingerprint {
        let input = self.action.tool_input.as_ref();
        let input = input.map(|input| Fingerprint::of_document(input.as_bytes()).to_string());
        let action = Action { tool_input: input, ..self.action.clone() };
        // A log holds text keys and finite numbers only, which can always be written.
        Fingerprint::of_document(&serde_json::to_vec(&Self { action, ..self.clone() }).unwrap_or_default())
    }

    /// Whether the agent asks for a person.
    pub fn hitl_required(&self) -> bool {
        self.control.as_ref().is_some_and(|control| control.hitl_required)
    }

    /// Whether the session ends with this step.
    pub fn is_terminal(&self) -> bool {
        self.control.as_ref().is_some_and(|control| control.is_terminal)
    }
}

impl Status {
    pub(crate) const NAMES: &[&str] = &["success", "failure", "pending", "skipped"];

    /// The status of this name, exactly as it is written in a log.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Success, Self::Failure, Self::Pending, Self::Skipped]
            .into_iter()
            .find(|status| status.as_str() == name)
    }

    /// The name in a log.
    pub fn as_str(self) -> &'static str {
        loopbreaker::Status::from(self).as_str()
    }
}

impl From<Status> for loopbreaker::Status {
    fn from(status: Status) -> Self {
        match status {
            Status::Success => Self::Success,
            Status::Failure => Self::Failure,
            Status::Pending => Self::Pending,
            Status::Skipped => Self::Skipped,
        }
    }
}

impl Interrupt {
    pub(crate) const NAMES: &[&str] = &["pause", "rewrite", "inject"];

    /// The signal of this name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Pause, Self::Rewrite, Self::Inject].into_iter().find(|signal| signal.as_str() == name)
    }

    /// The name in a log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Rewrite => "rewrite",
            Self::Inject => "inject",
        }
    }
}

fn null_is_default<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
