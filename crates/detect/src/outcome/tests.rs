use super::Outcome;
use crate::normalise::Normaliser;
use crate::step::Status;

fn read(result: &str) -> Outcome {
    Outcome::read(Some(result), None, Normaliser::built_in())
}

#[test]
fn plain_errors_are_failures() {
    for result in [
        "bash: foo: command not found",
        "Error executing query: Table 'x' doesn't exist",
        "Traceback (most recent call last):\n  File \"x\"\nValueError: bad",
        "<returncode>1</returncode>\n<output>\nsomething\n</output>",
        "{\"stdout\": \"\", \"stderr\": \"nc: port invalid\\n\", \"returncode\": 1}",
        "cat: x: No such file or directory",
        "Usage: edit <start_line>:<end_line>",
        "Test case did not pass. Please try again.",
        "Submitted flag is incorrect. Keep trying!",
    ] {
        assert!(read(result).facts.failed, "{result}");
        assert_ne!(read(result).class, 0, "{result}");
    }
}

#[test]
fn plain_answers_are_none() {
    for result in [
        "a\nb\nc",
        "<returncode>0</returncode>\n<output>\nerror handling is fine\n</output>",
        "ok",
        "",
        "No matches found",
        "10% done",
    ] {
        assert!(!read(result).facts.failed, "{result}");
    }
}

#[test]
fn the_callers_status_counts_more_than_words() {
    let status = |status| Outcome::read(Some("all fine"), Some(status), Normaliser::built_in());
    assert!(status(Status::Failure).facts.failed);
    assert!(!Outcome::read(Some("Error: x"), Some(Status::Success), Normaliser::built_in()).facts.failed);
}

#[test]
fn a_long_text_that_talks_about_errors_is_no_failure() {
    let source =
        format!("{}\nraise ValueError('no such file')\n{}", "x = 1\n".repeat(300), "y = 2\n".repeat(300));
    assert!(!read(&source).facts.failed);
}

#[test]
fn an_error_class_folds_names_numbers_and_paths() {
    let class = |text| read(text).class;
    assert_eq!(
        class("Error: Table 'a.students' doesn't exist"),
        class("Error: Table 'b.users' doesn't exist")
    );
    assert_eq!(
        class("cat: /tmp/a: No such file or directory"),
        class("cat: /home/b/c.txt: No such file or directory")
    );
    assert_eq!(class("KeyError: 17"), class("KeyError: 4"));
    assert_eq!(class("Error: bad arguments {'a': {}}: none"), class("Error: bad arguments {'': ''}: none"));
    assert_ne!(class("KeyError: 17"), class("IndexError: 17"));
}

#[test]
fn passing_reasons_are_transient() {
    for result in [
        "429 Too Many Requests",
        "503 Service Unavailable",
        "Error: connection reset by peer",
        "request timed out",
    ] {
        assert!(read(result).facts.transient, "{result}");
    }
    assert!(!read("Error: no such table").facts.transient);
}

#[test]
fn a_persons_refusal_and_our_own_block_are_told_apart_from_results() {
    assert!(read("The user doesn't want to proceed with this tool use.").facts.prevented);
    assert!(read("Loopbreaker: this call was made 3 times").facts.prevented);
    assert!(!read("the user table has 3 rows").facts.prevented);
}

#[test]
fn missing_tools_are_seen() {
    assert!(read("Error: unknown tool 'frobnicate'").facts.unknown_tool);
    assert!(read("Tool web_search is not available").facts.unknown_tool);
    assert!(!read("bash: foo: command not found").facts.unknown_tool);
}

#[test]
fn progress_and_ends_are_seen() {
    assert!(read("status: running").facts.in_progress);
    assert!(read("Job 7 completed").facts.terminal);
    assert!(!read("Job 7 not completed").facts.terminal);
}
