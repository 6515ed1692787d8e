//! The JSON Schema of a log, made from its types.

use std::collections::{BTreeMap, BTreeSet};

use schemars::{Schema, SchemaGenerator, json_schema as schema};
use serde_json::{Value, json};

use crate::log::DecisionLog;
use crate::trace_id::TraceId;
use crate::version::{UnknownFields, Version, Versions, pattern_of};

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
    let mut schema = of_types(&[version.major()]);
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

/// The JSON Schema of the logs of every version that is accepted: one that is strict about its fields is so by `if` and
/// `then`.
///
/// ```
/// use loopbreaker_record::{Versions, json_schema_of_all};
/// let schema = json_schema_of_all(Versions::builtin());
/// assert_eq!(schema["title"], "DecisionLog");
/// assert_eq!(schema["then"]["propertyNames"]["enum"][0], "action");
/// ```
pub fn json_schema_of_all(versions: &Versions) -> Value {
    let majors: Vec<u64> = versions.iter().map(Version::major).collect();
    let mut schema = of_types(&majors);
    schema["title"] = "DecisionLog".into();
    // The last of them ends the chain; each of the others stands around what follows it.
    let mut rest: Option<Value> = None;
    for version in versions.iter().filter(|version| version.unknown_fields() == UnknownFields::Reject) {
        let mut rule = json!({ "if": speaks(version), "then": only_fields_of(version) });
        if let Some(rest) = rest.take() {
            rule["else"] = rest;
        }
        rest = Some(rule);
    }
    if let (Some(fields), Some(Value::Object(rule))) = (schema.as_object_mut(), rest) {
        fields.extend(rule);
    }
    schema
}

/// What the types say, for agents that speak one of these versions.
fn of_types(majors: &[u64]) -> Value {
    let mut schema = schemars::schema_for!(DecisionLog).to_value();
    let patterns: Vec<String> = majors.iter().map(|major| pattern_of(*major)).collect();
    schema["$defs"]["Identity"]["properties"]["capability_version"]["pattern"] = patterns.join("|").into();
    // What stands behind the first words is for readers of Rust.
    let about = schema["description"].as_str().and_then(|text| text.split("\n\n").next()).map(str::to_owned);
    schema["description"] = about.into();
    schema["examples"] = json!([example(majors.first().copied().unwrap_or_default())]);
    schema
}

fn example(major: u64) -> Value {
    json!({
        "meta": { "trace_id": "3f2a9c1e-7b54-4e0d-9a61-0c5d8e2f7a10", "timestamp": "2026-02-21T10:00:00Z" },
        "identity": {
            "agent_id": "builder-1", "agent_type": "coder", "capability_version": format!("{major}.0.0"),
        },
        "cognition": { "intent": "build" },
        "action": { "tool_call": "make", "tool_input": "{\"target\":\"all\"}", "status": "failure" },
    })
}

/// That a log names this version.
fn speaks(version: &Version) -> Value {
    json!({
        "required": ["identity"],
        "properties": { "identity": {
            "required": ["capability_version"],
            "properties": { "capability_version": { "pattern": pattern_of(version.major()) } },
        } },
    })
}

/// That a log has the fields of this version and no other.
fn only_fields_of(version: &Version) -> Value {
    let mut sections = BTreeMap::<&str, BTreeSet<&str>>::new();
    for (section, field) in version.fields().filter_map(|path| path.split_once('.')) {
        sections.entry(section).or_default().insert(field);
    }
    let properties: serde_json::Map<String, Value> = sections
        .iter()
        .map(|(section, fields)| ((*section).to_owned(), json!({ "propertyNames": { "enum": fields } })))
        .collect();
    let names: Vec<&str> = sections.keys().copied().collect();
    json!({ "propertyNames": { "enum": names }, "properties": properties })
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
