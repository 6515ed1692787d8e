//! Contents of Gemini.

use loopbreaker_dialect::Answer;
use serde_json::{Value, json};

use crate::demo::script::ScriptStep;

pub(super) fn user(text: &str) -> Value {
    json!({ "role": "user", "parts": [{ "text": text }] })
}

pub(super) fn body(contents: &[Value]) -> Value {
    json!({ "contents": contents })
}

pub(super) fn round(said: &Answer, ran: &ScriptStep) -> [Value; 2] {
    let calls: Vec<Value> = said
        .calls
        .iter()
        .map(|call| {
            let args: Value = serde_json::from_str(&call.args).unwrap_or_default();
            json!({ "functionCall": { "name": call.tool, "args": args } })
        })
        .collect();
    let key = if ran.failed { "error" } else { "output" };
    let response =
        |tool: &str| json!({ "functionResponse": { "name": tool, "response": { key: ran.result } } });
    let responses: Vec<Value> = said.calls.iter().map(|call| response(&call.tool)).collect();
    [json!({ "role": "model", "parts": calls }), json!({ "role": "user", "parts": responses })]
}
