//! The Responses API, whose provider keeps the history.

use loopbreaker_dialect::Answer;
use serde_json::{Value, json};

use crate::demo::script::ScriptStep;

pub(super) fn body(model: &str, items: &[Value], previous: Option<&str>) -> Value {
    let mut body = json!({ "input": items, "model": model });
    if let Some(previous) = previous {
        body["previous_response_id"] = previous.into();
    }
    body
}

/// Nothing but the results: the calls are in the answer that the next request names.
pub(super) fn outputs(said: &Answer, ran: &ScriptStep) -> Vec<Value> {
    let output = |id: &str| json!({ "type": "function_call_output", "call_id": id, "output": ran.result });
    said.calls.iter().map(|call| output(&call.id)).collect()
}
