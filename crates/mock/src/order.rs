//! What the real providers refuse: a tool call without its result right behind it, or a result without its call.
//! Whoever edits a transcript on its way must not be able to do that unseen.

use serde_json::Value;

use crate::provider::Dialect;

/// What is wrong with the order of a transcript, in the words of the provider.
///
/// `waiting` are the calls of the answer that a Responses request continues.
pub(crate) fn problem(dialect: Dialect, body: &[u8], waiting: &[String]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    match dialect {
        Dialect::Chat => chat(list(&body, "messages")),
        Dialect::Responses => responses(list(&body, "input"), waiting),
        Dialect::Anthropic => anthropic(list(&body, "messages")),
        Dialect::Gemini { .. } => gemini(list(&body, "contents")),
    }
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

fn chat(messages: &[Value]) -> Option<String> {
    let mut waiting: Vec<&str> = Vec::new();
    for message in messages {
        if text(message, "role") == "tool" {
            let id = text(message, "tool_call_id");
            let Some(at) = waiting.iter().position(|known| *known == id) else {
                return Some(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
                        .to_owned(),
                );
            };
            waiting.remove(at);
            continue;
        }
        if let Some(id) = waiting.first() {
            return Some(unanswered_chat(id));
        }
        waiting = list(message, "tool_calls").iter().map(|call| text(call, "id")).collect();
    }
    waiting.first().map(|id| unanswered_chat(id))
}

fn unanswered_chat(id: &str) -> String {
    format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {id}"
    )
}

fn responses(items: &[Value], waiting: &[String]) -> Option<String> {
    let ids =
        |kind| items.iter().filter(move |item| text(item, "type") == kind).map(|item| text(item, "call_id"));
    let calls: Vec<&str> = waiting.iter().map(String::as_str).chain(ids("function_call")).collect();
    let outputs: Vec<&str> = ids("function_call_output").collect();
    if let Some(id) = outputs.iter().find(|id| !calls.contains(id)) {
        return Some(format!("No tool call found for function call output with call_id {id}."));
    }
    let id = calls.iter().find(|id| !outputs.contains(id))?;
    Some(format!("No tool output found for function call {id}."))
}

fn anthropic(messages: &[Value]) -> Option<String> {
    let mut waiting: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let role = text(message, "role");
        if role != "user" && role != "assistant" {
            return Some(format!(
                "messages.{index}.role: Input should be 'user' or 'assistant' (got '{role}')"
            ));
        }
        let blocks = list(message, "content");
        let results: Vec<&str> = blocks
            .iter()
            .take_while(|block| text(block, "type") == "tool_result")
            .map(|block| text(block, "tool_use_id"))
            .collect();
        if let Some(id) = waiting.iter().find(|id| !results.contains(id)) {
            return Some(format!(
                "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
            ));
        }
        if let Some(id) = results.iter().find(|id| !waiting.contains(id)) {
            return Some(format!(
                "messages.{index}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            ));
        }
        waiting = blocks
            .iter()
            .filter(|block| text(block, "type") == "tool_use")
            .map(|block| text(block, "id"))
            .collect();
    }
    None
}

fn gemini(contents: &[Value]) -> Option<String> {
    let count = |content: &Value, key: &str| {
        list(content, "parts").iter().filter(|part| part.get(key).is_some()).count()
    };
    let mut waiting = 0;
    for content in contents {
        if count(content, "functionResponse") != waiting {
            return Some(
                "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
                    .to_owned(),
            );
        }
        waiting = count(content, "functionCall");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::problem;
    use crate::provider::Dialect;

    fn is_refused(dialect: Dialect, body: &str) -> bool {
        problem(dialect, body.as_bytes(), &[]).is_some()
    }

    #[test]
    fn chat_wants_each_result_right_behind_its_call() {
        let call = r#"{"role":"assistant","tool_calls":[{"id":"a"},{"id":"b"}]}"#;
        let result = |id| format!(r#"{{"role":"tool","tool_call_id":"{id}"}}"#);
        let body = |messages: &[&str]| format!(r#"{{"messages":[{}]}}"#, messages.join(","));
        let (a, b, hint) = (result("a"), result("b"), r#"{"role":"system","content":"x"}"#);
        assert!(!is_refused(Dialect::Chat, &body(&[hint, call, &b, &a, hint])));
        assert!(is_refused(Dialect::Chat, &body(&[call, &a, hint, &b])));
        assert!(is_refused(Dialect::Chat, &body(&[call, &a])));
        assert!(is_refused(Dialect::Chat, &body(&[&a])));
    }

    #[test]
    fn responses_may_answer_calls_of_the_response_that_they_continue() {
        let body = br#"{"input":[{"type":"function_call_output","call_id":"a","output":"x"}]}"#;
        assert!(problem(Dialect::Responses, body, &[]).is_some());
        assert!(problem(Dialect::Responses, body, &["a".to_owned()]).is_none());
        assert!(problem(Dialect::Responses, body, &["a".to_owned(), "b".to_owned()]).is_some());
        assert!(problem(Dialect::Responses, br#"{"input":"hello"}"#, &[]).is_none());
    }

    #[test]
    fn anthropic_wants_results_first_in_the_next_message() {
        let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"a"}]}"#;
        let user =
            |blocks: &str| format!(r#"{{"messages":[{call},{{"role":"user","content":[{blocks}]}}]}}"#);
        let (result, hint) = (r#"{"type":"tool_result","tool_use_id":"a"}"#, r#"{"type":"text","text":"x"}"#);
        assert!(!is_refused(Dialect::Anthropic, &user(&format!("{result},{hint}"))));
        assert!(is_refused(Dialect::Anthropic, &user(&format!("{hint},{result}"))));
        assert!(is_refused(Dialect::Anthropic, r#"{"messages":[{"role":"system","content":"x"}]}"#));
    }

    #[test]
    fn gemini_wants_as_many_results_as_calls() {
        let dialect = Dialect::Gemini { streamed: false };
        let call = r#"{"parts":[{"functionCall":{}},{"functionCall":{}}]}"#;
        let one = r#"{"parts":[{"functionResponse":{}}]}"#;
        let two = r#"{"parts":[{"functionResponse":{}},{"functionResponse":{}},{"text":"x"}]}"#;
        assert!(is_refused(dialect, &format!(r#"{{"contents":[{call},{one}]}}"#)));
        assert!(!is_refused(dialect, &format!(r#"{{"contents":[{call},{two}]}}"#)));
    }
}
