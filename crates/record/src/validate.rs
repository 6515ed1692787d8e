//! From bytes to a log, or to everything that is wrong with it.

use serde_json::{Map, Value};

use crate::fields::Fields;
use crate::log::{Action, Cognition, Control, DecisionLog, Identity, Interrupt, Meta, StateDelta, Status};
use crate::moment::Moment;
use crate::rejection::{Rejection, Violation};
use crate::trace_id::TraceId;
use crate::version::{UnknownFields, Version, Versions, major_of};

/// The sections, in the order in which they are read and reported.
const SECTIONS: [&str; 6] = ["meta", "identity", "cognition", "action", "state_delta", "control"];
const EXTENSIONS: &str = "extensions";
const A_UUID: &str = "a UUID of version 4";

impl DecisionLog {
    /// Reads one log. Every violation is reported at once; a wrong type is a violation of its field.
    pub fn parse(bytes: &[u8]) -> Result<Self, Rejection> {
        if bytes.len() > Self::MAX_BYTES {
            return Err(Rejection::TooLarge { bytes: bytes.len(), max: Self::MAX_BYTES });
        }
        let value = serde_json::from_slice(bytes).map_err(|error| Rejection::NotJson(error.to_string()))?;
        Self::from_value(value)
    }

    /// Reads one log that has been parsed already, as a member of a list.
    pub fn from_value(value: Value) -> Result<Self, Rejection> {
        Self::from_value_of(value, Versions::builtin())
    }

    /// Reads one log by another registry of versions.
    pub fn from_value_of(value: Value, versions: &Versions) -> Result<Self, Rejection> {
        let Value::Object(mut sections) = value else {
            return Err(Rejection::Invalid(vec![Violation::new("log", "must be an object")]));
        };
        let mut problems = Vec::new();
        let named = sections.get("identity").and_then(|identity| identity.get("capability_version"));
        let named = named.and_then(Value::as_str).unwrap_or_default().to_owned();
        let major = major_of(&named);
        let accepted = major.and_then(|major| versions.of(major));
        let unsupported = major.is_some() && accepted.is_none();
        if unsupported {
            let message = format!("is {named}, {} are accepted", versions.range());
            problems.push(Violation::new("identity.capability_version", message));
        }
        let mut unknown = Unknown { version: accepted.or(versions.newest()), found: Vec::new() };
        let mut read = |name, problems: &mut Vec<_>| unknown.section(&mut sections, name, problems);
        let [meta, identity, cognition, action, state_delta, control] =
            SECTIONS.map(|name| read(name, &mut problems));
        let extensions = unknown.extensions(sections, &mut problems);

        let meta = read_meta(Fields::new("meta", meta.unwrap_or_default(), &mut problems));
        let identity = read_identity(Fields::new("identity", identity.unwrap_or_default(), &mut problems));
        let cognition =
            read_cognition(Fields::new("cognition", cognition.unwrap_or_default(), &mut problems));
        let action = read_action(Fields::new("action", action.unwrap_or_default(), &mut problems));
        let state_delta =
            state_delta.map(|fields| read_state_delta(Fields::new("state_delta", fields, &mut problems)));
        let control = control.map(|fields| read_control(Fields::new("control", fields, &mut problems)));
        problems.extend(unknown.violations());

        if let (Some(meta), Some(identity), Some(cognition), Some(action), true) =
            (meta, identity, cognition, action, problems.is_empty())
        {
            return Ok(Self { meta, identity, cognition, action, state_delta, control, extensions });
        }
        let excess = problems.len().saturating_sub(Rejection::MAX_VIOLATIONS);
        if excess > 0 {
            problems.truncate(Rejection::MAX_VIOLATIONS);
            problems.push(Violation::new("log", format!("has {excess} more violations")));
        }
        if unsupported {
            let (version, accepted) = (named, versions.range());
            return Err(Rejection::UnsupportedVersion { version, accepted, violations: problems });
        }
        Err(Rejection::Invalid(problems))
    }
}

fn read_meta(mut fields: Fields<'_>) -> Option<Meta> {
    let trace_id = fields.required("trace_id", A_UUID, TraceId::parse);
    let parent_step_id = fields.optional_or_empty("parent_step_id", A_UUID, TraceId::parse);
    let timestamp = fields.required("timestamp", "an RFC 3339 timestamp", Moment::parse);
    let cluster_id = fields.text("cluster_id", DecisionLog::MAX_TEXT);
    let session_id = fields.text("session_id", DecisionLog::MAX_SESSION_ID).filter(|id| !id.is_empty());
    Some(Meta { trace_id: trace_id?, parent_step_id, timestamp: timestamp?, cluster_id, session_id })
}

fn read_identity(mut fields: Fields<'_>) -> Option<Identity> {
    let agent_id = fields.required_text("agent_id");
    let agent_type = fields.required_text("agent_type");
    let capability_version =
        fields.required("capability_version", "a semantic version such as 1.4.0", |version| {
            major_of(version)
                .map(|_| version.to_owned())
                .filter(|version| version.len() <= DecisionLog::MAX_TEXT)
        });
    Some(Identity { agent_id: agent_id?, agent_type: agent_type?, capability_version: capability_version? })
}

fn read_cognition(mut fields: Fields<'_>) -> Option<Cognition> {
    let intent = fields.required_text("intent");
    let reasoning_chain = fields.texts("reasoning_chain");
    let confidence_score = fields.number("confidence_score", 1.0);
    let strategy_used = fields.text("strategy_used", DecisionLog::MAX_TEXT);
    let entropy_score = fields.number("entropy_score", 1.0);
    Some(Cognition { intent: intent?, reasoning_chain, confidence_score, strategy_used, entropy_score })
}

fn read_action(mut fields: Fields<'_>) -> Option<Action> {
    let tool_call = fields.text("tool_call", DecisionLog::MAX_TEXT);
    let tool_input = fields.json_text("tool_input");
    let tool_output_summary = fields.text("tool_output_summary", DecisionLog::MAX_TEXT);
    let one_of = format!("one of {}", Status::NAMES.join(", "));
    let status = fields.required("status", &one_of, Status::parse);
    Some(Action { tool_call, tool_input, tool_output_summary, status: status? })
}

fn read_state_delta(mut fields: Fields<'_>) -> StateDelta {
    StateDelta {
        added_to_memory: fields.texts("added_to_memory"),
        tokens_consumed: fields.count("tokens_consumed"),
        cumulative_session_cost: fields.number("cumulative_session_cost", DecisionLog::MAX_COST),
    }
}

fn read_control(mut fields: Fields<'_>) -> Control {
    let one_of = format!("null or one of {}", Interrupt::NAMES.join(", "));
    Control {
        hitl_required: fields.flag("hitl_required").unwrap_or_default(),
        interrupt_signal: fields.optional("interrupt_signal", &one_of, Interrupt::parse),
        is_terminal: fields.flag("is_terminal").unwrap_or_default(),
    }
}

/// Fields that the log's version does not have, and where they go.
struct Unknown<'a> {
    version: Option<&'a Version>,
    found: Vec<(String, Value)>,
}

impl Unknown<'_> {
    /// The known fields of one section; `None` when it is absent.
    fn section(
        &mut self,
        sections: &mut Map<String, Value>,
        name: &str,
        problems: &mut Vec<Violation>,
    ) -> Option<Map<String, Value>> {
        let fields = match sections.remove(name)? {
            Value::Object(fields) => fields,
            Value::Null => return None,
            _ => {
                problems.push(Violation::new(name, "must be an object"));
                return None;
            }
        };
        let mut known = Map::new();
        for (field, value) in fields {
            let path = format!("{name}.{field}");
            if self.version.is_some_and(|version| version.has(&path)) {
                known.insert(field, value);
            } else {
                self.found.push((path, value));
            }
        }
        Some(known)
    }

    /// What is kept under `extensions`: what the client put there, and what has no other place.
    fn extensions(&mut self, rest: Map<String, Value>, problems: &mut Vec<Violation>) -> Map<String, Value> {
        let mut kept = Map::new();
        for (name, value) in rest {
            match value {
                Value::Object(own) if self.keeps() && name == EXTENSIONS => kept = own,
                Value::Null if self.keeps() && name == EXTENSIONS => {}
                _ if self.keeps() && name == EXTENSIONS => {
                    problems.push(Violation::new(EXTENSIONS, "must be an object"));
                }
                value => self.found.push((name, value)),
            }
        }
        if self.keeps() {
            for (path, value) in self.found.drain(..) {
                if kept.contains_key(&path) {
                    problems.push(Violation::new(path, "stands under extensions as well"));
                } else {
                    kept.insert(path, value);
                }
            }
        }
        kept
    }

    fn violations(self) -> impl Iterator<Item = Violation> {
        let major = self.version.map_or(0, Version::major);
        let message = format!("is not a field of version {major}");
        self.found.into_iter().map(move |(path, _)| Violation::new(path, message.clone()))
    }

    fn keeps(&self) -> bool {
        self.version.is_some_and(|version| version.unknown_fields() == UnknownFields::Extensions)
    }
}

#[cfg(test)]
mod tests;
