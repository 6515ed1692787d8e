//! Anthropic: `POST /v1/messages`.

use bytes::Bytes;

use crate::answer::{Answer, Call, Part, pieces};
use crate::json::{Json, object};
use crate::turn::Usage;

/// The answer in one piece.
pub(crate) fn whole(answer: &Answer) -> Bytes {
    let blocks = answer.parts.iter().map(block).collect();
    message(
        answer,
        blocks,
        stop_reason(answer).into(),
        usage(&answer.usage, answer.usage.output + answer.usage.reasoning),
    )
    .compact()
    .into()
}

/// The answer as a stream: each block is opened, filled and closed in turn.
pub(crate) fn events(answer: &Answer) -> Vec<Bytes> {
    let opening = message(answer, vec![], Json::Null, usage(&answer.usage, 1));
    let mut events = vec![event("message_start", vec![("message", opening)])];
    for (index, part) in (0u64..).zip(&answer.parts) {
        let block = vec![("index", index.into()), ("content_block", opened(part))];
        events.push(event("content_block_start", block));
        if index == 0 {
            events.push(Bytes::from_static(b"event: ping\ndata: {\"type\": \"ping\"}\n\n"));
        }
        for delta in deltas(part) {
            events.push(event("content_block_delta", vec![("index", index.into()), ("delta", delta)]));
        }
        events.push(event("content_block_stop", vec![("index", index.into())]));
    }
    let end = object! { "stop_reason": stop_reason(answer), "stop_sequence": Json::Null };
    let counted = object! {
        "input_tokens": answer.usage.input,
        "cache_creation_input_tokens": answer.usage.cache_write,
        "cache_read_input_tokens": answer.usage.cache_read,
        "output_tokens": answer.usage.output + answer.usage.reasoning,
    };
    events.push(event("message_delta", vec![("delta", end), ("usage", counted)]));
    events.push(event("message_stop", vec![]));
    events
}

fn event(name: &'static str, fields: Vec<(&'static str, Json)>) -> Bytes {
    let mut all = vec![("type", Json::from(name))];
    all.extend(fields);
    format!("event: {name}\ndata: {}\n\n", Json::Object(all).compact()).into()
}

fn message(answer: &Answer, content: Vec<Json>, stop_reason: Json, usage: Json) -> Json {
    object! {
        "model": answer.model.as_str(),
        "id": answer.id("msg_"),
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": Json::Null,
        "usage": usage,
    }
}

fn stop_reason(answer: &Answer) -> &'static str {
    if answer.has_calls() { "tool_use" } else { "end_turn" }
}

fn block(part: &Part) -> Json {
    match part {
        Part::Reasoning(text) => {
            object! { "type": "thinking", "thinking": text.as_str(), "signature": SIGNATURE }
        }
        Part::Text(text) => object! { "type": "text", "text": text.as_str() },
        Part::Call(call) => tool_use(call, Json::Raw(call.args.clone())),
    }
}

/// A block of a stream before its first delta.
fn opened(part: &Part) -> Json {
    match part {
        Part::Reasoning(_) => object! { "type": "thinking", "thinking": "", "signature": "" },
        Part::Text(_) => object! { "type": "text", "text": "" },
        Part::Call(call) => tool_use(call, Json::Object(vec![])),
    }
}

fn tool_use(call: &Call, input: Json) -> Json {
    object! {
        "type": "tool_use",
        "id": format!("toolu_{}", call.id),
        "name": call.tool.as_str(),
        "input": input,
    }
}

fn deltas(part: &Part) -> Vec<Json> {
    match part {
        Part::Reasoning(text) => {
            let thoughts =
                pieces(text).into_iter().map(|piece| object! { "type": "thinking_delta", "thinking": piece });
            let signature = object! { "type": "signature_delta", "signature": SIGNATURE };
            thoughts.chain([signature]).collect()
        }
        Part::Text(text) => {
            pieces(text).into_iter().map(|piece| object! { "type": "text_delta", "text": piece }).collect()
        }
        Part::Call(call) => {
            let json = |piece: &str| object! { "type": "input_json_delta", "partial_json": piece };
            let args = call.args_text();
            std::iter::once("").chain(pieces(&args)).map(json).collect()
        }
    }
}

fn usage(usage: &Usage, said: u64) -> Json {
    object! {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": object! {
            "ephemeral_5m_input_tokens": usage.cache_write,
            "ephemeral_1h_input_tokens": 0u64,
        },
        "output_tokens": said,
        "service_tier": "standard",
    }
}

const SIGNATURE: &str = "EqQBCgIYAhIkbW9jaw==";
