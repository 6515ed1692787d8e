//! The worked list of cases, through the binary.

use std::path::Path;

use serde_json::Value;

use crate::binary::Desk;

#[test]
fn every_worked_case_is_judged_as_expected() {
    judges_as_expected("redundancy.jsonl");
}

#[test]
fn every_case_from_the_rules_is_judged_as_expected() {
    judges_as_expected("spec.jsonl");
}

#[track_caller]
fn judges_as_expected(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases").join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let outcome = Desk::new().run(&["replay", path.to_str().unwrap(), "--json"]);
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""));
    let runs = outcome.lines();
    assert_eq!(runs.len(), cases.len());
    let wrong: Vec<_> = cases.iter().zip(&runs).filter_map(|(case, run)| complaint(case, run)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn complaint(case: &Value, run: &Value) -> Option<String> {
    let expect = &case["expect"];
    let findings = run["findings"].as_array().unwrap();
    let expects = |list: &str, value: &Value| expect[list].as_array().is_none_or(|list| list.contains(value));
    let in_time = |finding: &&Value| {
        let limit = expect["by_step"].as_u64().unwrap();
        finding["severity"] == "loop" && finding["step"].as_u64().unwrap() <= limit
    };
    let why = if run["id"] != case["id"] {
        "comes in another order"
    } else if !expects("verdict", &run["verdict"]) {
        "has another verdict"
    } else if !findings.is_empty() && !findings.iter().any(|finding| expects("kinds", &finding["kind"])) {
        "is of another kind"
    } else if !expect["by_step"].is_null() && !findings.iter().any(|finding| in_time(&finding)) {
        "is found too late"
    } else {
        return None;
    };
    Some(format!("{} {why}: expected {expect}, found {run}", case["id"]))
}
