use std::sync::LazyLock;

use proptest::prelude::*;

use super::{LOOK_AT, Normaliser, Patterns, RULES, Search, check_pattern};

fn normal(result: &str) -> String {
    let mut out = Vec::new();
    Normaliser::built_in().normalise(result, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[track_caller]
fn folds(a: &str, b: &str) {
    assert_eq!(normal(a), normal(b));
}

#[track_caller]
fn keeps(a: &str, b: &str) {
    assert_ne!(normal(a), normal(b));
}

#[test]
fn every_built_in_rule_compiles() {
    for rule in RULES {
        check_pattern(rule.pattern).unwrap();
    }
    let Search::BuiltIn(rules) = &Normaliser::built_in().0 else { panic!() };
    assert_eq!(rules.regex.as_ref().unwrap().pattern_len(), RULES.len());
}

#[test]
fn timestamps_of_all_usual_forms_are_folded() {
    folds("[2026-03-01T10:00:11Z] up", "[2026-12-31T23:59:59.123+02:00] up");
    folds("2026-03-01 10:00:11,123 INFO", "2026-03-02 11:00:11,999 INFO");
    folds("Date: Sun, 15 Nov 2026 17:32:51 GMT", "Date: Mon, 16 Nov 2026 07:02:01 GMT");
    folds("Sun Nov 15 17:32:51 UTC 2026", "Mon Nov 16 07:02:01 UTC 2026");
    folds("Nov  5 03:04:05 host", "Dec 15 13:04:05 host");
    folds("[15/Nov/2026:17:32:51 +0000] GET", "[16/Nov/2026:18:00:00 +0000] GET");
    folds("on March 1, 2026 at 9:05 AM", "on November 15, 2026 at 11:45 PM");
    folds("at 10:11:12.5", "at 23:59:01.77");
    folds("at 9:05 PM", "at 11:45 AM");
}

#[test]
fn a_number_is_a_time_where_its_key_names_one() {
    folds(r#"{"server_time": 1777885923}"#, r#"{"server_time": 1777885949}"#);
    folds(r#"{"fetchedAt":1777885923123}"#, r#"{"fetchedAt":1777885949001}"#);
    folds(r#""{\"ts\": 1777885923.5}""#, r#""{\"ts\": 1777885949.25}""#);
    folds(r#"{"timestamp": "1777885923"}"#, r#"{"timestamp": "1777885949"}"#);
    folds("expires: 1777885923", "expires: 1777885949");
    folds("updated_at_ms: 1777885923123", "updated_at_ms: 1777885949123");
    keeps(r#"{"number": 1777885923}"#, r#"{"number": 1777885949}"#);
    keeps(r#"{"counts": 1777885923}"#, r#"{"counts": 1777885949}"#);
    keeps(r#"{"format": 1777885923}"#, r#"{"format": 1777885949}"#);
    keeps(r#"{"ts": 3}"#, r#"{"ts": 4}"#);
    keeps(r#"{"time": 2147483648}"#, r#"{"time": 2147483649}"#);
    keeps("1777885923", "1777885949");
}

#[test]
fn the_numbers_that_a_browser_gives_to_elements_are_folded() {
    folds("button \"Buy\" [ref=e12]", "button \"Buy\" [ref=e47]");
    folds("button \"Buy\" [ref=s1e12]", "button \"Buy\" [ref=s2e12]");
    keeps("button \"Buy\" [ref=e12]", "button \"Sell\" [ref=e12]");
    keeps("see [ref=12]", "see [ref=13]");
    keeps("button [12]", "button [13]");
}

#[test]
fn what_an_answer_took_is_folded() {
    folds(r#"{"rows": 3, "execution_time": 0.5}"#, r#"{"rows": 3, "execution_time": 0.75}"#);
    folds(r#"{"queryTimeMs": 17}"#, r#"{"queryTimeMs": 4}"#);
    folds("processing_time_ms: 17", "processing_time_ms: 4");
    keeps(r#"{"avg_response_time": 120}"#, r#"{"avg_response_time": 950}"#);
    keeps(r#"{"cooking_time": 20}"#, r#"{"cooking_time": 30}"#);
}

#[test]
fn durations_are_folded() {
    folds("finished in 1.03s", "finished in 12.4s");
    folds("real 0m1.234s", "real 1m0.004s");
    folds("took 35 ms", "took 9 ms");
    folds("after 3 seconds", "after 12 seconds");
}

#[test]
fn identifiers_drawn_anew_are_folded() {
    folds("id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-e89b-12d3-a456-426614174fff");
    folds("<obj at 0x7f3a2c1b4d50>", "<obj at 0x55d0aa00ff10>");
    folds("started pid 1234", "started pid 99");
    folds("sshd[1234]: closed", "sshd[777]: closed");
    folds("/tmp/tmpab12cd/x.py: bad", "/tmp/tmpzz99yy/x.py: bad");
    folds("/tmp/build-8f3a/out", "/tmp/build-91bb/out");
    folds(r#""traceId":"4e83218a3c4868""#, r#""traceId":"949f749ee2f6ab""#);
    folds(r#"{"nonce": "a051e8a2770b0c21"}"#, r#"{"nonce": "329fdf85f2df2625"}"#);
    folds(r#""etag": "W/\"4b3ee9297f\"""#, r#""etag": "W/\"1c63986a1e\"""#);
    folds("ETag: W/\"4b3ee9297f\"", "ETag: W/\"1c63986a1e\"");
}

#[test]
fn what_the_key_does_not_name_is_kept() {
    keeps(r#"{"id": "a051e8a2770b0c21"}"#, r#"{"id": "329fdf85f2df2625"}"#);
    keeps(r#"{"nonce": 17}"#, r#"{"nonce": 18}"#);
    keeps("ETag: \"4b3ee9297f\"", "ETag: \"1c63986a1e\"");
    keeps(r#"{"request": "a051e8a2770b0c21"}"#, r#"{"request": "329fdf85f2df2625"}"#);
    keeps(r#"{"time": 3}"#, r#"{"time": 4}"#);
}

#[test]
fn json_inside_of_json_is_folded_alike() {
    folds(
        r#"{"text": "{\"requestId\": \"aee26301ac13\", \"durationMs\": 305}"}"#,
        r#"{"text": "{\"requestId\": \"ffa4012d63ce\", \"durationMs\": 41}"}"#,
    );
    folds(r#"\"latency_ms\":12.5"#, r#"\"latency_ms\":9.25"#);
    folds(r#"\\\"pid\\\": 17"#, r#"\\\"pid\\\": 4711"#);
    keeps(r#"{"text": "{\"page\": 3}"}"#, r#"{"text": "{\"page\": 4}"}"#);
}

#[test]
fn the_number_of_a_request_in_an_envelope_is_folded() {
    folds(r#"{"jsonrpc":"2.0","id":7,"result":3}"#, r#"{"jsonrpc":"2.0","id":12,"result":3}"#);
    folds(
        r#"{"jsonrpc": "2.0", "id": "a-7", "result": 3}"#,
        r#"{"jsonrpc": "2.0", "id": "b-8", "result": 3}"#,
    );
    folds(r#"{"id":7,"jsonrpc":"2.0","result":3}"#, r#"{"id":12,"jsonrpc":"2.0","result":3}"#);
    keeps(r#"{"jsonrpc":"2.0","id":7,"result":3}"#, r#"{"jsonrpc":"2.0","id":7,"result":4}"#);
    keeps(r#"{"id":7,"result":3}"#, r#"{"id":12,"result":3}"#);
    keeps(r#"{"jsonrpc":"2.0","result":{"id":7}}"#, r#"{"jsonrpc":"2.0","result":{"id":8}}"#);
}

#[test]
fn the_id_of_a_chunk_of_output_is_folded() {
    folds("Chunk ID: a1b2c3\nOutput:\nx", "Chunk ID: 907900\nOutput:\nx");
    folds("Chunk ID: abcdef", "Chunk ID: f8e3d5");
    keeps("Chunk ID: 12", "Chunk ID: 13");
}

#[test]
fn the_number_of_a_cell_is_folded() {
    folds("Out[4]: 0.71", "Out[12]: 0.71");
    folds("In [4]: fit()\nOut [4]: 0.71", "In [5]: fit()\nOut [5]: 0.71");
    keeps("Out[4]: 0.71", "Out[4]: 0.72");
    keeps("[4]: 0.71", "[12]: 0.71");
    keeps("Out of 4: 3", "Out of 5: 3");
}

#[test]
fn what_is_left_of_a_budget_is_folded() {
    folds("You have 5 steps left and 2 chances left.", "You have 4 steps left and 1 chances left.");
    folds("Remaining turns: 9", "Remaining turns: 8");
    folds("[Turn 3 of 10, cost so far: $0.12]", "[Turn 4 of 10, cost so far: $0.31]");
    folds("Tokens: 6.3k sent, 2.0k received.", "Tokens: 10k sent, 7.5k cache hit, 972 received.");
    folds("Cost: $0.02 message, $0.10 session.", "Cost: $0.0031 message, $1.10 session.");
    folds("Tokens used: 12,345", "tokens used: 98");
    folds("Token usage: 61234/200000; 138766 remaining", "Token usage: 63871/200000; 136129 remaining");
    folds("host 12:00 18-Nov-26", "host 09:41 19-Nov-26");
    folds("\"request_id\": \"req_011CT9xw\"", "\"request_id\": \"req_9Zk2mm0a\"");
    folds("Ray ID: 8f3a2c1b4d50e6f7", "Ray ID: 9a0b1c2d3e4f5a6b");
    folds(
        r#"{"text": "a", "usage": {"input_tokens": 12, "details": {"cached_tokens": 3}, "output_tokens": 5}}"#,
        r#"{"text": "a", "usage": {"input_tokens": 90, "details": {"cached_tokens": 0}, "output_tokens": 7}}"#,
    );
    folds(r#"\"usage\":{\"total_tokens\":17}"#, r#"\"usage\":{\"total_tokens\":4}"#);
    keeps(r#"{"tokens": 17}"#, r#"{"tokens": 4}"#);
    keeps(r#"{"usage": {"disk": 17}}"#, r#"{"usage": {"disk": 4}}"#);
    keeps(r#"{"usage": {"tokens": 17}, "page": 3}"#, r#"{"usage": {"tokens": 17}, "page": 4}"#);
    keeps("request a cup of tea", "request a pot of tea");
    keeps("Tokens: 3 sent to Ada", "Tokens: 4 sent to Ada");
    keeps("3 files left", "2 files left");
    keeps("Step 3 of 10: COPY", "Step 4 of 10: COPY");
}

#[test]
fn a_field_for_errors_that_holds_none_is_folded() {
    folds(r#"{"error": "", "response": "x"}"#, r#"{"error":null, "response": "x"}"#);
    keeps(r#"{"error": "", "response": "x"}"#, r#"{"error": "gone", "response": "x"}"#);
    folds("Failed jobs: 0", "failures=0");
    keeps("Failed jobs: 0", "Failed jobs: 2");
}

#[test]
fn whatever_word_a_rule_begins_with_is_found() {
    for day in ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] {
        folds(&format!("at {day}, 15 Nov 2026 17:32"), "at <time>");
    }
    for month in ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"] {
        folds(&format!("at {month} 15 17:32:51"), "at <time>");
    }
    for process in ["pid", "Pid", "PID", "pID", "process", "Process", "process id", "Process ID"] {
        folds(&format!("by {process}: 12345"), "by <pid>");
    }
    for named in ["request", "Request", "trace", "Trace", "span", "Span", "correlation", "Correlation"] {
        folds(&format!("for {named}_id: 0a1b2c3d"), "for <request>");
    }
    for named in ["nonce", "Nonce"] {
        folds(&format!("for {named}: 0a1b2c3d"), "for <request>");
    }
    for named in ["etag", "Etag", "eTag", "ETag"] {
        folds(&format!("has {named}: W/\"0a1b\""), "has <etag>");
    }
    for measured in ["duration", "elapsed", "latency", "took"] {
        folds(&format!("it {measured}: 12"), "it <duration>");
    }
    for measured in ["durationMs", "elapsedSeconds"] {
        folds(&format!("it {measured}: 12"), "it <duration>");
    }
    for counted in ["steps", "turns", "rounds", "attempts", "interactions", "tokens"] {
        let (first, rest) = counted.split_at(1);
        for counted in [counted.to_owned(), format!("{}{rest}", first.to_uppercase())] {
            folds(&format!("has {counted} left: 4"), "has <budget>");
        }
    }
    for left in
        ["remaining turns: 4", "Remaining turns: 4", "turn 1 of 2", "Turn 1/2", "cost: $1", "Cost: $1"]
    {
        folds(&format!("has {left}"), "has <budget>");
    }
    for fine in ["error", "Errors", "failed", "Failed", "failure", "Failures", "exception", "Exceptions"] {
        folds(&format!("says {fine}: 0"), "says <fine>");
    }
}

#[test]
fn colours_and_trailing_space_are_folded() {
    folds("\x1b[1;31mred\x1b[0m  \r\nnext\t\n\n", "red\nnext");
    folds("\x1b]0;title\x07text", "text");
}

#[test]
fn plain_numbers_hashes_and_versions_are_kept() {
    keeps("items of page 3", "items of page 4");
    keeps("commit 8f3a2c1b4d50", "commit 91bb20aa00ff");
    keeps("3 failed", "4 failed");
    keeps("v1.2.3", "v1.2.4");
    keeps("main.rs:10:25", "main.rs:11:25");
    keeps("/tmp/notes", "/tmp/letters");
    keeps("0x10", "0x11");
    keeps("10% done", "20% done");
}

#[test]
fn only_head_and_tail_of_a_long_result_are_looked_at() {
    let long = |middle: char| format!("{}{middle}{}", "a".repeat(LOOK_AT), "b".repeat(LOOK_AT));
    folds(&long('x'), &long('y'));
    keeps(&format!("x{}", long('x')), &format!("y{}", long('x')));
    keeps(&format!("{}x", long('x')), &format!("{}y", long('x')));
}

#[test]
fn a_tools_own_pattern_is_dropped_from_its_results() {
    let own = Normaliser::compile(&["request-[a-z]+".to_owned()]).unwrap();
    let (mut a, mut b) = (Vec::new(), Vec::new());
    own.normalise("request-abc failed", &mut a);
    own.normalise("request-xyz failed", &mut b);
    assert_eq!(a, b);
}

#[test]
fn a_bad_pattern_says_what_is_wrong_with_it() {
    assert!(check_pattern("(").unwrap_err().to_string().contains("unclosed group"));
    assert!(check_pattern("x*").unwrap_err().to_string().contains("empty"));
    assert!(check_pattern(&"a{1000}".repeat(100)).is_err());
}

/// Pieces of which what is folded is made, and what looks nearly so.
const PIECES: &[&str] = &[
    "2026-03-01T10:00:11.5Z",
    "2026/03/01 10:00",
    "20260301T101112Z",
    "Sun, 15 Nov 2026 17:32",
    "Mon",
    "Sep",
    "Sun Nov 15 17:32:51 PM UTC 2026",
    "Nov  5 03:04:05.7",
    "March 1, 2026 at 9:05 AM",
    "15/Nov/2026:17:32:51",
    "10:11:12",
    "9:05 pm",
    "12:30",
    "1.03s",
    "1m0.004s",
    "35 ms",
    "3 seconds",
    "7 \u{b5}s",
    "5\u{3bc}s",
    "12 hrs",
    "123e4567-e89b-12d3-a456-426614174000",
    "deadbeef-dead-beef-dead-beefdeadbeef",
    "0x7f3a2c1b4d50",
    "0x10",
    "pid 12",
    "PID=7",
    "process id: 4",
    "Process 12345",
    "process #12",
    "took: 12.5",
    "elapsed_ms=3",
    "latency",
    "duration\": 4",
    "durationMs\\\": 4",
    "execution_time\": 0.5",
    "usage\": {\"input_tokens\": 3}",
    "Usage: {",
    "tokens",
    "{",
    "}",
    "[ref=e12]",
    "[ref=s1e12",
    "queryTimeMs : 4",
    "cooking_time",
    "1777885923",
    "server_time\": 1777885923",
    "fetchedAt\\\":1777885923123",
    "ts: \\\"1777885923",
    "ts\": ",
    "_at: ",
    ": 1777885923.5",
    "traceId\\\": \\\"4e83218a3c48",
    "Span-Id: 4e83218a3c48",
    "correlation_id=4e83218a3c48",
    "nonce\": \"a051e8a2770b0c21\"",
    "etag\": \"W/\\\"4b3e\\\"",
    "ETag: W/\"4b3e\"",
    "[1234]: ",
    "[1] 99",
    "/tmp/tmpab12cd/x.py",
    "/private/var/tmp/a1",
    "/var/folders/ab/c",
    "/tmp/notes",
    "C:\\Users\\Temp\\x",
    "d:/a/Temp/b",
    "https://a.b/c",
    "\x1b[1;31m",
    "\x1b]0;t\x07",
    "\x1b=",
    "\x1b",
    "1234",
    "1234567",
    "12345678",
    "v1.2.3",
    "3.5",
    "main.rs:10:25",
    "a",
    "_",
    "T",
    ".",
    "-",
    ":",
    "/",
    "[",
    "]",
    "\"",
    ",",
    " ",
    " ",
    "\n",
    "\u{e9}",
    "0",
    "Out[4]: 0.7",
    "In [5]: a",
    "5 steps left",
    "2 more tries remaining",
    "3 files left",
    "Remaining turns: 9",
    "Turns left: 4",
    "turn 3 of 10",
    "Cost so far: $0.12",
    "Tokens: 6.3k sent, 2.0k received.",
    "Cost: $0.02 message, $0.10 session",
    "tokens used: 98",
    "12:00 18-Nov-26",
    "request_id\": \"req_011CT9xw\"",
    "Ray ID: 8f3a2c1b4d50e6f7",
    "cost",
    "error\": \"\"",
    "Failed jobs: 0",
    "failures=0",
    "exception: None",
    "errors",
    "=",
];

/// The same rules, searched for at every place.
static EVERYWHERE: LazyLock<Normaliser> =
    LazyLock::new(|| Normaliser(Search::Everywhere(Patterns::compile(&[]).unwrap())));

proptest! {
    #[test]
    fn everything_is_folded_that_a_search_at_every_place_would_fold(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..14),
    ) {
        let text = pieces.concat();
        let mut expected = Vec::new();
        EVERYWHERE.normalise(&text, &mut expected);
        prop_assert_eq!(normal(&text), String::from_utf8_lossy(&expected), "{:?}", text);
    }

    #[test]
    fn normalising_never_panics_and_never_grows_much(text in ".{0,200}") {
        prop_assert!(normal(&text).len() <= 4 * text.len() + 16);
    }

    #[test]
    fn words_without_digits_are_kept(text in "[a-z]{1,9}( [a-z]{1,9}){0,9}") {
        prop_assert_eq!(normal(&text), text);
    }
}
