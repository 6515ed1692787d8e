//! Messages of Anthropic.

use loopbreaker_dialect::Answer;
use serde_json::{Value, json};

use crate::demo::script::ScriptStep;

pub(super) fn body(model: &str, messages: &[Value]) -> Value {
    json!({ "max_tokens": 1024, "messages": messages, "model": model })
}

pub(super) fn round(said: &Answer, ran: &ScriptStep) -> [Value; 2] {
    let uses: Vec<Value> = said
        .calls
        .iter()
        .map(|call| {
            let input: Value = serde_json::from_str(&call.args).unwrap_or_default();
            json!({ "type": "tool_use", "id": call.id, "name": call.tool, "input": input })
        })
        .collect();
    let result = |id: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": ran.result, "is_error": ran.failed });
    let results: Vec<Value> = said.calls.iter().map(|call| result(&call.id)).collect();
    [json!({ "role": "assistant", "content": uses }), json!({ "role": "user", "content": results })]
}
