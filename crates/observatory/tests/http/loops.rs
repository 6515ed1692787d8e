//! Agents that write their own logs and go round in circles.

use loopbreaker_observatory::Topic;
use serde_json::{Value, json};

use crate::server::{Server, in_session};

/// A call whose reason is always told in other words.
fn call(number: u32, tool: &str, output: &str, status: &str) -> Value {
    let mut log = in_session(number, "run");
    log["action"] = json!({
        "status": status, "tool_call": tool, "tool_input": { "path": tool }, "tool_output_summary": output,
    });
    log
}

fn same(number: u32) -> Value {
    call(number, "read_file", "the same words", "success")
}

fn other(number: u32) -> Value {
    call(number, &format!("tool_{number}"), &format!("news {number}"), "success")
}

fn state(server: &Server) -> (String, f64) {
    let (_, session) = server.get("/sessions/run");
    (session["state"].as_str().unwrap().to_owned(), session["loop_score"].as_f64().unwrap())
}

fn findings(server: &Server) -> Vec<Value> {
    server.get("/sessions/run/findings").1["findings"].as_array().unwrap().clone()
}

fn listed(server: &Server, query: &str) -> usize {
    server.get(&format!("/sessions?{query}")).1["sessions"].as_array().unwrap().len()
}

#[test]
fn a_session_is_in_the_loop_that_was_found_in_its_logs() {
    let server = Server::start();
    for number in 1..=6 {
        assert_eq!(server.accept(&same(number))["severity"], "normal", "that of its entropy");
    }
    assert_eq!(state(&server), ("loop".to_owned(), 1.0));
    assert_eq!((listed(&server, "state=loop"), listed(&server, "min_loop=0.5")), (1, 1));
    assert_eq!(server.get("/overview").1["loops_open"], 1);
}

#[test]
fn a_session_that_makes_progress_is_watched_for_three_steps_and_then_in_no_loop_any_more() {
    let server = Server::start();
    let node = || server.get("/topology").1["nodes"][0]["state"].clone();
    for number in 1..=6 {
        server.accept(&same(number));
    }
    for (number, score) in [(7, 0.6667), (8, 0.3333)] {
        assert_eq!(server.accept(&other(number))["severity"], "normal");
        assert_eq!(state(&server), ("warning".to_owned(), score));
        assert_eq!(node(), "warning", "its agent was in a loop a moment ago");
        assert_eq!(server.get("/overview").1["loops_open"], 0);
    }
    server.accept(&other(9));
    assert_eq!((state(&server), node()), (("active".to_owned(), 0.0), json!("active")));
    assert_eq!(findings(&server).len(), 1, "what was found stays");
}

#[test]
fn a_cycle_is_one_loop_from_its_third_copy_until_it_ends() {
    let server = Server::start();
    let step = |number: u32| {
        let tool = if number.is_multiple_of(2) { "look_left" } else { "look_right" };
        server.accept(&call(number, tool, &format!("{tool}: nothing"), "success"));
        state(&server).0
    };
    let states: Vec<String> = (1..=10).map(step).collect();
    assert_eq!(states[5..], ["loop", "loop", "loop", "loop", "loop"], "{states:?}");
    for number in 11..=14 {
        server.accept(&other(number));
    }
    assert_eq!(state(&server).0, "active");
}

#[test]
fn a_loop_in_the_calls_raises_no_alert_about_entropy() {
    let server = Server::start();
    for number in 1..=6 {
        let scored = server.accept(&same(number));
        assert_eq!(scored["log"]["cognition"]["entropy_score"], 1.0, "the intents differ");
    }
    let mut listener = server.observatory.subscribe(vec![Topic::EntropyAlerts], None, Some(0));
    assert!(listener.poll().is_none());
    let mut listener = server.observatory.subscribe(vec![Topic::Findings], None, Some(0));
    let told: Vec<Value> = std::iter::from_fn(|| listener.poll())
        .map(|event| event.body()["finding"]["severity"].clone())
        .collect();
    assert_eq!(told, ["warning", "loop"], "once when it begins, once when it is sure");
}

#[test]
fn a_finding_names_its_steps_as_the_session_counts_them() {
    let server = Server::start();
    server.accept(&in_session(1, "run"));
    for number in 2..=4 {
        server.accept(&same(number));
    }
    let found = &findings(&server)[0];
    assert_eq!((&found["onset"], &found["step"], &found["count"]), (&json!(2), &json!(4), &json!(3)));
    assert!(found["message"].as_str().unwrap().ends_with("(steps 2, 3, 4)"), "{found}");
    assert_eq!(found["identity"].as_str().unwrap().len(), 64);
    let (_, steps) = server.get("/sessions/run/steps");
    assert_eq!(found["evidence"][0], steps["steps"][1]["log"]["meta"]["trace_id"]);
}

#[test]
fn a_second_equal_result_is_a_warning() {
    let server = Server::start();
    server.accept(&same(1));
    server.accept(&same(2));
    let found = findings(&server);
    assert_eq!(
        (found.len(), &found[0]["kind"], &found[0]["severity"]),
        (1, &json!("repeat"), &json!("warning"))
    );
    assert_eq!(state(&server).0, "warning");
    server.accept(&same(3));
    assert_eq!(findings(&server).len(), 1, "it stands in the place of its warning");
}

#[test]
fn a_call_that_fails_and_then_succeeds_in_circles_is_two_findings() {
    let server = Server::start();
    for number in 1..=4 {
        server.accept(&call(number, "http_get", "Error: no such host", "failure"));
    }
    for number in 5..=8 {
        server.accept(&call(number, "http_get", "all is well", "success"));
    }
    let kinds: Vec<Value> = findings(&server).into_iter().map(|found| found["kind"].clone()).collect();
    assert_eq!(kinds, ["failing_repeat", "repeat"]);
    for kind in ["failing_repeat", "repeat"] {
        let (_, found) = server.get(&format!("/search?kind={kind}"));
        assert_eq!(found["results"].as_array().unwrap().len(), 8, "{kind}");
    }
}

#[test]
fn calls_of_which_nothing_is_told_are_no_loop() {
    let server = Server::start();
    for number in 1..=5 {
        let mut log = in_session(number, "run");
        log["action"] = json!({ "status": "success", "tool_call": "bash" });
        assert_eq!(server.accept(&log)["severity"], "normal");
    }
    assert_eq!((findings(&server).len(), state(&server).0.as_str()), (0, "active"));
}

#[test]
fn a_loop_that_fell_silent_is_open_no_more() {
    let server = Server::start();
    for number in 1..=6 {
        let mut log = same(number);
        log["cognition"]["intent"] = "read it".into();
        server.accept(&log);
    }
    assert!(server.get("/sessions/run").1["alert"].is_object());
    server.pass(15 * 60_000);
    assert_eq!((state(&server).0.as_str(), listed(&server, "state=loop")), ("loop", 1));
    server.pass(1);
    let (_, session) = server.get("/sessions/run");
    assert_eq!((&session["state"], &session["alert"]), (&json!("active"), &Value::Null));
    assert_eq!(session["findings"].as_array().unwrap().len(), 2, "what was found stays");
    assert_eq!((listed(&server, "state=loop"), listed(&server, "state=active")), (0, 1));
    let (_, overview) = server.get("/overview");
    assert_eq!((&overview["loops_open"], &overview["sessions"]["active"]), (&json!(0), &json!(1)));
    assert_eq!(server.get("/topology").1["nodes"][0]["state"], "dead");
    server.accept(&same(7));
    assert_eq!(state(&server).0, "loop", "whoever goes on where it stopped is in it again");
}

/// A step of an agent in a session.
fn by(mut log: Value, agent: &str, session: &str) -> Value {
    log["identity"]["agent_id"] = agent.into();
    log["meta"]["session_id"] = session.into();
    log
}

#[test]
fn an_agent_on_the_map_is_in_the_worst_of_its_live_sessions() {
    let server = Server::start();
    let node = |agent: &str| {
        let (_, map) = server.get("/topology");
        let nodes = map["nodes"].as_array().unwrap();
        let node = nodes.iter().find(|node| node["agent_id"] == agent).unwrap();
        (node["state"].clone(), node["session_id"].clone())
    };
    for number in 1..=4 {
        server.accept(&by(same(number), "worker", "loop"));
    }
    server.accept(&by(other(5), "worker", "fine"));
    assert_eq!(node("worker"), (json!("loop"), json!("loop")));
    let mut last = by(other(6), "worker", "over");
    last["control"] = json!({ "is_terminal": true });
    server.accept(&last);
    assert_eq!(node("worker"), (json!("loop"), json!("loop")), "others are still live");
    server.pass(15 * 60_000 + 1);
    server.accept(&by(other(7), "worker", "fine"));
    assert_eq!(node("worker"), (json!("active"), json!("fine")), "a loop that fell silent is none");
}

#[test]
fn an_agent_that_only_stands_beside_a_loop_is_not_in_it() {
    let server = Server::start();
    server.accept(&by(other(1), "planner", "run"));
    for number in 2..=5 {
        server.accept(&by(same(number), "worker", "run"));
    }
    let (_, map) = server.get("/topology");
    let state = |agent: &str| {
        let nodes = map["nodes"].as_array().unwrap();
        nodes.iter().find(|node| node["agent_id"] == agent).unwrap()["state"].clone()
    };
    assert_eq!((state("worker"), state("planner")), (json!("loop"), json!("active")));
}
