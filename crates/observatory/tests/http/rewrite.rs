//! Other results and other arguments for a step.

use loopbreaker_record::Status;
use serde_json::{Value, json};

use crate::server::{Server, id, in_session};
use crate::traffic::{call, result, settle};

/// A call that has not run.
fn pending(number: u32, tool: &str, input: &Value) -> Value {
    let mut step = in_session(number, "run");
    step["action"] = json!({ "status": "pending", "tool_call": tool, "tool_input": input });
    step
}

fn rewrite(server: &Server, number: u32, input: &Value) -> (u16, Value) {
    server.post("/sessions/run/rewrite", &json!({ "trace_id": id(number), "tool_input": input }))
}

fn check(server: &Server, tool: &str, args: &Value) -> Value {
    server.post("/guard/check", &json!({ "session_id": "run", "tool": tool, "args": args })).1
}

#[test]
fn a_rewritten_input_is_handed_out_by_the_guard() {
    let server = Server::start();
    server.accept(&pending(1, "read", &json!({ "path": "a" })));
    assert_eq!(rewrite(&server, 1, &json!({ "path": "b" })).0, 200);
    let asked = json!({ "path": "a" });
    assert_eq!(check(&server, "read", &asked)["rewritten_args"], r#"{"path":"b"}"#);
    assert_eq!(check(&server, "read", &asked).get("rewritten_args"), None);
    for unknown in [id(9), "no id at all".to_owned()] {
        let unknown = json!({ "trace_id": unknown, "content": "x" });
        assert_eq!(server.post("/sessions/run/rewrite", &unknown).0, 404);
    }
    assert_eq!(server.post("/sessions/run/rewrite", &json!({ "trace_id": "x" })).0, 422);
    assert_eq!(server.post("/sessions/none/pause", &json!({})).0, 404);
}

#[test]
fn a_rewritten_input_is_handed_out_once_by_the_guard_and_once_with_the_answer_to_a_log() {
    for guard_first in [true, false] {
        let server = Server::start();
        server.accept(&pending(1, "read", &json!({ "path": "a" })));
        assert_eq!(rewrite(&server, 1, &json!({ "path": "b" })).0, 200);
        let guard = || check(&server, "read", &json!({ "path": "a" })).get("rewritten_args").cloned();
        let answer = |number: u32| server.accept(&in_session(number, "run"))["control"].clone();
        let (told, control) = if guard_first {
            let told = guard();
            (told, answer(2))
        } else {
            let control = answer(2);
            (guard(), control)
        };
        assert_eq!(told, Some(json!(r#"{"path":"b"}"#)));
        assert_eq!(
            (&control["interrupt_signal"], &control["tool_input"], &control["trace_id"]),
            (&json!("rewrite"), &json!(r#"{"path":"b"}"#), &json!(id(1)))
        );
        assert_eq!((guard(), &answer(3)["interrupt_signal"]), (None, &Value::Null), "once by each");
    }
}

#[test]
fn nobody_is_told_of_another_input_once_the_call_has_run() {
    for ran in ["a", "b"] {
        let server = Server::start();
        server.accept(&pending(1, "read", &json!({ "path": "a" })));
        rewrite(&server, 1, &json!({ "path": "b" }));
        assert!(check(&server, "read", &json!({ "path": "a" })).get("rewritten_args").is_some());
        let outcome = json!({ "session_id": "run", "tool": "read", "args": { "path": ran }, "result": "x" });
        assert_eq!(server.post("/guard/outcome", &outcome).0, 200);
        assert_eq!(server.accept(&in_session(2, "run"))["control"]["interrupt_signal"], Value::Null, "{ran}");
    }
}

#[test]
fn a_rewritten_input_is_handed_to_the_very_call_that_it_is_for() {
    let server = Server::start();
    server.accept(&pending(1, "rm", &json!({ "path": "a", "force": true })));
    rewrite(&server, 1, &json!({ "path": "b" }));
    let rewritten = |tool: &str, args: &Value| check(&server, tool, args).get("rewritten_args").cloned();
    let asked = json!({ "force": true, "path": "a" });
    assert_eq!(rewritten("ls", &asked), None, "another tool");
    assert_eq!(rewritten("rm", &json!({ "path": "c", "force": true })), None, "other arguments");
    let spaced = json!(r#"{ "force": true,  "path": "a" }"#);
    assert_eq!(rewritten("rm", &spaced), Some(json!(r#"{"path":"b"}"#)), "however they are written");
}

#[test]
fn a_step_without_an_input_is_known_by_its_tool() {
    let server = Server::start();
    server.accept(&pending(1, "rm", &Value::Null));
    rewrite(&server, 1, &json!({ "path": "b" }));
    assert_eq!(check(&server, "ls", &json!({})).get("rewritten_args"), None);
    assert_eq!(check(&server, "rm", &json!({ "path": "a" }))["rewritten_args"], r#"{"path":"b"}"#);
}

#[test]
fn arguments_that_hold_a_secret_are_known_again() {
    let server = Server::start();
    let asked = json!({ "key": "sk-proj-AAAABBBBCCCCDDDDEEEE", "path": "a" });
    server.accept(&pending(1, "put", &asked));
    rewrite(&server, 1, &json!({ "path": "b" }));
    assert_eq!(check(&server, "put", &asked)["rewritten_args"], r#"{"path":"b"}"#);
}

#[test]
fn the_input_of_a_call_that_has_run_cannot_be_replaced() {
    let server = Server::start();
    for (number, status) in [(1, "success"), (2, "failure"), (3, "skipped")] {
        let mut step = pending(number, "rm", &json!({ "path": "a" }));
        step["action"]["status"] = status.into();
        server.accept(&step);
        let (code, answer) = rewrite(&server, number, &json!({ "path": "b" }));
        assert_eq!((code, &answer["error"]), (409, &json!("already_run")));
        assert!(answer["message"].as_str().unwrap().contains("inject"), "{answer}");
    }
    assert_eq!(check(&server, "rm", &json!({ "path": "a" })).get("rewritten_args"), None);
    let content = json!({ "trace_id": id(1), "content": "it is gone" });
    assert_eq!(server.post("/sessions/run/rewrite", &content).0, 200, "its result still can");
}

#[test]
fn an_input_comes_too_late_once_the_result_is_there() {
    let server = Server::start();
    server.observatory.note(call(0, Status::Pending));
    settle(&server);
    let (_, steps) = server.get("/sessions/run/steps");
    let step = &steps["steps"][0]["log"]["meta"]["trace_id"];
    let input = json!({ "trace_id": step, "tool_input": { "command": "make all" } });
    assert_eq!(server.post("/sessions/run/rewrite", &input).0, 200);
    server.observatory.note(result(0));
    server.observatory.flush();
    let asked = json!({ "command": "make test" });
    assert_eq!(check(&server, "bash", &asked).get("rewritten_args"), None);
}

#[test]
fn a_newer_rewrite_of_a_step_takes_the_place_of_the_older_one() {
    let server = Server::start();
    server.accept(&pending(1, "rm", &json!({ "path": "a" })));
    rewrite(&server, 1, &json!({ "path": "b" }));
    rewrite(&server, 1, &json!({ "path": "c" }));
    let asked = json!({ "path": "a" });
    assert_eq!(check(&server, "rm", &asked)["rewritten_args"], r#"{"path":"c"}"#);
    assert_eq!(check(&server, "rm", &asked).get("rewritten_args"), None);
}

#[test]
fn an_input_that_is_not_json_is_refused() {
    let server = Server::start();
    server.accept(&pending(1, "rm", &json!({ "path": "a" })));
    let (status, answer) = rewrite(&server, 1, &json!("{path: b"));
    assert_eq!((status, &answer["violations"][0]["field"]), (422, &json!("tool_input")));
}

#[test]
fn the_guard_judges_the_rewritten_arguments_and_keeps_the_order_while_it_blocks_them() {
    let server = Server::start();
    server.accept(&pending(1, "rm", &json!({ "path": "a" })));
    for _ in 0..3 {
        assert_eq!(check(&server, "rm", &json!({ "path": "b" }))["allowed"], true);
    }
    rewrite(&server, 1, &json!({ "path": "b" }));
    let asked = json!({ "path": "a" });
    let blocked = check(&server, "rm", &asked);
    assert_eq!((&blocked["allowed"], blocked.get("rewritten_args")), (&json!(false), None));
    server.post("/guard/reset", &json!({ "session_id": "run" }));
    let allowed = check(&server, "rm", &asked);
    assert_eq!((&allowed["allowed"], &allowed["rewritten_args"]), (&json!(true), &json!(r#"{"path":"b"}"#)));
}
