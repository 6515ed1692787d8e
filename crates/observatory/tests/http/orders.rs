//! People in the loop.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use loopbreaker_observatory::{AuditCheck, Topic};
use serde_json::{Value, json};

use crate::server::{Server, in_session};

fn order(server: &Server, name: &str, body: &Value) -> Value {
    let (status, answer) = server.post(&format!("/sessions/run/{name}"), body);
    assert_eq!(status, 200, "{answer}");
    answer
}

#[test]
fn a_paused_session_is_told_to_pause_until_it_is_resumed() {
    let server = Server::start();
    server.accept(&in_session(1, "run"));
    let paused = order(&server, "pause", &json!({ "reason": "look at this" }));
    assert_eq!(paused, json!({ "session_id": "run", "state": "paused" }));
    assert_eq!(order(&server, "pause", &json!({}))["note"], "it is paused already");
    let control = &server.accept(&in_session(2, "run"))["control"];
    assert_eq!(
        (&control["interrupt_signal"], &control["message"]),
        (&json!("pause"), &json!("look at this"))
    );
    assert_eq!(server.get("/sessions?state=paused").1["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(order(&server, "resume", &json!({}))["state"], "active");
    assert_eq!(order(&server, "resume", &json!({}))["note"], "it is not paused");
    assert_eq!(server.accept(&in_session(3, "run"))["control"]["interrupt_signal"], Value::Null);
}

#[test]
fn whoever_rejects_what_is_not_held_is_told_what_to_do() {
    let server = Server::start();
    server.accept(&in_session(1, "run"));
    let note = order(&server, "reject", &json!({ "message": "stop" }))["note"].clone();
    assert!(note.as_str().unwrap().contains("pause it first"), "{note}");
    assert_eq!(server.accept(&in_session(2, "run"))["control"]["interrupt_signal"], Value::Null);
}

#[test]
fn an_agent_that_asks_for_a_person_is_paused_by_the_system() {
    let server = Server::start();
    let mut log = in_session(1, "run");
    log["control"] = json!({ "hitl_required": true });
    assert_eq!(server.accept(&log)["control"]["interrupt_signal"], "pause");
    let (_, session) = server.get("/sessions/run");
    assert_eq!((&session["state"], &session["pause"]["operator"]), (&json!("paused"), &json!("system")));
}

#[test]
fn a_pause_that_nobody_decides_about_becomes_a_rejection() {
    let server = Server::start_with(|options| options.pause_timeout = Duration::from_secs(60));
    server.accept(&in_session(1, "run"));
    let mut listener = server.observatory.subscribe(vec![Topic::Hitl], None, None);
    order(&server, "pause", &json!({}));
    server.pass(60_000);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let told = runtime.block_on(async {
        listener.next().await;
        listener.next().await
    });
    assert_eq!((&told.body()["order"], &told.body()["operator"]), (&json!("reject"), &json!("system")));
    let control = &server.accept(&in_session(2, "run"))["control"];
    assert_eq!(control["interrupt_signal"], "inject");
    assert!(control["message"].as_str().unwrap().contains("rejection"));
}

#[test]
fn a_session_that_ends_while_it_is_paused_has_ended_and_cannot_be_paused_again() {
    let server = Server::start();
    server.accept(&in_session(1, "run"));
    order(&server, "pause", &json!({ "reason": "look at this" }));
    let mut last = in_session(2, "run");
    last["control"] = json!({ "is_terminal": true, "hitl_required": true });
    assert_eq!(server.accept(&last)["control"]["interrupt_signal"], Value::Null);
    assert_eq!(server.get("/sessions/run").1["state"], "ended");
    let again = order(&server, "pause", &json!({}));
    assert_eq!((&again["state"], &again["note"]), (&json!("ended"), &json!("it has ended")));
    assert_eq!(server.get("/sessions/run").1["state"], "ended");
    let orders: Vec<Value> = server.get("/audit").1["entries"].as_array().unwrap().clone();
    let orders: Vec<&Value> = orders.iter().map(|entry| &entry["action"]).collect();
    assert_eq!(orders, ["pause", "resume"], "what did nothing is not written down");
}

#[test]
fn a_pause_without_a_reason_has_no_empty_words() {
    let server = Server::start();
    server.accept(&in_session(1, "run"));
    order(&server, "pause", &json!({}));
    assert_eq!(server.accept(&in_session(2, "run"))["control"].get("message"), None);
    let check = json!({ "session_id": "run", "tool": "ls" });
    let feedback = server.post("/guard/check", &check).1["feedback"].clone();
    assert_eq!(feedback, "An operator has paused this session. Wait, then ask again.");
}

#[test]
fn a_rejection_without_words_is_told_in_ours() {
    let server = Server::start();
    server.accept(&in_session(1, "run"));
    order(&server, "pause", &json!({}));
    order(&server, "reject", &json!({ "message": "" }));
    let control = &server.accept(&in_session(2, "run"))["control"];
    assert_eq!(control["message"], "an operator has stopped this session");
}

#[test]
fn a_scope_that_is_no_text_is_refused() {
    let server = Server::start();
    let (status, answer) = server.post("/guard/reset", &json!({ "session_id": "run", "scope": 5 }));
    assert_eq!((status, &answer["violations"][0]["field"]), (422, &json!("scope")));
}

#[test]
fn a_message_is_told_once() {
    let server = Server::start();
    server.accept(&in_session(1, "run"));
    order(&server, "inject", &json!({ "message": "try the other file" }));
    let control = &server.accept(&in_session(2, "run"))["control"];
    assert_eq!(
        (&control["interrupt_signal"], &control["message"]),
        (&json!("inject"), &json!("try the other file"))
    );
    assert_eq!(server.accept(&in_session(3, "run"))["control"]["interrupt_signal"], Value::Null);
}

#[test]
fn an_agent_that_only_asks_the_guard_can_be_stopped() {
    let server = Server::start();
    let check = json!({ "session_id": "run", "tool": "bash", "args": { "command": "ls" } });
    assert_eq!(server.get("/sessions/run").0, 404);
    assert_eq!(server.post("/guard/check", &check).1["allowed"], true);
    order(&server, "pause", &json!({}));
    assert_eq!(server.post("/guard/check", &check).1["paused"], true);
    let other = [("x-test-tenant", "other")];
    assert_eq!(server.call("GET", "/sessions/run", &other, "").0, 404, "it is not theirs");
}

#[test]
fn the_guard_blocks_a_paused_session_and_repeats() {
    let server = Server::start();
    server.accept(&in_session(1, "run"));
    let check = json!({ "session_id": "run", "tool": "bash", "args": { "command": "ls" } });
    for _ in 0..3 {
        assert_eq!(server.post("/guard/check", &check).1["allowed"], true);
    }
    let (_, blocked) = server.post("/guard/check", &check);
    assert_eq!((&blocked["allowed"], &blocked["detector"]), (&json!(false), &json!("sentinel")));
    assert!(blocked["feedback"].is_string());
    assert_eq!(server.post("/guard/reset", &json!({ "session_id": "run" })).0, 200);
    assert_eq!(server.post("/guard/check", &check).1["allowed"], true);
    order(&server, "pause", &json!({ "reason": "stop" }));
    let (_, held) = server.post("/guard/check", &check);
    assert_eq!((&held["allowed"], &held["paused"]), (&json!(false), &json!(true)));
}

#[test]
fn the_guard_says_since_when_an_answer_holds() {
    let server = Server::start();
    let outcome = |tool: &str, path: &str| {
        let outcome = json!({ "session_id": "run", "tool": tool, "args": { "path": path }, "result": "x" });
        assert_eq!(server.post("/guard/outcome", &outcome).0, 200);
    };
    let since = |session: &str| {
        let check = json!({ "session_id": session, "tool": "read_file", "args": { "path": "a" } });
        let (_, answer) = server.post("/guard/check", &check);
        assert_eq!(answer["allowed"], true);
        answer.get("unchanged_since").cloned()
    };
    outcome("read_file", "b");
    outcome("read_file", "a");
    assert_eq!(since("run"), Some(json!(2)));
    assert_eq!(since("another"), None);
    outcome("write_file", "c");
    assert_eq!(since("run"), None);
}

#[test]
fn outcomes_become_findings_of_the_session() {
    let server = Server::start();
    let outcome = json!({
        "session_id": "run", "tool": "bash", "args": { "command": "make" }, "result": "1 failed", "status": "failure",
    });
    let answers = [(); 4].map(|()| server.post("/guard/outcome", &outcome).1);
    assert_eq!(answers[3]["findings"][0]["severity"], "loop");
    let (_, findings) = server.get("/sessions/run/findings");
    assert!(!findings["findings"].as_array().unwrap().is_empty());
}

#[test]
fn findings_of_the_guard_hold_no_secrets() {
    let server = Server::start();
    let tool = "curl_sk-proj-AAAABBBBCCCCDDDDEEEE";
    let outcome =
        json!({ "session_id": "run", "tool": tool, "args": {}, "result": "no", "status": "failure" });
    for _ in 0..4 {
        assert_eq!(server.post("/guard/outcome", &outcome).0, 200);
    }
    let findings = server.get("/sessions/run/findings").1.to_string();
    assert!(findings.contains("\"message\"") && !findings.contains("AAAABBBB"), "{findings}");
}

#[test]
fn whoever_listens_is_told_of_every_order() {
    let server = Server::start();
    let told = Arc::new(Mutex::new(Vec::new()));
    let for_observer = Arc::clone(&told);
    server.observatory.on_order(Arc::new(move |given| {
        for_observer.lock().unwrap().push((given.session_id.clone(), given.order.name()));
    }));
    server.accept(&in_session(1, "run"));
    order(&server, "pause", &json!({}));
    order(&server, "reject", &json!({ "message": "enough" }));
    let expected = [("run".to_owned(), "pause"), ("run".to_owned(), "reject")];
    assert_eq!(*told.lock().unwrap(), expected);
}

#[test]
fn no_credential_in_an_operators_words_is_told_but_an_order_is_handed_out_as_it_is() {
    let server = Server::start();
    let mut listener = server.observatory.subscribe(vec![Topic::Hitl], None, None);
    let words = "use sk-abcdef0123456789abcdef";
    server.accept(&in_session(1, "run"));
    order(&server, "pause", &json!({ "reason": words }));
    let paused = server.accept(&in_session(2, "run"));
    order(&server, "resume", &json!({}));
    order(&server, "inject", &json!({ "message": words }));
    order(&server, "pause", &json!({}));
    order(&server, "reject", &json!({ "message": words }));
    let told: Vec<String> =
        std::iter::from_fn(|| listener.poll()).map(|event| event.body().to_string()).collect();
    assert_eq!(told.len(), 5);
    assert!(told.iter().all(|event| !event.contains("abcdef0123")), "{told:#?}");
    assert_eq!(paused["control"]["message"], "use sk-***", "what is kept of a pause is its reason");
    assert_eq!(server.accept(&in_session(3, "run"))["control"]["message"], words);
}

#[test]
fn a_zero_among_an_operators_words_leaves_the_chain_whole() {
    let server = Server::start();
    server.accept(&in_session(1, "run"));
    order(&server, "pause", &json!({ "reason": "wh\u{0}y" }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let checked = runtime.block_on(server.observatory.verify_audit()).unwrap();
    assert!(matches!(checked, AuditCheck::Intact { .. }), "{checked:?}");
    assert_eq!(server.get("/audit").1["entries"][0]["reason"], "wh\u{fffd}y");
}

#[test]
fn every_deed_is_in_a_chain_that_can_be_checked() {
    let server = Server::start();
    server.accept(&in_session(1, "run"));
    order(&server, "pause", &json!({ "reason": "why" }));
    order(&server, "resume", &json!({}));
    let (_, audit) = server.get("/audit");
    let entries = audit["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!((&entries[0]["operator"], &entries[0]["reason"]), (&json!("local"), &json!("why")));
    assert_eq!(entries[1]["prev_hash"], entries[0]["hash"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let checked = runtime.block_on(server.observatory.verify_audit()).unwrap();
    assert_eq!(checked, AuditCheck::Intact { entries: 2 });
}

#[test]
fn only_operators_give_orders() {
    let server = Server::start();
    server.accept(&in_session(1, "run"));
    let viewer = [("x-test-role", "viewer")];
    assert_eq!(server.call("POST", "/sessions/run/pause", &viewer, "{}").0, 403);
    assert_eq!(server.call("PUT", "/config/detectors", &viewer, "{}").0, 403);
    assert_eq!(server.call("GET", "/sessions/run", &viewer, "").0, 200);
}
