//! Terminals that are shown as a whole: what has scrolled by is no answer to what was typed last.

use loopbreaker::{Kind, Severity};

use crate::script::{Line, call, findings, loops};

/// An agent at a terminal: each of these is typed, and all that has been typed so far is on the screen.
fn terminal(typed: &[(&str, &str)]) -> Vec<Line> {
    let mut screen: Vec<String> = Vec::new();
    let mut at = |(command, answer): &(&str, &str)| {
        screen.push(format!("root@box:/app# {command}"));
        screen.extend(answer.lines().map(str::to_owned));
        let shown = format!("{}\nroot@box:/app# ", screen.join("\n"));
        call("send_keys", &format!("{{\"keys\":\"{command}\\n\"}}"), &shown)
    };
    typed.iter().map(&mut at).collect()
}

const WORK: [(&str, &str); 7] = [
    ("ls", "Makefile src"),
    ("cat conf", "cat: conf: No such file or directory"),
    ("ls src", "a.c b.c"),
    ("head -2 src/a.c", "int main() {\n  return f(2);"),
    ("grep -n f src/b.c", "4:int f(int x) {"),
    ("wc -l src/b.c", "12 src/b.c"),
    ("sed -n 4,8p src/b.c", "int f(int x) {\n  return x - 2;\n}"),
];

#[test]
fn an_old_error_on_the_screen_is_not_told_again() {
    assert_eq!(findings(&terminal(&WORK)), []);
}

#[test]
fn a_command_that_is_answered_the_same_repeats_however_the_screen_has_grown() {
    let again = [("make", "cc -o a src/a.c\nundefined reference to f"); 3];
    assert_eq!(loops(&terminal(&[&WORK[..], &again].concat())), [Kind::FailingRepeat]);
    let look = [("cat notes", "nothing yet"); 3];
    assert_eq!(loops(&terminal(&[&WORK[..], &look].concat())), [Kind::Repeat]);
}

#[test]
fn a_command_that_is_answered_anew_does_not_repeat() {
    let left = ["3 left", "2 left", "1 left", "0 left"].map(|answer| ("./todo --count", answer));
    assert!(findings(&terminal(&left)).iter().all(|finding| finding.severity < Severity::Loop));
}
