use proptest::prelude::*;

use super::Answer;

/// What it says why it failed; empty when it does not say.
fn why(answer: &str) -> Option<String> {
    let answer = Answer::of(answer.as_bytes()).filter(|answer| answer.failed)?;
    Some(String::from_utf8_lossy(answer.words.unwrap_or_default()).into_owned())
}

#[track_caller]
fn fails(answer: &str, words: &str) {
    assert_eq!(why(answer).as_deref(), Some(words), "{answer}");
}

#[track_caller]
fn says_nothing(answer: &str) {
    assert_eq!(why(answer), None, "{answer}");
}

#[test]
fn the_order_of_the_fields_means_nothing() {
    fails(r#"{"ok": false, "error": "gone"}"#, "gone");
    fails(r#"{"error": "gone", "ok": false}"#, "gone");
    fails(r#"{"took": [1, {"error": 2}], "a": "b", "error": "gone"}"#, "gone");
    fails("{'success': False, 'message': \"it's gone\"}", "it's gone");
    fails("{\n  \"count\": 0,\n  \"errorMessage\": \"gone\"\n}", "gone");
}

#[test]
fn an_error_may_be_an_object_or_a_list() {
    fails(r#"{"error": {"code": 404, "message": "gone"}}"#, "gone");
    fails(r#"{"error": {"type": "gone"}, "request": 3}"#, "gone");
    fails(r#"{"data": null, "errors": [{"path": ["a"], "message": "gone"}]}"#, "gone");
    fails(r#"{"success": false, "errors": ["gone", "lost"]}"#, "gone");
    fails(r#"{"jsonrpc": "2.0", "id": 7, "error": {"code": -32602, "message": "gone"}}"#, "gone");
    fails(r#"{"error": true}"#, "");
    says_nothing(r#"{"error": {}}"#);
    says_nothing(r#"{"file": "a.py", "errors": [{"message": "unused import"}]}"#);
}

#[test]
fn a_status_counts_where_words_say_why() {
    fails(
        r#"{"status": "error", "code": 422, "details": {"field": "due", "problem": "no date"}}"#,
        "no date",
    );
    fails(r#"{"message": "gone", "status": "FAILED"}"#, "gone");
    fails(r#"{"type": "about:blank", "status": 404, "detail": "gone"}"#, "gone");
    fails(r#"{"result": "error", "reason": "gone"}"#, "gone");
    says_nothing(r#"{"status": "failed"}"#);
    says_nothing(r#"{"status": 200, "message": "gone"}"#);
    says_nothing(r#"{"payment": "failed", "message": "gone"}"#);
}

#[test]
fn an_answer_in_an_answer_is_read() {
    fails(r#"{"content": [{"type": "text", "text": "{\"isError\": true, \"error\": \"gone\"}"}]}"#, "gone");
    fails(
        r#"[{"type": "text", "text": "{\n  \"ok\": false,\n  \"error\": \"no \\\"x\\\"\"\n}"}]"#,
        r#"no \\\"x\\\""#,
    );
    fails(r#"{"isError": true, "content": [{"type": "text", "text": "gone"}]}"#, "gone");
    fails(r#"{"status": 200, "body": {"error": "gone"}}"#, "gone");
    fails(r#"{"result": "{\"body\": \"{\\\"error\\\": \\\"gone\\\"}\"}"}"#, "gone");
    says_nothing(r#"{"success": true, "output": "{\"error\": \"gone\"}"}"#);
    says_nothing(r#"{"content": [{"type": "text", "text": "{\"error\": null}"}], "isError": false}"#);
}

#[test]
fn a_heading_is_no_part_of_the_answer() {
    fails("Response: {'ok': False, 'error': 'gone'}", "gone");
    fails("HTTP 422 Unprocessable Entity\n{\"error\": \"gone\"}", "gone");
    says_nothing("got {\"error\": \"gone\"}");
    says_nothing("Response: {\"error\": \"gone\"} was what it said");
    says_nothing("a: 1\nb: [2]\nc: {\"error\": \"gone\"}");
}

#[test]
fn what_a_thing_says_of_itself_is_no_answer_of_the_tool() {
    for record in [
        r#"{"id": 3, "status": "failed", "error": "disk full"}"#,
        r#"{"name": "lint", "ok": false, "message": "3 problems"}"#,
        r#"{"jobs": [{"status": "failed", "error": "disk full"}]}"#,
        r#"{"data": [{"status": "error", "message": "disk full"}]}"#,
        r#"{"result": {"id": 3, "status": "failed", "reason": "disk full"}}"#,
        r#"{"messages": [{"text": "{\"error\": \"disk full\"}"}]}"#,
        r#"[{"status": "error", "message": "disk full"}]"#,
        "error: disk full",
    ] {
        says_nothing(record);
    }
}

#[test]
fn a_field_for_errors_that_holds_none_says_nothing() {
    for fine in [
        r#"{"error": "", "response": "3 hotels"}"#,
        r#"{"error": null, "message": "saved"}"#,
        r#"{"errors": [], "data": {"a": 1}}"#,
        r#"{"success": true, "error": "none"}"#,
        r#"{"ok": false}"#,
        r#"{"errors": 3, "message": "checked"}"#,
        "{}",
        "{",
        "",
    ] {
        says_nothing(fine);
    }
}

#[test]
fn what_was_folded_leaves_the_other_fields_readable() {
    fails(r#"{"<time>, "<duration>, "x": {"<pid>}, "<request>", "error": "gone"}"#, "gone");
    fails(r#"{"at": "<time> or so", "error": "gone"}"#, "gone");
    fails(r#"{"text": "{\"<time>, \"error\": \"gone\"}"}"#, "gone");
}

proptest! {
    #[test]
    fn nothing_that_looks_like_json_makes_it_panic(
        pieces in proptest::collection::vec(
            proptest::sample::select(&["{", "}", "[", "]", "\"", "\\", "\\\"", "'", ":", ",", "error", "text", "content",
                "ok", "false", " ", "\\n", "<time>", "{\"text\":\"", "\"error\":", "\u{e9}"][..]),
            0..40,
        ),
    ) {
        let text = pieces.concat();
        let _ = Answer::of(text.as_bytes());
        let _ = Answer::of(format!("{{\"text\":{text}").as_bytes());
    }
}
