//! Traffic of a gateway becomes decision logs.

use std::sync::Arc;

use loopbreaker::Action;
use loopbreaker_observatory::{Arrival, Completion, Note, Topic, Usage, Verdict};
use loopbreaker_record::{DecisionLog, Moment, Status, TraceId};
use serde_json::{Value, json};

use crate::server::{START, Server, in_session};

pub(crate) fn tenant() -> Arc<str> {
    "anonymous".into()
}

pub(crate) fn trace(number: u32) -> TraceId {
    TraceId::derived(&[b"traffic", &number.to_le_bytes()])
}

/// A call as it stands in a transcript; each round is behind the one before.
pub(crate) fn call(number: u32, status: Status) -> Arrival {
    let mut builder = DecisionLog::builder("coder", "gateway", "2.0.0")
        .intent("run the tests")
        .called("bash", r#"{"command":"make test"}"#)
        .status(status)
        .extension("model", json!("gpt"));
    if number > 0 {
        builder = builder.after(trace(number - 1));
    }
    let log = builder.build(trace(number), Moment::from_millis(START)).unwrap();
    Arrival { tenant: tenant(), session: Some("run".to_owned()), log }
}

pub(crate) fn result(number: u32) -> Completion {
    Completion {
        tenant: tenant(),
        session: "run".to_owned(),
        trace_id: trace(number),
        status: Status::Failure,
        output: Some("1 test failed".to_owned()),
    }
}

fn usage(number: u32) -> Usage {
    Usage {
        tenant: tenant(),
        session: "run".to_owned(),
        trace_id: Some(trace(number)),
        model: Some("gpt".to_owned()),
        tokens: 100,
        cost_usd: 0.25,
    }
}

fn verdict(session: &str, action: Action, enforced: bool) -> Verdict {
    Verdict {
        tenant: tenant(),
        session: session.to_owned(),
        action,
        enforced,
        policy: Some("default".to_owned()),
        kind: Some("repeat".to_owned()),
        message: None,
    }
}

/// Everything that was noted so far is written when this is answered.
pub(crate) fn settle(server: &Server) {
    server.accept(&in_session(900_000, "another"));
}

pub(crate) fn settle_again(server: &Server, number: u32) {
    server.accept(&in_session(900_000 + number, "another"));
}

#[test]
fn a_pending_call_is_completed_once_and_counted_once() {
    let server = Server::start();
    let mut listener = server.observatory.subscribe(vec![Topic::Graph], None, None);
    assert!(server.observatory.note(call(0, Status::Pending)));
    settle(&server);
    let (_, steps) = server.get("/sessions/run/steps");
    assert_eq!(steps["steps"][0]["open"], true);
    assert_eq!(steps["steps"][0]["log"]["cognition"].get("entropy_score"), None, "nothing is counted yet");
    assert!(server.observatory.note(result(0)));
    assert!(server.observatory.note(Completion { status: Status::Success, ..result(0) }));
    settle_again(&server, 1);
    let (_, steps) = server.get("/sessions/run/steps");
    let step = &steps["steps"][0];
    assert_eq!((&step["open"], &step["log"]["action"]["status"]), (&json!(false), &json!("failure")));
    assert_eq!(step["log"]["action"]["tool_output_summary"], "1 test failed");
    assert_eq!(step["log"]["cognition"]["entropy_score"], 1.0);
    assert_eq!(server.get("/search?q=failed").1["results"].as_array().unwrap().len(), 1);
    let told: Vec<Value> = std::iter::from_fn(|| listener.poll())
        .filter(|event| event.body()["session_id"] == "run")
        .map(|event| event.body()["node"]["status"].clone())
        .collect();
    assert_eq!(told, ["pending", "failure"], "it is broadcast again, once");
}

#[test]
fn a_transcript_that_is_sent_again_writes_nothing_twice() {
    let server = Server::start();
    for _ in 0..3 {
        for number in 0..4 {
            // As a retry: other times, other words around the same step.
            let mut arrival = call(number, Status::Pending);
            arrival.log.cognition.intent.push('!');
            server.observatory.note(arrival);
        }
        for number in 0..3 {
            server.observatory.note(result(number));
        }
    }
    settle(&server);
    let (_, session) = server.get("/sessions/run");
    assert_eq!(session["steps"], 4);
    assert_eq!(session["entropy_history"].as_array().unwrap().len(), 3, "three results, three scores");
}

#[test]
fn a_run_that_goes_on_under_another_session_writes_nothing_twice() {
    let server = Server::start();
    server.observatory.note(call(0, Status::Success));
    server.observatory.note(call(1, Status::Success));
    for number in 0..4 {
        let moved = Arrival { session: Some("moved".to_owned()), ..call(number, Status::Success) };
        server.observatory.note(moved);
    }
    settle(&server);
    let steps = |session: &str| server.get(&format!("/sessions/{session}")).1["steps"].clone();
    assert_eq!((steps("run"), steps("moved")), (json!(2), json!(2)));
    let (_, found) = server.get("/search?q=tests&count=100");
    assert_eq!(found["results"].as_array().map(Vec::len), Some(4), "{found}");
}

#[test]
fn what_happens_in_one_page_is_noted_in_its_order() {
    let server = Server::start();
    let mut notes = Vec::<Note>::new();
    for number in 0..3 {
        notes.extend([(call(number, Status::Pending), usage(number)).into(), result(number).into()]);
    }
    notes.push(Note::Ended { tenant: tenant(), session: "run".to_owned() });
    assert!(server.observatory.note_all(notes));
    settle(&server);
    let (_, session) = server.get("/sessions/run");
    assert_eq!(
        (&session["steps"], &session["tokens"], &session["state"]),
        (&json!(3), &json!(300), &json!("ended"))
    );
    let (_, topology) = server.get("/topology");
    let coder =
        topology["nodes"].as_array().unwrap().iter().find(|node| node["agent_id"] == "coder").unwrap();
    assert_eq!(
        (&coder["steps"], &coder["tokens"], &coder["cost_usd"]),
        (&json!(3), &json!(300), &json!(0.75))
    );
}

#[test]
fn a_step_that_is_first_seen_with_its_result_is_kept_whole() {
    let server = Server::start();
    let mut arrival = call(0, Status::Failure);
    arrival.log.action.tool_output_summary = Some("1 test failed".to_owned());
    server.observatory.note(arrival);
    server.observatory.note(call(1, Status::Pending));
    let mut arrival = call(1, Status::Success);
    arrival.log.action.tool_output_summary = Some("all well".to_owned());
    server.observatory.note(arrival);
    settle(&server);
    let (_, steps) = server.get("/sessions/run/steps");
    let status = |index: usize| steps["steps"][index]["log"]["action"]["status"].clone();
    assert_eq!([status(0), status(1)], ["failure", "success"]);
}

#[test]
fn what_is_open_when_the_session_ends_counts_as_it_is() {
    let server = Server::start();
    server.observatory.note(call(0, Status::Pending));
    server.observatory.note(call(1, Status::Pending));
    server.observatory.note(Note::Ended { tenant: tenant(), session: "run".to_owned() });
    settle(&server);
    let (_, session) = server.get("/sessions/run");
    assert_eq!(session["state"], "ended");
    assert_eq!(session["entropy_history"], json!([1.0, 0.5]));
    assert_eq!(server.get("/sessions/run/steps").1["steps"][1]["open"], false);
}

#[test]
fn five_equal_failures_raise_the_alert_when_their_results_come() {
    let server = Server::start();
    let mut listener = server.observatory.subscribe(vec![Topic::EntropyAlerts], None, None);
    for number in 0..5 {
        server.observatory.note(call(number, Status::Pending));
        server.observatory.note(result(number));
    }
    settle(&server);
    let told: Vec<Value> = std::iter::from_fn(|| listener.poll()).map(|event| event.body()).collect();
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0]["entropy_score"], &told[0]["occurrence_count"]), (&json!(0.2), &json!(5)));
    let (_, session) = server.get("/sessions/run");
    assert_eq!(session["alert"]["repeated_pattern"]["tool_call"], "bash");
    assert_eq!(session["alert"]["occurrence_count"], 5);
}

#[test]
fn what_a_round_used_stands_in_its_log_and_is_counted_once() {
    let server = Server::start();
    for number in 0..2 {
        server.observatory.note((call(number, Status::Pending), usage(number)));
        server.observatory.note(result(number));
    }
    // One whose log was there before its usage.
    server.observatory.note(call(2, Status::Pending));
    server.observatory.note((call(2, Status::Failure), usage(2)));
    settle(&server);
    let (_, steps) = server.get("/sessions/run/steps");
    let deltas: Vec<&Value> =
        steps["steps"].as_array().unwrap().iter().map(|step| &step["log"]["state_delta"]).collect();
    assert_eq!(
        deltas,
        [
            &json!({ "tokens_consumed": 100, "cumulative_session_cost": 0.25 }),
            &json!({ "tokens_consumed": 100, "cumulative_session_cost": 0.5 }),
            &Value::Null,
        ]
    );
    assert_eq!(steps["steps"][2]["log"]["action"]["status"], "failure");
    let (_, session) = server.get("/sessions/run");
    assert_eq!((&session["tokens"], &session["cost_usd"]), (&json!(300), &json!(0.75)));
    let (_, cost) = server.get("/cost?from=0");
    assert_eq!((&cost["total"]["tokens"], &cost["total"]["cost_usd"]), (&json!(300), &json!(0.75)));
}

#[test]
fn redundant_repeats_are_marked_with_what_they_burned() {
    let server = Server::start();
    for number in 0..6 {
        server.observatory.note(call(number, Status::Pending));
        server.observatory.note(usage(number));
        server.observatory.note(result(number));
    }
    // A round is judged when the model goes on.
    let mut other = call(6, Status::Success);
    other.log.action.tool_call = Some("read_file".to_owned());
    server.observatory.note(other);
    settle(&server);
    let (_, session) = server.get("/sessions/run");
    assert_eq!((&session["tokens"], &session["cost_usd"]), (&json!(600), &json!(1.5)));
    assert_eq!(session["wasted"], json!({ "steps": 5, "tokens": 500, "cost_usd": 1.25 }));
    let (_, steps) = server.get("/sessions/run/steps");
    let redundant: Vec<bool> =
        steps["steps"].as_array().unwrap().iter().map(|step| step["redundant"] == true).collect();
    assert_eq!(redundant, [false, true, true, true, true, true, false], "the first occurrence is none");
    let (_, cost) = server.get("/cost?by=model&from=0");
    assert_eq!((&cost["total"]["cost_usd"], &cost["total"]["wasted_cost_usd"]), (&json!(1.5), &json!(1.25)));
    let models: Vec<&Value> = cost["cells"].as_array().unwrap().iter().map(|cell| &cell["key"]).collect();
    assert!(models.contains(&&json!("gpt")), "{cost}");
    let (_, overview) = server.get("/overview");
    assert_eq!(overview["wasted_today"], json!({ "steps": 5, "tokens": 500, "cost_usd": 1.25 }));
}

#[test]
fn what_the_gateway_did_is_the_state_of_the_session_until_it_has_gone_on_well_for_a_while() {
    let server = Server::start();
    server.observatory.note(call(0, Status::Pending));
    server.observatory.note(verdict("run", Action::Hint, true));
    server.observatory.note(verdict("run", Action::Reject, true));
    settle(&server);
    let (_, session) = server.get("/sessions/run");
    assert_eq!((&session["state"], &session["last_verdict"]), (&json!("loop"), &json!("reject")));
    let actions: Vec<&Value> =
        session["verdicts"].as_array().unwrap().iter().map(|verdict| &verdict["action"]).collect();
    assert_eq!(actions, ["hint", "reject"]);
    let node = || {
        let (_, map) = server.get("/topology");
        let mut nodes = map["nodes"].as_array().unwrap().iter();
        nodes.find(|node| node["session_id"] == "run").unwrap()["state"].clone()
    };
    for (settled, allowed) in (1..=2).enumerate() {
        server.observatory.note(verdict("run", Action::Allow, true));
        settle_again(&server, settled as u32 + 1);
        let (_, session) = server.get("/sessions/run");
        let shown = (&session["state"], &session["last_verdict"]);
        assert_eq!(shown, (&json!("warning"), &json!("reject")), "after {allowed} good steps");
        assert_eq!(node(), "warning", "it was refused a moment ago");
    }
    server.observatory.note(verdict("run", Action::Allow, true));
    settle_again(&server, 3);
    let (_, session) = server.get("/sessions/run");
    assert_eq!((&session["state"], &session["last_verdict"]), (&json!("active"), &Value::Null));
    assert_eq!(node(), "active");
}

#[test]
fn a_verdict_without_words_has_those_of_what_was_found() {
    let server = Server::start();
    let finding = json!({
        "detector": "redundancy", "kind": "repeat", "severity": "warning", "count": 2, "key": "k",
        "message": "`bash` was called 2 times",
    });
    server.observatory.note(Note::Found { tenant: tenant(), session: "run".to_owned(), finding });
    server.observatory.note(verdict("run", Action::Warn, true));
    let words = Some("in words of its own".to_owned());
    server.observatory.note(Verdict { message: words, ..verdict("run", Action::Hint, true) });
    settle(&server);
    let (_, session) = server.get("/sessions/run");
    let said: Vec<&Value> =
        session["verdicts"].as_array().unwrap().iter().map(|verdict| &verdict["message"]).collect();
    assert_eq!(said, ["`bash` was called 2 times", "in words of its own"]);
}

#[test]
fn findings_of_one_key_stand_once_and_can_be_searched_by_kind() {
    let server = Server::start();
    server.observatory.note(call(0, Status::Pending));
    for count in 3..6 {
        let finding = json!({
            "detector": "redundancy", "kind": "repeat", "severity": "loop", "count": count, "key": "k",
            "message": "bash again with key sk-abcdef0123456789",
        });
        server.observatory.note(Note::Found { tenant: tenant(), session: "run".to_owned(), finding });
    }
    settle(&server);
    let (_, session) = server.get("/sessions/run");
    let findings = session["findings"].as_array().unwrap();
    assert_eq!((findings.len(), &findings[0]["count"]), (1, &json!(5)));
    assert!(findings[0]["at"].is_string());
    assert!(!findings[0].to_string().contains("abcdef"), "credentials are masked there too");
    let hits = |query: &str| server.get(&format!("/search?{query}")).1["results"].as_array().unwrap().len();
    assert_eq!((hits("kind=repeat"), hits("kind=cycle")), (1, 0));
}

#[test]
fn what_stopping_loops_saved_is_known_beside_loops_that_went_on() {
    let server = Server::start();
    let stopped = |server: &Server| {
        for number in 0..4 {
            server.observatory.note(call(number, Status::Pending));
            server.observatory.note(usage(number));
        }
        server.observatory.note(verdict("run", Action::Reject, true));
    };
    stopped(&server);
    settle(&server);
    assert_eq!(server.get("/overview").1["saved_today"], Value::Null, "never invented");
    // A loop of the same kind that was only observed: it goes on for six rounds.
    for _ in 0..7 {
        server.observatory.note(verdict("observed", Action::Reject, false));
    }
    settle_again(&server, 1);
    let saved = &server.get("/overview").1["saved_today"];
    assert_eq!((&saved["cost_usd"], &saved["rounds"]), (&json!(1.5), &json!(6.0)));
    assert_eq!(saved["estimated"], true);
}

#[test]
fn without_prompts_no_word_is_kept_and_repeats_are_seen_all_the_same() {
    let server = Server::start_with(|options| options.keep_prompts = false);
    for number in 0..4 {
        server.observatory.note(call(number, Status::Pending));
        server.observatory.note(result(number));
    }
    let mut other = call(4, Status::Success);
    other.log.action.tool_call = Some("read_file".to_owned());
    server.observatory.note(other);
    settle(&server);
    let (_, steps) = server.get("/sessions/run/steps");
    assert!(!steps.to_string().contains("test failed"));
    assert_eq!(server.get("/sessions/run").1["wasted"]["steps"], 3);
}

#[test]
fn texts_that_are_too_long_are_cut_and_not_refused() {
    let server = Server::start();
    let mut arrival = call(0, Status::Pending);
    arrival.log.cognition.intent = "ä".repeat(DecisionLog::MAX_TEXT);
    arrival.log.cognition.reasoning_chain = Some(vec!["x".repeat(DecisionLog::MAX_TEXT); 100]);
    server.observatory.note(arrival);
    let output = Some("y".repeat(10 * DecisionLog::MAX_TEXT));
    server.observatory.note(Completion { output, ..result(0) });
    settle(&server);
    let (_, steps) = server.get("/sessions/run/steps");
    let text = serde_json::to_vec(&steps["steps"][0]["log"]).unwrap();
    DecisionLog::parse(&text).unwrap();
}

#[test]
fn other_parts_that_fail_are_shown_beside_the_store() {
    let server = Server::start();
    let mut listener = server.observatory.subscribe(vec![Topic::Health], None, None);
    server.observatory.note_health("semantic", Some("the sidecar does not answer".to_owned()));
    server.observatory.note_health("semantic", Some("the sidecar does not answer".to_owned()));
    let degraded = json!([{ "part": "semantic", "reason": "the sidecar does not answer" }]);
    assert_eq!(server.get("/overview").1["degraded"], degraded);
    server.observatory.note_health("semantic", None);
    assert_eq!(server.get("/overview").1["degraded"], json!([]));
    let told: Vec<Value> =
        std::iter::from_fn(|| listener.poll()).map(|event| event.body()["state"].clone()).collect();
    assert_eq!(told, ["degraded", "ok"]);
}

#[test]
fn a_session_that_was_switched_off_or_is_out_of_money_is_no_loop() {
    let server = Server::start();
    for (session, kind) in [("off", "kill_switch"), ("poor", "budget_exceeded")] {
        let kind = Some(kind.to_owned());
        server.observatory.note(Verdict { kind, ..verdict(session, Action::Reject, true) });
    }
    settle(&server);
    for session in ["off", "poor"] {
        let (_, session) = server.get(&format!("/sessions/{session}"));
        assert_eq!((&session["state"], &session["last_verdict"]), (&json!("active"), &json!("reject")));
    }
}

#[test]
fn a_call_that_was_refused_is_no_recovery() {
    let server = Server::start();
    for number in 0..5 {
        server.observatory.note(call(number, Status::Failure));
    }
    server.observatory.note(call(5, Status::Skipped));
    settle(&server);
    let (_, session) = server.get("/sessions/run");
    assert_eq!((&session["state"], &session["entropy_score"]), (&json!("loop"), &json!(0.2)));
    assert_eq!(session["steps"], 6);
}

#[test]
fn a_session_that_the_gateway_says_loops_has_the_score_of_what_it_found() {
    let server = Server::start();
    let found = |severity: &str, score: f64| {
        let finding = json!({ "kind": "repeat", "severity": severity, "score": score });
        server.observatory.note(Note::Found { tenant: tenant(), session: "run".to_owned(), finding });
    };
    let score = || {
        server.observatory.flush();
        server.get("/sessions/run").1["loop_score"].as_f64().unwrap()
    };
    let listed = || server.get("/sessions?min_loop=0.5").1["sessions"].as_array().unwrap().len();
    server.observatory.note(call(0, Status::Success));
    found("loop", 0.7);
    assert_eq!((score(), listed()), (0.0, 0), "what is found in an answer is no verdict");
    server.observatory.note(verdict("run", Action::Hint, true));
    found("loop", 0.9);
    found("warning", 0.2);
    assert_eq!((score(), listed()), (0.9, 1));
    let (_, topology) = server.get("/topology");
    let coder = |node: &&Value| node["agent_id"] == "coder";
    assert_eq!(topology["nodes"].as_array().unwrap().iter().find(coder).unwrap()["loop_score"], 0.9);
    let mut scores = vec![score()];
    for _ in 0..3 {
        server.observatory.note(verdict("run", Action::Allow, true));
        scores.push(score());
    }
    assert!(scores.is_sorted_by(|before, after| before > after), "{scores:?}");
    assert_eq!(scores.last(), Some(&0.0));
}
