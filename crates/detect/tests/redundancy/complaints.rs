//! In which words tools complain, and what only sounds like it.

use loopbreaker::{Kind, Outcome, Severity};

use crate::script::{Line, call, loops, sh, verdict};

#[track_caller]
fn fails(result: &str) {
    assert!(Outcome::of(result).failed(), "{result}");
}

#[track_caller]
fn is_fine(result: &str) {
    assert!(!Outcome::of(result).failed(), "{result}");
}

#[test]
fn the_name_of_an_exception_may_be_all_that_a_trace_says() {
    let exploit = |payload: &str| {
        let trace = "{\"stdout\": \"Opening connection\\n\", \"stderr\": \"Traceback (most recent call last):\\n  File \\\"solve.py\\\", line 5, in <module>\\n    res = self.recv(timeout=self.timeout)\\nEOFError\\n\", \"exit_code\": 1}";
        sh(&format!("python3 solve.py --payload {payload}"), trace)
    };
    assert_eq!(loops(&["AAAA", "AAAAAAAA", "BBBBBBBB"].map(exploit)), [Kind::Churn]);
    fails("asyncio.exceptions.CancelledError");
}

#[test]
fn an_argument_that_is_called_timeout_is_no_time_out() {
    let connect = |line: &str| {
        let says = format!("{line}\nEOFError: the peer has gone");
        sh("python3 ask.py", &says)
    };
    assert_eq!(loops(&[(); 3].map(|()| connect("io.recv(timeout=self.timeout)"))), [Kind::FailingRepeat]);
    for passing in
        ["socket.timeout: the read operation", "Error: the request timed out", "TimeoutError: 30 s"]
    {
        assert_ne!(verdict(&[(); 4].map(|()| connect(passing))), Some(Severity::Loop), "{passing}");
    }
}

#[test]
fn an_exception_has_the_name_of_its_package_before_it() {
    let ask = |columns: &str| {
        let says = "psycopg2.errors.UndefinedColumn: column \"customer_id\" does not exist\nLINE 1: ...customer_id...";
        call("run_sql", &format!("{{\"query\":\"select {columns} from orders\"}}"), says)
    };
    let ways = ["customer_id, sum(total)", "customer_id, count(total)", "customer_id, max(total)"];
    assert_eq!(loops(&ways.map(ask)), [Kind::Churn]);
    fails("sqlite3.OperationalError: near \"FORM\": syntax error");
    is_fine("errors.py\nexceptions.py\nREADME.md");
    is_fine("src/error/mod.rs\nsrc/error/kind.rs");
}

#[test]
fn a_list_of_what_is_wrong_with_a_request_refuses_it() {
    let create = |start: &str| {
        let says = "{\"detail\":[{\"type\":\"datetime_parsing\",\"loc\":[\"body\",\"start\"],\"msg\":\"Input should be a valid datetime\"}]}";
        call("create_event", &format!("{{\"start\":{start:?},\"title\":\"Weekly meeting\"}}"), says)
    };
    let ways = ["next Tuesday", "Tuesday next week", "Tuesday"];
    assert_eq!(loops(&ways.map(create)), [Kind::Churn]);
    is_fine(r#"{"id":7,"detail":"two rooms with a view"}"#);
    is_fine(r#"{"id":7,"details":[{"message":"shipped"},{"message":"delivered"}]}"#);
}

#[test]
fn tools_complain_in_words_of_their_own() {
    for result in [
        "npm ERR! code ENOENT",
        "make: *** No rule to make target 'all'.  Stop.",
        "1 validation error for Order\ntotal\n  Field required [type=missing]",
        "No changes to make: old_string and new_string are exactly the same.",
        "That's not a verb I recognise.",
        "No known action matches that input.",
        "Insufficient funds on this account",
        "The element is not interactable",
    ] {
        fails(result);
    }
    for result in [
        "No changes since yesterday.",
        "Validation passed for 3 orders.",
        "make: Nothing to be done for 'all'.",
        "The funds are sufficient.",
        "recognised 3 verbs",
    ] {
        is_fine(result);
    }
}

#[test]
fn no_more_results_are_none() {
    let look = |words: &str| call("Lookup", &format!("\"{words}\""), "No more results.");
    let ways = [
        "rowing medal", "the rowing medal", "medal rowing", "a rowing medal", "rowing gold medal",
        "rowing medal won",
    ];
    assert_eq!(loops(&ways.map(look)), [Kind::Churn]);
    let others = ["rowing", "medal", "birth", "coach", "club", "city"];
    assert_ne!(verdict(&others.map(look)), Some(Severity::Loop));
}

/// A tool that has the name of a program.
fn program(tool: &str, args: &str, says: &str) -> Line {
    call(tool, args, says)
}

#[test]
fn a_tool_with_the_name_of_a_program_does_what_its_line_does() {
    let restart = || {
        program(
            "kubectl",
            r#"{"command":"kubectl rollout restart deploy/api"}"#,
            "deployment.apps/api restarted",
        )
    };
    let logs = || {
        program(
            "kubectl",
            r#"{"command":"kubectl logs api-1"}"#,
            "Error: the variable KEY is not set\n  at start",
        )
    };
    let pods = |restarts: usize| {
        let says =
            format!("NAME   READY  STATUS            RESTARTS\napi-1  0/1    CrashLoopBackOff  {restarts}");
        program("kubectl", r#"{"command":"kubectl get pods"}"#, &says)
    };
    let run: Vec<_> = (3..8).flat_map(|restarts| [logs(), restart(), pods(restarts)]).collect();
    assert!(!loops(&run).is_empty(), "a look changes nothing, and a restart does not help");
    let mends = |key: &str| {
        program("kubectl", &format!("{{\"command\":\"kubectl set env deploy/api KEY={key}\"}}"), "updated")
    };
    let run: Vec<_> = ["a", "b"].iter().flat_map(|key| [logs(), mends(key)]).collect();
    assert_ne!(verdict(&run), Some(Severity::Loop));
}
