//! One loop, told in every format that `replay` reads: each is detected by content, and in each the loop is found.

use serde_json::{Value, json};

use crate::binary::Desk;

/// How often the agent makes the same call.
const CALLS: usize = 4;
const COMMAND: &str = "./deploy.sh";
const ERROR: &str = "error: secret not found";

fn lines(values: impl IntoIterator<Item = Value>) -> String {
    values.into_iter().map(|value| value.to_string() + "\n").collect::<Vec<_>>().concat()
}

#[track_caller]
fn finds_the_loop(file: &str, content: &str) {
    let outcome = Desk::with(file, content).run(&["replay", "--json", file]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{file}");
    let runs = outcome.lines();
    assert_eq!(runs.len(), 1, "{file}");
    assert_eq!(runs[0]["verdict"], "loop", "{file}: {}", runs[0]);
    let kinds: Vec<&Value> =
        runs[0]["findings"].as_array().unwrap().iter().map(|found| &found["kind"]).collect();
    assert!(kinds.iter().any(|kind| **kind == "failing_repeat" || **kind == "repeat"), "{file}: {kinds:?}");
}

#[test]
fn trace() {
    let step = json!({"tool": "bash", "args": {"command": COMMAND}, "result": ERROR, "status": "failure"});
    finds_the_loop("run.jsonl", &lines([json!({"id": "r", "steps": vec![step; CALLS]})]));
}

#[test]
fn openai_chat() {
    let messages: Vec<Value> = (0..CALLS)
        .flat_map(|n| {
            let id = format!("call_{n}");
            let arguments = json!({"command": COMMAND}).to_string();
            let call =
                json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": arguments}});
            [
                json!({"role": "assistant", "content": null, "tool_calls": [call]}),
                json!({"role": "tool", "tool_call_id": id, "content": ERROR}),
            ]
        })
        .collect();
    finds_the_loop("chat.json", &json!({"model": "m", "messages": messages}).to_string());
}

#[test]
fn openai_responses() {
    let items: Vec<Value> = (0..CALLS)
        .flat_map(|n| {
            let id = format!("call_{n}");
            let arguments = json!({"command": COMMAND}).to_string();
            [
                json!({"type": "function_call", "call_id": id, "name": "bash", "arguments": arguments}),
                json!({"type": "function_call_output", "call_id": id, "output": ERROR}),
            ]
        })
        .collect();
    finds_the_loop("responses.json", &json!({"input": items}).to_string());
}

fn anthropic_turn(n: usize) -> [Value; 2] {
    let id = format!("toolu_{n}");
    let call = json!({"type": "tool_use", "id": id, "name": "bash", "input": {"command": COMMAND}});
    let result = json!({"type": "tool_result", "tool_use_id": id, "is_error": true, "content": ERROR});
    [json!({"role": "assistant", "content": [call]}), json!({"role": "user", "content": [result]})]
}

#[test]
fn anthropic() {
    let messages: Vec<Value> = (0..CALLS).flat_map(anthropic_turn).collect();
    finds_the_loop("messages.json", &json!({"messages": messages}).to_string());
}

#[test]
fn claude_code() {
    let entries = (0..CALLS).flat_map(|n| {
        anthropic_turn(n).map(|mut message| {
            let role = message["role"].clone();
            message["id"] = json!(format!("msg_{n}"));
            json!({"type": role, "sessionId": "s", "uuid": format!("{role}{n}"), "isSidechain": false,
                   "timestamp": "2026-03-01T10:00:00Z", "message": message})
        })
    });
    finds_the_loop("session.jsonl", &lines(entries));
}

#[test]
fn decision_log() {
    let logs = (0..CALLS).map(|n| {
        json!({
            "meta": {"trace_id": format!("00000000-0000-4000-8000-00000000000{n}"), "session_id": "s",
                     "timestamp": "2026-03-01T10:00:00Z"},
            "identity": {"agent_id": "a", "agent_type": "coder", "capability_version": "2.0.0"},
            "cognition": {"intent": "deploy"},
            "action": {"tool_call": "bash", "tool_input": json!({"command": COMMAND}).to_string(),
                       "tool_output_summary": ERROR, "status": "failure"},
        })
    });
    finds_the_loop("logs.ndjson", &lines(logs));
}

#[test]
fn swe_agent() {
    let step = json!({"action": COMMAND, "observation": ERROR, "thought": "again", "response": "again"});
    finds_the_loop("run.traj", &json!({"trajectory": vec![step; CALLS], "info": {}}).to_string());
}

#[test]
fn openhands() {
    let events: Vec<Value> = (0..CALLS)
        .flat_map(|n| {
            let id = 2 * n;
            [
                json!({"id": id, "source": "agent", "action": "run", "args": {"command": COMMAND}}),
                json!({"id": id + 1, "source": "agent", "observation": "run", "cause": id, "content": ERROR,
                       "extras": {"metadata": {"exit_code": 1}}}),
            ]
        })
        .collect();
    finds_the_loop("events.json", &json!(events).to_string());
}

#[test]
fn otlp_json() {
    let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let spans: Vec<Value> = (0..CALLS)
        .map(|n| {
            json!({"traceId": "t", "spanId": format!("{n}"), "name": "execute_tool bash",
            "startTimeUnixNano": format!("{n}000000"), "status": {"code": 2},
            "attributes": [
                attribute("gen_ai.operation.name", "execute_tool"),
                attribute("gen_ai.conversation.id", "c"),
                attribute("gen_ai.tool.name", "bash"),
                attribute("gen_ai.tool.call.arguments", &json!({"command": COMMAND}).to_string()),
                attribute("gen_ai.tool.call.result", ERROR),
            ]})
        })
        .collect();
    let document = json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]});
    finds_the_loop("spans.json", &document.to_string());
}

#[test]
fn a_format_that_is_named_is_not_guessed() {
    let desk = Desk::with("run.jsonl", lines([json!({"id": "r", "steps": []})]));
    assert_eq!(desk.run(&["replay", "--json", "--format", "trace", "run.jsonl"]).code, 0);
    assert_eq!(desk.run(&["replay", "--json", "--format", "openai", "run.jsonl"]).code, 1);
    assert_eq!(desk.run(&["replay", "--json", "--format", "nonsense", "run.jsonl"]).code, 2);
}
