use super::{Compared, Outcome};
use crate::normalise::Normaliser;
use crate::step::{Status, Step};

fn read(result: &str) -> Outcome {
    Outcome::of(result)
}

fn read_with(result: Option<&str>, status: Status) -> Outcome {
    Outcome::read(&Step { result, status: Some(status), ..Step::default() }, Normaliser::built_in(), |_| {
        Compared::default()
    })
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
fn what_is_not_possible_is_refused() {
    for refusal in [
        "X Pull request #90 is not mergeable: the base branch policy prohibits the merge.",
        "The branch policy prohibits force pushes",
        "the disk is not writable",
        "these fields are not editable",
    ] {
        assert!(read(refusal).facts.failed, "{refusal}");
    }
    for answer in
        ["Pull request #90 is mergeable", "Fares: flexible, refundable", "not a table", "cable is in"]
    {
        assert!(!read(answer).facts.failed, "{answer}");
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
fn a_field_for_errors_that_holds_none_is_no_failure() {
    for result in [
        r#"{"error": "", "response": "3 hotels"}"#,
        r#"{"status": "success", "error": null, "data": []}"#,
        "{'success': True, 'error': None, 'output': 'a'}",
        "Output: a\nError: (none)",
        "stdout: a\nerror: None",
    ] {
        assert!(!read(result).facts.failed, "{result}");
    }
    for result in
        [r#"{"error": "Unauthorized", "response": ""}"#, r#"{"error": "", "response": "Error: gone"}"#]
    {
        assert!(read(result).facts.failed, "{result}");
    }
}

#[test]
fn nothing_below_something_is_not_empty() {
    assert!(read("None").facts.empty);
    assert!(read("Execution logs:\nLast output from code snippet:\nNone").facts.empty);
    let failed = read("Execution logs:\nError: no module named x\nLast output from code snippet:\nNone");
    assert!(failed.facts.failed && !failed.facts.empty);
}

#[test]
fn a_report_that_counts_failures_is_told_from_other_failures() {
    for report in ["FAILED test_a.py\n1 failed, 3 passed in 0.2s", "AssertionError\nFAILED (failures=2)"] {
        assert!(read(report).facts.tallied, "{report}");
    }
    assert!(!read("Error: no such column: price2").facts.tallied);
}

#[test]
fn the_callers_status_counts_more_than_words() {
    assert!(read_with(Some("all fine"), Status::Failure).facts.failed);
    assert!(!read_with(Some("Error: x"), Status::Success).facts.failed);
}

#[test]
fn a_long_text_that_talks_about_errors_is_no_failure() {
    let source =
        format!("{}\nraise ValueError('no such file')\n{}", "x = 1\n".repeat(300), "y = 2\n".repeat(300));
    assert!(!read(&source).facts.failed);
}

#[test]
fn a_long_text_that_starts_with_an_error_is_a_failure() {
    let log = format!("error: could not compile\n{}", "see the log for more\n".repeat(60));
    assert!(read(&log).facts.failed);
}

#[test]
fn the_end_of_a_long_text_is_read_too() {
    let output = "a line of output\n".repeat(400);
    assert!(read(&format!("{output}Traceback (most recent call last):\nValueError: bad")).facts.failed);
    assert!(!read(&output).facts.failed);
}

#[test]
fn a_failure_that_came_without_words_has_a_class_too() {
    let failed = read_with(None, Status::Failure);
    assert!(failed.facts.failed && failed.class != 0);
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
fn what_an_error_quotes_of_its_call_is_no_part_of_its_class() {
    let class = |asked: &str, answer: &str| {
        let step = Step::call("sql", asked).answered(answer, None);
        Outcome::read(&step, Normaliser::built_in(), |_| Compared::default()).class
    };
    let rating = class(r#"{"query":"select rating from items"}"#, "Error: no such column: rating");
    assert_eq!(rating, class(r#"{"query":"select stars from items"}"#, "Error: no such column: stars"));
    assert_ne!(rating, class(r#"{"query":"select x from stars"}"#, "Error: no such table: stars"));
    assert_ne!(rating, class("{}", "Error: no such column: rating"), "it was not asked for");
}

#[test]
fn how_a_process_ended_is_read_where_the_harness_tells_it() {
    assert!(read("Process exited with code 2\nOutput:\n3 of 4").facts.failed);
    assert!(read("Command exited with code 1").facts.failed);
    assert!(!read("Process exited with code 0\nOutput:\nerror: none of these").facts.failed);
    assert!(!read("web-1 exited with code 1\nweb-1 was started again").facts.failed, "a log tells of others");
}

#[test]
fn what_was_done_is_not_under_way() {
    for over in [
        "running 3 tests\ntest a ... ok\ntest result: ok. 3 passed; 0 failed",
        "Building the project...\nlinking\nBuild succeeded in 3 steps",
        "Starting the server\nThe server has stopped",
        "Here is the result of running the tool:\na b c",
    ] {
        assert!(!read(over).facts.in_progress, "{over}");
    }
    for under_way in [
        "Running 3 tests...",
        "Processing part 3 of 10\nsome words of it",
        "Job 7\nState: RUNNING\nNode: a",
        "Starting: web\nweb is starting",
        "Running job 7\n2 of 10 tasks completed",
        "Your order is queued for processing",
        "Running checks\ncheck 1 done\nRunning tests",
        "web-1   1/1   Running   0",
    ] {
        assert!(read(under_way).facts.in_progress, "{under_way}");
    }
}

#[test]
fn a_bare_exit_code_explains_nothing() {
    assert!(read("0\n[exit code 1]").facts.unexplained);
    assert!(!read("error: no such file\n[exit code 1]").facts.unexplained);
    assert!(!read("0").facts.unexplained);
}

#[test]
fn lines_in_another_order_are_the_same_answer() {
    assert!(read("a.rs ok\nb.rs failed\n").answers_as(&read("b.rs failed\na.rs ok\n")));
    assert!(!read("a.rs ok\nb.rs failed").answers_as(&read("a.rs failed\nb.rs ok")));
    assert!(!read("a").answers_as(&read("b")), "one line has no order");
    assert!(!read("a\na\nb").answers_as(&read("a\nb\nb")));
}

#[test]
fn a_line_without_words_does_not_make_an_answer_empty() {
    assert!(!read(".\n..\nsrc").facts.empty);
    assert!(read("---\n").facts.empty);
}

#[test]
fn commands_that_are_missing_are_one_class_in_every_shell() {
    let class = |text| read(text).class;
    assert_eq!(class("bash: foo: command not found"), class("/bin/sh: line 1: bar: command not found"));
}

#[test]
fn lines_inside_of_json_are_lines() {
    let class = |output: &str| read(&format!(r#"{{"output": "{output}", "returncode": 1}}"#)).class;
    assert_eq!(class(r"line 7\nKeyError: a"), class(r"line 8, and more\nKeyError: a"));
    assert_ne!(class(r"line 7\nKeyError: a"), class(r"line 7\nIndexError: a"));
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
fn a_status_of_http_is_told_as_one() {
    for result in [
        "HTTP 503",
        "HTTP/1.1 502",
        "Error 429",
        "Error: 504",
        "status 503",
        "{\"status\": 503}",
        "{\"status_code\":429}",
        "failed with status code 502",
        "error, code: 429",
        "Server returned HTTP response code: 503",
        "requests.exceptions.HTTPError: 503 Server Error for url",
        "api.exceptions.ResourceExhausted: 429 Quota exceeded",
        "An error occurred (503) when calling the PutObject operation",
    ] {
        assert!(read(result).facts.transient, "{result}");
    }
}

#[test]
fn a_number_that_could_be_a_status_is_none() {
    for result in [
        "make: *** no rule to make target 503. Stop.",
        "Error: no such row: 429",
        "line 502: syntax error",
        "Traceback (most recent call last):\n  File \"a.py\", line 504\nKeyError: 'a'",
        "failed: 503 of 504 tests passed",
        "502",
    ] {
        assert!(!read(result).facts.transient, "{result}");
    }
}

#[test]
fn a_bare_number_is_a_status_where_http_was_asked_for() {
    let asked = |args| {
        let step = Step { args: Some(args), result: Some("503\n"), ..Step::default() };
        Outcome::read(&step, Normaliser::built_in(), |_| Compared::default()).facts.transient
    };
    assert!(asked(r#"{"command":"curl -s -o /dev/null -w '%{http_code}' localhost"}"#));
    assert!(!asked(r#"{"command":"grep -c GET access.log"}"#));
}

#[test]
fn only_a_short_answer_that_is_no_success_is_transient() {
    let page = format!("How to handle rate limits\n{}", "Wait, then try again later.\n".repeat(60));
    assert!(!read(&page).facts.transient);
    let fine = read_with(Some("timeout is set to 30"), Status::Success);
    assert!(!fine.facts.transient);
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
    assert!(read("Tool web_search has been denied").facts.unknown_tool);
    assert!(!read("bash: foo: command not found").facts.unknown_tool);
}

#[test]
fn what_is_under_way_is_seen_wherever_it_stands_in_a_short_result() {
    let done = r#"{"name": "unit", "status": "completed", "conclusion": "success"}"#;
    let jobs = |last: &str| format!(r#"{{"jobs": [{done}, {done}, {done}, {{"name": "e2e", {last}}}]}}"#);
    assert!(read(&jobs(r#""status": "in_progress""#)).facts.in_progress);
    assert!(!read(&jobs(r#""status": "in_progress""#)).facts.terminal);
    assert!(read(&jobs(r#""status": "completed""#)).facts.terminal);
    assert!(!read(&jobs(r#""status": "completed""#)).facts.in_progress);
    let far = format!("{} and then it failed", "word ".repeat(60));
    assert!(!read(&far).facts.failed, "an error says so at once");
}

#[test]
fn progress_and_ends_are_seen() {
    assert!(read("status: running").facts.in_progress);
    assert!(read("Job 7 completed").facts.terminal);
    assert!(!read("Job 7 not completed").facts.terminal);
}
