//! The JSON Schema of a log, made from its types.

use schemars::{Schema, SchemaGenerator, json_schema as schema};
use serde_json::{Value, json};

use crate::log::DecisionLog;
use crate::trace_id::TraceId;
use crate::version::{UnknownFields, Version, pattern_of};

/// The JSON Schema (draft 2020-12) of the logs of one version, for agents in any language.
///
/// Lengths are counted in bytes by us and in characters by JSON Schema; only there, and in the text inside of
/// `tool_input`, a log that fits the schema may still be refused.
///
/// ```
/// use loopbreaker_record::{Versions, json_schema};
/// let schema = json_schema(Versions::builtin().of(1).expect("1 is accepted"));
/// assert_eq!(schema["required"], serde_json::json!(["meta", "identity", "cognition", "action"]));
/// assert_eq!(schema["additionalProperties"], false);
/// ```
pub fn json_schema(version: &Version) -> Value {
    let mut schema = schemars::schema_for!(DecisionLog).to_value();
    schema["$defs"]["Identity"]["properties"]["capability_version"]["pattern"] =
        pattern_of(version.major()).into();
    schema["title"] = format!("DecisionLog, version {}", version.major()).into();
    if version.unknown_fields() == UnknownFields::Reject {
        if let Some(properties) = schema["properties"].as_object_mut() {
            properties.remove("extensions");
        }
        schema["additionalProperties"] = false.into();
        for section in schema["$defs"].as_object_mut().into_iter().flat_map(|defs| defs.values_mut()) {
            if section.get("properties").is_some() {
                section["additionalProperties"] = false.into();
            }
        }
    }
    schema
}

pub(crate) fn parent_step_id(_: &mut SchemaGenerator) -> Schema {
    schema!({
        "type": ["string", "null"],
        "pattern": format!("^$|{}", TraceId::PATTERN),
        "description": "The `trace_id` of the step that led to this one; absent, `null` or empty for a root.",
    })
}

pub(crate) fn tool_input(_: &mut SchemaGenerator) -> Schema {
    schema!({
        "type": ["string", "object", "null"],
        "contentMediaType": "application/json",
        "maxLength": DecisionLog::MAX_TEXT,
    })
}

pub(crate) fn tokens_consumed(_: &mut SchemaGenerator) -> Schema {
    schema!({ "type": ["integer", "null"], "minimum": 0, "maximum": DecisionLog::MAX_TOKENS })
}

pub(crate) fn flag(_: &mut SchemaGenerator) -> Schema {
    schema!({ "type": ["boolean", "null"], "default": false })
}

pub(crate) fn extensions(_: &mut SchemaGenerator) -> Schema {
    Schema::try_from(json!({ "type": ["object", "null"] })).unwrap_or_default()
}
