//! A client that sends the same again, since it has not heard the answer.

use loopbreaker_mock::Turn;
use serde_json::{Value, json};

use crate::lab::{Lab, until};
use crate::wire::{Reply, request};

/// How a client names what the provider keeps of its history.
#[derive(Debug, Clone, Copy)]
enum By {
    Answer,
    Conversation,
}

/// What a request says that has the result of the call in an answer.
fn result_of(answer: &Value, by: By) -> Value {
    let items = answer["output"].as_array().unwrap();
    let call = items.iter().find(|item| item["type"] == "function_call").unwrap();
    let output = json!({ "type": "function_call_output", "call_id": call["call_id"], "output": "a b" });
    named(json!({ "model": "gpt-4o", "input": [output] }), by, &answer["id"])
}

fn named(mut body: Value, by: By, answer: &Value) -> Value {
    match by {
        By::Answer => body["previous_response_id"] = answer.clone(),
        By::Conversation => body["conversation"] = "conv_1".into(),
    }
    body
}

fn begun(by: By) -> Value {
    let body = json!({ "model": "gpt-4o", "input": "fix it" });
    if matches!(by, By::Conversation) { named(body, by, &Value::Null) } else { body }
}

/// A provider whose model wants to see the same folder each time.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.mock.script([Turn::call("bash", r#"{"command":"ls"}"#)]);
    lab
}

fn ask(lab: &Lab, body: &Value) -> Reply {
    lab.post("/v1/responses", &[("authorization", "Bearer sk-test")], body.to_string())
}

fn told(reply: &Reply) -> String {
    reply.header("x-loopbreaker-verdict").unwrap_or("none").to_owned()
}

const LADDER: [&str; 6] = ["allow", "allow", "warn", "hint", "hint", "throttle"];

#[test]
fn a_retry_is_no_step_of_a_history_that_the_provider_keeps_and_gets_the_same_hint() {
    for by in [By::Answer, By::Conversation] {
        let lab = lab();
        let mut body = begun(by);
        for (turn, verdict) in LADDER.into_iter().enumerate() {
            let first = ask(&lab, &body);
            let sent = lab.mock.requests().pop().unwrap().body;
            // What is not throttled is asked for again, and once more.
            let mut last = first.json();
            if turn < 5 {
                for _ in 0..2 {
                    let again = ask(&lab, &body);
                    assert_eq!(told(&again), verdict, "{by:?}, turn {turn}, again");
                    assert_eq!(lab.mock.requests().pop().unwrap().body, sent, "{by:?}, turn {turn}, again");
                    last = again.json();
                }
            }
            assert_eq!(told(&first), verdict, "{by:?}, turn {turn}");
            body = result_of(&last, by);
        }
        assert_eq!(told(&ask(&lab, &body)), "reject", "{by:?}");
    }
}

#[test]
fn a_client_that_asked_twice_may_go_on_from_either_answer() {
    let lab = lab();
    let mut body = begun(By::Conversation);
    for (turn, verdict) in LADDER[..5].iter().enumerate() {
        let replies = [ask(&lab, &body), ask(&lab, &body)];
        assert_eq!(replies.each_ref().map(told), [*verdict; 2], "turn {turn}");
        body = result_of(&replies[turn % 2].json(), By::Conversation);
    }
}

#[test]
fn a_client_that_goes_before_its_answer_comes_and_asks_again_has_not_gone_on() {
    let lab = lab();
    let mut body = begun(By::Conversation);
    for (turn, verdict) in LADDER[..5].iter().enumerate() {
        lab.mock.script([Turn::call("bash", r#"{"command":"ls"}"#).delay_ms(100)]);
        let before = lab.sent();
        let mut wire = lab.wire();
        let headers = [("authorization", "Bearer sk-test")];
        wire.send(&request("POST", "/v1/responses", &headers, body.to_string().as_bytes()));
        until("it is on its way", || lab.sent() > before);
        drop(wire);
        lab.mock.script([Turn::call("bash", r#"{"command":"ls"}"#)]);
        let reply = ask(&lab, &body);
        assert_eq!(told(&reply), *verdict, "turn {turn}");
        body = result_of(&reply.json(), By::Conversation);
    }
}

#[test]
fn a_provider_that_calls_each_call_the_same_hides_no_loop() {
    let call = json!({ "type": "function_call", "id": "fc", "call_id": "call_1", "name": "bash",
        "arguments": "{\"command\":\"ls\"}", "status": "completed" });
    let answer = json!({ "id": "resp_1", "object": "response", "status": "completed", "model": "gpt-4o",
        "output": [call] });
    let provider = crate::provider::Provider::answering(crate::wire::answer(
        "200 OK",
        &[("content-type", "application/json")],
        answer.to_string().as_bytes(),
    ));
    let lab = crate::lab::Bench::new().upstream(provider.url()).start();
    let mut body = begun(By::Conversation);
    let mut verdicts = Vec::new();
    for _ in 0..7 {
        let reply = ask(&lab, &body);
        verdicts.push(told(&reply));
        body = result_of(&answer, By::Conversation);
    }
    assert!(verdicts.contains(&"hint".to_owned()) && verdicts[6] == "reject", "{verdicts:?}");
}
