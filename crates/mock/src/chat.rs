//! `OpenAI` chat: `POST /v1/chat/completions`.

use bytes::Bytes;

use crate::answer::{Answer, CREATED, Call, Part, pieces};
use crate::json::{Json, object};
use crate::question::Question;
use crate::turn::Usage;

/// The answer in one piece.
pub(crate) fn whole(answer: &Answer) -> Bytes {
    let mut message = vec![("role", Json::from("assistant")), ("content", answer.text().into())];
    if let Some(thought) = answer.reasoning() {
        message.push(("reasoning_content", thought.into()));
    }
    if answer.has_calls() {
        message.push(("tool_calls", Json::List(answer.calls().map(tool_call).collect())));
    }
    message.push(("refusal", Json::Null));
    message.push(("annotations", Json::List(vec![])));
    let choice = object! {
        "index": 0u64,
        "message": Json::Object(message),
        "logprobs": Json::Null,
        "finish_reason": finish_reason(answer),
    };
    let body = object! {
        "id": answer.id("chatcmpl-"),
        "object": "chat.completion",
        "created": CREATED,
        "model": answer.model.as_str(),
        "choices": vec![choice],
        "usage": usage(&answer.usage),
        "service_tier": "default",
        "system_fingerprint": FINGERPRINT,
    };
    body.pretty().into()
}

/// The answer as a stream: one delta per event, then the reason it ended, the usage if asked for, and `[DONE]`.
pub(crate) fn events(answer: &Answer, question: &Question<'_>) -> Vec<Bytes> {
    let stream = Stream { answer, wants_usage: question.wants_usage(), pads: question.wants_padding() };
    let mut events = Vec::new();
    let mut call_index = 0;
    let opening = object! { "role": "assistant", "content": opening_content(answer), "refusal": Json::Null };
    events.push(stream.chunk(opening, Json::Null));
    for part in &answer.parts {
        match part {
            Part::Reasoning(text) => {
                let deltas = pieces(text).into_iter().map(|piece| object! { "reasoning_content": piece });
                events.extend(deltas.map(|delta| stream.chunk(delta, Json::Null)));
            }
            Part::Text(text) => {
                let deltas = pieces(text).into_iter().map(|piece| object! { "content": piece });
                events.extend(deltas.map(|delta| stream.chunk(delta, Json::Null)));
            }
            Part::Call(call) => {
                let deltas = call_deltas(call_index, call);
                events.extend(deltas.into_iter().map(|delta| stream.chunk(delta, Json::Null)));
                call_index += 1;
            }
        }
    }
    events.push(stream.chunk(Json::Object(vec![]), finish_reason(answer).into()));
    if stream.wants_usage {
        events.push(stream.usage_chunk());
    }
    events.push(Bytes::from_static(b"data: [DONE]\n\n"));
    events
}

struct Stream<'a> {
    answer: &'a Answer,
    wants_usage: bool,
    pads: bool,
}

impl Stream<'_> {
    fn chunk(&self, delta: Json, finish_reason: Json) -> Bytes {
        let choice = object! {
            "index": 0u64,
            "delta": delta,
            "logprobs": Json::Null,
            "finish_reason": finish_reason,
        };
        self.event(vec![choice], self.wants_usage.then_some(Json::Null))
    }

    fn usage_chunk(&self) -> Bytes {
        self.event(vec![], Some(usage(&self.answer.usage)))
    }

    fn event(&self, choices: Vec<Json>, usage: Option<Json>) -> Bytes {
        let mut fields = vec![
            ("id", self.answer.id("chatcmpl-").into()),
            ("object", "chat.completion.chunk".into()),
            ("created", CREATED.into()),
            ("model", self.answer.model.as_str().into()),
            ("service_tier", "default".into()),
            ("system_fingerprint", FINGERPRINT.into()),
            ("choices", choices.into()),
        ];
        fields.extend(usage.map(|usage| ("usage", usage)));
        if self.pads {
            fields.push(("obfuscation", "mR4x9Q".into()));
        }
        format!("data: {}\n\n", Json::Object(fields).compact()).into()
    }
}

/// A first delta has an empty text, or none where only tools are called.
fn opening_content(answer: &Answer) -> Json {
    answer.text().map_or(Json::Null, |_| "".into())
}

fn finish_reason(answer: &Answer) -> &'static str {
    if answer.has_calls() { "tool_calls" } else { "stop" }
}

fn tool_call(call: &Call) -> Json {
    object! {
        "id": id_of(call),
        "type": "function",
        "function": object! { "name": call.tool.as_str(), "arguments": call.args_text() },
    }
}

/// The first delta of a call names it, the others carry its arguments.
fn call_deltas(index: u64, call: &Call) -> Vec<Json> {
    let opening = object! {
        "index": index,
        "id": id_of(call),
        "type": "function",
        "function": object! { "name": call.tool.as_str(), "arguments": "" },
    };
    let args = call.args_text();
    let rest = pieces(&args)
        .into_iter()
        .map(|piece| object! { "index": index, "function": object! { "arguments": piece } });
    std::iter::once(opening).chain(rest).map(|delta| object! { "tool_calls": vec![delta] }).collect()
}

fn id_of(call: &Call) -> String {
    format!("call_{}", call.id)
}

fn usage(usage: &Usage) -> Json {
    let prompt = usage.input + usage.cache_read + usage.cache_write;
    let completion = usage.output + usage.reasoning;
    object! {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": object! { "cached_tokens": usage.cache_read, "audio_tokens": 0u64 },
        "completion_tokens_details": object! {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0u64,
            "accepted_prediction_tokens": 0u64,
            "rejected_prediction_tokens": 0u64,
        },
    }
}

const FINGERPRINT: &str = "fp_0000000000";
