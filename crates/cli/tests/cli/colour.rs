use crate::binary::{Desk, Outcome, repeats};

#[test]
fn a_pipe_gets_no_colour() {
    let desk = Desk::with("runs.jsonl", repeats("a", 4));
    assert!(!desk.run(&["replay", "runs.jsonl"]).stdout.contains('\u{1b}'));
}

#[test]
fn colour_can_be_forced_and_forbidden_and_changes_no_word() {
    let desk = Desk::with("runs.jsonl", repeats("a", 4));
    let args = ["replay", "runs.jsonl", "--explain"];
    let plain = desk.run(&args).stdout;
    let forced = Outcome::of(desk.command(&args).env("CLICOLOR_FORCE", "1")).stdout;
    assert!(forced.contains('\u{1b}'));
    assert_eq!(without_codes(&forced), plain);
    let forbidden = Outcome::of(desk.command(&args).env("NO_COLOR", "1")).stdout;
    assert_eq!(forbidden, plain);
}

#[test]
fn json_is_never_coloured() {
    let desk = Desk::with("runs.jsonl", repeats("a", 4));
    let args = ["replay", "runs.jsonl", "--json"];
    let outcome = Outcome::of(desk.command(&args).env("CLICOLOR_FORCE", "1"));
    assert!(!outcome.stdout.contains('\u{1b}'));
}

fn without_codes(text: &str) -> String {
    let mut plain = String::new();
    let mut parts = text.split("\u{1b}[");
    plain.push_str(parts.next().unwrap());
    for part in parts {
        plain.push_str(part.split_once('m').unwrap().1);
    }
    plain
}
