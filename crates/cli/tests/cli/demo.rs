use std::time::{Duration, Instant};

use crate::binary::Desk;
use crate::golden;

#[test]
fn it_shows_six_agents_quickly_and_always_the_same() {
    let started = Instant::now();
    let outcome = Desk::new().run(&["demo"]);
    assert!(started.elapsed() < Duration::from_secs(2));
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""));
    assert_eq!(outcome.stdout, Desk::new().run(&["demo"]).stdout);
    assert!(outcome.stdout.contains("loopbreaker replay your-run.jsonl"));
}

#[test]
fn json_has_one_object_per_agent() {
    let runs = Desk::new().run(&["demo", "--json"]).lines();
    let verdicts: Vec<_> = runs
        .iter()
        .map(|run| format!("{} {}\n", run["id"].as_str().unwrap(), run["verdict"].as_str().unwrap()))
        .collect();
    golden::check("demo-verdicts.txt", &verdicts.concat());
}
