//! Clients that are slow, many, or hostile.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::lab::Lab;
use crate::talk::question;
use crate::wire::request;

/// Connections that have each sent this much and then nothing.
fn slow_clients(lab: &Lab, count: usize, sent: &[u8]) -> Vec<TcpStream> {
    (0..count)
        .map(|_| {
            let mut stream = TcpStream::connect(lab.address).unwrap();
            stream.write_all(sent).unwrap();
            stream
        })
        .collect()
}

/// How long the slowest of a few quick requests took.
fn slowest(lab: &Lab) -> Duration {
    let times = (0..20).map(|index| {
        let began = Instant::now();
        assert_eq!(lab.chat(&[], question(&format!("quick {index}"))).status, 200);
        began.elapsed()
    });
    times.max().unwrap()
}

#[test]
fn thousands_of_slow_clients_do_not_stop_a_fast_one() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    let lab = Lab::new();
    let whole = request("POST", "/v1/chat/completions", &[], question("slow").as_bytes());
    let _silent = slow_clients(&lab, 2_000, b"");
    let _in_headers = slow_clients(&lab, 4_000, &whole[..40]);
    let _in_body = slow_clients(&lab, 4_000, &whole[..whole.len() - 10]);
    let slowest = slowest(&lab);
    assert!(slowest < Duration::from_secs(3), "{slowest:?}");
}

#[test]
fn clients_that_do_not_read_their_answers_do_not_stop_a_fast_one() {
    let lab = Lab::new();
    let text = "many words ".repeat(20_000);
    lab.mock.script([loopbreaker_mock::Turn::text(text)]);
    let ask = request("POST", "/v1/chat/completions", &[], question("long").as_bytes());
    let _deaf = slow_clients(&lab, 100, &ask);
    let slowest = slowest(&lab);
    assert!(slowest < Duration::from_secs(3), "{slowest:?}");
}

#[test]
fn headers_that_are_too_many_or_too_long_are_refused_and_hurt_nobody() {
    let lab = Lab::new();
    let many = (0..5_000).map(|index| format!("x-{index}: 1\r\n")).collect::<Vec<_>>().concat();
    let bombs = [
        format!("GET /v1/models HTTP/1.1\r\nhost: x\r\n{many}\r\n"),
        format!("GET /v1/models HTTP/1.1\r\nhost: x\r\nx-long: {}\r\n\r\n", "x".repeat(10 << 20)),
        format!("GET /v1/{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(10 << 20)),
        format!("GET /v1/models HTTP/1.1\r\n{}: 1\r\n\r\n", "n".repeat(1 << 20)),
        "x".repeat(10 << 20),
        "\r\n".repeat(1 << 20),
    ];
    for bomb in bombs {
        let mut wire = lab.wire();
        wire.try_send(bomb.as_bytes());
        let status = wire.try_head().map(|head| head.status());
        assert!(status.is_none_or(|status| (400..500).contains(&status)), "{status:?}: {:?}", &bomb[..40]);
        assert_eq!(lab.get("/livez").status, 200);
    }
    assert_eq!(lab.sent(), 0);
}

#[test]
fn a_long_header_that_is_still_allowed_passes() {
    let lab = Lab::new();
    let token = "x".repeat(16 << 10);
    assert_eq!(lab.chat(&[("x-long", &token)], question("a")).status, 200);
    assert_eq!(lab.mock.requests()[0].header("x-long"), Some(token.as_str()));
}

#[test]
fn thousands_of_connections_that_come_and_go_leave_nothing_behind() {
    let lab = Lab::new();
    let open = || lab.metric("process_open_fds");
    let before = open();
    for _ in 0..20 {
        drop(slow_clients(&lab, 100, b"GET /v1/mod"));
    }
    crate::lab::until("all are closed", || open() <= before + 5.0);
}

#[test]
fn a_client_that_sends_slowly_is_no_failure_of_the_provider() {
    let lab = Lab::with("upstreams: { timeout: 1s, breaker: { failures: 1, open_for: 60s } }");
    let mut wire = lab.wire();
    wire.send(b"POST /v1/files HTTP/1.1\r\nhost: a\r\nauthorization: Bearer k\r\ncontent-length: 8\r\n\r\n");
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(250));
        wire.send(b"x");
    }
    assert_ne!(wire.reply().status, 502);
    assert_eq!(lab.chat(&[], question("and others")).status, 200);
}

#[test]
fn a_provider_that_does_not_answer_a_slow_client_is_late_all_the_same() {
    let silent = crate::provider::Provider::doing(|conversation| {
        conversation.asked();
        std::thread::sleep(Duration::from_secs(10));
    });
    let config = "upstreams: { timeout: 1s, breaker: { failures: 1, open_for: 60s } }";
    let lab = crate::lab::Bench::new().config(config).upstream(silent.url()).start();
    let mut wire = lab.wire();
    wire.send(b"POST /v1/files HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n");
    std::thread::sleep(Duration::from_millis(1_200));
    wire.send(b"0\r\n\r\n");
    let ended = Instant::now();
    assert_eq!(wire.reply().status, 502);
    assert!(ended.elapsed() > Duration::from_millis(800), "{:?}", ended.elapsed());
    assert_eq!(lab.chat(&[], question("later")).status, 503, "that one counts");
}
