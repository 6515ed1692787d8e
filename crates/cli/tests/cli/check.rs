use serde_json::json;

use crate::binary::{Desk, Outcome};
use crate::golden;

const BAD: &str = "\
semantic:
  threshold: 2
sentinel:
  default: { threshold: 0 }
  bypass: poll
entropi: {}
";

#[test]
fn a_sound_config_is_explained() {
    let desk = Desk::with("loopbreaker.yaml", "sentinel: { default: { threshold: 1, window_size: 5 } }\n");
    let outcome = desk.run(&["check"]);
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""));
    golden::check("check-good.txt", &outcome.stdout);
}

#[test]
fn a_bad_config_is_told_with_line_column_and_caret() {
    let outcome = Desk::with("bad.yaml", BAD).run(&["check", "-c", "bad.yaml"]);
    assert_eq!(outcome.code, 1);
    golden::check("check-bad.txt", &outcome.stdout);
    golden::check("check-bad-stderr.txt", &outcome.stderr);
}

#[test]
fn without_a_config_the_defaults_are_explained() {
    let outcome = Desk::new().run(&["check"]);
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""));
    golden::check("check-defaults.txt", &outcome.stdout);
}

#[test]
fn policy_files_are_looked_for_beside_the_config_and_told_by_their_own_lines() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("conf")).unwrap();
    desk.put("conf/lb.yaml", "policy_files: [agents.json, missing.json]\n");
    desk.put("conf/agents.json", "{\n  \"id\": \"agents\",\n  \"spec\": { \"mode\": \"enforced\" }\n}\n");
    let outcome = desk.run(&["check", "-c", "conf/lb.yaml"]);
    assert_eq!(outcome.code, 1);
    golden::check("check-policy-files.txt", &outcome.stdout);

    let document = one(&desk.run(&["check", "-c", "conf/lb.yaml", "--json"]));
    let files: Vec<_> = document["problems"].as_array().unwrap().iter().map(|it| &it["file"]).collect();
    assert_eq!(files, [&json!(null), &json!("agents.json")]);
}

#[test]
fn json_is_one_document_where_there_is_no_config_to_read() {
    let outcome = Desk::new().run(&["check", "-c", "missing.yaml", "--json"]);
    assert_eq!((outcome.code, &*outcome.stderr), (1, ""));
    let document = one(&outcome);
    assert_eq!((&document["file"], &document["ok"]), (&json!("missing.yaml"), &json!(false)));
    assert!(document["problems"][0]["message"].as_str().unwrap().contains("could not be read"));
}

#[test]
fn json_is_one_document() {
    let outcome = Desk::with("bad.yaml", BAD).run(&["check", "-c", "bad.yaml", "--json"]);
    assert_eq!((outcome.code, &*outcome.stderr), (1, ""));
    let document = one(&outcome);
    assert_eq!((&document["file"], &document["ok"]), (&json!("bad.yaml"), &json!(false)));
    let first = &document["problems"][0];
    assert_eq!(
        [&first["line"], &first["column"], &first["path"]],
        [&json!(2), &json!(14), &json!("semantic.threshold")]
    );
    assert!(first["message"].is_string() && first["hint"].is_string());
    assert_eq!((&document["notices"], &document["explain"]), (&json!([]), &json!([])));

    let sound = one(&Desk::new().run(&["check", "--json"]));
    assert_eq!((&sound["file"], &sound["ok"], &sound["problems"]), (&json!(null), &json!(true), &json!([])));
    assert!(sound["explain"].as_array().unwrap().len() > 3);
}

#[test]
fn a_dash_reads_stdin() {
    let outcome = Desk::new().run_with_stdin(&["check", "-c", "-"], BAD.as_bytes());
    assert_eq!(outcome.code, 1);
    assert!(outcome.stdout.contains("<stdin>:2:14: "), "{}", outcome.stdout);
}

#[test]
fn what_is_no_text_is_told() {
    let outcome = Desk::with("bad.yaml", b"a: 1\nb: \xff\n").run(&["check", "-c", "bad.yaml"]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("bad.yaml:2: this is not UTF-8"), "{}", outcome.stderr);
}

fn one(outcome: &Outcome) -> serde_json::Value {
    let mut lines = outcome.lines();
    assert_eq!(lines.len(), 1);
    lines.remove(0)
}
