//! The same call with the same result, again and again, and what is done about it.

use std::time::{Duration, Instant};

use loopbreaker_mock::Turn;

use crate::lab::{Bench, Lab};
use crate::talk::{Chat, looping, looping_in_every_dialect};

/// The verdicts while a transcript goes round once more each time, in one session.
fn climb(lab: &Lab, rounds: std::ops::RangeInclusive<usize>) -> Vec<(u16, String)> {
    rounds.map(|times| lab.verdict(&[], looping("fix it", times))).collect()
}

fn told(verdicts: &[(u16, &str)]) -> Vec<(u16, String)> {
    verdicts.iter().map(|(status, verdict)| (*status, (*verdict).to_owned())).collect()
}

#[test]
fn a_session_that_was_never_seen_is_throttled_where_the_ladder_says_so_and_hinted_before_it_is_stopped() {
    let policy = |ladder: &str| {
        format!("policies: [{{ id: p, spec: {{ tool_loops: {{ enabled: true, ladder: [{ladder}] }} }} }}]")
    };
    let slow = Lab::with(&policy("throttle, reject"));
    assert_eq!(climb(&slow, 3..=4), told(&[(200, "throttle"), (429, "reject")]));
    let strict = Lab::with(&policy("reject"));
    assert_eq!(climb(&strict, 3..=4), told(&[(200, "hint"), (429, "reject")]));
}

#[test]
fn the_ladder_is_warned_hinted_twice_throttled_and_refused() {
    let lab = Lab::new();
    let began = Instant::now();
    let verdicts = climb(&lab, 1..=6);
    assert_eq!(
        verdicts,
        told(&[
            (200, "allow"),
            (200, "warn"),
            (200, "hint"),
            (200, "hint"),
            (200, "throttle"),
            (429, "reject")
        ])
    );
    assert!(began.elapsed() >= Duration::from_millis(500), "the fifth was held");
    let hinted: Vec<bool> = lab
        .mock
        .requests()
        .iter()
        .map(|request| String::from_utf8_lossy(&request.body).contains("[Loopbreaker]"))
        .collect();
    assert_eq!(hinted, [false, false, true, true, true], "a throttled request carries the hint as well");
}

#[test]
fn each_dialect_is_refused_in_its_own_shape() {
    let lab = Lab::new();
    for times in 1..=5 {
        for (path, body) in looping_in_every_dialect(times) {
            assert_eq!(lab.post(path, &[], body).status, 200, "{path} {times}");
        }
    }
    let replies: Vec<_> =
        looping_in_every_dialect(6).into_iter().map(|(path, body)| lab.post(path, &[], body)).collect();
    for reply in &replies {
        assert_eq!((reply.status, reply.header("retry-after")), (429, Some("60")));
        assert_eq!(reply.header("x-should-retry"), Some("false"));
        assert_eq!(reply.header("x-loopbreaker-loop"), Some("kind=repeat; count=6"));
        assert!(reply.text().contains("bash"), "it says what repeated: {}", reply.text());
    }
    let [chat, anthropic, gemini, responses] = [0, 1, 2, 3].map(|index: usize| replies[index].json());
    for openai in [chat, responses] {
        assert_eq!(openai["error"]["type"], "loop_detected");
        assert_eq!(openai["error"]["code"], "loop_detected");
        assert_eq!(openai["error"]["param"], serde_json::Value::Null);
        assert_eq!(openai["error"].as_object().unwrap().len(), 4);
    }
    assert_eq!(
        (&anthropic["type"], &anthropic["error"]["type"]),
        (&"error".into(), &"rate_limit_error".into())
    );
    assert!(anthropic["error"]["message"].as_str().unwrap().starts_with("loop_detected: "));
    assert_eq!(
        (&gemini["error"]["code"], &gemini["error"]["status"]),
        (&429.into(), &"RESOURCE_EXHAUSTED".into())
    );
    assert!(gemini["error"]["message"].as_str().unwrap().starts_with("loop_detected: "));
    assert_eq!(
        gemini["error"]["details"],
        serde_json::json!([{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "loop_detected", "domain": "loopbreaker" }])
    );
}

#[test]
fn a_byte_equal_retry_is_the_same_occurrence_and_carries_the_same_hint() {
    let lab = Lab::new();
    climb(&lab, 1..=3);
    for _ in 0..3 {
        assert_eq!(lab.verdict(&[], looping("fix it", 3)), (200, "hint".into()));
    }
    let bodies: Vec<_> = lab.mock.requests().into_iter().skip(2).map(|request| request.body).collect();
    assert_eq!(bodies.len(), 4);
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    assert_eq!(
        lab.verdict(&[], looping("fix it", 4)),
        (200, "hint".into()),
        "no strike was added by the retries"
    );
    assert_eq!(lab.verdict(&[], looping("fix it", 5)), (200, "throttle".into()));
}

#[test]
fn the_hint_leaves_every_other_byte_as_it_was() {
    let lab = Lab::new();
    climb(&lab, 1..=3);
    let sent = looping("fix it", 3);
    let got = String::from_utf8(lab.mock.requests()[2].body.to_vec()).unwrap();
    let (before, rest) = got.split_once(r#"{"role":"system","content":""#).unwrap();
    let (_, after) = rest.split_once("\"},").unwrap();
    assert_eq!(format!("{before}{after}"), sent);
}

#[test]
fn a_provider_that_does_not_like_the_hint_gets_the_original_and_the_client_that_answer() {
    let lab = Lab::new();
    climb(&lab, 1..=2);
    lab.mock.script([Turn { status_if_edited: Some(400), ..Turn::text("the answer") }]);
    let reply = lab.chat(&[], looping("fix it", 3));
    assert_eq!(reply.status, 200);
    assert!(reply.text().contains("the answer"));
    let requests = lab.mock.requests();
    assert_eq!((requests.len(), requests[2].status, requests[3].status), (4, 400, 200));
    assert_eq!(requests[3].body, looping("fix it", 3).as_bytes());
}

#[test]
fn after_a_refused_hint_the_next_place_is_tried_and_then_none() {
    let lab = Lab::new();
    lab.mock.script([Turn { status_if_edited: Some(422), ..Turn::text("the answer") }]);
    let mut sent = 0;
    let mut asked = |session: &str| {
        let reply = lab.chat(&[("x-session-id", session)], looping("fix it", 3));
        assert_eq!(reply.status, 200);
        let requests = lab.mock.requests();
        let new: Vec<String> = requests[sent..]
            .iter()
            .map(|request| String::from_utf8_lossy(&request.body).into_owned())
            .collect();
        sent = requests.len();
        (new, reply.header("x-loopbreaker-verdict").unwrap().to_owned())
    };
    let (first, _) = asked("a");
    assert!(
        first[0].starts_with(r#"{"messages":[{"role":"system","content":"[Loopbreaker]"#),
        "{}",
        first[0]
    );
    let last = (0..6).map(|index| asked(&format!("s{index}"))).find(|(bodies, _)| bodies.len() == 1);
    let (bodies, verdict) = last.expect("it is given up in the end");
    assert_eq!((bodies[0].as_str(), verdict.as_str()), (looping("fix it", 3).as_str(), "warn"));
    assert!(lab.metric(r#"loopbreaker_degraded_total{part="hint"}"#) >= 1.0);
    assert_eq!(lab.metric(r#"loopbreaker_degraded{part="hint"}"#), 1.0);
    assert_eq!(lab.readiness()["degraded"], serde_json::json!(["hint"]));
}

#[test]
fn a_request_that_is_refused_with_and_without_the_hint_teaches_nothing_about_it() {
    let lab = Lab::new();
    lab.mock.script([Turn::status(400)]);
    for index in 0..5 {
        let session = format!("s{index}");
        let headers = [("x-tenant-id", "clumsy"), ("x-session-id", session.as_str())];
        assert_eq!(lab.chat(&headers, looping("fix it", 3)).status, 400);
    }
    lab.mock.script([Turn::text("fine")]);
    assert_eq!(lab.verdict(&[("x-tenant-id", "other")], looping("fix it", 3)), (200, "hint".into()));
    let told = String::from_utf8_lossy(&lab.mock.requests().last().unwrap().body).into_owned();
    assert!(told.starts_with(r#"{"messages":[{"role":"system","content":"[Loopbreaker]"#), "{told}");
}

#[test]
fn another_ladder_is_followed() {
    let lab =
        Lab::with("policies: [{ id: p, spec: { tool_loops: { enabled: true, ladder: [warn, reject] } } }]");
    assert_eq!(climb(&lab, 2..=4), told(&[(200, "warn"), (200, "warn"), (429, "reject")]));
}

#[test]
fn the_status_of_a_refusal_can_be_chosen() {
    let lab = Lab::with("reject: { status: 400 }");
    climb(&lab, 1..=5);
    assert_eq!(lab.verdict(&[], looping("fix it", 6)), (400, "reject".into()));
}

#[test]
fn a_cycle_tells_its_period() {
    let lab = Lab::new();
    let round = |chat: Chat| chat.call("cat a", "content of a").call("cat b", "content of b");
    let mut chat = Chat::new("compare");
    let mut told = Vec::new();
    for _ in 0..4 {
        chat = round(chat);
        told.push(lab.chat(&[], chat.body()).header("x-loopbreaker-loop").unwrap_or("-").to_owned());
    }
    assert_eq!(told[2], "kind=cycle; count=3; period=2", "{told:?}");
}

#[test]
fn healthy_work_is_left_alone() {
    let lab = Lab::new();
    let mut chat = Chat::new("read everything");
    for page in 0..20 {
        chat = chat.call(&format!("cat page-{page}"), &format!("the words of page {page}"));
        assert_eq!(lab.verdict(&[], chat.body()), (200, "allow".into()), "{page}");
    }
    let mut poll = Chat::new("wait for the job");
    for percent in 0..20 {
        poll = poll.call("job status", &format!("running, {percent} of 20 done"));
        assert_eq!(lab.verdict(&[], poll.body()), (200, "allow".into()), "{percent}");
    }
}

#[test]
fn a_session_that_was_never_seen_is_hinted_once_before_it_is_stopped() {
    let lab = Lab::new();
    assert_eq!(climb(&lab, 9..=11), told(&[(200, "hint"), (429, "reject"), (429, "reject")]));
}

#[test]
fn after_a_restart_the_ladder_goes_on_where_it_was_but_for_one_hint() {
    let lab = Lab::new();
    assert_eq!(climb(&lab, 1..=5).last().unwrap().1, "throttle");
    let lab = lab.restarted();
    assert_eq!(climb(&lab, 6..=8), told(&[(200, "hint"), (429, "reject"), (429, "reject")]));
}

#[test]
fn a_session_keeps_its_name_over_a_restart() {
    let lab = Lab::new();
    let name = |lab: &Lab, times| {
        let reply = lab.chat(&[], looping("fix it", times));
        reply.header("x-loopbreaker-session").unwrap().to_owned()
    };
    let before = name(&lab, 1);
    assert_eq!(name(&lab, 2), before);
    let lab = lab.restarted();
    assert_eq!(name(&lab, 1), before);
}

#[test]
fn two_conversations_of_one_named_session_climb_their_own_ladders() {
    let lab = Lab::new();
    let session = [("x-session-id", "both")];
    for times in 1..=4 {
        lab.verdict(&session, looping("first task", times));
    }
    let other = Chat::new("second task").call("ls other", "x").call("ls other", "x");
    assert_eq!(lab.verdict(&session, other.body()), (200, "warn".into()));
}

#[test]
fn a_loop_is_seen_whatever_workers_serve_it() {
    let lab = Bench::new().arg("--workers").arg("4").start();
    assert_eq!(climb(&lab, 1..=6).last().unwrap(), &(429, "reject".into()));
}

#[test]
fn a_throttle_whose_hint_has_no_place_stays_a_throttle() {
    let lab = Lab::new();
    let signed = [("authorization", "AWS4-HMAC-SHA256 Credential=x"), ("content-type", "application/json")];
    let told = |times| {
        let began = std::time::Instant::now();
        let reply = lab.post("/v1/chat/completions", &signed, looping("fix it", times));
        let sent = lab.mock.requests().pop().unwrap().body;
        assert_eq!(sent, looping("fix it", times).as_bytes(), "what is signed is not edited");
        (reply.header("x-loopbreaker-verdict").unwrap().to_owned(), began.elapsed())
    };
    let told: Vec<_> = (1..=5).map(told).collect();
    let verdicts: Vec<_> = told.iter().map(|(verdict, _)| verdict.as_str()).collect();
    assert_eq!(verdicts, ["allow", "warn", "warn", "warn", "throttle"]);
    assert!(told[4].1 >= std::time::Duration::from_millis(500), "{:?}", told[4].1);
}
