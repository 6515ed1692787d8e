//! The JSON form: names in camel case, ids in hex, whole numbers of 64 bits as texts.

use std::fmt::Display;

use serde::{Deserialize, Serialize, Serializer};

use super::{SCOPE, STATUS_ERROR, VERSION};
use crate::spans::span::{Span, Value};
use crate::trace_context::Hex;

/// Writes a batch as JSON.
pub(in crate::spans) fn encode_json(resource: &[(String, String)], spans: &[Span<'_>]) -> Vec<u8> {
    let attributes =
        resource.iter().map(|(key, value)| KeyValue { key, value: AnyValue::Text(value) }).collect();
    let request = Request {
        resource_spans: [ResourceSpans {
            resource: Resource { attributes },
            scope_spans: [ScopeSpans {
                scope: Scope { name: SCOPE, version: VERSION },
                spans: spans.iter().map(JsonSpan::of).collect(),
            }],
        }],
    };
    // Texts and numbers only: there is nothing that JSON could not say.
    serde_json::to_vec(&request).unwrap_or_default()
}

/// How many spans the collector says that it left out.
pub(in crate::spans) fn rejected_in_json(answer: &[u8]) -> u64 {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(rename = "partialSuccess")]
        partial_success: Option<PartialSuccess>,
    }
    #[derive(Deserialize)]
    struct PartialSuccess {
        #[serde(rename = "rejectedSpans")]
        rejected_spans: Option<Count>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Count {
        Number(u64),
        Text(String),
    }
    let answer: Option<Answer> = serde_json::from_slice(answer).ok();
    match answer.and_then(|answer| answer.partial_success?.rejected_spans) {
        Some(Count::Number(number)) => number,
        Some(Count::Text(text)) => text.parse().unwrap_or_default(),
        None => 0,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'s> {
    resource_spans: [ResourceSpans<'s>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans<'s> {
    resource: Resource<'s>,
    scope_spans: [ScopeSpans<'s>; 1],
}

#[derive(Serialize)]
struct Resource<'s> {
    attributes: Vec<KeyValue<'s>>,
}

#[derive(Serialize)]
struct ScopeSpans<'s> {
    scope: Scope,
    spans: Vec<JsonSpan<'s>>,
}

#[derive(Serialize)]
struct Scope {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonSpan<'s> {
    #[serde(serialize_with = "as_text")]
    trace_id: Hex<'s>,
    #[serde(serialize_with = "as_text")]
    span_id: Hex<'s>,
    #[serde(serialize_with = "as_text")]
    parent_span_id: Hex<'s>,
    flags: u32,
    name: &'s str,
    kind: u8,
    #[serde(serialize_with = "as_text")]
    start_time_unix_nano: u64,
    #[serde(serialize_with = "as_text")]
    end_time_unix_nano: u64,
    attributes: Vec<KeyValue<'s>>,
    status: Status,
}

impl<'s> JsonSpan<'s> {
    fn of(span: &'s Span<'s>) -> Self {
        let attributes = span.attributes.iter();
        Self {
            trace_id: Hex(&span.trace_id),
            span_id: Hex(&span.id),
            parent_span_id: Hex(span.parent_id.as_ref().map_or(&[], |id| id)),
            flags: span.flags,
            name: &span.name,
            kind: span.kind,
            start_time_unix_nano: span.start_nanos,
            end_time_unix_nano: span.end_nanos,
            attributes: attributes.map(|(key, value)| KeyValue { key, value: AnyValue::of(value) }).collect(),
            status: Status { code: if span.is_error { STATUS_ERROR } else { 0 } },
        }
    }
}

#[derive(Serialize)]
struct Status {
    code: u8,
}

#[derive(Serialize)]
struct KeyValue<'s> {
    key: &'s str,
    value: AnyValue<'s>,
}

#[derive(Serialize)]
enum AnyValue<'s> {
    #[serde(rename = "stringValue")]
    Text(&'s str),
    #[serde(rename = "boolValue")]
    Truth(bool),
    #[serde(rename = "intValue", serialize_with = "as_text")]
    Integer(i64),
    #[serde(rename = "doubleValue")]
    Number(f64),
    #[serde(rename = "arrayValue")]
    List(List<'s>),
}

#[derive(Serialize)]
struct List<'s> {
    values: Vec<AnyValue<'s>>,
}

impl<'s> AnyValue<'s> {
    fn of(value: &'s Value<'s>) -> Self {
        match value {
            Value::Text(text) => Self::Text(text),
            Value::Truth(truth) => Self::Truth(*truth),
            Value::Integer(number) => Self::Integer(*number),
            Value::Number(number) => Self::Number(*number),
            Value::Texts(texts) => {
                Self::List(List { values: texts.iter().map(|text| Self::Text(text)).collect() })
            }
        }
    }
}

fn as_text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
