//! Rules that hold for agents nobody has seen: for each a run that shows it, and one that must stay quiet.

use loopbreaker::{Action, DetectorsConfig, Kind, ReplayRules, Severity, Status};

use crate::script::{Line, call, edit, findings, loops, read, says, sh, times, user, verdict, write};

fn fails(line: Line) -> Line {
    line.status(Status::Failure)
}

/// What the default ladder does, step by step, up to the end of the run.
fn actions(lines: &[Line]) -> Vec<(usize, Action)> {
    let mut replay = ReplayRules::new(&DetectorsConfig::default()).start();
    for line in lines {
        replay.observe(&line.step());
    }
    replay.finish().actions
}

/// As many words as a short script has.
const WORDS: &str = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen \
                     seventeen eighteen nineteen twenty plus some more";

#[test]
fn counts_that_end_with_a_bare_exit_code_are_different_questions() {
    let run = ["404", "403", "502", "503"]
        .map(|code| sh(&format!("grep -c ' {code}$' access.log"), "0\n[exit code 1]"));
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn the_same_call_with_the_same_bare_exit_code_is_a_failing_repeat() {
    let run = ["7", "8", "9"].map(|id| sh("nc host 2000", &format!("sensor {id}\n[exit code 1]")));
    assert_eq!(loops(&run), [Kind::FailingRepeat]);
}

#[test]
fn a_thing_that_is_not_there_under_ever_new_names_is_churn() {
    let run = ["rating", "stars", "score"].map(|column| {
        let query = format!("{{\"query\":\"select product, avg({column}) from items group by product\"}}");
        call("execute_sql", &query, &format!("Error: no such column: {column}"))
    });
    assert_eq!(loops(&run), [Kind::Churn]);
}

#[test]
fn another_error_for_each_name_is_progress() {
    let errors = ["no such column: rating", "ambiguous column: stars", "misuse of aggregate: score"];
    let run = ["rating", "stars", "score"].iter().zip(errors).map(|(column, error)| {
        let query = format!("{{\"query\":\"select product, avg({column}) from items group by product\"}}");
        call("execute_sql", &query, &format!("Error: {error}"))
    });
    assert_eq!(loops(&run.collect::<Vec<_>>()), []);
}

#[test]
fn one_question_whose_answer_moves_is_a_poll() {
    let ask = |answer: &str| {
        call("ask_worker", r#"{"order":"How far is the index of the whole archive by now?"}"#, answer)
    };
    let run = [15, 30, 55, 70, 90].map(|percent| ask(&format!("It is at {percent} of one hundred.")));
    assert_eq!(verdict(&run), None);
}

#[test]
fn the_same_lines_in_another_order_are_a_repeat() {
    let test = |result: &str| sh("cargo test", result);
    let run = [test("a: ok\nb: failed"), test("b: failed\na: ok"), test("a: ok\nb: failed")];
    assert_eq!(loops(&run).len(), 1);
    let other = [test("a: ok\nb: failed"), test("b: ok\na: failed"), test("a: ok\nb: failed")];
    assert_ne!(verdict(&other), Some(Severity::Loop));
}

#[test]
fn a_file_that_is_written_again_in_nearly_the_same_words_is_churn() {
    let again = |last: &str| write("solve.py", &format!("{WORDS} {last}"));
    assert_eq!(loops(&["alpha", "beta", "gamma", "delta"].map(again)), [Kind::Churn]);
    let spread = ["a.py", "b.py", "c.py", "d.py"].map(|path| write(path, WORDS));
    assert_ne!(verdict(&spread), Some(Severity::Loop), "one header for many files is a batch");
}

#[test]
fn a_file_that_is_tested_between_its_versions_is_work() {
    let run: Vec<_> = ["alpha", "beta", "gamma", "delta"]
        .iter()
        .flat_map(|last| {
            [write("solve.py", &format!("{WORDS} {last}")), sh("python3 -m unittest", "FAILED (failures=1)")]
        })
        .collect();
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn a_shell_in_which_every_command_hangs_is_churn_at_the_fifth() {
    let hangs = |command: &str| sh(command, "Command running in background with ID: b1x.");
    let commands = ["curl -s localhost", "node test.js", "npm run check", "wget -q host", "psql -l"];
    assert_eq!(loops(&commands.map(hangs)), [Kind::Churn]);
    let mended: Vec<_> =
        commands.iter().flat_map(|command| [hangs(command), edit("a.js", command, "wait")]).collect();
    assert_ne!(verdict(&mended), Some(Severity::Loop), "something was changed each time");
}

#[test]
fn code_that_is_answered_in_the_words_of_the_last_time_has_changed_nothing() {
    let code = |name: &str| {
        says(&format!("Here is the module again:\n```\nclass Screen: show the score and the end {name}\n```"))
    };
    let report = || user("Traceback: cannot import name Screen from gameover, line 10 of main.py");
    let run = [report(), code("a"), report(), code("a"), report(), code("a")];
    assert_eq!(loops(&run), [Kind::Monologue]);
    let files = ["board", "player", "enemy"].map(|name| says(&format!("```\nclass {name}: pass\n```")));
    assert_ne!(verdict(&files), Some(Severity::Loop), "one file after the other");
}

#[test]
fn a_no_is_an_answer_each_time() {
    let texts = [
        "Shall I book it?",
        "Is the window seat fine?",
        "By card?",
        "At noon then?",
        "On Monday?",
        "Then never?",
    ];
    let run = texts.map(|text| Line { result: Some("No.".into()), ..says(text) });
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn a_page_that_was_shown_before_is_no_new_place() {
    let page = |name: &str| format!("{name}: {}", "a page with a long text on it, ".repeat(8));
    let click = |on: &str| call("click", &format!("{{\"element\":{on:?}}}"), &page(on));
    let round = [click("lamp"), click("back")];
    assert_eq!(loops(&times(3, &round)), [Kind::Cycle]);
    let compare: Vec<_> =
        ["lamp", "chair", "clock", "shelf"].iter().flat_map(|item| [click(item), click("back")]).collect();
    assert_ne!(verdict(&compare), Some(Severity::Loop), "each item is another one");
}

#[test]
fn a_failing_step_does_not_wait_for_the_end_of_a_cycle() {
    let unit = [fails(sh("make", "error: no rule")), read("Makefile", "all:")];
    let found = findings(&times(3, &unit));
    let first = found.iter().find(|finding| finding.severity == Severity::Loop).unwrap();
    assert_eq!((first.kind, first.step), (Kind::FailingRepeat, 4));
}

#[test]
fn a_long_cycle_is_stopped_in_its_fourth_copy_and_a_short_one_in_its_sixth() {
    let [a, b, c] = [read("a", "A"), read("b", "B"), read("c", "C")];
    assert_eq!(actions(&times(6, &[a.clone(), b.clone(), c])).last(), Some(&(9, Action::Reject)));
    assert_eq!(actions(&times(6, &[a, b])).last(), Some(&(11, Action::Reject)));
}

#[test]
fn two_failing_calls_in_turns_climb_one_ladder() {
    let email = || fails(call("find_by_email", r#"{"email":"x@example.org"}"#, "Error: user not found"));
    let name = || fails(call("find_by_name", r#"{"name":"Doe"}"#, "Error: no such person"));
    let run: Vec<_> = (0..4).flat_map(|n| [email(), name(), user(&format!("Perhaps order {n}?"))]).collect();
    let ladder: Vec<Action> = actions(&run).into_iter().map(|(_, action)| action).collect();
    assert_eq!(ladder, [Action::Hint, Action::Hint, Action::Throttle, Action::Reject]);
}
