//! The same HTTP request again.

use std::time::{Duration, Instant};

use loopbreaker_mock::Turn;

use crate::lab::{Bench, Lab, until};
use crate::provider::Provider;
use crate::talk::{Chat, question};
use crate::wire::{answer, request};

/// A policy for the same request again.
fn policy(window: u32, threshold: u32, action: &str) -> String {
    format!(
        "policies: [{{ id: p, spec: {{ loop_detection: {{ enabled: true, window_seconds: {window}, \
         threshold_identical_requests: {threshold}, action: {action} }} }} }}]"
    )
}

fn verdicts(lab: &Lab, count: usize) -> Vec<(u16, String)> {
    (0..count).map(|_| lab.verdict(&[], question("the same"))).collect()
}

#[test]
fn a_rejection_fires_on_the_request_that_reaches_the_threshold() {
    let lab = Lab::with(&policy(60, 3, "reject"));
    for (index, status) in [200, 200, 429, 429].into_iter().enumerate() {
        let reply = lab.chat(&[], question("the same"));
        assert_eq!(reply.status, status, "{index}");
    }
    let reply = lab.chat(&[], question("the same"));
    assert_eq!(reply.code(), "loop_detected");
    assert_eq!(reply.header("retry-after"), Some("60"));
    assert_eq!(reply.header("x-should-retry"), Some("false"));
    assert_eq!(reply.header("x-loopbreaker-verdict"), Some("reject"));
    assert_eq!(reply.header("x-loopbreaker-loop"), Some("kind=identical_request; count=5"));
    assert_eq!(lab.sent(), 2);
}

#[test]
fn the_window_slides_and_does_not_jump() {
    let lab = Lab::with(&policy(2, 3, "reject"));
    let ask = || lab.chat(&[], question("the same")).status;
    let began = Instant::now();
    let at = |moment: u64| {
        let moment = Duration::from_millis(moment);
        std::thread::sleep(moment.saturating_sub(began.elapsed()));
    };
    // A window that jumps would have forgotten the first two at the third; one that slides forgets only the first.
    assert_eq!(ask(), 200);
    at(1_200);
    assert_eq!(ask(), 200);
    let second = began.elapsed();
    at(2_600);
    assert_eq!(ask(), 200, "the first has left the window, so this is the second in it");
    if began.elapsed() < second + Duration::from_secs(2) {
        assert_eq!(ask(), 429, "and this the third");
    }
}

#[test]
fn a_client_that_keeps_quiet_for_the_window_recovers_and_one_that_hammers_does_not() {
    let lab = Lab::with(&policy(1, 2, "reject"));
    let ask = || lab.chat(&[], question("the same")).status;
    assert_eq!(ask(), 200);
    let hammered = Instant::now();
    while hammered.elapsed() < Duration::from_millis(1_600) {
        assert_eq!(ask(), 429, "refused attempts count too");
    }
    std::thread::sleep(Duration::from_millis(1_050));
    assert_eq!(ask(), 200);
}

#[test]
fn a_warning_lets_it_pass_and_says_so() {
    let lab = Lab::with(&policy(60, 2, "warn"));
    assert_eq!(verdicts(&lab, 1), [(200, "allow".into())]);
    let reply = lab.chat(&[], question("the same"));
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("x-loopbreaker-verdict"), Some("warn"));
    assert_eq!(reply.header("x-loopbreaker-warning"), Some("loop_warn"));
    assert_eq!(reply.header("x-loopbreaker-loop-count"), Some("2"));
    assert_eq!(lab.mock.requests()[1].body, question("the same").as_bytes());
}

#[test]
fn a_throttle_delays_by_the_count() {
    let lab = Lab::with(&policy(60, 3, "throttle"));
    let took = || {
        let began = Instant::now();
        let (status, verdict) = lab.verdict(&[], question("the same"));
        (status, verdict, began.elapsed())
    };
    for _ in 0..2 {
        let (status, verdict, took) = took();
        assert_eq!((status, verdict.as_str()), (200, "allow"));
        assert!(took < Duration::from_millis(300), "{took:?}");
    }
    for count in [3, 4] {
        let (status, verdict, took) = took();
        assert_eq!((status, verdict.as_str()), (200, "throttle"));
        assert!(took >= Duration::from_millis(100 * count), "{count}: {took:?}");
    }
}

#[test]
fn a_hint_tells_the_model() {
    let lab = Lab::with(&policy(60, 2, "hint"));
    assert_eq!(verdicts(&lab, 2), [(200, "allow".into()), (200, "hint".into())]);
    let bodies: Vec<_> = lab
        .mock
        .requests()
        .iter()
        .map(|request| String::from_utf8_lossy(&request.body).into_owned())
        .collect();
    assert_eq!(bodies[0], question("the same"));
    assert!(bodies[1].contains("[Loopbreaker] The same request was sent 2 times"), "{}", bodies[1]);
}

#[test]
fn requests_that_say_the_same_are_the_same_whatever_their_spelling() {
    let lab = Lab::with(&policy(60, 2, "reject"));
    let bodies = [
        r#"{"model":"m","temperature":1,"messages":[{"role":"user","content":"h\u00e9"}]}"#,
        "{ \"messages\": [ { \"content\": \"hé\", \"role\": \"user\" } ],\n \"temperature\": 1.0, \"model\": \"m\" }",
    ];
    assert_eq!(bodies.map(|body| lab.chat(&[], body).status), [200, 429]);
    let other = r#"{"model":"m","temperature":2,"messages":[{"role":"user","content":"hé"}]}"#;
    assert_eq!(lab.chat(&[], other).status, 200);
    assert_eq!(
        lab.post("/v1/chat/completions?x=1", &[("authorization", "Bearer sk-test")], other).status,
        200
    );
}

/// A gateway that counts on every path, and a provider that takes everything.
fn everywhere() -> (Lab, Provider) {
    let provider = Provider::answering(answer("200 OK", &[], b"{}"));
    let config = policy(60, 2, "reject").replace("spec: {", "spec: { selector: { pathPrefix: / },");
    (Bench::new().config(&config).upstream(provider.url()).start(), provider)
}

/// The statuses of different bodies in one coding.
fn coded(lab: &Lab, path: &str, coding: &str, bodies: &[Vec<u8>]) -> Vec<u16> {
    bodies.iter().map(|body| lab.post(path, &[("content-encoding", coding)], body).status).collect()
}

#[test]
fn bodies_that_nobody_can_decode_are_compared_by_their_bytes() {
    let (lab, _provider) = everywhere();
    let bodies = ["one", "another", "a third", "one"].map(|text| question(text).into_bytes());
    for path in ["/v1/chat/completions", "/v1/embeddings"] {
        for coding in ["gzip", "gzip, zstd", "compress", "br"] {
            let path = format!("{path}?coding={}", coding.replace(", ", "-"));
            assert_eq!(coded(&lab, &path, coding, &bodies), [200, 200, 200, 429], "{path}");
        }
    }
}

#[test]
fn bodies_that_decode_to_more_than_is_read_are_compared_by_their_bytes() {
    let (lab, _provider) = everywhere();
    let bomb = |last: &[u8]| zstd::encode_all(&[&vec![b' '; 33 << 20], last].concat()[..], 1).unwrap();
    let bodies = [bomb(b"1"), bomb(b"2"), bomb(b"3"), bomb(b"1")];
    assert_eq!(coded(&lab, "/v1/chat/completions", "zstd", &bodies), [200, 200, 200, 429]);
}

#[test]
fn a_body_that_is_read_only_in_part_is_like_no_other() {
    let (lab, _provider) = everywhere();
    let long = |last: u8| [vec![b'x'; 1 << 20], vec![last]].concat();
    let bodies = [long(1), long(2), long(3)];
    for coding in ["identity", "gzip"] {
        let path = format!("/v1/files?coding={coding}");
        assert_eq!(coded(&lab, &path, coding, &bodies), [200; 3], "{coding}");
    }
    let known = vec![b'x'; (1 << 20) - 1];
    assert_eq!(coded(&lab, "/v1/files", "identity", &[known.clone(), known]), [200, 429]);
}

#[test]
fn the_order_of_the_query_does_not_matter_and_its_values_do() {
    let lab = Lab::with(&policy(60, 2, "reject"));
    assert_eq!(lab.get("/v1/models?a=1&b=2").status, 200);
    assert_eq!(lab.get("/v1/models?a=2&b=1").status, 200);
    assert_eq!(lab.get("/v1/models?b=2&a=1").status, 429);
}

#[test]
fn two_api_keys_never_share_a_counter() {
    let lab = Lab::with(&policy(60, 2, "reject"));
    for key in ["sk-a", "sk-b", "sk-c"] {
        let reply =
            lab.post("/v1/chat/completions", &[("authorization", &format!("Bearer {key}"))], question("a"));
        assert_eq!(reply.status, 200, "{key}");
    }
}

#[test]
fn attempts_that_the_provider_failed_are_taken_back() {
    for failure in [429, 500, 503] {
        let lab = Lab::with(&policy(60, 3, "reject"));
        lab.mock.script([Turn::status(failure)]);
        for _ in 0..4 {
            assert_eq!(lab.chat(&[], question("the same")).status, failure);
        }
        lab.mock.script([Turn::text("fine")]);
        let statuses: Vec<_> = (0..3).map(|_| lab.chat(&[], question("the same")).status).collect();
        assert_eq!(statuses, [200, 200, 429]);
    }
}

#[test]
fn an_attempt_that_the_provider_refused_for_its_content_counts() {
    let lab = Lab::with(&policy(60, 2, "reject"));
    lab.mock.script([Turn::status(400)]);
    assert_eq!(lab.chat(&[], question("the same")).status, 400);
    assert_eq!(lab.chat(&[], question("the same")).status, 429);
}

/// Asks the same so often at the same time, and gives the verdict on the next one after all have been answered.
fn after_so_many_at_once(lab: &Lab, count: usize) -> String {
    lab.mock.script([Turn::text("slowly").delay_ms(300)]);
    let wires: Vec<_> = (0..count)
        .map(|_| {
            let mut wire = lab.wire();
            wire.send(&request("POST", "/v1/chat/completions", &[], question("the same").as_bytes()));
            wire
        })
        .collect();
    until("all are on their way", || lab.sent() == count);
    for mut wire in wires {
        assert_eq!(wire.reply().status, 200);
    }
    let reply = lab.post("/v1/chat/completions", &[], question("the same"));
    reply.header("x-loopbreaker-loop-count").unwrap_or("none").to_owned()
}

#[test]
fn without_a_config_equal_requests_in_flight_count_once() {
    let lab = Lab::new();
    assert_eq!(after_so_many_at_once(&lab, 8), "none");
    for _ in 0..2 {
        assert_eq!(
            lab.post("/v1/chat/completions", &[], question("the same")).header("x-loopbreaker-verdict"),
            Some("allow")
        );
    }
    let fifth = lab.post("/v1/chat/completions", &[], question("the same"));
    assert_eq!((fifth.status, fifth.header("x-loopbreaker-verdict")), (200, Some("warn")));
    assert_eq!(fifth.header("x-loopbreaker-loop-count"), Some("5"));
}

#[test]
fn under_a_policy_of_ones_own_each_of_them_counts() {
    let lab = Lab::with(&policy(60, 9, "warn"));
    assert_eq!(after_so_many_at_once(&lab, 8), "9");
}

#[test]
fn where_no_model_listens_a_hint_is_a_warning() {
    let lab = Lab::with(
        "policies: [{ id: p, spec: { selector: { pathPrefix: / }, loop_detection: { enabled: true, \
         window_seconds: 60, threshold_identical_requests: 2, action: hint } } }]",
    );
    let verdicts: Vec<_> = (0..3)
        .map(|_| lab.get("/v1/models").header("x-loopbreaker-verdict").unwrap_or("none").to_owned())
        .collect();
    assert_eq!(verdicts, ["allow", "warn", "warn"]);
}

/// A gateway that counts similar requests, too. The model is loaded when it is first needed; until then only equal ones
/// are found.
fn similar() -> Lab {
    let lab = Lab::with(
        "semantic: { timeout: 10s, threshold: 0.9 }\npolicies: [{ id: p, spec: { loop_detection: { enabled: true, \
         window_seconds: 60, threshold_identical_requests: 3, action: reject, similarity: semantic } } }]",
    );
    let mut words = "Which tickets of the billing team are open?".to_owned();
    until("other words are recognised", || {
        words.push_str(" Please!");
        lab.chat(&[("x-tenant-id", "first")], question(&words)).status == 429
    });
    lab
}

const SAID: [&str; 3] = [
    "Please summarise the quarterly sales report for the board",
    "Please summarize the quarterly sales report for the board",
    "Summarise the quarterly sales report for the board, please",
];

#[test]
fn requests_that_say_the_same_in_other_words_count_as_one_where_that_is_asked_for() {
    let lab = similar();
    let before = lab.sent();
    let replies = SAID.map(|words| lab.chat(&[], question(words)));
    assert_eq!(replies.each_ref().map(|reply| reply.status), [200, 200, 429]);
    assert_eq!(replies[2].code(), "loop_detected");
    assert_eq!(replies[2].header("x-loopbreaker-loop"), Some("kind=identical_request; count=3"));
    assert_eq!(replies[2].header("retry-after"), Some("60"));
    assert_eq!(lab.sent(), before + 2);
}

#[test]
fn similar_requests_of_two_tenants_about_two_things_or_after_another_history_are_not_added_up() {
    let lab = similar();
    let ask = |tenant: &str, body: String| lab.chat(&[("x-tenant-id", tenant)], body).status;
    let statuses = [
        ask("a", question(SAID[0])),
        ask("b", question(SAID[1])),
        ask("b", question(SAID[2])),
        ask("a", question("Please summarise the sales report of quarter 3 for the board")),
        ask("a", question("Please summarise the sales report of quarter 4 for the board")),
        ask("a", Chat::new("hello").user(SAID[1]).body()),
        ask("a", Chat::new("hello").user(SAID[2]).body()),
        ask("a", question("Which colours does the new logo have?")),
    ];
    assert_eq!(statuses, [200; 8]);
}

#[test]
fn a_similar_request_that_the_provider_could_not_answer_is_taken_back() {
    let lab = similar();
    lab.mock.script([Turn::status(503), Turn::status(503), Turn::text("ok")]);
    assert_eq!(SAID.map(|words| lab.chat(&[], question(words)).status), [503, 503, 200]);
}
