//! What operators order, where it can have an effect and where it cannot.

use loopbreaker_mock::Turn;
use serde_json::{Value, json};

use crate::lab::{Bench, Lab, until};
use crate::talk::question;

/// A request of session `s` in the Responses dialect, and its answer.
fn respond(lab: &Lab, body: &Value) -> Value {
    let headers = [("authorization", "Bearer sk-test"), ("x-session-id", "s")];
    let reply = lab.post("/v1/responses", &headers, body.to_string());
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

#[test]
fn a_result_in_a_history_that_the_provider_keeps_cannot_be_replaced_and_the_operator_learns_what_can() {
    let lab = Lab::new();
    lab.mock.script([Turn::call("bash", r#"{"command":"ls"}"#), Turn::text("I see."), Turn::text("Yes.")]);
    let asked = respond(&lab, &json!({ "model": "gpt-4o", "input": "what is there?" }));
    let call = asked["output"].as_array().unwrap().iter().find(|item| item["type"] == "function_call");
    let result =
        json!({ "type": "function_call_output", "call_id": call.unwrap()["call_id"], "output": "a.txt" });
    let told =
        respond(&lab, &json!({ "model": "gpt-4o", "previous_response_id": asked["id"], "input": [result] }));

    let mut steps = Value::Null;
    until("the call is completed", || {
        steps = lab.get("/api/v1/sessions/s/steps").json()["steps"].clone();
        steps[0]["log"]["action"]["status"] == "success"
    });
    let content = json!({ "trace_id": steps[0]["log"]["meta"]["trace_id"], "content": "b.txt" });
    let refused = lab.post("/api/v1/sessions/s/rewrite", &[], content.to_string());
    assert_eq!((refused.status, &refused.json()["error"]), (409, &json!("history_elsewhere")));
    assert!(refused.json()["message"].as_str().unwrap().contains("`inject`"));

    let injected = lab.post("/api/v1/sessions/s/inject", &[], json!({ "message": "look again" }).to_string());
    assert_eq!(injected.status, 200);
    respond(
        &lab,
        &json!({ "model": "gpt-4o", "previous_response_id": told["id"], "input": "are you sure?" }),
    );
    let sent = lab.mock.requests();
    assert!(String::from_utf8_lossy(&sent.last().unwrap().body).contains("look again"));
}

#[test]
fn a_message_can_be_given_right_after_the_first_call() {
    let lab = Lab::new();
    for session in ["one", "two", "three"] {
        let key = [("authorization", "Bearer sk-test"), ("x-session-id", session)];
        let asked = lab.post("/v1/responses", &key, json!({ "model": "gpt-4o", "input": "hi" }).to_string());
        assert_eq!(asked.status, 200);
        let message = json!({ "message": "look again" }).to_string();
        assert_eq!(lab.post(&format!("/api/v1/sessions/{session}/inject"), &[], message).status, 200);
    }
}

#[test]
fn what_the_gateway_has_told_an_agent_is_not_told_again_by_the_guard_or_the_log() {
    let lab = Bench::new().config("pause: { hold: 20s }").start();
    let headers = [("x-session-id", "s"), ("x-tenant-id", "acme")];
    assert_eq!(lab.chat(&headers, question("a")).status, 200);
    let order = |order: &str, body: &Value| {
        let reply = lab.post(&format!("/api/v1/sessions/s/{order}"), &[], body.to_string());
        assert_eq!(reply.status, 200, "{}", reply.text());
    };
    order("inject", &json!({ "message": "look again" }));
    assert_eq!(lab.chat(&headers, question("b")).status, 200);
    order("pause", &json!({}));
    let held = std::thread::scope(|scope| {
        let held = scope.spawn(|| lab.chat(&headers, question("c")));
        until("it is held", || lab.metric("loopbreaker_held") == 1.0);
        order("reject", &json!({ "message": "enough" }));
        held.join().unwrap()
    });
    assert_eq!(held.status, 403);
    let check = json!({ "session_id": "s", "tool": "bash", "args": { "command": "ls" } }).to_string();
    // Each call knows what was written down before it.
    let checked = lab.post("/api/v1/guard/check", &[("x-tenant-id", "acme")], &check).json();
    assert_eq!(checked["allowed"], true, "{checked}");
    let log = json!({
        "meta": { "trace_id": "00000000-0000-4000-8000-000000000001", "timestamp": "2026-02-21T10:00:00Z", "session_id": "s" },
        "identity": { "agent_id": "a", "agent_type": "coder", "capability_version": "1.0.0" },
        "cognition": { "intent": "build" },
        "action": { "status": "success" },
    });
    let logged = lab.post("/api/v1/decision-logs", &[("x-tenant-id", "acme")], log.to_string()).json();
    assert_eq!(logged["control"]["interrupt_signal"], Value::Null, "{logged}");
}

#[test]
fn what_operators_said_goes_into_the_requests_of_a_session_after_a_restart_too() {
    let lab = Lab::new();
    lab.mock.script([Turn::call("bash", r#"{"command":"ls"}"#)]);
    let headers = [("authorization", "Bearer sk-test"), ("x-session-id", "s")];
    let ask = |lab: &Lab, messages: &[Value]| {
        let body = json!({ "model": "gpt-4o", "messages": messages }).to_string();
        assert_eq!(lab.chat(&headers, body).status, 200);
        String::from_utf8_lossy(&lab.mock.requests().last().unwrap().body).into_owned()
    };
    let mut messages = vec![json!({ "role": "user", "content": "what is there?" })];
    let body = json!({ "model": "gpt-4o", "messages": messages }).to_string();
    let answer = lab.chat(&headers, body).json();
    let said = answer["choices"][0]["message"].clone();
    let id = said["tool_calls"][0]["id"].clone();
    messages.extend([said, json!({ "role": "tool", "tool_call_id": id, "content": "the first words" })]);
    let mut steps = Value::Null;
    until("the call is written down", || {
        steps = lab.get("/api/v1/sessions/s/steps").json()["steps"].clone();
        steps[0]["log"]["meta"]["trace_id"].is_string()
    });
    let trace = &steps[0]["log"]["meta"]["trace_id"];
    for (order, body) in [
        ("rewrite", json!({ "trace_id": trace, "content": "other words" })),
        ("inject", json!({ "message": "look again" })),
    ] {
        assert_eq!(lab.post(&format!("/api/v1/sessions/s/{order}"), &[], body.to_string()).status, 200);
    }
    let is_told = |sent: &str| (sent.contains("look again"), sent.contains("other words"));
    assert_eq!(is_told(&ask(&lab, &messages)), (true, true));
    let log = json!({ "message": "and not yet told" }).to_string();
    // A second session is told before its first call after the restart only.
    assert_eq!(lab.chat(&[("x-session-id", "t")], question("hi")).status, 200);
    until("it is written down", || lab.get("/api/v1/sessions/t").status == 200);
    assert_eq!(lab.post("/api/v1/sessions/t/inject", &[], &log).status, 200);

    let lab = lab.restarted();
    let more =
        [json!({ "role": "assistant", "content": "I see." }), json!({ "role": "user", "content": "go on" })];
    let mut longer = [messages.clone(), more.to_vec()].concat();
    assert_eq!(is_told(&ask(&lab, &longer)), (true, true));
    longer.extend(more);
    let sent = ask(&lab, &longer);
    assert_eq!(is_told(&sent), (true, true));
    assert_eq!(sent.matches("look again").count(), 1, "{sent}");
    assert!(!ask(&lab, &messages[..1]).contains("look again"), "its history was dropped");
    assert_eq!(lab.chat(&[("x-session-id", "t")], question("hi")).status, 200);
    let sent = lab.mock.requests();
    assert!(String::from_utf8_lossy(&sent.last().unwrap().body).contains("and not yet told"));
}
