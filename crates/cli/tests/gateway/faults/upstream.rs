//! Providers that fail.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use loopbreaker_mock::Turn;

use crate::lab::{Bench, Lab, until};
use crate::provider::Provider;
use crate::talk::question;
use crate::wire::{answer, chunk, request};

/// An address at which nobody listens, until somebody does.
fn nobody() -> std::net::SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn a_provider_that_refuses_connections_is_502_in_every_dialect() {
    let lab = Bench::new().upstream(format!("http://{}", nobody())).start();
    let chat = lab.chat(&[], question("a"));
    assert_eq!((chat.status, chat.code().as_str()), (502, "upstream_unavailable"));
    let anthropic = lab.post("/v1/messages", &[], "{}");
    assert_eq!((anthropic.status, &anthropic.json()["error"]["type"]), (502, &"api_error".into()));
    assert!(anthropic.json()["error"]["message"].as_str().unwrap().starts_with("upstream_unavailable: "));
    let gemini = lab.post("/v1beta/models/g:generateContent", &[], "{}");
    assert_eq!(
        (gemini.status, &gemini.json()["error"]["details"][0]["reason"]),
        (502, &"upstream_unavailable".into())
    );
    assert_eq!(lab.metric(r#"loopbreaker_upstream_errors_total{reason="connect"}"#), 3.0);
    assert_eq!(lab.logged(3)[0]["refusal"], "upstream_unavailable");
}

#[test]
fn a_call_that_nobody_answered_is_a_failed_step_of_its_session_however_often_it_is_tried() {
    let lab = Bench::new().upstream(format!("http://{}", nobody())).start();
    let headers = [("x-session-id", "s")];
    for _ in 0..4 {
        let reply = lab.chat(&headers, question("a"));
        assert_eq!((reply.status, reply.header("x-loopbreaker-verdict")), (502, Some("allow")));
    }
    let steps = lab.get("/api/v1/sessions/s/steps").json()["steps"].clone();
    let said: Vec<_> = steps.as_array().unwrap().iter().map(|step| &step["log"]["action"]).collect();
    assert_eq!((said.len(), &said[0]["status"]), (1, &"failure".into()), "{steps}");
    assert!(
        said[0]["tool_output_summary"].as_str().unwrap().starts_with("upstream_unavailable: "),
        "{steps}"
    );
    let session = lab.get("/api/v1/sessions/s").json();
    assert_eq!(
        (&session["state"], &session["alert"]),
        (&"active".into(), &serde_json::Value::Null),
        "{session}"
    );
}

#[test]
fn after_failures_in_a_row_the_provider_is_left_alone_until_it_is_back() {
    let address = nobody();
    let config = "upstreams: { breaker: { failures: 3, open_for: 1s } }";
    let lab = Bench::new().config(config).upstream(format!("http://{address}")).start();
    let ask = || lab.chat(&[], question("a"));
    assert_eq!([ask().status, ask().status, ask().status], [502; 3]);
    let open = ask();
    assert_eq!(
        (open.status, open.code().as_str(), open.header("retry-after")),
        (503, "upstream_unavailable", Some("1"))
    );
    let ready = lab.readiness();
    assert_eq!(ready["parts"]["open_breakers"][0], address.to_string());
    assert_eq!(
        (&ready["status"], &ready["degraded"]),
        (&"degraded".into(), &serde_json::json!(["upstream"]))
    );
    assert_eq!(lab.get("/readyz").status, 200);
    let shown = || lab.get("/api/v1/overview").json()["degraded"].clone();
    let reason = format!("nothing is sent to {address} at present");
    let told = serde_json::json!([{ "part": "upstream", "reason": reason }]);
    until("the dashboard tells of it", || shown() == told);

    let _back = Provider::at(address, |conversation| {
        while conversation.asked().is_some() && conversation.wire.try_send(&answer("200 OK", &[], b"{}")) {}
    });
    until("it is asked again", || ask().status == 200);
    assert_eq!(lab.readiness()["status"], "ready");
    until("the dashboard shows that all is well", || shown() == serde_json::json!([]));
    for _ in 0..5 {
        assert_eq!(ask().status, 200);
    }
}

#[test]
fn a_provider_that_is_still_away_is_asked_once_and_left_alone_again() {
    let lab = Lab::with("upstreams: { breaker: { failures: 2, open_for: 1s } }");
    lab.mock.script([Turn::status(500)]);
    let ask = || lab.chat(&[], question("a")).status;
    assert_eq!([ask(), ask(), ask()], [500, 500, 503]);
    assert_eq!(lab.metric(r#"loopbreaker_upstream_errors_total{reason="breaker_open"}"#), 1.0);
    until("it is asked again", || ask() == 500);
    assert_eq!(ask(), 503);
    assert_eq!(lab.sent(), 3);
}

#[test]
fn an_answer_of_429_opens_no_breaker() {
    let lab = Lab::with("upstreams: { breaker: { failures: 2, open_for: 1m } }");
    lab.mock.script([Turn::status(429)]);
    for _ in 0..5 {
        assert_eq!(lab.chat(&[], question("a")).status, 429);
    }
}

#[test]
fn clients_that_break_their_own_uploads_open_no_breaker() {
    let config = "upstreams: { breaker: { failures: 1, open_for: 1m } }";
    let provider = Provider::answering(answer("200 OK", &[], b"{}"));
    let lab = Bench::new().config(config).upstream(provider.url()).start();
    let head = "POST /v1/files HTTP/1.1\r\nhost: x\r\n";
    for broken in
        ["content-length: 100\r\n\r\nten bytes.", "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"]
    {
        let mut gone = lab.wire();
        gone.send(format!("{head}{broken}").as_bytes());
        until("the provider is asked", || provider.connections() > 0);
        drop(gone);
        assert_eq!(lab.get("/v1/models").status, 200);
    }
    let mut wrong = lab.wire();
    wrong.send(
        format!("{head}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\nthis is no size\r\n").as_bytes(),
    );
    let status = wrong.try_reply().map(|reply| reply.status);
    assert!(status.is_none_or(|status| status == 400), "{status:?}");
    for _ in 0..5 {
        assert_eq!(lab.get("/v1/models").status, 200);
    }
    assert_eq!(lab.readiness()["parts"]["open_breakers"], serde_json::json!([]));
}

#[test]
fn one_provider_that_is_away_closes_nothing_for_another() {
    let config = format!(
        "upstreams: {{ openai: \"http://{}\", anthropic: \"{{mock}}\", breaker: {{ failures: 1, open_for: 1m }} }}",
        nobody()
    );
    let lab = Bench::new().config(&config).upstream("").start();
    assert_eq!(lab.chat(&[], question("a")).status, 502);
    assert_eq!(lab.chat(&[], question("a")).status, 503);
    let body = r#"{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
    assert_eq!(lab.post("/v1/messages", &[], body).status, 200);
}

#[test]
fn a_provider_that_takes_too_long_is_given_up() {
    let lab = Lab::with("upstreams: { timeout: 300ms }");
    lab.mock.script([Turn::text("late").delay_ms(5_000)]);
    let began = Instant::now();
    let reply = lab.chat(&[], question("a"));
    assert_eq!((reply.status, reply.code().as_str()), (502, "upstream_unavailable"));
    assert!(began.elapsed() < Duration::from_secs(3));
    assert_eq!(lab.metric(r#"loopbreaker_upstream_errors_total{reason="timeout"}"#), 1.0);
}

#[test]
fn a_stream_that_the_provider_breaks_is_seen_to_be_broken() {
    let provider = Provider::doing(|conversation| {
        conversation.asked();
        conversation.wire.send(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        );
        conversation.wire.send(&chunk(b"data: {}\n\n"));
    });
    let lab = Bench::new().upstream(provider.url()).start();
    let mut wire = lab.wire();
    wire.send(&request("POST", "/v1/chat/completions", &[], question("a").as_bytes()));
    wire.head();
    assert_eq!(wire.chunk().unwrap(), b"data: {}\n\n");
    assert_eq!(wire.try_chunk(), None, "no end is made up");
    assert_eq!(lab.logged(1).len(), 1);
}

#[test]
fn an_answer_that_is_shorter_than_it_said_is_seen_to_be_broken() {
    let provider = Provider::doing(|conversation| {
        conversation.asked();
        conversation.wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"half\":");
    });
    let lab = Bench::new().upstream(provider.url()).start();
    let mut wire = lab.wire();
    wire.send(&request("GET", "/v1/models", &[], b""));
    assert_eq!(wire.head().get("content-length"), Some("100"));
    assert_eq!(wire.bytes(8), b"{\"half\":");
    assert!(wire.is_closed());
}

#[test]
fn a_provider_that_closes_its_idle_connections_is_never_felt() {
    let provider = Provider::doing(|conversation| {
        conversation.asked();
        conversation.wire.send(&answer("200 OK", &[], b"{}"));
    });
    let lab = Bench::new().upstream(provider.url()).arg("--workers").arg("1").start();
    for index in 0..30 {
        let reply = lab.chat(&[], question(&format!("question {index}")));
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(lab.post("/v1/embeddings", &[], r#"{"input":"x"}"#).status, 200);
        assert_eq!(lab.post("/v1/files", &[], vec![b'x'; 100_000]).status, 200);
        let reply = lab.get("/v1/models");
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}

#[test]
fn nonsense_from_a_provider_is_502() {
    let long = format!("HTTP/1.1 200 OK\r\nx-long: {}\r\n\r\n", "x".repeat(1 << 20));
    let many = format!("HTTP/1.1 200 OK\r\n{}content-length: 0\r\n\r\n", "x-many: 1\r\n".repeat(10_000));
    let nonsense = [
        "this is no HTTP at all\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        "HTTP/1.1 999999 What\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        &long,
        &many,
        "",
    ];
    for bytes in nonsense {
        let bytes = bytes.to_owned();
        let shown = bytes[..bytes.len().min(60)].to_owned();
        let provider = Provider::doing(move |conversation| {
            conversation.asked();
            conversation.wire.try_send(bytes.as_bytes());
        });
        let lab = Bench::new().upstream(provider.url()).start();
        let reply = lab.chat(&[], question("a"));
        assert_eq!((reply.status, reply.code().as_str()), (502, "upstream_unavailable"), "{shown:?}");
        assert_eq!(lab.get("/livez").status, 200);
    }
}

#[test]
fn words_before_the_answer_are_passed_over() {
    let provider = Provider::answering(
        b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
            .as_slice(),
    );
    let lab = Bench::new().upstream(provider.url()).start();
    let reply = lab.chat(&[], question("a"));
    assert_eq!((reply.status, reply.text().as_str()), (200, "{}"));
}

#[test]
fn a_request_that_was_not_answered_is_not_sent_twice_on_a_new_connection() {
    let provider = Provider::doing(|conversation| {
        conversation.asked();
    });
    let lab = Bench::new().upstream(provider.url()).start();
    assert_eq!(lab.chat(&[], question("a")).status, 502);
    assert_eq!(provider.seen().len(), 1, "it may have cost money already");
    assert_eq!(provider.connections(), 1);
}

#[test]
fn a_client_that_leaves_before_the_answer_leaves_a_trace() {
    let lab = Lab::new();
    lab.mock.script([Turn::text("late").delay_ms(10_000)]);
    let mut wire = lab.wire();
    wire.send(&request(
        "POST",
        "/v1/chat/completions",
        &[("x-session-id", "gone")],
        question("a").as_bytes(),
    ));
    until("it is on its way", || lab.sent() == 1);
    drop(wire);
    assert_eq!(lab.logged(1)[0]["session"], "gone");
}
