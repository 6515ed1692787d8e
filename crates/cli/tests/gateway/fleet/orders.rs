//! Orders where each gateway keeps a log of its own: the guard, the logs and the people at each of them know what was said
//! at any.

use serde_json::{Value, json};

use super::gateways;
use crate::lab::{Lab, until};
use crate::redis::Redis;
use crate::talk::question;

/// Hands in the log of a step of this session; gives back what its agent has to obey.
fn hand_in(lab: &Lab, number: u32) -> Value {
    let log = json!({
        "meta": {
            "trace_id": format!("00000000-0000-4000-8000-{number:012}"), "timestamp": "2026-02-21T10:00:00Z",
            "session_id": "run-17",
        },
        "identity": { "agent_id": "a", "agent_type": "coder", "capability_version": "1.0.0" },
        "cognition": { "intent": "build" },
        "action": { "status": "success" },
    });
    let headers = [("content-type", "application/json"), ("x-tenant-id", "acme")];
    let reply = lab.post("/api/v1/decision-logs", &headers, log.to_string());
    assert!((200..300).contains(&reply.status), "{}", reply.text());
    reply.json()["control"].clone()
}

fn state(lab: &Lab) -> Value {
    lab.get("/api/v1/sessions/run-17").json()["state"].clone()
}

/// What was done by whom, as the audit log of a gateway has it.
fn deeds(lab: &Lab) -> Vec<(String, String)> {
    let audit = lab.get("/api/v1/audit").json();
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (text(entry, "action"), text(entry, "operator")))
        .collect()
}

fn order(lab: &Lab, order: &str, body: &Value) {
    let reply = lab.post(&format!("/api/v1/sessions/run-17/{order}"), &[], body.to_string());
    assert_eq!(reply.status, 200, "{order}: {}", reply.text());
}

#[test]
fn a_pause_is_known_to_the_guard_the_logs_and_the_people_at_every_gateway() {
    let redis = Redis::start();
    let mut labs = gateways(&redis.url(), "");
    assert_eq!(
        labs[0].chat(&[("x-session-id", "run-17"), ("x-tenant-id", "acme")], question("a")).status,
        200
    );
    assert_eq!(hand_in(&labs[1], 1)["interrupt_signal"], Value::Null);
    order(&labs[0], "pause", &json!({ "reason": "look first" }));
    for lab in &labs {
        until("it is paused there", || state(lab) == "paused");
    }
    let control = hand_in(&labs[1], 2);
    assert_eq!((&control["interrupt_signal"], &control["message"]), (&json!("pause"), &json!("look first")));
    let check = json!({ "session_id": "run-17", "tool": "bash", "args": { "command": "ls" } }).to_string();
    assert_eq!(
        labs[2].post("/api/v1/guard/check", &[("x-tenant-id", "acme")], &check).json()["paused"],
        true
    );
    // It is ended where nobody had seen the session before.
    order(&labs[2], "resume", &json!({}));
    for lab in &labs {
        until("it goes on there", || state(lab) != "paused");
        let expected = ["pause", "resume"].map(|deed| (deed.to_owned(), "local".to_owned()));
        assert_eq!(deeds(lab), expected, "each is written down once");
    }
    assert_eq!(hand_in(&labs[1], 3)["interrupt_signal"], Value::Null);
    // Who starts again has taken it over already, or has said it itself.
    for _ in 0..2 {
        let restarted = labs.remove(0).restarted();
        until("it has found the others", || super::is_whole(&restarted));
        labs.push(restarted);
    }
    order(&labs[0], "pause", &json!({ "reason": "again" }));
    for lab in &labs {
        until("it is paused there", || state(lab) == "paused");
        assert_eq!(deeds(lab).len(), 3);
    }
}

#[test]
fn a_pause_with_its_reason_is_written_down_where_nobody_has_seen_the_session() {
    let redis = Redis::start();
    let labs = gateways(&redis.url(), "");
    assert_eq!(
        labs[0].chat(&[("x-session-id", "run-17"), ("x-tenant-id", "acme")], question("a")).status,
        200
    );
    let pause = || labs[2].post("/api/v1/sessions/run-17/pause", &[], r#"{"reason":"look first"}"#).status;
    until("it is known there", || pause() == 200);
    for lab in &labs {
        until("it is paused there", || state(lab) == "paused");
        assert_eq!(deeds(lab), [("pause".to_owned(), "local".to_owned())]);
        let audit = lab.get("/api/v1/audit").json();
        assert_eq!(audit["entries"][0]["reason"], "look first");
    }
}

#[test]
fn an_order_for_one_tenant_is_none_for_another_with_a_session_of_that_name() {
    let redis = Redis::start();
    let labs = gateways(&redis.url(), "");
    let headers = [("x-session-id", "run-17"), ("x-tenant-id", "umbrella")];
    assert_eq!(labs[0].chat(&headers, question("a")).status, 200);
    let acme = [("x-tenant-id", "acme")];
    for lab in &labs {
        for (order, body) in [("pause", "{}"), ("inject", r#"{"message":"for acme"}"#)] {
            let reply = lab.post(&format!("/api/v1/sessions/run-17/{order}"), &acme, body);
            assert_eq!(reply.status, 404, "{order}: {}", reply.text());
        }
    }
    hand_in(&labs[1], 1);
    assert_eq!(labs[1].post("/api/v1/sessions/run-17/pause", &acme, "{}").status, 200);
    assert_eq!(labs[0].chat(&headers, question("b")).status, 200, "that of the other one goes on");
    assert_eq!(labs[1].chat(&headers, question("c")).status, 200);
}

#[test]
fn words_that_one_gateway_has_handed_out_are_not_handed_out_by_another() {
    let redis = Redis::start();
    let labs = gateways(&redis.url(), "");
    for (number, lab) in (1..).zip(&labs) {
        assert_eq!(hand_in(lab, number)["interrupt_signal"], Value::Null);
    }
    let injected = |lab: &Lab| deeds(lab).iter().filter(|(deed, _)| deed == "inject").count();
    order(&labs[2], "inject", &json!({ "message": "first" }));
    until("all know it", || labs.iter().all(|lab| injected(lab) == 1));
    assert_eq!(hand_in(&labs[1], 10)["message"], "first");
    // What is said later is heard later.
    order(&labs[1], "inject", &json!({ "message": "second" }));
    until("all know it", || labs.iter().all(|lab| injected(lab) == 2));
    assert_eq!(hand_in(&labs[0], 11)["message"], "second");
}

#[test]
fn words_can_be_given_to_a_session_at_a_gateway_that_has_not_seen_it() {
    let redis = Redis::start();
    let labs = gateways(&redis.url(), "");
    let ask = |lab: &Lab, words: &str| lab.chat(&[("x-session-id", "run-17")], question(words)).status;
    assert_eq!(ask(&labs[0], "a"), 200);
    let body = r#"{"message":"look at the log"}"#;
    until("it is known there", || labs[2].post("/api/v1/sessions/run-17/inject", &[], body).status == 200);
    until("the model hears it", || {
        assert_eq!(ask(&labs[0], "b"), 200);
        labs[0]
            .mock
            .requests()
            .iter()
            .any(|sent| String::from_utf8_lossy(&sent.body).contains("look at the log"))
    });
    assert_eq!(labs[2].post("/api/v1/sessions/nobody/inject", &[], body).status, 404);
    assert_eq!(labs[2].post("/api/v1/sessions/run-17/inject", &[], "{}").status, 422);
}
