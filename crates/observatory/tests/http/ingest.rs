//! Logs come in.

use std::io::{Read, Write};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::server::{Server, behind, id, in_session, log};

#[test]
fn a_new_log_is_answered_as_it_is_broadcast() {
    let server = Server::start();
    let (status, answer) = server.post("/decision-logs", &log(1));
    assert_eq!(status, 201);
    assert_eq!(answer["session_id"], id(1), "a root without a session names one");
    assert_eq!((&answer["duplicate"], &answer["severity"]), (&json!(false), &json!("normal")));
    assert_eq!(answer["log"]["cognition"]["entropy_score"], 1.0);
    assert_eq!(answer["control"]["interrupt_signal"], Value::Null);
}

#[test]
fn the_same_log_again_is_a_duplicate_and_other_content_a_conflict() {
    let server = Server::start();
    server.accept(&log(1));
    let (status, answer) = server.post("/decision-logs", &log(1));
    assert_eq!((status, &answer["duplicate"]), (200, &json!(true)));
    let mut other = log(1);
    other["cognition"]["intent"] = "something else".into();
    let (status, answer) = server.post("/decision-logs", &other);
    assert_eq!((status, &answer["error"]), (409, &json!("conflict")));
    let (_, session) = server.get(&format!("/sessions/{}", id(1)));
    assert_eq!(session["steps"], 1);
}

#[test]
fn an_input_is_the_same_as_an_object_and_as_text_however_it_is_written() {
    let server = Server::start();
    let mut sent = log(1);
    sent["action"]["tool_input"] = json!({ "b": 1, "a": 2 });
    server.accept(&sent);
    for (input, status) in
        [(r#"{"b":1,"a":2}"#, 200), (r#"{ "a": 2, "b": 1 }"#, 200), (r#"{"b":1,"a":3}"#, 409)]
    {
        sent["action"]["tool_input"] = input.into();
        assert_eq!(server.post("/decision-logs", &sent).0, status, "{input}");
    }
}

#[test]
fn what_was_answered_can_be_sent_back() {
    let server = Server::start();
    let mut sent = log(1);
    sent["cognition"]["entropy_score"] = 0.9.into();
    sent["action"]["tool_output_summary"] = "key: sk-abcdef0123456789".into();
    let answered = server.accept(&sent)["log"].clone();
    assert_eq!(server.post("/decision-logs", &answered).0, 200, "masked, and with our score");
    let mut scored = log(2);
    scored["cognition"]["entropy_score"] =
        server.accept(&scored)["log"]["cognition"]["entropy_score"].clone();
    assert_eq!(server.post("/decision-logs", &scored).0, 200);
    scored["cognition"]["entropy_score"] = 0.9.into();
    assert_eq!(server.post("/decision-logs", &scored).0, 409, "a score of somebody else");
}

#[test]
fn a_body_that_would_have_to_be_decoded_is_refused_by_its_encoding() {
    let server = Server::start();
    let send = |encoding: &str| {
        let headers = [("content-encoding", encoding)];
        server.call("POST", "/decision-logs", &headers, &log(1).to_string())
    };
    let (status, answer) = send("gzip");
    assert_eq!((status, &answer["error"]), (415, &json!("unsupported_encoding")));
    assert!(answer["message"].as_str().unwrap().contains("gzip"), "{answer}");
    assert_eq!(send("identity").0, 201);
}

#[test]
fn a_mark_before_the_text_is_no_part_of_it() {
    let server = Server::start();
    let send = |text: &str, kind: &str| {
        let body = format!("\u{feff}{text}");
        server.call("POST", "/decision-logs", &[("content-type", kind)], &body)
    };
    assert_eq!(send(&log(1).to_string(), "application/json").0, 201);
    assert_eq!(send(&json!([log(2)]).to_string(), "application/json").1["accepted"], 1);
    assert_eq!(send(&format!("{}\n{}", log(3), log(4)), "application/x-ndjson").1["accepted"], 2);
}

#[test]
fn more_lines_than_an_answer_can_hold_whole_are_all_taken_in_and_counted() {
    let server = Server::start();
    let mut lines: Vec<String> =
        (0..20_000).map(|number| in_session(number, &format!("run-{}", number % 100)).to_string()).collect();
    lines.insert(15_000, "not json".to_owned());
    "{}".clone_into(&mut lines[19_000]);
    let headers = [("content-type", "application/x-ndjson")];
    let (status, answer) = server.call("POST", "/decision-logs", &headers, &lines.join("\n"));
    assert_eq!((status, &answer["accepted"], &answer["rejected"]), (200, &json!(19_999), &json!(2)));
    let results = answer["results"].as_array().unwrap();
    assert_eq!((results.len(), answer.get("truncated")), (20_001, None));
    assert!((0..).zip(results).all(|(index, result)| result["index"] == index));
    assert_eq!((&results[15_000]["status"], &results[19_000]["status"]), (&json!(400), &json!(422)));
    assert_eq!(server.get("/sessions/run-7").1["steps"], 200);
}

#[test]
fn the_session_is_that_of_the_log_then_the_header_then_the_parent() {
    let server = Server::start();
    let with_header = |log: &Value| {
        let header = [("x-session-id", "from-header")];
        server.call("POST", "/decision-logs", &header, &log.to_string()).1["session_id"].clone()
    };
    assert_eq!(with_header(&in_session(1, "from-log")), "from-log");
    assert_eq!(with_header(&log(2)), "from-header");
    assert_eq!(server.accept(&behind(3, 2))["session_id"], "from-header");
    assert_eq!(server.accept(&behind(4, 3))["session_id"], "from-header");
    assert_eq!(server.accept(&log(5))["session_id"], id(5));
}

#[test]
fn what_is_refused_says_why_and_leaves_only_its_hash() {
    let server = Server::start();
    let (status, answer) = server.post("/decision-logs", &json!({}));
    assert_eq!((status, answer["violations"].as_array().unwrap().len()), (422, 7));
    assert_eq!(server.call("POST", "/decision-logs", &[], "{\"secret\":").0, 400);
    let large = format!("{{\"meta\":\"{}\"}}", "x".repeat(1 << 20));
    assert_eq!(server.call("POST", "/decision-logs", &[], &large).0, 413);
    let mut log = log(1);
    log["identity"]["capability_version"] = "7.0.0".into();
    let (status, answer) = server.post("/decision-logs", &log);
    assert_eq!((status, &answer["error"]), (422, &json!("unsupported_version")));
    assert_eq!(answer["accepted"], ">=1.0.0 <3.0.0");

    // Notes of refusals are written in order, so those before an accepted log are there after it.
    server.accept(&crate::server::log(2));
    let (_, refused) = server.get("/violations");
    let refused = refused["violations"].as_array().unwrap();
    assert_eq!(refused.len(), 4);
    assert_eq!(refused[0]["error"], "unsupported_version");
    assert_eq!(
        refused[3]["payload_sha256"],
        "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    );
    assert!(!Value::from(refused.clone()).to_string().contains("secret"));
}

#[test]
fn an_array_is_answered_one_by_one() {
    let server = Server::start();
    let (status, answer) = server.post("/decision-logs", &json!([log(1), {}, log(1), log(2), 5]));
    assert_eq!(status, 200);
    assert_eq!((&answer["accepted"], &answer["rejected"]), (&json!(3), &json!(2)));
    let statuses: Vec<&Value> =
        answer["results"].as_array().unwrap().iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, [201, 422, 200, 201, 422]);
    assert_eq!(answer["results"][3]["index"], 3);
}

#[test]
fn lines_are_taken_in_one_by_one() {
    let server = Server::start();
    let mut lines: Vec<String> = (0..600).map(|number| log(number).to_string()).collect();
    lines.insert(300, "not json".to_owned());
    let headers = [("content-type", "application/x-ndjson")];
    let (status, answer) = server.call("POST", "/decision-logs", &headers, &lines.join("\n"));
    assert_eq!(status, 200);
    assert_eq!((&answer["accepted"], &answer["rejected"]), (&json!(600), &json!(1)));
    assert_eq!(answer["results"][300]["status"], 400);
}

#[test]
fn cumulative_costs_are_never_counted_twice() {
    let server = Server::start();
    for (number, cost) in [(1, 0.5), (2, 1.25), (3, 1.0), (4, 2.0)] {
        let mut log = in_session(number, "run");
        log["state_delta"] = json!({ "cumulative_session_cost": cost, "tokens_consumed": 100 });
        server.accept(&log);
    }
    let (_, session) = server.get("/sessions/run");
    assert_eq!((&session["cost_usd"], &session["tokens"]), (&json!(2.0), &json!(400)));
    let (_, cost) = server.get("/cost?by=agent&bucket=1h&from=0");
    assert_eq!(cost["cells"][0]["cost_usd"], 2.0);
}

#[test]
fn the_last_step_ends_its_session() {
    let server = Server::start();
    let mut log = in_session(1, "run");
    log["control"] = json!({ "is_terminal": true });
    assert_eq!(server.accept(&log)["control"]["is_terminal"], true);
    assert_eq!(server.get("/sessions/run").1["state"], "ended");
}

#[test]
fn what_comes_after_the_last_step_is_measured_by_itself() {
    let server = Server::start();
    let step = |number: u32, is_terminal: bool| {
        let mut log = in_session(number, "run");
        log["cognition"]["intent"] = "build".into();
        log["control"] = json!({ "is_terminal": is_terminal });
        server.accept(&log)["log"]["cognition"]["entropy_score"].clone()
    };
    let scores = [1, 2, 3, 4, 5].map(|number| step(number, number == 5));
    assert_eq!(scores, [1.0, 0.5, 0.3333, 0.25, 0.2]);
    assert_eq!(server.get("/sessions/run").1["alert"], Value::Null);
    assert_eq!((step(6, false), step(7, false)), (json!(1.0), json!(0.5)));
    assert_eq!(server.get("/sessions/run").1["state"], "warning");
}

#[test]
fn a_log_of_nobody_in_particular_belongs_to_the_only_session_of_its_name() {
    let server = Server::start();
    let body = in_session(1, "run").to_string();
    assert_eq!(server.call("POST", "/decision-logs", &[("x-test-tenant", "a")], &body).0, 201);
    assert_eq!(server.post("/sessions/run/pause", &json!({})).0, 200);
    let answer = server.accept(&in_session(2, "run"));
    assert_eq!(answer["control"]["interrupt_signal"], "pause");
    assert_eq!(server.get("/sessions/run").1["tenant"], "a");
    let body = in_session(3, "run").to_string();
    assert_eq!(server.call("POST", "/decision-logs", &[("x-test-tenant", "b")], &body).0, 201);
    assert_eq!(server.get("/sessions/run?tenant=b").1["steps"], 1, "whoever says who they are is believed");
}

#[test]
fn credentials_are_masked_before_anything_is_kept() {
    let server = Server::start();
    let mut log = in_session(1, "run");
    log["action"]["tool_output_summary"] = "key: sk-abcdef0123456789".into();
    assert_eq!(server.accept(&log)["log"]["action"]["tool_output_summary"], "key: sk-***");
    assert_eq!(server.get("/search?q=abcdef0123456789").1["results"], json!([]));
}

#[test]
fn tenants_do_not_meet() {
    let server = Server::start();
    let as_tenant = |tenant: &str, method: &str, path: &str, body: &str| {
        server.call(method, path, &[("x-test-tenant", tenant)], body)
    };
    let body = in_session(1, "run").to_string();
    assert_eq!(as_tenant("a", "POST", "/decision-logs", &body).0, 201);
    assert_eq!(as_tenant("b", "GET", "/sessions/run", "").0, 404);
    assert_eq!(as_tenant("b", "POST", "/decision-logs", &body).0, 201, "the same name is another step");
    assert_eq!(as_tenant("a", "GET", "/sessions/run", "").1["tenant"], "a");
    assert_eq!(server.get("/sessions/run").0, 409, "which of them?");
    assert_eq!(server.get("/sessions/run?tenant=b").1["tenant"], "b");
    assert_eq!(as_tenant("a", "GET", "/search?q=intent", "").1["results"].as_array().unwrap().len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_body_makes_the_server_fail(body in "\\PC{0,60}|\\[(\\{\\}|[0-9]|,|null){0,9}\\]|\\{\"meta\":[0-9{}\\[\\]\",a-z:]{0,30}") {
        thread_local! {
            static SERVER: Server = Server::start();
        }
        let status = SERVER.with(|server| server.call("POST", "/decision-logs", &[], &body).0);
        prop_assert!([200, 400, 413, 422].contains(&status), "{} for {}", status, body);
    }
}

#[test]
fn a_session_that_the_header_cannot_name_is_refused() {
    let server = Server::start();
    let refused = |name: &[u8]| {
        let body = log(1).to_string();
        let mut request =
            b"POST /api/v1/decision-logs HTTP/1.1\r\nhost: localhost\r\nx-session-id: ".to_vec();
        request.extend_from_slice(name);
        let length = body.len();
        let rest = format!("\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
        request.extend_from_slice(rest.as_bytes());
        let mut stream = std::net::TcpStream::connect(server.address).unwrap();
        stream.write_all(&request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.starts_with("HTTP/1.1 422") && answer.contains(r#""field":"X-Session-ID""#)
    };
    assert!(refused(&[b'x'; 201]));
    assert!(refused(b"caf\xe9"));
    let named = [("x-session-id", "café")];
    assert_eq!(server.call("POST", "/decision-logs", &named, &log(1).to_string()).1["session_id"], "café");
}

#[test]
fn lines_are_known_without_their_content_type() {
    let server = Server::start();
    let lines = [log(1).to_string(), "not json".to_owned(), log(2).to_string()].join("\n");
    let (status, answer) = server.call("POST", "/decision-logs", &[], &lines);
    assert_eq!((status, &answer["accepted"], &answer["rejected"]), (200, &json!(2), &json!(1)));
    let on_many_lines = serde_json::to_string_pretty(&log(3)).unwrap();
    assert_eq!(server.call("POST", "/decision-logs", &[], &on_many_lines).0, 201);
    assert_eq!(server.call("POST", "/decision-logs", &[], &format!("{}\n", log(4))).0, 201);
}
