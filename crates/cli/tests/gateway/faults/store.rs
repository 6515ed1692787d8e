//! The store of the log, as whoever asks sees it: also while it is away when the gateway starts.

use std::fs;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::lab::{Bench, Lab, until};
use crate::postgres::Server;
use crate::talk::{Chat, question};
use crate::wire::Reply;

fn with_log_at(url: &str) -> Lab {
    Bench::new().config(&format!("log: {{ url: \"{url}\" }}")).start()
}

/// Hands a decision log in, the same each time.
fn hand_in(lab: &Lab) -> Reply {
    let log = json!({
        "meta": { "trace_id": "00000000-0000-4000-8000-000000000001", "timestamp": "2026-02-21T10:00:00Z" },
        "identity": { "agent_id": "a", "agent_type": "coder", "capability_version": "1.0.0" },
        "cognition": { "intent": "build" },
        "action": { "status": "success" },
    });
    lab.post("/api/v1/decision-logs", &[("content-type", "application/json")], log.to_string())
}

#[test]
fn whoever_asks_sees_the_call_that_has_just_passed() {
    let lab = Lab::new();
    until("the store is open", || lab.get("/api/v1/overview").status == 200);
    let mut chat = Chat::new("read them");
    for times in 1..=5 {
        chat = chat.call(&format!("cat {times}.txt"), &format!("text number {times}"));
        assert_eq!(lab.verdict(&[("x-session-id", "run")], chat.body()).0, 200);
        // Asked once, and not until it is there.
        let steps = lab.get("/api/v1/sessions/run/steps").json()["steps"].clone();
        let is_call = |step: &&Value| step["log"]["action"]["tool_call"].is_string();
        assert_eq!(
            steps.as_array().map(|steps| steps.iter().filter(is_call).count()),
            Some(times),
            "{steps}"
        );
    }
}

/// Asks the guard about one and the same call, so many times.
fn guard(lab: &Lab, times: usize) -> Vec<Value> {
    let call = json!({ "session_id": "run-1", "tool": "read", "args": { "path": "a" } }).to_string();
    (0..times).map(|_| lab.post("/api/v1/guard/check", &[], &call).json()["allowed"].clone()).collect()
}

#[test]
fn the_guard_stops_a_loop_although_nothing_is_kept() {
    let lab =
        Bench::new().config("log: off\nsentinel: { default: { threshold: 2, window_size: 5 } }").start();
    assert_eq!(guard(&lab, 3), [true, true, false]);

    let session = json!({ "session_id": "run-1" }).to_string();
    assert_eq!(lab.post("/api/v1/guard/reset", &[], &session).status, 200);
    assert_eq!(guard(&lab, 1), [true]);
    let ran =
        json!({ "session_id": "run-2", "tool": "ls", "args": {}, "result": "a\nb", "status": "success" });
    let told: Vec<_> = (0..3)
        .map(|_| lab.post("/api/v1/guard/outcome", &[], ran.to_string()).json()["action"].clone())
        .collect();
    assert_eq!(told, ["allow", "warn", "hint"]);

    lab.reconfigure("log: off\nsentinel: { default: { threshold: 4, window_size: 5 } }");
    until("it is read", || lab.metric(r#"loopbreaker_config_reloads_total{result="loaded"}"#) > 0.0);
    assert_eq!(guard(&lab, 5), [true, true, true, true, false], "its thresholds are those of the file");
}

#[test]
fn an_operator_pauses_what_asks_the_guard_although_nothing_is_kept() {
    let lab = Bench::new().config("log: off").start();
    assert_eq!(lab.chat(&[("x-session-id", "run-1")], question("hello")).status, 200);
    assert_eq!(lab.post("/api/v1/sessions/run-1/pause", &[], "{}").status, 200);
    let call = json!({ "session_id": "run-1", "tool": "read" }).to_string();
    let asked = || lab.post("/api/v1/guard/check", &[], &call).json();
    assert_eq!((&asked()["allowed"], &asked()["paused"]), (&json!(false), &json!(true)));
    assert_eq!(lab.post("/api/v1/sessions/run-1/resume", &[], "{}").status, 200);
    assert_eq!((&asked()["allowed"], &asked()["paused"]), (&json!(true), &json!(false)));
}

/// The store is away: that is told, requests go on, and nothing is acknowledged.
fn is_told_to_be_away(lab: &Lab) {
    let ready = lab.readiness();
    assert_eq!(ready["degraded"], json!(["store"]), "{ready}");
    assert_eq!(ready["parts"]["store"]["state"], "failed");
    assert_eq!(lab.metric(r#"loopbreaker_degraded{part="store"}"#), 1.0);
    let chat = Chat::new("mend it").call("ls", "a file");
    assert_eq!(lab.chat(&[("x-session-id", "run-1")], chat.body()).status, 200);
    assert_eq!(lab.readiness()["parts"]["store"]["unwritten"], 1);
    let refused = hand_in(lab);
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert_eq!(refused.json()["error"], "store_unavailable");
    assert!(refused.text().contains("send this again"), "{}", refused.text());
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(guard(lab, 4), [true, true, true, false], "agents are guarded all the same");
}

/// It is back by itself: logs are acknowledged, and a conversation that went on meanwhile is there from its beginning.
fn comes_back(lab: &Lab) {
    until("the store is back", || lab.readiness()["status"] == "ready");
    assert_eq!(lab.metric(r#"loopbreaker_degraded{part="store"}"#), 0.0);
    assert_eq!(lab.readiness()["parts"]["store"]["state"], "ok");
    let kept = hand_in(lab);
    assert!((200..300).contains(&kept.status), "{}", kept.text());
    let chat = Chat::new("mend it").call("ls", "a file").call("cat a", "its words");
    assert_eq!(lab.chat(&[("x-session-id", "run-1")], chat.body()).status, 200);
    until("the conversation is written down", || {
        let steps = lab.get("/api/v1/sessions/run-1/steps").text();
        steps.contains("a file") && steps.contains("its words")
    });
    until("it is logged", || lab.log().contains("decisions are kept from now on"));
}

#[test]
fn a_server_that_starts_after_the_gateway_is_found() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (host, port_setting) = ("listen_addresses=127.0.0.1", format!("port={port}"));
    let mut server = Server::start(&[host, &port_setting]);
    server.stop();
    let lab = with_log_at(&format!("postgres://postgres@127.0.0.1:{port}/postgres"));
    is_told_to_be_away(&lab);
    server.start_again(&[host, &port_setting]);
    comes_back(&lab);
}

#[test]
fn a_file_that_cannot_be_opened_at_the_start_is_tried_again() {
    let lab = Bench::new().folder("data/decisions.db").start();
    is_told_to_be_away(&lab);
    fs::remove_dir(lab.path("data/decisions.db")).unwrap();
    comes_back(&lab);
}

#[test]
fn a_server_that_says_nothing_does_not_keep_the_gateway_from_serving() {
    // Connections are made by the kernel, and nobody ever answers on them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let started = Instant::now();
    let lab = with_log_at(&format!("postgres://postgres@{}/postgres", silent.local_addr().unwrap()));
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    assert_eq!(lab.chat(&[], question("hello")).status, 200);
    let ready = lab.readiness();
    assert_eq!(ready["degraded"], json!(["store"]), "{ready}");
    assert_eq!(hand_in(&lab).status, 503);
}
