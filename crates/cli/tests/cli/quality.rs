//! Detection quality on the shipped recorded runs never falls below its floors.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::binary::Desk;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../quality")
}

fn json_lines(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap())
}

#[test]
fn recorded_runs_are_judged_as_well_as_the_floors_say() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder().join("runs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    let mut args = vec!["replay", "--json"];
    args.extend(files.iter().map(|path| path.to_str().unwrap()));
    let outcome = Desk::new().run(&args);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);

    let found: HashMap<String, Value> =
        json_lines(&outcome.stdout).map(|run| (run["id"].as_str().unwrap().to_owned(), run)).collect();
    let (mut hits, mut missed, mut healthy, mut false_alarms, mut wrongful_stops) = (0.0, 0.0, 0.0, 0.0, 0);
    for file in &files {
        for run in json_lines(&std::fs::read_to_string(file).unwrap()) {
            let judged = &found[run["id"].as_str().unwrap()];
            let alarmed = judged["verdict"] == "loop";
            let stopped =
                judged["actions"].as_array().unwrap().iter().any(|action| action["action"] == "reject");
            match (run["label"]["loop"].as_bool().unwrap(), alarmed) {
                (true, true) => hits += 1.0,
                (true, false) => missed += 1.0,
                (false, alarmed) => {
                    healthy += 1.0;
                    false_alarms += f64::from(u8::from(alarmed));
                    wrongful_stops += i32::from(stopped);
                }
            }
        }
    }
    assert!(hits + missed > 40.0 && healthy > 40.0, "the shipped runs were not read");
    let f1 = 2.0 * hits / (2.0 * hits + missed + false_alarms);
    let share = false_alarms / healthy;
    let floors: Value =
        serde_json::from_str(&std::fs::read_to_string(folder().join("floors.json")).unwrap()).unwrap();
    let summary = format!("F1 {f1:.3}, false alarms {share:.3}, wrongful stops {wrongful_stops}");
    assert!(f1 >= floors["f1"].as_f64().unwrap(), "{summary}");
    assert!(share <= floors["false_alarms"].as_f64().unwrap(), "{summary}");
    assert!(i64::from(wrongful_stops) <= floors["wrongful_stops"].as_i64().unwrap(), "{summary}");
}
