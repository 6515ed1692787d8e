//! Calls that are told only in the messages of a model's spans.

mod recorder;

use loopbreaker_trace::Options;
use recorder::record;
use serde_json::{Value, json};

fn attribute(name: &str, value: &str) -> Value {
    json!({ "key": name, "value": { "stringValue": value } })
}

fn span(number: u64, attributes: &[Value]) -> Value {
    json!({ "traceId": "t", "spanId": number.to_string(), "startTimeUnixNano": (number * 1_000_000).to_string(),
        "endTimeUnixNano": (number * 1_000_000 + 9).to_string(), "attributes": attributes })
}

/// A model's answer that calls `tool`, after a history in which each call has been answered.
fn chat(number: u64, answered: u64, id: Option<&str>) -> Value {
    let call = |id: Option<&str>| json!({ "type": "tool_call", "id": id, "name": "read", "arguments": { "path": "/x" } });
    let mut history = vec![json!({ "role": "user", "parts": [{ "type": "text", "content": "go" }] })];
    for at in 0..answered {
        history.push(json!({ "role": "assistant", "parts": [call(id)] }));
        let response = json!({ "type": "tool_call_response", "id": id, "response": format!("result {at}") });
        history.push(json!({ "role": "tool", "parts": [response] }));
    }
    let said = json!([{ "role": "assistant", "parts": [call(id)], "finish_reason": "tool_call" }]);
    span(
        number,
        &[
            attribute("gen_ai.operation.name", "chat"),
            attribute("gen_ai.input.messages", &json!(history).to_string()),
            attribute("gen_ai.output.messages", &said.to_string()),
        ],
    )
}

fn executed(number: u64, id: Option<&str>) -> Value {
    let mut attributes = vec![
        attribute("gen_ai.operation.name", "execute_tool"),
        attribute("gen_ai.tool.name", "read"),
        attribute("gen_ai.tool.call.arguments", r#"{"path":"/x"}"#),
        attribute("gen_ai.tool.call.result", "from the span"),
    ];
    attributes.extend(id.map(|id| attribute("gen_ai.tool.call.id", id)));
    span(number, &attributes)
}

fn export(spans: &[Value]) -> String {
    json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] }).to_string() + "\n"
}

/// What each step of the run was given back.
fn results(input: &str) -> Vec<Option<String>> {
    let (found, summary) = record(input.as_bytes(), &Options::named("file"));
    assert!(summary.is_ok_and(|summary| summary.problems == 0) && found.ended.len() == 1, "{}", found.text);
    let steps = found.text.lines().filter(|line| line.contains("tool=read"));
    let result = |line: &str| {
        assert!(line.contains(r#"args={"path":"/x"}"#), "{line}");
        let (_, result) = line.split_once("result=")?;
        Some(result.split(" | ").next().unwrap_or(result).to_owned())
    };
    steps.map(result).collect()
}

#[test]
fn calls_of_answers_are_steps_and_what_the_model_is_given_next_is_their_result() {
    // Some models name their calls alike again and again, and some do not name them at all.
    for id in [Some("c"), None] {
        let input = export(&[chat(1, 0, id), chat(2, 1, id), chat(3, 2, id)]);
        let expected = [Some("result 0".to_owned()), Some("result 1".to_owned()), None];
        assert_eq!(results(&input), expected, "{id:?}");
    }
}

#[test]
fn a_call_with_a_span_of_its_own_is_counted_once() {
    for (asked, executes) in [(Some("c"), Some("c")), (Some("c"), None), (None, Some("c")), (None, None)] {
        let spans = [
            chat(1, 0, asked),
            executed(2, executes),
            chat(3, 1, asked),
            executed(4, executes),
            chat(5, 2, asked),
        ];
        let from_span = Some("from the span".to_owned());
        let together = results(&export(&spans));
        assert_eq!(together, [from_span.clone(), from_span.clone(), None], "{asked:?} {executes:?}");
        let one_by_one: String = spans.iter().map(|span| export(std::slice::from_ref(span))).collect();
        assert_eq!(results(&one_by_one), together, "however they are exported");
    }
}

#[test]
fn an_answer_that_two_spans_tell_of_is_one() {
    let mut outer = chat(1, 0, Some("c"));
    outer["endTimeUnixNano"] = json!("1900000");
    let mut inner = chat(1, 0, Some("c"));
    inner["startTimeUnixNano"] = json!("1000500");
    assert_eq!(results(&export(&[outer, inner, chat(3, 1, Some("c"))])), [Some("result 0".to_owned()), None]);
}
