//! Thresholds that people change while requests run.

use serde_json::{Value, json};

use crate::lab::{Lab, until};
use crate::talk::looping;

const THRESHOLDS: &str = "/api/v1/config/detectors";

fn change(lab: &Lab, change: &Value) -> (u16, Value) {
    let reply = lab.ask("PUT", THRESHOLDS, &[("content-type", "application/json")], change.to_string());
    (reply.status, reply.json())
}

/// What becomes of an agent that has asked the same thing three times.
fn judged(lab: &Lab, task: &str) -> String {
    lab.verdict(&[], looping(task, 3)).1
}

/// Whoever asks again and again with this tool waits for something.
fn waiting() -> Value {
    json!({ "redundancy": { "tools": { "bash": { "effect": "poll" } } } })
}

#[test]
fn a_changed_threshold_judges_the_next_request_and_can_be_taken_back() {
    let lab = Lab::new();
    assert_eq!(judged(&lab, "a"), "hint");
    let (status, whole) = change(&lab, &waiting());
    assert_eq!((status, &whole["redundancy"]["tools"]["bash"]["effect"]), (200, &json!("poll")));
    assert_eq!(judged(&lab, "b"), "allow");
    let audit = lab.get("/api/v1/audit").json();
    let entry = &audit["entries"][0];
    assert_eq!((&entry["action"], &entry["operator"]), (&json!("config"), &json!("local")));
    assert_ne!(entry["before"], entry["after"]);

    assert_eq!(lab.ask("DELETE", THRESHOLDS, &[], "").status, 200);
    assert_eq!(judged(&lab, "c"), "hint");
}

#[test]
fn a_bad_threshold_is_refused_and_changes_nothing() {
    let lab = Lab::new();
    let mut bad = waiting();
    bad["semantic"] = json!({ "threshold": 7 });
    let (status, refused) = change(&lab, &bad);
    assert_eq!((status, &refused["violations"][0]["field"]), (422, &json!("semantic.threshold")));
    assert_eq!(judged(&lab, "a"), "hint");
}

#[test]
fn a_changed_threshold_stays_above_the_file_over_reloads_and_restarts() {
    let lab = Lab::with("holdout: 0%");
    change(&lab, &waiting());
    lab.reconfigure("redundancy: { window: 32, tools: { bash: { effect: read } } }");
    let running = |lab: &Lab| lab.get("/api/v1/config").json()["detectors"]["redundancy"].clone();
    until("the file is in force below it", || running(&lab)["window"] == 32);
    assert_eq!(running(&lab)["tools"]["bash"]["effect"], "poll");
    assert_eq!(judged(&lab, "a"), "allow");

    let lab = lab.restarted();
    assert_eq!(judged(&lab, "b"), "allow");
    assert_eq!(lab.ask("DELETE", THRESHOLDS, &[], "").status, 200);
    assert_eq!(judged(&lab, "c"), "hint");
}
