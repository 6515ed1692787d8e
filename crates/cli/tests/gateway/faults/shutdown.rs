//! The end: what is under way may end, and whoever asks hears that it is near.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use loopbreaker_mock::Turn;
use rustix::process::Signal;

use crate::lab::{Lab, until};
use crate::talk::question;
use crate::wire::{Wire, request};

const STREAMED: &str = r#"{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

/// A stream that has begun.
fn begun(lab: &Lab) -> Wire {
    lab.mock.script([Turn::text("one two three four five six seven eight nine ten").chunk_delay_ms(250)]);
    let mut wire = lab.wire();
    wire.send(&request("POST", "/v1/chat/completions", &[], STREAMED.as_bytes()));
    wire.head();
    wire.chunk();
    wire
}

#[test]
fn an_open_stream_may_end_and_until_then_it_is_not_ready_and_serves_who_has_not_heard_of_it() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut lab = Lab::new();
        let mut wire = begun(&lab);
        lab.signal(signal);
        until("it is not ready", || lab.get("/readyz").status == 503);
        let mut late = lab.wire();
        late.send(&request("POST", "/v1/chat/completions", &[], question("late").as_bytes()));
        assert_eq!(late.reply().status, 200);
        assert!(late.is_closed(), "one request is all that it gets");
        let mut text = String::new();
        while let Some(piece) = wire.chunk() {
            text.push_str(&String::from_utf8_lossy(&piece));
        }
        assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
        assert_eq!(lab.ended().code(), Some(0));
        assert!(TcpStream::connect(lab.address).is_err());
        assert!(lab.log().contains("\"status\":200"), "its line was written: {}", lab.log());
    }
}

#[test]
fn a_connection_that_was_opened_before_the_end_is_served_once_after_it() {
    let mut lab = Lab::new();
    let mut stream = begun(&lab);
    let mut early = lab.wire();
    lab.signal(Signal::TERM);
    until("it is not ready", || lab.get("/readyz").status == 503);
    early.send(&request("POST", "/v1/chat/completions", &[], question("early").as_bytes()));
    assert_eq!(early.reply().status, 200);
    assert!(early.is_closed(), "one request is all that it gets");
    while stream.chunk().is_some() {}
    assert_eq!(lab.ended().code(), Some(0));
}

#[test]
fn a_request_that_is_under_way_is_answered() {
    let mut lab = Lab::new();
    lab.mock.script([Turn::text("late").delay_ms(800)]);
    let mut wire = lab.wire();
    wire.send(&request("POST", "/v1/chat/completions", &[], question("a").as_bytes()));
    until("it is on its way", || lab.sent() == 1);
    lab.signal(Signal::TERM);
    assert_eq!(wire.reply().status, 200);
    assert!(wire.is_closed());
    assert_eq!(lab.ended().code(), Some(0));
}

#[test]
fn connections_on_which_nothing_happens_do_not_delay_the_end() {
    let mut lab = Lab::new();
    let mut used = lab.wire();
    used.send(&request("GET", "/v1/models", &[], b""));
    used.reply();
    let _silent = lab.wire();
    let began = Instant::now();
    lab.signal(Signal::TERM);
    assert_eq!(lab.ended().code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn a_dashboard_that_listens_does_not_delay_the_end() {
    let mut lab = Lab::new();
    until("the log is open", || lab.get("/api/v1/sessions").status == 200);
    let mut listening = lab.wire();
    listening.send(&request("GET", "/api/v1/events", &[], b""));
    assert_eq!(listening.head().status(), 200);
    let began = Instant::now();
    lab.signal(Signal::TERM);
    assert_eq!(lab.ended().code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    while listening.chunk().is_some() {}
}

#[test]
fn a_paused_call_is_told_to_come_back_and_does_not_delay_the_end() {
    let mut lab = Lab::with("pause: { hold: 5m }");
    let asked =
        |words| request("POST", "/v1/chat/completions", &[("x-session-id", "s")], question(words).as_bytes());
    let mut held = lab.wire();
    held.send(&asked("a"));
    assert_eq!(held.reply().status, 200);
    assert_eq!(lab.post("/api/v1/sessions/s/pause", &[], "").status, 200);
    held.send(&asked("b"));
    until("it is held", || lab.metric("loopbreaker_held") == 1.0);
    let began = Instant::now();
    lab.signal(Signal::TERM);
    let reply = held.reply();
    assert_eq!((reply.status, reply.header("x-should-retry")), (429, Some("true")));
    assert_eq!(lab.ended().code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
