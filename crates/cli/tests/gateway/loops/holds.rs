//! Calls that are held: throttled ones and paused ones.

use std::time::{Duration, Instant};

use crate::lab::{Bench, Lab, until};
use crate::talk::question;
use crate::wire::{Reply, Wire, request};

/// A policy that holds from the second equal request on, with room for so many.
fn throttling(room: u32) -> String {
    format!(
        "throttle: {{ max_held: {room} }}\npolicies: [{{ id: p, spec: {{ loop_detection: {{ enabled: true, \
         window_seconds: 60, threshold_identical_requests: 2, action: throttle }} }} }}]"
    )
}

fn paused() -> &'static str {
    "pause: { hold: 10s }\npolicies: [{ id: p, spec: { loop_detection: { enabled: true, window_seconds: 60, threshold_identical_requests: 2, action: pause } } }]"
}

/// Sends a request and does not wait for its answer.
fn begin(lab: &Lab, session: &str) -> Wire {
    let mut wire = lab.wire();
    wire.send(&request(
        "POST",
        "/v1/chat/completions",
        &[("x-session-id", session)],
        question("a").as_bytes(),
    ));
    wire
}

/// Makes the next equal request one that is held for seconds.
fn hammer(lab: &Lab, times: usize) {
    for _ in 0..times {
        begin(lab, "s");
    }
    until("none of them is held any more", || lab.metric("loopbreaker_held") == 0.0);
}

#[test]
fn a_full_queue_refuses_at_once() {
    let lab = Lab::with(&throttling(2));
    assert_eq!(begin(&lab, "s").reply().status, 200);
    // Five of them would be held for 0.2 to 0.6 s, and there is room for two.
    let began = Instant::now();
    let mut wires: Vec<Wire> = (0..5).map(|_| begin(&lab, "s")).collect();
    let replies: Vec<_> = wires.iter_mut().map(Wire::reply).collect();
    let refused: Vec<_> = replies.iter().filter(|reply| reply.status == 429).collect();
    assert_eq!(refused.len(), 3);
    for reply in refused {
        assert_eq!(reply.code(), "loop_detected");
        assert!(reply.header("retry-after").is_some());
    }
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(lab.sent(), 3);
}

#[test]
fn a_held_call_whose_client_has_gone_is_never_sent() {
    let lab = Lab::with(&throttling(1_000));
    assert_eq!(begin(&lab, "s").reply().status, 200);
    hammer(&lab, 10);
    let sent = lab.sent();
    let wire = begin(&lab, "s");
    until("it is held", || lab.metric("loopbreaker_held") == 1.0);
    drop(wire);
    until("its place is free again", || lab.metric("loopbreaker_held") == 0.0);
    std::thread::sleep(Duration::from_millis(1_400));
    assert_eq!(lab.sent(), sent);
}

#[test]
fn a_call_that_is_slowed_down_is_held_when_its_session_is_paused_meanwhile() {
    let lab = Lab::with(&format!("pause: {{ hold: 300ms }}\n{}", throttling(1_000)));
    assert_eq!(begin(&lab, "s").reply().status, 200);
    hammer(&lab, 10);
    let sent = lab.sent();
    let mut held = begin(&lab, "s");
    until("it is held", || lab.metric("loopbreaker_held") == 1.0);
    assert_eq!(lab.post("/api/v1/sessions/s/pause", &[], "").status, 200);
    let reply = held.reply();
    assert_eq!((reply.status, reply.code().as_str()), (429, "paused"));
    assert_eq!(lab.sent(), sent);
}

#[test]
fn a_paused_call_is_held_until_somebody_resumes_it() {
    let lab = Lab::with(paused());
    assert_eq!(begin(&lab, "s").reply().status, 200);
    let mut held = begin(&lab, "s");
    until("it is held", || lab.metric("loopbreaker_held") == 1.0);
    assert_eq!(lab.sent(), 1);
    let order = lab.post("/api/v1/sessions/s/resume", &[], "");
    // It still goes round in circles, but may go on.
    assert_eq!((order.status, order.json()["state"].as_str()), (200, Some("loop")));
    let reply = held.reply();
    assert_eq!(reply.status, 200);
    assert_eq!(lab.sent(), 2);
}

#[test]
fn a_paused_call_is_refused_when_somebody_says_so() {
    let lab = Lab::with(paused());
    assert_eq!(begin(&lab, "s").reply().status, 200);
    let mut held = begin(&lab, "s");
    until("it is held", || lab.metric("loopbreaker_held") == 1.0);
    lab.post("/api/v1/sessions/s/reject", &[], r#"{"message":"go home"}"#);
    let reply = held.reply();
    assert_eq!((reply.status, reply.code().as_str()), (403, "rejected_by_operator"));
    assert_eq!(reply.header("x-should-retry"), Some("false"));
    assert_eq!(reply.header("x-loopbreaker-verdict"), Some("reject"));
    assert!(reply.text().contains("go home"));
    assert_eq!(lab.sent(), 1);
}

#[test]
fn a_call_that_an_operator_refused_stays_refused_as_long_as_it_comes_unchanged() {
    let lab = Lab::with("pause: { hold: 10s }");
    let order = |order: &str, body: &str| {
        assert_eq!(lab.post(&format!("/api/v1/sessions/s/{order}"), &[], body).status, 200);
    };
    let session = [("x-session-id", "s")];
    let ask = |words: &str| lab.chat(&session, question(words));
    assert_eq!(ask("a").status, 200);
    let refuse = |words: &str| {
        order("pause", "");
        std::thread::scope(|scope| {
            let held = scope.spawn(|| ask(words));
            until("it is held", || lab.metric("loopbreaker_held") == 1.0);
            order("reject", r#"{"message":"go home"}"#);
            held.join().unwrap()
        })
    };
    let is_refused = |reply: &Reply| {
        assert_eq!((reply.status, reply.code().as_str()), (403, "rejected_by_operator"));
        assert_eq!(reply.header("x-loopbreaker-verdict"), Some("reject"));
        assert!(reply.text().contains("go home"));
    };
    is_refused(&refuse("b"));
    for _ in 0..2 {
        is_refused(&ask("b"));
    }
    let original = [("x-original-uri", "/v1/chat/completions"), ("x-session-id", "s")];
    let asked = [("authorization", "Bearer sk-test"), original[0], original[1]];
    is_refused(&lab.post("/v1/decision", &asked, question("b")));
    assert_eq!(lab.sent(), 1);
    assert_eq!(ask("c").status, 200, "it changed");

    order("inject", r#"{"message":"try the other folder"}"#);
    assert_eq!(ask("b").status, 200, "the operator has said something else");
    is_refused(&refuse("d"));
    order("resume", "");
    assert_eq!(ask("d").status, 200, "the operator lets it go on");
}

#[test]
fn a_pause_without_a_decision_is_no_approval() {
    let lab = Lab::with(&paused().replace("hold: 10s", "hold: 300ms"));
    assert_eq!(begin(&lab, "s").reply().status, 200);
    for _ in 0..2 {
        let reply = begin(&lab, "s").reply();
        assert_eq!((reply.status, reply.header("x-should-retry")), (429, Some("true")));
        assert!(reply.header("retry-after").is_some());
        assert_eq!(reply.header("x-loopbreaker-verdict"), Some("pause"));
    }
    assert_eq!(lab.sent(), 1);
}

#[test]
fn a_pause_that_nobody_ends_becomes_a_refusal() {
    let lab = Lab::with(&paused().replace("hold: 10s", "hold: 100ms, timeout: 300ms"));
    assert_eq!(begin(&lab, "s").reply().status, 200);
    until("the pause has become a refusal", || {
        let reply = begin(&lab, "s").reply();
        assert_eq!(reply.status, 429);
        reply.header("x-loopbreaker-verdict") == Some("reject")
    });
    assert_eq!(lab.sent(), 1);
}

#[test]
fn a_pause_of_an_operator_that_nobody_ends_is_a_rejection_by_the_operator() {
    let lab = Lab::with("pause: { hold: 100ms, timeout: 300ms }");
    assert_eq!(begin(&lab, "s").reply().status, 200);
    assert_eq!(lab.post("/api/v1/sessions/s/pause", &[], "").status, 200);
    until("the pause has become a refusal", || {
        let reply = begin(&lab, "s").reply();
        assert!([429, 403].contains(&reply.status));
        let verdict = reply.header("x-loopbreaker-verdict") == Some("reject");
        reply.status == 403 && reply.code() == "rejected_by_operator" && verdict
    });
    until("the log has noticed it, too", || lab.get("/api/v1/sessions/s").json()["state"] != "paused");
    for _ in 0..3 {
        assert_eq!(begin(&lab, "s").reply().status, 403, "waiting is no approval");
    }
    assert_eq!(lab.sent(), 1);
}

#[test]
fn an_operator_can_pause_a_healthy_session_and_only_that() {
    let lab = Lab::with("pause: { hold: 300ms }");
    assert_eq!(begin(&lab, "one").reply().status, 200);
    assert_eq!(begin(&lab, "two").reply().status, 200);
    let order = lab.post("/api/v1/sessions/one/pause", &[], "");
    assert_eq!((order.status, order.json()["state"].as_str()), (200, Some("paused")));
    assert_eq!(begin(&lab, "one").reply().status, 429);
    assert_eq!(begin(&lab, "two").reply().status, 200);
    lab.post("/api/v1/sessions/one/resume", &[], "");
    assert_eq!(begin(&lab, "one").reply().status, 200);
}

#[test]
fn a_resumed_session_approves_nothing_of_another_tenant() {
    let config = "pause: { hold: 300ms }\npolicies: [{ id: p, spec: { selector: { pathPrefix: / }, loop_detection: \
                  { enabled: true, window_seconds: 60, threshold_identical_requests: 2, action: pause } } }]";
    let lab = Lab::with(config);
    let ask = |tenant: &str| {
        let headers = [("x-tenant-id", tenant), ("x-session-id", tenant)];
        lab.post("/v1/embeddings", &headers, r#"{"input":"the same"}"#)
    };
    ask("a");
    assert_eq!(ask("a").header("x-loopbreaker-verdict"), Some("pause"));
    lab.post("/api/v1/sessions/a/resume", &[], "");
    ask("b");
    let held = ask("b");
    assert_eq!(
        (held.status, held.header("x-loopbreaker-verdict")),
        (429, Some("pause")),
        "nobody has decided about b"
    );
}

#[test]
fn a_full_queue_is_a_429_whatever_a_reject_is() {
    let ladder = "policies: [{ id: p, spec: { tool_loops: { enabled: true, ladder: [throttle] } } }]";
    let lab = Lab::with(&format!("reject: {{ status: 400 }}\nthrottle: {{ max_held: 0 }}\n{ladder}"));
    for times in 1..=2 {
        assert_eq!(lab.chat(&[], crate::talk::looping("fix it", times)).status, 200);
    }
    let refused = lab.chat(&[], crate::talk::looping("fix it", 3));
    assert_eq!((refused.status, refused.code().as_str()), (429, "loop_detected"));
    assert_eq!(refused.header("x-loopbreaker-verdict"), Some("reject"));
}

#[test]
fn a_paused_session_is_told_to_come_back_where_no_more_calls_can_be_held() {
    let lab = Lab::with("throttle: { max_held: 0 }");
    assert_eq!(begin(&lab, "s").reply().status, 200);
    lab.post("/api/v1/sessions/s/pause", &[], "");
    let reply = begin(&lab, "s").reply();
    assert_eq!((reply.status, reply.code().as_str()), (429, "paused"));
    assert_eq!(reply.header("x-should-retry"), Some("true"));
    assert_eq!(reply.header("x-loopbreaker-verdict"), Some("pause"));
    assert_eq!(lab.sent(), 1);
}

#[test]
fn what_an_operator_decided_is_told_where_no_more_calls_can_be_held() {
    let lab = Lab::with("throttle: { max_held: 0 }");
    assert_eq!(begin(&lab, "s").reply().status, 200);
    lab.post("/api/v1/sessions/s/pause", &[], "");
    lab.post("/api/v1/sessions/s/reject", &[], r#"{"message":"go home"}"#);
    let reply = begin(&lab, "s").reply();
    assert_eq!((reply.status, reply.code().as_str()), (403, "rejected_by_operator"));
    assert!(reply.text().contains("go home"));
    assert_eq!(lab.sent(), 1);
}

#[test]
fn a_session_that_a_policy_paused_and_nobody_decided_about_goes_on_when_it_does_something_else() {
    let ladder =
        "policies: [{ id: p, spec: { tool_loops: { enabled: true, ladder: [hint, pause, reject] } } }]";
    let lab = Lab::with(&format!("pause: {{ hold: 50ms, timeout: 400ms }}\n{ladder}"));
    let session = [("x-session-id", "s")];
    for times in 1..=3 {
        assert_eq!(lab.chat(&session, crate::talk::looping("fix it", times)).status, 200);
    }
    let looping = || lab.chat(&session, crate::talk::looping("fix it", 4));
    assert_eq!(looping().code(), "paused");
    until("its time is over", || looping().code() == "loop_detected");
    let changed = crate::talk::Chat::new("fix it").again(4).user("look into the other folder instead");
    let reply = lab.chat(&session, changed.body());
    assert_eq!(reply.status, 200, "no operator has refused it: {}", reply.text());
}

#[test]
fn calls_that_one_pause_held_reach_the_provider_in_the_order_in_which_they_came() {
    let lab = Bench::new().config("pause: { hold: 30s }").start();
    for round in 0..4 {
        let session = format!("s{round}");
        let ask = |text: &str| {
            let mut wire = lab.wire();
            let headers = [("x-session-id", session.as_str())];
            wire.send(&request("POST", "/v1/chat/completions", &headers, question(text).as_bytes()));
            wire
        };
        assert_eq!(ask("begin").reply().status, 200);
        assert_eq!(lab.post(&format!("/api/v1/sessions/{session}/pause"), &[], "{}").status, 200);
        let before = lab.sent();
        let mut wires = Vec::new();
        for call in 0..6 {
            wires.push(ask(&format!("call {call} of {round}")));
            until("it is held", || lab.metric("loopbreaker_held") == f64::from(call + 1));
        }
        // One that has gone keeps nobody.
        drop(wires.remove(2));
        until("it is gone", || lab.metric("loopbreaker_held") == 5.0);
        assert_eq!(lab.post(&format!("/api/v1/sessions/{session}/resume"), &[], "{}").status, 200);
        assert!(wires.iter_mut().all(|wire| wire.reply().status == 200));
        let sent: Vec<String> = lab.mock.requests()[before..]
            .iter()
            .map(|sent| String::from_utf8_lossy(&sent.body).into_owned())
            .collect();
        let expected = [0, 1, 3, 4, 5].map(|call| format!("call {call} of {round}"));
        let in_order = sent.iter().zip(&expected).all(|(sent, expected)| sent.contains(expected));
        assert!(sent.len() == 5 && in_order, "{sent:#?}");
    }
}
