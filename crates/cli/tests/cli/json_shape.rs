use serde_json::{Value, json};

use crate::binary::{Desk, repeats};

#[test]
fn one_object_per_run_with_the_fields_of_the_contract_in_their_order() {
    let desk = Desk::with("runs.jsonl", repeats("seven", 7) + &repeats("one", 1));
    let outcome = desk.run(&["replay", "runs.jsonl", "--json"]);
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""));

    let lines: Vec<_> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), 2);
    assert_order(lines[0], &["id", "steps", "verdict", "findings", "actions", "wasted"]);
    let fields = [
        "step", "detector", "kind", "severity", "onset", "period", "count", "identity", "evidence", "message",
    ];
    assert_order(lines[0], &fields);

    let run = &outcome.lines()[0];
    assert_eq!(run["id"], "seven");
    assert_eq!(run["steps"], 7);
    assert_eq!(run["verdict"], "loop");
    let found = &run["findings"][1];
    assert_eq!(found.as_object().unwrap().len(), fields.len());
    assert_eq!(
        [&found["step"], &found["detector"], &found["kind"], &found["severity"]],
        [&json!(2), &json!("redundancy"), &json!("repeat"), &json!("loop")]
    );
    assert_eq!(
        [&found["onset"], &found["period"], &found["count"], &found["evidence"]],
        [&json!(0), &json!(1), &json!(3), &json!([0, 1, 2])]
    );
    let identity = found["identity"].as_str().unwrap();
    assert!(identity.len() == 64 && identity.bytes().all(|byte| byte.is_ascii_hexdigit()), "{identity}");
    assert_eq!(
        run["actions"],
        json!([
            {"step": 2, "action": "hint"},
            {"step": 3, "action": "hint"},
            {"step": 4, "action": "throttle"},
            {"step": 5, "action": "reject"},
        ])
    );
    assert_eq!(run["wasted"], json!({"steps": 6, "tokens": 60, "cost_usd": 0.6}));
}

#[test]
fn a_healthy_run_has_all_fields_too() {
    let desk = Desk::with("runs.jsonl", repeats("one", 1));
    assert_eq!(
        desk.run(&["replay", "runs.jsonl", "--json"]).stdout,
        "{\"id\":\"one\",\"steps\":1,\"verdict\":\"ok\",\"findings\":[],\"actions\":[],\
         \"wasted\":{\"steps\":0,\"tokens\":0,\"cost_usd\":0.0}}\n"
    );
}

#[test]
fn explain_adds_what_would_have_prevented_it() {
    let desk = Desk::with("runs.jsonl", repeats("three", 3));
    let run = desk.run(&["replay", "runs.jsonl", "--json", "--explain"]).lines().remove(0);
    for finding in run["findings"].as_array().unwrap() {
        assert!(matches!(&finding["prevented_by"], Value::String(text) if !text.is_empty()));
    }
}

#[test]
fn a_run_without_steps_is_told_too() {
    let desk = Desk::with("runs.jsonl", "{\"id\":\"none\",\"steps\":[]}\n");
    let run = desk.run(&["replay", "runs.jsonl", "--json"]).lines().remove(0);
    assert_eq!((&run["id"], &run["steps"]), (&json!("none"), &json!(0)));
}

/// The keys stand in the line in this order.
fn assert_order(line: &str, keys: &[&str]) {
    let places: Vec<_> = keys.iter().map(|key| line.find(&format!("\"{key}\":")).unwrap()).collect();
    assert!(places.is_sorted(), "{keys:?} in {line}");
}
