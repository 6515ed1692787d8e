//! The numbers of the design: scores, one alert, one recovery.

use loopbreaker_observatory::Topic;
use serde_json::{Value, json};

use crate::server::{Server, in_session};

fn failing(number: u32) -> Value {
    let mut log = in_session(number, "run");
    log["cognition"]["intent"] = "build".into();
    log["action"] = json!({ "tool_call": "make", "status": "failure" });
    log
}

/// Every event on the alerts' topic so far.
fn alerts(server: &Server) -> Vec<(String, Value)> {
    let mut listener = server.observatory.subscribe(vec![Topic::EntropyAlerts], None, Some(0));
    std::iter::from_fn(|| listener.poll()).map(|event| (event.kind.to_owned(), event.body())).collect()
}

#[test]
fn five_equal_steps_end_in_one_alert_with_seven_fields() {
    let server = Server::start();
    let scores: Vec<Value> = (0..7)
        .map(|number| server.accept(&failing(number))["log"]["cognition"]["entropy_score"].clone())
        .collect();
    assert_eq!(scores[..5], [1.0, 0.5, 0.3333, 0.25, 0.2]);
    assert_eq!(
        alerts(&server),
        [(
            "entropy_alert".to_owned(),
            json!({
                "event_type": "entropy_alert",
                "session_id": "run",
                "agent_id": "a",
                "entropy_score": 0.2,
                "window_size": 5,
                "repeated_pattern": { "intent": "build", "tool_call": "make", "action_status": "failure" },
                "occurrence_count": 5,
            })
        )]
    );
    let (_, session) = server.get("/sessions/run");
    assert_eq!((&session["state"], &session["loop_score"]), (&json!("loop"), &json!(1.0)));
    let detectors: Vec<&Value> =
        session["findings"].as_array().unwrap().iter().map(|finding| &finding["detector"]).collect();
    assert_eq!(detectors, ["redundancy", "entropy"], "each of them once");
    assert_eq!(server.get("/sessions?state=loop&min_loop=0.5").1["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn recovery_is_announced_once() {
    let server = Server::start();
    for number in 0..6 {
        server.accept(&failing(number));
    }
    for number in 6..9 {
        server.accept(&in_session(number, "run"));
    }
    let kinds: Vec<String> = alerts(&server).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["entropy_alert", "entropy_recovered"]);
}

#[test]
fn an_agents_own_score_is_overwritten_and_a_big_difference_told() {
    let server = Server::start();
    for (number, own) in [(0, 1.0), (1, 0.9)] {
        let mut log = failing(number);
        log["cognition"]["entropy_score"] = own.into();
        server.accept(&log);
    }
    let told = alerts(&server);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].0, "entropy_discrepancy");
    assert_eq!((&told[0].1["reported"], &told[0].1["entropy_score"]), (&json!(0.9), &json!(0.5)));
}

#[test]
fn thresholds_change_with_the_next_log_and_a_bad_value_changes_nothing() {
    let server = Server::start();
    server.accept(&failing(0));
    let (status, whole) =
        server.call("PUT", "/config/detectors", &[], r#"{"entropy":{"loop_below":0.6,"warn_up_to":0.8}}"#);
    assert_eq!((status, &whole["entropy"]["window_size"]), (200, &json!(5)));
    assert_eq!(server.accept(&failing(1))["severity"], "loop");
    let (status, refused) = server.call("PUT", "/config/detectors", &[], r#"{"entropy":{"loop_below":7}}"#);
    assert_eq!((status, &refused["violations"][0]["field"]), (422, &json!("entropy.loop_below")));
    assert_eq!(server.get("/config").1["detectors"]["entropy"]["loop_below"], 0.6);
    let (_, audit) = server.get("/audit");
    assert_eq!(audit["entries"].as_array().unwrap().len(), 1, "what was refused was not done");
    assert_eq!(audit["entries"][0]["action"], "config");
}

#[test]
fn five_reads_of_five_files_are_no_loop() {
    let server = Server::start();
    for number in 0..6 {
        let mut log = failing(number);
        log["action"]["status"] = "success".into();
        log["action"]["tool_input"] = json!({ "path": format!("file{number}") });
        assert_eq!(server.accept(&log)["severity"], "normal");
    }
}

#[test]
fn a_session_that_ends_in_an_alert_has_recovered_once_and_begins_anew() {
    let server = Server::start();
    for number in 0..6 {
        server.accept(&failing(number));
    }
    let mut last = failing(6);
    last["control"] = json!({ "is_terminal": true });
    server.accept(&last);
    let kinds = || alerts(&server).into_iter().map(|(kind, _)| kind).collect::<Vec<_>>();
    assert_eq!(kinds(), ["entropy_alert", "entropy_recovered"]);
    let (_, told) = alerts(&server).pop().unwrap();
    assert_eq!((&told["session_id"], &told["agent_id"]), (&json!("run"), &json!("a")));
    // What comes behind its end is judged by itself.
    assert_eq!(server.accept(&failing(7))["log"]["cognition"]["entropy_score"], 1.0);
    server.accept(&in_session(8, "run"));
    assert_eq!(kinds().len(), 2);
    // A session that ends while all is well has nothing to recover from.
    let mut well = in_session(9, "well");
    well["control"] = json!({ "is_terminal": true });
    server.accept(&well);
    assert_eq!(kinds().len(), 2);
}

#[test]
fn the_guard_forgets_a_session_that_has_ended() {
    let server = Server::start();
    let ask = |session: &str| {
        let call = json!({ "session_id": session, "tool": "make", "args": {} });
        server.post("/guard/check", &call).1["allowed"].clone()
    };
    for session in ["run", "other"] {
        assert_eq!([(); 4].map(|()| ask(session)), [true, true, true, false]);
    }
    let mut last = in_session(1, "run");
    last["control"] = json!({ "is_terminal": true });
    server.accept(&last);
    assert_eq!((ask("run"), ask("other")), (json!(true), json!(false)));
}
