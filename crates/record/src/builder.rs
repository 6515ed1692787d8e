//! Logs made by agents that are written in Rust.

use serde_json::{Map, Value};

use crate::log::{Action, Cognition, Control, DecisionLog, Identity, Meta, StateDelta, Status};
use crate::moment::Moment;
use crate::rejection::Rejection;
use crate::trace_id::TraceId;

/// Makes a [`DecisionLog`] that is valid, or says why it cannot be.
///
/// ```
/// use loopbreaker_record::{DecisionLog, Moment, Status, TraceId};
///
/// let random = [7; 16]; // from a source of randomness
/// let log = DecisionLog::builder("builder-1", "coder", "1.4.0")
///     .intent("build")
///     .called("make", r#"{"target":"all"}"#)
///     .answered("1 error", Status::Failure)
///     .session("run-17")
///     .tokens(412)
///     .build(TraceId::from_random_bytes(random), Moment::from_millis(1_771_668_000_000))?;
/// assert_eq!(log.meta.session_id.as_deref(), Some("run-17"));
/// # Ok::<(), loopbreaker_record::Rejection>(())
/// ```
#[derive(Debug, Clone)]
pub struct Builder {
    identity: Identity,
    cognition: Cognition,
    action: Action,
    session_id: Option<String>,
    parent_step_id: Option<TraceId>,
    cluster_id: Option<String>,
    state_delta: Option<StateDelta>,
    control: Option<Control>,
    extensions: Map<String, Value>,
}

impl DecisionLog {
    /// Starts a log of an agent that speaks this version of it.
    pub fn builder(
        agent_id: impl Into<String>,
        agent_type: impl Into<String>,
        capability_version: impl Into<String>,
    ) -> Builder {
        Builder {
            identity: Identity {
                agent_id: agent_id.into(),
                agent_type: agent_type.into(),
                capability_version: capability_version.into(),
            },
            cognition: Cognition {
                intent: String::new(),
                reasoning_chain: None,
                confidence_score: None,
                strategy_used: None,
                entropy_score: None,
            },
            action: Action {
                tool_call: None,
                tool_input: None,
                tool_output_summary: None,
                status: Status::Pending,
            },
            session_id: None,
            parent_step_id: None,
            cluster_id: None,
            state_delta: None,
            control: None,
            extensions: Map::new(),
        }
    }
}

impl Builder {
    /// What the agent wants.
    #[must_use]
    pub fn intent(mut self, intent: impl Into<String>) -> Self {
        self.cognition.intent = intent.into();
        self
    }

    /// One more thought on the way there.
    #[must_use]
    pub fn thought(mut self, thought: impl Into<String>) -> Self {
        self.cognition.reasoning_chain.get_or_insert_default().push(thought.into());
        self
    }

    /// How sure the agent is, from 0 to 1.
    #[must_use]
    pub fn confidence(mut self, score: f64) -> Self {
        self.cognition.confidence_score = Some(score);
        self
    }

    /// The score that the agent computed of itself, from 0 to 1.
    #[must_use]
    pub fn entropy(mut self, score: f64) -> Self {
        self.cognition.entropy_score = Some(score);
        self
    }

    /// The tool that was called, and its input as JSON text.
    #[must_use]
    pub fn called(mut self, tool: impl Into<String>, input: impl Into<String>) -> Self {
        self.action.tool_call = Some(tool.into());
        self.action.tool_input = Some(input.into());
        self
    }

    /// What came back, and how it ended.
    #[must_use]
    pub fn answered(mut self, summary: impl Into<String>, status: Status) -> Self {
        self.action.tool_output_summary = Some(summary.into());
        self.status(status)
    }

    /// How the step ended; `pending` until it is said.
    #[must_use]
    pub fn status(mut self, status: Status) -> Self {
        self.action.status = status;
        self
    }

    /// The run that the step belongs to.
    #[must_use]
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.session_id = Some(id.into());
        self
    }

    /// The step that led to this one.
    #[must_use]
    pub fn after(mut self, parent: TraceId) -> Self {
        self.parent_step_id = Some(parent);
        self
    }

    /// The cluster that the agent runs in.
    #[must_use]
    pub fn cluster(mut self, id: impl Into<String>) -> Self {
        self.cluster_id = Some(id.into());
        self
    }

    /// What the agent remembers from now on.
    #[must_use]
    pub fn remembers(mut self, fact: impl Into<String>) -> Self {
        self.state_delta.get_or_insert_default().added_to_memory.get_or_insert_default().push(fact.into());
        self
    }

    /// Tokens of this step.
    #[must_use]
    pub fn tokens(mut self, tokens: u64) -> Self {
        self.state_delta.get_or_insert_default().tokens_consumed = Some(tokens);
        self
    }

    /// What the session has cost so far, in US dollars.
    #[must_use]
    pub fn cost_so_far(mut self, dollars: f64) -> Self {
        self.state_delta.get_or_insert_default().cumulative_session_cost = Some(dollars);
        self
    }

    /// Asks for a person.
    #[must_use]
    pub fn needs_a_person(mut self) -> Self {
        self.control.get_or_insert_default().hitl_required = true;
        self
    }

    /// The session ends with this step.
    #[must_use]
    pub fn is_last(mut self) -> Self {
        self.control.get_or_insert_default().is_terminal = true;
        self
    }

    /// A field of the agent's own, from version 2 on.
    #[must_use]
    pub fn extension(mut self, name: impl Into<String>, value: Value) -> Self {
        self.extensions.insert(name.into(), value);
        self
    }

    /// The log, checked as one that comes over the wire.
    pub fn build(self, trace_id: TraceId, timestamp: Moment) -> Result<DecisionLog, Rejection> {
        let Self { parent_step_id, cluster_id, session_id, .. } = self;
        let log = DecisionLog {
            meta: Meta { trace_id, parent_step_id, timestamp, cluster_id, session_id },
            identity: self.identity,
            cognition: self.cognition,
            action: self.action,
            state_delta: self.state_delta,
            control: self.control,
            extensions: self.extensions,
        };
        let bytes = serde_json::to_vec(&log).map_err(|error| Rejection::NotJson(error.to_string()))?;
        DecisionLog::parse(&bytes)
    }
}
