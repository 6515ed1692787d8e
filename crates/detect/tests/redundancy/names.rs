//! Tools of any name: what their words and arguments say about them, and what that does to the calls around.

use loopbreaker::{Kind, Severity};

use crate::script::{Line, call, edit, loops, sh, verdict, write};

const ANSWER: &str = "The quarterly report was filed in March and lists four subsidiaries.";

/// The same search again and again, with something else in between.
fn between(other: impl Fn(usize) -> Line) -> Vec<Line> {
    let search = || call("search_docs", r#"{"text":"subsidiaries"}"#, ANSWER);
    (0..4).flat_map(|turn| [search(), other(turn)]).collect()
}

#[test]
fn who_tells_what_is_looked_for_changes_nothing() {
    for tool in ["google", "knowledge_base", "tavily_lookup", "ask_wiki"] {
        let other =
            |turn: usize| call(tool, &format!(r#"{{"query":"item {turn}"}}"#), &format!("none of {turn}"));
        assert_eq!(loops(&between(other)), [Kind::Repeat], "{tool}");
    }
    let changes =
        |turn: usize| call("graphql", &format!(r#"{{"query":"mutation {{ add{turn} }}"}}"#), "done");
    assert_ne!(
        verdict(&between(changes)),
        Some(Severity::Loop),
        "what changes something may show in the next look"
    );
}

#[test]
fn who_finds_something_on_a_page_stays_there() {
    let finds = |turn: usize| call("find_on_page", &format!(r#"{{"text":"word {turn}"}}"#), "1 of 3");
    assert_eq!(loops(&between(finds)), [Kind::Repeat]);
    let turns = |turn: usize| call("next_page", "{}", &format!("page {turn}"));
    assert_ne!(verdict(&between(turns)), Some(Severity::Loop), "who turns pages is somewhere else");
}

#[test]
fn a_search_that_replaces_is_an_edit() {
    let test = || sh("pytest -q", "1 failed: test_total");
    let replaces = |turn: usize| {
        let args = format!(r#"{{"file_path":"a.py","old_string":"x{turn}","new_string":"y{turn}"}}"#);
        call("search_replace", &args, "The file was edited.")
    };
    let run: Vec<Line> = (0..4).flat_map(|turn| [test(), replaces(turn)]).collect();
    assert_ne!(verdict(&run), Some(Severity::Loop));
    let looks = |turn: usize| call("search_files", &format!(r#"{{"text":"x{turn}"}}"#), "no match");
    let run: Vec<Line> = (0..4).flat_map(|turn| [test(), looks(turn)]).collect();
    assert_eq!(verdict(&run), Some(Severity::Loop), "a search changes no test");
}

#[test]
fn a_command_in_a_container_is_the_command() {
    let look = || sh("cat config.yaml", "debug: true\nworkers: 4\nname: gateway of the north");
    let inside = |command: &str| {
        let command = command.to_owned();
        move |turn: usize| sh(&format!("docker exec -it web sh -c '{command} {turn}'"), "fine")
    };
    let run =
        |other: &dyn Fn(usize) -> Line| (0..4).flat_map(|turn| [look(), other(turn)]).collect::<Vec<_>>();
    assert_eq!(loops(&run(&inside("ls"))), [Kind::Repeat]);
    assert_ne!(verdict(&run(&inside("rm"))), Some(Severity::Loop), "what is removed may be what is read");
}

#[test]
fn a_line_for_a_shell_is_no_question() {
    let line = |name: &str| {
        sh(
            &format!("frobnicate please the one and only report of {name} again"),
            "frobnicated, as it was asked for",
        )
    };
    assert_ne!(verdict(&["a", "a b", "b a", "a b c"].map(line)), Some(Severity::Loop));
}

#[test]
fn what_is_written_from_within_may_show_in_a_folder_that_is_named_from_the_root() {
    let list = || call("list_files", r#"{"directory":"/workspace"}"#, "report.md\nnotes.md and more of them");
    let run = |path: &str| -> Vec<Line> {
        (0..4).flat_map(|turn| [list(), write(path, &format!("part {turn}"))]).collect()
    };
    assert_ne!(verdict(&run("report.md")), Some(Severity::Loop));
    assert_eq!(verdict(&run("/elsewhere/report.md")), Some(Severity::Loop), "it is surely not in there");
}

#[test]
fn another_field_is_another_place() {
    let answer = |field: &str, value: &str| {
        call("fill_field", &format!(r#"{{"field":"{field}","value":"{value}"}}"#), "field set")
    };
    let form = [("smoker", "No"), ("married", "Yes"), ("pets", "No"), ("car", "Yes"), ("garden", "No")];
    assert!(!loops(&form.map(|(field, value)| answer(field, value))).contains(&Kind::Oscillation));
    let back_and_forth = ["No", "Yes", "No", "Yes", "No"].map(|value| answer("smoker", value));
    assert!(loops(&back_and_forth).contains(&Kind::Oscillation));
    let edits = [("a", "b"), ("b", "a"), ("a", "b"), ("b", "a")].map(|(old, new)| edit("x.py", old, new));
    assert!(loops(&edits).contains(&Kind::Oscillation));
}
