//! Spans as a request to the collector: `ExportTraceServiceRequest`, in both of its forms.

mod json;

use super::protobuf::{Field, Fields, push_bytes, push_fixed32, push_fixed64, push_message, push_number};
use super::span::{Span, Value};

pub(super) use json::{encode_json, rejected_in_json};

/// Who measures, in every batch.
const SCOPE: &str = "loopbreaker";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// `STATUS_CODE_ERROR`. Where nothing went wrong, the status stays unset, as the conventions want it.
const STATUS_ERROR: u8 = 2;

/// Writes a batch as Protocol Buffers. Numbers are those of the published `.proto` files.
pub(super) fn encode_protobuf(resource: &[(String, String)], spans: &[Span<'_>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(spans.len() * 1_024 + 512);
    push_message(&mut out, 1, |resource_spans| {
        push_message(resource_spans, 1, |out| {
            for (name, value) in resource {
                push_message(out, 1, |pair| {
                    push_bytes(pair, 1, name.as_bytes());
                    push_message(pair, 2, |any| push_bytes(any, 1, value.as_bytes()));
                });
            }
        });
        push_message(resource_spans, 2, |scope_spans| {
            push_message(scope_spans, 1, |scope| {
                push_bytes(scope, 1, SCOPE.as_bytes());
                push_bytes(scope, 2, VERSION.as_bytes());
            });
            for span in spans {
                push_message(scope_spans, 2, |out| push_span(out, span));
            }
        });
    });
    out
}

fn push_span(out: &mut Vec<u8>, span: &Span<'_>) {
    push_bytes(out, 1, &span.trace_id);
    push_bytes(out, 2, &span.id);
    if let Some(parent) = &span.parent_id {
        push_bytes(out, 4, parent);
    }
    push_bytes(out, 5, span.name.as_bytes());
    push_number(out, 6, span.kind.into());
    push_fixed64(out, 7, span.start_nanos);
    push_fixed64(out, 8, span.end_nanos);
    for (name, value) in &span.attributes {
        push_message(out, 9, |pair| {
            push_bytes(pair, 1, name.as_bytes());
            push_message(pair, 2, |any| push_value(any, value));
        });
    }
    if span.is_error {
        push_message(out, 15, |status| push_number(status, 3, STATUS_ERROR.into()));
    }
    push_fixed32(out, 16, span.flags);
}

fn push_value(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Text(text) => push_bytes(out, 1, text.as_bytes()),
        Value::Truth(truth) => push_number(out, 2, u64::from(*truth)),
        Value::Integer(number) => push_number(out, 3, number.cast_unsigned()),
        Value::Number(number) => push_fixed64(out, 4, number.to_bits()),
        Value::Texts(texts) => push_message(out, 5, |list| {
            for text in texts {
                push_message(list, 1, |any| push_bytes(any, 1, text.as_bytes()));
            }
        }),
    }
}

/// How many spans the collector says that it left out, in `ExportTraceServiceResponse`.
pub(super) fn rejected_in_protobuf(answer: &[u8]) -> u64 {
    let bytes = |(field, value)| match value {
        Field::Bytes(bytes) if field == 1 => Some(bytes),
        _ => None,
    };
    let number = |(field, value)| match value {
        Field::Number(number) if field == 1 => Some(number),
        _ => None,
    };
    Fields(answer).find_map(bytes).and_then(|partial| Fields(partial).find_map(number)).unwrap_or_default()
}

#[cfg(test)]
pub(in crate::spans) mod tests;
