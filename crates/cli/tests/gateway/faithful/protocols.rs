//! Other ways to speak HTTP: HEAD, `100-continue`, HTTP/1.0, HTTP/2, web sockets.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::lab::{Bench, Lab};
use crate::provider::Provider;
use crate::talk::{looping, question};
use crate::wire::{answer, request};

/// Sends requests over one HTTP/2 connection, begun without asking whether the other side speaks it.
pub(crate) fn over_http2(
    address: std::net::SocketAddr,
    requests: Vec<hyper::Request<Full<Bytes>>>,
) -> Vec<(hyper::http::response::Parts, Bytes)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async move {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut answers = Vec::new();
        for request in requests {
            let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
            answers.push((parts, body.collect().await.unwrap().to_bytes()));
        }
        answers
    })
}

#[test]
fn an_answer_to_head_has_its_length_and_no_body() {
    let provider = Provider::doing(|conversation| {
        while conversation.asked().is_some() {
            conversation.wire.send(b"HTTP/1.1 200 OK\r\nx-kind: file\r\ncontent-length: 1234\r\n\r\n");
        }
    });
    let lab = Bench::new().upstream(provider.url()).start();
    let mut wire = lab.wire();
    for _ in 0..2 {
        wire.send(&request("HEAD", "/v1/files/1", &[], b""));
        let head = wire.head();
        assert_eq!(
            (head.status(), head.get("content-length"), head.get("x-kind")),
            (200, Some("1234"), Some("file"))
        );
    }
    assert!(provider.seen().iter().all(|asked| asked.head.first == "HEAD /v1/files/1 HTTP/1.1"));
}

#[test]
fn answers_that_have_no_body_end_at_their_headers() {
    for status in ["204 No Content", "304 Not Modified"] {
        let bytes = format!("HTTP/1.1 {status}\r\netag: \"x\"\r\n\r\n");
        let provider = Provider::answering(bytes);
        let lab = Bench::new().upstream(provider.url()).start();
        let mut wire = lab.wire();
        for _ in 0..2 {
            wire.send(&request("GET", "/v1/files/1", &[], b""));
            let reply = wire.reply();
            assert_eq!((reply.status, reply.header("etag")), (status[..3].parse().unwrap(), Some("\"x\"")));
        }
    }
}

#[test]
fn a_client_that_waits_for_100_continue_gets_it() {
    let lab = Lab::new();
    let body = question("hello");
    let mut wire = lab.wire();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    wire.send(head.as_bytes());
    assert_eq!(wire.head().status(), 100);
    wire.send(body.as_bytes());
    assert_eq!(wire.reply().status, 200);
}

#[test]
fn a_client_of_http_1_0_gets_an_answer_that_it_can_read() {
    let lab = Lab::new();
    let body = r#"{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let mut wire = lab.wire();
    wire.send(
        format!("POST /v1/chat/completions HTTP/1.0\r\ncontent-length: {}\r\n\r\n{body}", body.len())
            .as_bytes(),
    );
    let reply = wire.reply();
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("transfer-encoding"), None, "HTTP/1.0 knows no chunks");
    assert!(reply.text().ends_with("data: [DONE]\n\n"));
}

#[test]
fn requests_in_one_write_are_answered_in_their_order() {
    let lab = Lab::new();
    let mut wire = lab.wire();
    let mut all = Vec::new();
    for index in 0..10 {
        let body = question(&format!("question {index}"));
        all.extend(request(
            "POST",
            "/v1/chat/completions",
            &[("x-session-id", &format!("s{index}"))],
            body.as_bytes(),
        ));
    }
    wire.send(&all);
    for index in 0..10 {
        assert_eq!(wire.reply().header("x-loopbreaker-session"), Some(format!("s{index}").as_str()));
    }
}

#[test]
fn a_client_of_http2_is_served_and_its_loops_are_seen() {
    let lab = Lab::new();
    let ask = |times| {
        let uri = format!("http://{}/v1/chat/completions", lab.address);
        let request =
            hyper::Request::post(uri).header("authorization", "Bearer k").header("x-session-id", "s");
        request.body(Full::from(looping("fix it", times))).unwrap()
    };
    let answers = over_http2(lab.address, vec![ask(1), ask(2), ask(3)]);
    let verdicts: Vec<_> =
        answers.iter().map(|(parts, _)| parts.headers["x-loopbreaker-verdict"].to_str().unwrap()).collect();
    assert_eq!(verdicts, ["allow", "warn", "hint"]);
    let seen = lab.mock.requests();
    assert_eq!(seen[0].body, looping("fix it", 1).as_bytes());
    assert_eq!(seen[0].header("host"), Some(lab.mock.addr().to_string().as_str()));
}

#[test]
fn many_and_large_requests_share_a_connection_of_http2() {
    let lab = Lab::new();
    let body = question(&"many words ".repeat(300_000));
    let ask = || {
        let request = hyper::Request::post(format!("http://{}/v1/chat/completions", lab.address));
        request.body(Full::from(body.clone())).unwrap()
    };
    let answers = over_http2(lab.address, (0..5).map(|_| ask()).collect());
    assert!(answers.iter().all(|(parts, _)| parts.status == 200));
    assert!(lab.mock.requests().iter().all(|request| request.body == body.as_bytes()));
}

#[test]
fn cookies_of_http2_are_one_header_again_for_a_provider_that_speaks_http1() {
    let provider = Provider::answering(answer("200 OK", &[], b"{}"));
    let lab = Bench::new().upstream(provider.url()).start();
    let request = hyper::Request::get(format!("http://{}/v1/models", lab.address));
    let request = request.header("cookie", "a=1").header("cookie", "b=2").body(Full::default()).unwrap();
    over_http2(lab.address, vec![request]);
    let seen = &provider.seen()[0].head;
    let cookies: Vec<_> =
        seen.headers.iter().filter(|(name, _)| name == "cookie").map(|(_, value)| value.as_str()).collect();
    assert_eq!(cookies, ["a=1; b=2"]);
}

#[test]
fn a_policy_for_a_host_holds_for_http2_as_well() {
    let lab = Lab::with(
        "policies: [{ id: h, spec: { selector: { hosts: [llm.example.com] }, rules: [{ id: r, requests: 1, period: 1h }] } }]",
    );
    let ask = || {
        let request = hyper::Request::post("http://llm.example.com/v1/chat/completions");
        request.header("authorization", "Bearer k").body(Full::from(question("hi"))).unwrap()
    };
    let statuses: Vec<_> =
        over_http2(lab.address, vec![ask(), ask()]).iter().map(|(parts, _)| parts.status.as_u16()).collect();
    assert_eq!(statuses, [200, 429]);
}

#[test]
fn a_web_socket_is_tunnelled_both_ways() {
    let provider = Provider::doing(|conversation| {
        let asked = conversation.wire.head();
        assert_eq!(asked.first, "GET /v1/realtime?model=gpt-4o-realtime HTTP/1.1");
        assert_eq!((asked.get("upgrade"), asked.get("connection")), (Some("websocket"), Some("Upgrade")));
        assert_eq!(
            (asked.get("sec-websocket-key"), asked.get("authorization")),
            (Some("abc"), Some("Bearer sk-test"))
        );
        conversation.wire.send(
            b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: xyz\r\n\r\nhello",
        );
        for _ in 0..3 {
            let word = conversation.wire.bytes(4);
            conversation.wire.send(&word.to_ascii_uppercase());
        }
    });
    let lab = Bench::new().upstream(provider.url()).start();
    let mut wire = lab.wire();
    wire.send(
        b"GET /v1/realtime?model=gpt-4o-realtime HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
          sec-websocket-key: abc\r\nauthorization: Bearer sk-test\r\n\r\n",
    );
    let head = wire.head();
    assert_eq!((head.status(), head.get("sec-websocket-accept")), (101, Some("xyz")));
    assert_eq!(wire.bytes(5), b"hello");
    for word in ["ping", "\x00\x01\x02\x03", "last"] {
        wire.send(word.as_bytes());
        assert_eq!(wire.bytes(4), word.to_ascii_uppercase().as_bytes());
    }
    assert!(wire.is_closed(), "when one side ends, the other is told");
}

#[test]
fn a_provider_that_refuses_a_web_socket_is_heard() {
    let provider = Provider::answering(answer(
        "401 Unauthorized",
        &[("www-authenticate", "Bearer")],
        b"{\"error\":\"key\"}",
    ));
    let lab = Bench::new().upstream(provider.url()).start();
    let mut wire = lab.wire();
    wire.send(b"GET /v1/realtime HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
    let reply = wire.reply();
    assert_eq!((reply.status, reply.text().as_str()), (401, "{\"error\":\"key\"}"));
    assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
}

#[test]
fn a_client_that_offers_to_upgrade_to_http2_is_served_without() {
    let lab = Lab::new();
    let offer = [
        ("connection", "Upgrade, HTTP2-Settings"),
        ("upgrade", "h2c"),
        ("http2-settings", "AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA"),
    ];
    let reply = lab.chat(&offer, looping("fix it", 2));
    assert_eq!((reply.status, reply.header("x-loopbreaker-verdict")), (200, Some("warn")));
    let seen = &lab.mock.requests()[0];
    assert_eq!(seen.body, looping("fix it", 2).as_bytes());
    assert_eq!((seen.header("upgrade"), seen.header("http2-settings")), (None, None));
}
