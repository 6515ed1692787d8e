use crate::binary::{Desk, repeats};
use crate::golden;

#[test]
fn a_few_runs_are_all_listed_with_reasons_under_loops() {
    let desk = Desk::with("runs.jsonl", repeats("fine", 1) + &repeats("twice", 2) + &repeats("loops", 7));
    let outcome = desk.run(&["replay", "runs.jsonl"]);
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""));
    golden::check("table.txt", &outcome.stdout);
}

#[test]
fn explain_shows_evidence_and_prevention() {
    let desk = Desk::with("runs.jsonl", repeats("loops", 7));
    golden::check("table-explain.txt", &desk.run(&["replay", "runs.jsonl", "--explain"]).stdout);
}

#[test]
fn of_many_runs_only_those_with_a_finding_are_listed() {
    let fine: String = (0..30).map(|index| repeats(&format!("fine-{index}"), 1)).collect();
    let desk = Desk::with("runs.jsonl", fine + &repeats("loops", 4));
    let outcome = desk.run(&["replay", "runs.jsonl"]);
    assert!(!outcome.stdout.contains("fine-3") && outcome.stdout.contains("loops"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("30 runs without a finding not listed"), "{}", outcome.stdout);
    let all = desk.run(&["replay", "runs.jsonl", "-v"]).stdout;
    assert!((0..30).all(|index| all.contains(&format!("fine-{index} "))), "{all}");
}

#[test]
fn quiet_prints_the_summary_only() {
    let desk = Desk::with("runs.jsonl", repeats("loops", 4));
    let outcome = desk.run(&["replay", "runs.jsonl", "-q", "--html", "page.html"]);
    assert!(outcome.stdout.starts_with("1 run, 4 steps read: 1 loop, "), "{}", outcome.stdout);
    assert_eq!(outcome.stderr, "");
}

#[test]
fn long_ids_are_cut_in_the_middle() {
    let id = format!("{}{}", "a".repeat(80), "z".repeat(80));
    let outcome = Desk::with("runs.jsonl", repeats(&id, 1)).run(&["replay", "runs.jsonl"]);
    let row = outcome.stdout.lines().nth(1).unwrap();
    assert!(row.contains("a…z") && row.chars().count() <= 100, "{row}");
}

#[test]
fn ids_of_several_files_stand_in_their_order() {
    let desk = Desk::with("a.jsonl", repeats("one", 1));
    desk.put("b.jsonl", repeats("two", 1));
    let runs = desk.run(&["replay", "b.jsonl", "a.jsonl", "--json"]).lines();
    assert_eq!((&runs[0]["id"], &runs[1]["id"]), (&"two".into(), &"one".into()));
}
