//! Detection quality on the shipped runs never falls below its floors: those of real agents, and those of scripted ones.

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

/// The files of shipped runs, of scripted agents or of real ones.
fn files(scripted: bool) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder().join("runs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("scripted-") == scripted)
        .collect();
    files.sort();
    files
}

/// Replays the runs and holds what is found against their labels.
#[track_caller]
fn hold_floors(name: &str, files: &[PathBuf], at_least: f64) {
    let mut args = vec!["replay", "--json"];
    args.extend(files.iter().map(|path| path.to_str().unwrap()));
    let outcome = Desk::new().run(&args);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);

    let found: HashMap<String, Value> =
        json_lines(&outcome.stdout).map(|run| (run["id"].as_str().unwrap().to_owned(), run)).collect();
    let (mut hits, mut loops, mut healthy, mut false_alarms) = (0.0, 0.0, 0.0, 0.0);
    let (mut stops, mut wrongful_stops) = (0.0, 0);
    for file in files {
        for run in json_lines(&std::fs::read_to_string(file).unwrap()) {
            let judged = &found[run["id"].as_str().unwrap()];
            let alarmed = u8::from(judged["verdict"] == "loop");
            let stopped =
                judged["actions"].as_array().unwrap().iter().any(|action| action["action"] == "reject");
            if run["label"]["loop"].as_bool().unwrap() {
                loops += 1.0;
                hits += f64::from(alarmed);
                stops += f64::from(u8::from(stopped));
            } else {
                healthy += 1.0;
                false_alarms += f64::from(alarmed);
                wrongful_stops += i64::from(stopped);
            }
        }
    }
    assert!(loops >= at_least && healthy >= at_least, "the {name} runs were not read");
    let f1 = 2.0 * hits / (hits + loops + false_alarms);
    let (share, stopped) = (false_alarms / healthy, stops / loops);
    let floors: Value =
        serde_json::from_str(&std::fs::read_to_string(folder().join("floors.json")).unwrap()).unwrap();
    let floor = |measure: &str| floors[name][measure].as_f64().unwrap();
    let summary = format!(
        "{name}: F1 {f1:.3}, false alarms {share:.3}, loops stopped {stopped:.3}, wrongful stops {wrongful_stops}"
    );
    assert!(f1 >= floor("f1"), "{summary}");
    assert!(share <= floor("false_alarms"), "{summary}");
    assert!(stopped >= floor("loops_stopped"), "{summary}");
    assert!(wrongful_stops <= floors[name]["wrongful_stops"].as_i64().unwrap(), "{summary}");
}

#[test]
fn recorded_runs_are_judged_as_well_as_the_floors_say() {
    hold_floors("recorded", &files(false), 40.0);
}

#[test]
fn runs_of_scripted_agents_are_judged_as_well_as_the_floors_say() {
    hold_floors("scripted", &files(true), 12.0);
}
