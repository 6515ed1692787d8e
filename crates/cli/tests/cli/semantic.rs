use serde_json::{Value, json};

use crate::binary::Desk;

/// One intent, told anew each time.
const WORDS: [&str; 5] = [
    "Let me search the documentation for the retry setting of the client.",
    "I will search the documentation for the client's retry setting.",
    "Let me look for the retry setting of the client in the documentation.",
    "I am going to search the documentation for the retry setting of the client.",
    "Let me search through the documentation for the client retry setting.",
];

fn run(texts: &[&str]) -> String {
    let steps: Vec<Value> = texts.iter().map(|text| json!({ "thought": text })).collect();
    json!({ "id": "one", "steps": steps }).to_string() + "\n"
}

fn semantic_findings(desk: &Desk, args: &[&str]) -> Vec<Value> {
    let outcome = desk.run(&[&["replay", "runs.jsonl", "--json"], args].concat());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let findings = outcome.lines()[0]["findings"].as_array().unwrap().clone();
    findings.into_iter().filter(|finding| finding["detector"] == "semantic").collect()
}

#[test]
fn the_same_in_other_words_is_found_where_it_is_asked_for() {
    let desk = Desk::with("runs.jsonl", run(&WORDS));
    desk.put("loopbreaker.yaml", "semantic: { threshold: 0.9 }");
    let found = semantic_findings(&desk, &["--semantic"]);
    assert_eq!(found.last().unwrap()["severity"], "loop", "{found:?}");
    assert!(found.iter().all(|finding| finding["kind"] == "semantic"));
    assert!(semantic_findings(&desk, &[]).is_empty());
}

#[test]
fn other_intents_are_not_the_same() {
    let words = ["Let me search the documentation.", "All tests pass now.", "I commit and push the branch."];
    let desk = Desk::with("runs.jsonl", run(&words));
    assert!(semantic_findings(&desk, &["--semantic"]).is_empty());
}

#[test]
fn the_literal_rule_of_the_design_takes_every_long_conversation_for_a_loop() {
    let words = ["The task is to fix the build of the client.", "I look at the log.", "I edit the file."];
    let desk = Desk::with("runs.jsonl", run(&words));
    desk.put("loopbreaker.yaml", "semantic: { scope: full, history: tenant, threshold: 0.85 }");
    assert!(!semantic_findings(&desk, &["--semantic"]).is_empty());
}

#[test]
fn an_engine_that_is_missing_is_told_before_anything_is_read() {
    let desk = Desk::with("runs.jsonl", run(&WORDS));
    desk.put("loopbreaker.yaml", "semantic: { engine: onnxruntime, model: /nowhere }");
    let outcome = desk.run(&["replay", "runs.jsonl", "--semantic"]);
    assert_eq!((outcome.code, &*outcome.stdout), (1, ""));
    assert!(
        outcome.stderr.contains("ORT_DYLIB_PATH") || outcome.stderr.contains("/nowhere"),
        "{}",
        outcome.stderr
    );
}
