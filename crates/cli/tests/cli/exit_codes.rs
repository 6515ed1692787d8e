use crate::binary::{Desk, repeats};

#[test]
fn replay_ends_with_0_whatever_it_found() {
    let desk = Desk::with("loop.jsonl", repeats("a", 5));
    assert_eq!(desk.run(&["replay", "loop.jsonl"]).code, 0);
}

#[test]
fn fail_on_loop_ends_with_3_when_there_is_a_loop() {
    let desk = Desk::with("loop.jsonl", repeats("a", 5));
    desk.put("warning.jsonl", repeats("b", 2));
    assert_eq!(desk.run(&["replay", "loop.jsonl", "--fail-on-loop"]).code, 3);
    assert_eq!(desk.run(&["replay", "loop.jsonl", "--fail-on-loop", "--json"]).code, 3);
    assert_eq!(desk.run(&["replay", "warning.jsonl", "--fail-on-loop"]).code, 0);
}

#[test]
fn an_input_that_cannot_be_read_wins_over_a_loop() {
    let desk = Desk::with("loop.jsonl", repeats("a", 5));
    let outcome = desk.run(&["replay", "missing.jsonl", "loop.jsonl", "--fail-on-loop", "--json"]);
    assert_eq!((outcome.code, outcome.lines().len()), (1, 1));
    desk.put("broken.jsonl", repeats("a", 5) + "{\n");
    assert_eq!(desk.run(&["replay", "broken.jsonl", "--fail-on-loop"]).code, 1);
}

#[test]
fn usage_errors_end_with_2() {
    let calls: [&[&str]; 8] = [
        &[],
        &["reply"],
        &["replay"],
        &["replay", "x", "--format", "yaml"],
        &["replay", "x", "-q", "-v"],
        &["replay", "-", "-"],
        &["probe", "ftp://127.0.0.1"],
        &["serve", "--upstream", "nourl"],
    ];
    for args in calls {
        let outcome = Desk::new().run(args);
        assert_eq!((outcome.code, &*outcome.stdout), (2, ""), "{args:?}");
    }
}
