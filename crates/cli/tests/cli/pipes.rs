use std::process::Stdio;

use crate::binary::{Desk, Outcome, repeats};

#[test]
fn a_dash_reads_stdin() {
    let outcome = Desk::new().run_with_stdin(&["replay", "-", "--json"], repeats("a", 4).as_bytes());
    assert_eq!((outcome.code, &outcome.lines()[0]["verdict"]), (0, &"loop".into()));
}

#[test]
fn problems_of_stdin_are_told_under_its_name() {
    let outcome = Desk::new().run_with_stdin(&["replay", "-"], (repeats("a", 1) + "{\n").as_bytes());
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.starts_with("<stdin>:2: "), "{}", outcome.stderr);
}

#[test]
fn a_reader_that_has_enough_ends_it_quietly() {
    let desk = Desk::with("runs.jsonl", repeats("a", 4).repeat(2_000));
    for args in [
        &["replay", "runs.jsonl", "--json"][..],
        &["replay", "runs.jsonl", "-v"],
        &["demo", "--fast", "--exit"],
        &["check"],
    ] {
        let mut child = desk.command(args).spawn().unwrap();
        drop(child.stdout.take());
        let outcome = Outcome::from(child.wait_with_output().unwrap());
        assert_eq!((outcome.code, &*outcome.stderr), (0, ""), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let desk = Desk::with("runs.jsonl", repeats("a", 4));
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = desk.command(&["replay", "runs.jsonl", "--json"]);
    let outcome = Outcome::of(command.stdout(Stdio::from(full)));
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("could not be written"), "{}", outcome.stderr);
}
