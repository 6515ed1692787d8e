//! Answers in JSON, as services and their wrappers give them: what they say of the call, and what changes in them on
//! every call. For each rule a run that shows it, and one that must stay quiet.

use loopbreaker::{Kind, Severity};

use crate::script::{Line, call, loops, verdict};

/// Calls of one tool with one argument that changes.
fn asked(tool: &str, values: &[&str], answer: impl Fn(&str) -> String) -> Vec<Line> {
    values.iter().map(|value| call(tool, &format!("{{\"to\":{value:?}}}"), &answer(value))).collect()
}

#[test]
fn a_refusal_is_one_wherever_its_fields_stand() {
    let names = ["#team", "team", "C-team", "general/team"];
    for refusal in [
        r#"{"ok": false, "error": "channel_not_found"}"#,
        r#"{"error": "channel_not_found", "ok": false}"#,
        r#"{"status": "error", "code": 422, "details": {"field": "to", "problem": "must be an id"}}"#,
        r#"{"success": false, "message": "the target must be an id"}"#,
        r#"{"content": [{"type": "text", "text": "{\"isError\": true, \"error\": \"must be an id\"}"}]}"#,
        r#"{"isError": true, "content": [{"type": "text", "text": "the target must be an id"}]}"#,
        "HTTP 422\n{\"success\": false, \"message\": \"the target must be an id\"}",
        r#"{"data": null, "errors": [{"path": ["post"], "message": "must be an id"}]}"#,
    ] {
        assert_eq!(loops(&asked("post_message", &names, |_| refusal.to_owned())), [Kind::Churn], "{refusal}");
    }
}

#[test]
fn refusals_for_other_reasons_are_other_failures() {
    let reasons = [
        ("#team", "channel_not_found"),
        ("#all", "not_in_channel"),
        ("#dev", "is_archived"),
        ("#ops", "too_long"),
    ];
    let refused = |(to, reason): (&str, &str)| {
        asked("post_message", &[to], |_| format!(r#"{{"ok": false, "error": "{reason}"}}"#))
    };
    let run: Vec<_> = reasons.into_iter().flat_map(refused).collect();
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn things_that_failed_are_no_failures_of_who_asks_about_them() {
    let orders = ["A-17", "B-204", "C-33", "D-8", "E-551"];
    for answer in [
        r#"{"id": "$", "status": "failed", "error": "card declined"}"#,
        r#"{"payments": [{"order": "$", "status": "failed", "error": "card declined"}]}"#,
        r#"{"order": "$", "payment": "failed", "shipment": "none"}"#,
        r#"{"name": "$", "ok": false, "message": "no answer on port 80"}"#,
    ] {
        let run = asked("get_order", &orders, |order| answer.replace('$', order));
        assert_ne!(verdict(&run), Some(Severity::Loop), "{answer}");
    }
}

#[test]
fn a_flag_without_words_tells_nothing_in_common() {
    let codes = ["red", "a long green", "7", "none of these"];
    let run = asked("try_code", &codes, |_| r#"{"success": false}"#.to_owned());
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn what_changes_in_every_answer_makes_no_new_one() {
    let answer = |at: u64, state: &str| {
        let (nonce, inner) =
            (at * 0x0001_2345_6789, format!(r#"{{\"state\": \"{state}\", \"etag\": \"W/\\\"{at:x}\\\"\"}}"#));
        let meta =
            format!(r#"{{"requestId": "{nonce:012x}", "durationMs": {}, "ts": 17778859{at:02}}}"#, at * 7);
        format!(r#"{{"content": [{{"type": "text", "text": "{inner}"}}], "_meta": {meta}}}"#)
    };
    let track = |at: u64, state: &str| call("track_parcel", r#"{"number":"JD0146"}"#, &answer(at, state));
    assert_eq!(loops(&[10, 25, 40].map(|at| track(at, "unknown"))), [Kind::Repeat]);
    let states = ["received", "sorted", "loaded"];
    let moves: Vec<_> = [10, 25, 40].into_iter().zip(states).map(|(at, state)| track(at, state)).collect();
    assert_eq!(verdict(&moves), None, "the parcel moves");
}

#[test]
fn jobs_that_stand_still_while_one_is_under_way_are_waited_for() {
    let job = |name: &str, status: &str| {
        format!(r#"{{"name": "{name}", "status": "{status}", "conclusion": null, "runner": "ubuntu-24.04"}}"#)
    };
    let done = ["lint", "unit", "build"].map(|name| job(name, "completed")).join(", ");
    let view = |last: &str| {
        let jobs = format!(r#"{{"jobs": [{done}, {}]}}"#, job("e2e", last));
        call("gh", r#"{"args":"run view 991 --json jobs"}"#, &jobs)
    };
    assert_eq!(verdict(&vec![view("in_progress"); 5]), None);
    assert_eq!(loops(&vec![view("completed"); 5]), [Kind::StalePoll], "nothing is under way any more");
}

#[test]
fn what_a_rule_forbids_is_refused_in_every_form() {
    let refusal = "X Pull request #90 is not mergeable: the base branch policy prohibits the merge.";
    let forms = ["--squash", "--merge", "--rebase", "--squash --auto"];
    let run = forms.map(|form| call("gh", &format!(r#"{{"args":"pr merge 90 {form}"}}"#), refusal));
    assert_eq!(loops(&run), [Kind::Churn]);
    let fares = asked("fare_rules", &["LX18", "BA7", "AF204", "LH400", "IB31"], |flight| {
        format!("{flight}: this fare is not refundable.")
    });
    assert_ne!(verdict(&fares), Some(Severity::Loop), "a rule that was asked for is an answer");
}
