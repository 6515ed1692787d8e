//! Chat completions.

use loopbreaker_dialect::Answer;
use serde_json::{Value, json};

use crate::demo::script::{ScriptStep, Voice};

pub(super) fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

pub(super) fn body(voice: Voice, messages: &[Value]) -> Value {
    let mut body = json!({ "messages": messages, "model": voice.model });
    if voice.streams {
        body["stream"] = true.into();
        body["stream_options"] = json!({ "include_usage": true });
    }
    body
}

pub(super) fn round(said: &Answer, ran: &ScriptStep) -> Vec<Value> {
    let calls: Vec<Value> = said
        .calls
        .iter()
        .map(|call| {
            let function = json!({ "name": call.tool, "arguments": call.args });
            json!({ "id": call.id, "type": "function", "function": function })
        })
        .collect();
    let results = said
        .calls
        .iter()
        .map(|call| json!({ "role": "tool", "tool_call_id": call.id, "content": ran.result }));
    let asked = json!({ "role": "assistant", "content": null, "tool_calls": calls });
    std::iter::once(asked).chain(results).collect()
}
