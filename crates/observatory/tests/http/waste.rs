//! What loops burn, and when it is known.

use loopbreaker_observatory::{Arrival, Note};
use loopbreaker_record::{DecisionLog, Moment, Status};
use serde_json::{Value, json};

use crate::server::{START, Server, id, in_session};
use crate::traffic::{call, result, settle, settle_again, tenant, trace};

/// The nth of equal calls, each behind the one before.
fn again(number: u32, status: &str, output: Option<&str>) -> Value {
    let mut log = in_session(number, "run");
    if number > 1 {
        log["meta"]["parent_step_id"] = id(number - 1).into();
    }
    log["cognition"]["intent"] = "run the tests".into();
    log["action"] = json!({
        "status": status, "tool_call": "bash", "tool_input": { "command": "make test" },
        "tool_output_summary": output,
    });
    log
}

fn loops(server: &Server) -> usize {
    let (_, session) = server.get("/sessions/run");
    let is_loop = |found: &&Value| found["detector"] == "redundancy" && found["severity"] == "loop";
    session["findings"].as_array().unwrap().iter().filter(is_loop).count()
}

fn wasted(server: &Server) -> Value {
    server.get("/sessions/run").1["wasted"]["steps"].clone()
}

#[test]
fn a_chain_of_equal_failures_is_found_at_the_third_and_all_but_the_first_are_wasted() {
    let server = Server::start();
    let found: Vec<usize> = (1..=5)
        .map(|number| {
            server.accept(&again(number, "failure", Some("1 test failed")));
            loops(&server)
        })
        .collect();
    assert_eq!(found, [0, 0, 1, 1, 1]);
    assert_eq!(wasted(&server), 4);
}

#[test]
fn calls_that_were_asked_for_together_do_not_repeat_each_other() {
    let server = Server::start();
    server.accept(&in_session(1, "run"));
    for number in 2..6 {
        let mut log = again(number, "success", Some("ok then"));
        log["meta"]["parent_step_id"] = id(1).into();
        server.accept(&log);
    }
    assert_eq!((loops(&server), wasted(&server)), (0, json!(0)));
}

#[test]
fn the_last_round_of_a_gateway_counts_once_the_model_goes_on() {
    let server = Server::start();
    for number in 0..3 {
        server.observatory.note(call(number, Status::Pending));
        server.observatory.note(result(number));
    }
    server.observatory.note(call(3, Status::Pending));
    settle(&server);
    assert_eq!(wasted(&server), 2);
}

#[test]
fn the_last_round_of_a_gateway_counts_once_a_call_is_refused() {
    let server = Server::start();
    for number in 0..3 {
        server.observatory.note(call(number, Status::Pending));
        server.observatory.note(result(number));
    }
    server.observatory.note(call(3, Status::Skipped));
    settle(&server);
    assert_eq!(wasted(&server), 2);
}

#[test]
fn the_last_round_of_a_session_counts_when_it_ends() {
    let server = Server::start();
    for number in 0..3 {
        server.observatory.note(call(number, Status::Pending));
        server.observatory.note(result(number));
    }
    server.observatory.note(Note::Ended { tenant: tenant(), session: "run".to_owned() });
    settle(&server);
    assert_eq!(wasted(&server), 2);
}

#[test]
fn without_words_a_success_is_another_result_than_a_failure() {
    let server = Server::start();
    for (number, status) in [(1, "failure"), (2, "success"), (3, "failure"), (4, "success")] {
        server.accept(&again(number, status, None));
    }
    assert_eq!((loops(&server), wasted(&server)), (0, json!(0)));
    for number in 5..8 {
        server.accept(&again(number, "failure", None));
    }
    assert_eq!(loops(&server), 1, "the same failure without words is a loop");
}

#[test]
fn a_call_without_a_result_repeats_nothing_yet() {
    let server = Server::start();
    for number in 1..6 {
        server.accept(&again(number, "pending", None));
    }
    assert_eq!((loops(&server), wasted(&server)), (0, json!(0)));
}

/// An answer without a call, as a gateway writes it down.
fn answer(number: u32, asked: &str, said: &str) -> Arrival {
    let mut builder = DecisionLog::builder("coder", "gateway", "2.0.0").intent(asked).status(Status::Success);
    if number > 0 {
        builder = builder.after(trace(number - 1));
    }
    let mut log = builder.build(trace(number), Moment::from_millis(START)).unwrap();
    log.action.tool_output_summary = Some(said.to_owned());
    Arrival { tenant: tenant(), session: Some("run".to_owned()), log }
}

const SAID: &str = "I will now look at the failing test and mend it in the parser.";

#[test]
fn an_agent_that_says_the_same_again_and_again_wastes_its_answers() {
    let server = Server::start();
    for number in 0..5 {
        server.observatory.note(answer(number, "mend the parser", SAID));
    }
    settle(&server);
    assert_eq!(wasted(&server), 4);
}

#[test]
fn the_same_answer_to_new_questions_is_not_wasted() {
    let server = Server::start();
    for (number, asked) in (0..).zip(["is it red?", "is it blue?", "is it green?", "which colour then?"]) {
        server.observatory.note(answer(number, asked, "I cannot tell from this picture alone."));
    }
    settle(&server);
    assert_eq!(wasted(&server), 0);
}

#[test]
fn synthetic_loops_of_the_probe_burn_nothing() {
    let server = Server::start();
    let probe = [("x-test-tenant", "loopbreaker-probe")];
    for number in 1..=5 {
        let log = again(number, "failure", Some("1 test failed")).to_string();
        assert_eq!(server.call("POST", "/decision-logs", &probe, &log).0, 201);
    }
    let (_, overview) = server.get("/overview");
    assert_eq!((&overview["wasted_today"]["steps"], &overview["calls_per_second"]), (&json!(0), &json!(0.0)));
    let (_, own) = server.get("/overview?tenant=loopbreaker-probe");
    assert_eq!(own["wasted_today"]["steps"], 4, "whoever asks for them sees them");
}

fn noted(server: &Server, number: u32) {
    server.observatory.note(call(number, Status::Pending));
    server.observatory.note(result(number));
}

/// A round of three calls that repeats; what each of them decides is not what the last few did.
fn round_of_three(number: u32) -> Arrival {
    let mut arrival = call(number, Status::Pending);
    arrival.log.action.tool_input = Some(format!(r#"{{"command":"make part-{}"}}"#, number % 3));
    arrival
}

#[test]
fn where_a_gateway_judges_its_traffic_waste_is_counted_once_it_saw_a_loop() {
    let looped = || Note::Looped { tenant: tenant(), session: "run".to_owned() };
    let (all, judged) = (Server::start(), Server::start_with(|options| options.traffic_is_judged = true));
    let both = |note: &dyn Fn() -> Note| {
        for server in [&all, &judged] {
            server.observatory.note(note());
        }
    };
    let counted = || [&all, &judged].map(|server| server.get("/sessions/run").1["wasted"]["steps"].clone());
    for number in 0..12 {
        both(&|| round_of_three(number).into());
        both(&|| result(number).into());
    }
    both(&|| round_of_three(12).into());
    for server in [&all, &judged] {
        settle(server);
    }
    let [wasted, of_judged] = counted();
    assert!(wasted.as_u64() > Some(4), "{wasted}");
    assert_eq!(of_judged, 0, "nobody has seen a loop");
    for number in 12..16 {
        both(&|| result(number).into());
        both(&looped);
        both(&|| round_of_three(number + 1).into());
        for server in [&all, &judged] {
            settle_again(server, number);
        }
        let [wasted, of_judged] = counted();
        assert_eq!(of_judged, wasted);
    }
    // Whoever writes its logs itself is looked at all the same.
    for number in 1..=4 {
        let mut log = again(number, "failure", Some("1 test failed"));
        log["meta"]["session_id"] = "own".into();
        judged.accept(&log);
    }
    assert_eq!(judged.get("/sessions/own").1["wasted"]["steps"], 3);
}

#[test]
fn a_session_that_decides_the_same_again_is_looked_at_without_a_word_of_a_gateway() {
    let server = Server::start_with(|options| options.traffic_is_judged = true);
    for number in 0..4 {
        noted(&server, number);
    }
    server.observatory.note(call(4, Status::Pending));
    settle(&server);
    assert_eq!(wasted(&server), 3);
}

#[test]
fn without_words_all_traffic_is_looked_at() {
    let server = Server::start_with(|options| {
        options.traffic_is_judged = true;
        options.keep_prompts = false;
    });
    for number in 0..3 {
        noted(&server, number);
    }
    server.observatory.note(call(3, Status::Pending));
    settle(&server);
    assert_eq!(wasted(&server), 2);
}
