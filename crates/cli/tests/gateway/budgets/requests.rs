//! How many requests are let through, for whom, and what is done beyond.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use loopbreaker_mock::Turn;

use super::rules;
use crate::lab::{Bench, Lab, until};
use crate::talk::{Chat, question};
use crate::wire::request;

/// The statuses of different questions with these headers.
fn statuses(lab: &Lab, count: usize, headers: &[(&str, &str)]) -> Vec<u16> {
    (0..count).map(|index| lab.chat(headers, question(&format!("question {index}"))).status).collect()
}

#[test]
fn of_several_rules_that_are_used_up_the_one_that_takes_longest_says_when_to_come_back() {
    let (minute, day) = (
        "{ id: rpm, key: tenant, requests_per_minute: 2 }",
        "{ id: day, key: tenant, requests: 2, period: 1d }",
    );
    for both in [[minute, day], [day, minute]] {
        let lab = Lab::with(&rules(&both.join(", ")));
        assert_eq!(statuses(&lab, 2, &[]), [200, 200]);
        let reply = lab.chat(&[], question("one more"));
        assert_eq!(reply.status, 429);
        let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!(wait > 61, "{wait}");
        assert!(reply.header("ratelimit").unwrap().starts_with("\"day\""), "{both:?}");
    }
}

#[test]
fn a_budget_that_is_used_up_says_so_in_every_dialect() {
    let lab = Lab::with(&rules("{ id: rpm, key: tenant, requests_per_minute: 2 }"));
    let acme = [("x-tenant-id", "acme")];
    assert_eq!(statuses(&lab, 2, &acme), [200, 200]);
    let chat = lab.chat(&acme, question("one more"));
    assert_eq!((chat.status, chat.code().as_str()), (429, "budget_exceeded"));
    assert_eq!(chat.json()["error"]["type"], "budget_exceeded");
    assert_eq!(chat.header("x-should-retry"), Some("false"));
    let wait: u64 = chat.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=61).contains(&wait), "{wait}");
    assert_eq!(chat.header("ratelimit"), Some(format!("\"rpm\";r=0;t={wait}").as_str()));
    assert_eq!(chat.header("ratelimit-policy"), Some("\"rpm\";q=2;w=60"));
    assert_eq!(chat.header("x-loopbreaker-verdict"), Some("reject"));
    let anthropic = lab.post("/v1/messages", &acme, r#"{"model":"c","max_tokens":1,"messages":[]}"#).json();
    assert_eq!(anthropic["error"]["type"], "rate_limit_error");
    assert!(anthropic["error"]["message"].as_str().unwrap().starts_with("budget_exceeded: "));
    let gemini = lab.post("/v1beta/models/g:generateContent", &acme, r#"{"contents":[]}"#).json();
    assert_eq!(gemini["error"]["details"][0]["reason"], "budget_exceeded");
    assert_eq!(lab.sent(), 2);
}

#[test]
fn tenants_sessions_agents_and_headers_have_budgets_of_their_own() {
    let keys = [
        ("tenant", "x-tenant-id"),
        ("session", "x-session-id"),
        ("agent", "x-agent-id"),
        ("\"header:x-team\"", "x-team"),
    ];
    for (key, header) in keys {
        let lab = Lab::with(&rules(&format!("{{ id: r, key: {key}, requests: 2, period: 1h }}")));
        assert_eq!(statuses(&lab, 3, &[(header, "one")]), [200, 200, 429], "{key}");
        assert_eq!(statuses(&lab, 3, &[(header, "two")]), [200, 200, 429], "{key}");
    }
}

#[test]
fn a_budget_of_a_session_is_one_for_each_tenant() {
    let lab = Lab::with(&rules("{ id: r, key: session, requests: 1 }"));
    for tenant in ["plumless", "buckeroo"] {
        assert_eq!(statuses(&lab, 2, &[("x-tenant-id", tenant), ("x-session-id", "s")]), [200, 429]);
    }
}

#[test]
fn many_clients_at_once_get_exactly_what_there_is() {
    let lab = Lab::with(&rules("{ id: r, key: tenant, requests: 100, period: 1h }"));
    let (passed, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for client in 0..64 {
            let (lab, passed, refused) = (&lab, &passed, &refused);
            scope.spawn(move || {
                let mut wire = lab.wire();
                for turn in 0..5 {
                    let body = question(&format!("client {client} turn {turn}"));
                    wire.send(&request("POST", "/v1/chat/completions", &[], body.as_bytes()));
                    let counter = match wire.reply().status {
                        200 => passed,
                        429 => refused,
                        status => panic!("{status}"),
                    };
                    counter.fetch_add(1, Ordering::AcqRel);
                }
            });
        }
    });
    assert_eq!((passed.load(Ordering::Acquire), refused.load(Ordering::Acquire)), (100, 220));
    assert_eq!(lab.sent(), 100);
}

#[test]
fn a_fork_of_a_conversation_is_paid_by_its_account() {
    let lab = Lab::with(&rules("{ id: r, key: session, requests: 3 }"));
    let ask = |chat: Chat| lab.chat(&[], chat.body()).status;
    let begin = || Chat::new("the task");
    assert_eq!(ask(begin()), 200);
    assert_eq!(ask(begin().call("ls", "a").user("go on")), 200);
    assert_eq!(ask(begin().call("pwd", "/").user("go on")), 200, "a fork");
    assert_eq!(ask(begin().call("id", "0").user("go on")), 429, "another one");
    assert_eq!(ask(Chat::new("another task")), 200);
}

#[test]
fn what_the_provider_failed_is_paid_back() {
    let lab = Lab::with(&rules("{ id: r, key: tenant, requests: 2, period: 1h }"));
    lab.mock.script([Turn::status(500)]);
    assert_eq!(statuses(&lab, 4, &[]), [500; 4]);
    lab.mock.script([Turn::text("fine")]);
    assert_eq!(statuses(&lab, 3, &[]), [200, 200, 429]);
}

#[test]
fn what_never_reached_the_provider_is_paid_back() {
    let config = format!(
        "{}\nupstreams: {{ breaker: {{ failures: 1000 }} }}",
        rules("{ id: r, key: tenant, requests: 2, period: 1h }")
    );
    let lab = Bench::new().config(&config).upstream("http://127.0.0.1:1").start();
    assert_eq!(statuses(&lab, 5, &[]), [502; 5]);
}

#[test]
fn what_was_refused_for_another_reason_costs_nothing() {
    let lab = Lab::with(
        "policies: [{ id: p, spec: { loop_detection: { enabled: true, window_seconds: 60, threshold_identical_requests: 2, action: reject }, \
         rules: [{ id: r, key: tenant, requests: 2, period: 1h }] } }]",
    );
    let ask = |words: &str| lab.chat(&[], question(words)).code();
    assert_eq!(ask("a"), "");
    assert_eq!([ask("a"), ask("a"), ask("a")], ["loop_detected"; 3]);
    assert_eq!(ask("b"), "");
    assert_eq!(ask("c"), "budget_exceeded");
}

#[test]
fn a_warning_or_a_finding_in_shadow_never_skips_a_budget() {
    let lab = Lab::with(
        "policies:\n  \
         - { id: shadow, spec: { mode: shadow, loop_detection: { enabled: true, window_seconds: 60, threshold_identical_requests: 2 } } }\n  \
         - { id: warn, spec: { loop_detection: { enabled: true, window_seconds: 60, threshold_identical_requests: 2, action: warn } } }\n  \
         - { id: budget, spec: { rules: [{ id: r, key: tenant, requests: 3, period: 1h }] } }\n",
    );
    let same: Vec<_> = (0..4).map(|_| lab.verdict(&[], question("the same"))).collect();
    assert_eq!(
        same,
        [(200, "allow"), (200, "warn"), (200, "warn"), (429, "reject")]
            .map(|(status, verdict)| (status, verdict.to_owned()))
    );
    assert_eq!(lab.chat(&[], question("the same")).code(), "budget_exceeded");
}

#[test]
fn every_rule_holds() {
    let lab = Lab::with(&rules(
        "{ id: wide, key: tenant, requests: 3, period: 1h }, { id: narrow, key: session, requests: 2 }",
    ));
    assert_eq!(statuses(&lab, 3, &[("x-session-id", "one")]), [200, 200, 429]);
    let refused = lab.chat(&[("x-session-id", "one")], question("x"));
    assert!(refused.header("ratelimit").unwrap().starts_with("\"narrow\""));
    assert_eq!(
        statuses(&lab, 2, &[("x-session-id", "two")]),
        [200, 429],
        "what was refused has cost nothing"
    );
}

#[test]
fn stages_are_told_once_on_the_way_and_their_verdict_is_a_warning() {
    let lab = Lab::with(&rules("{ id: r, key: tenant, requests: 4, period: 1h, warn_at: [0.5, 0.75] }"));
    let told: Vec<_> = (0..5)
        .map(|index| {
            let reply = lab.chat(&[], question(&format!("question {index}")));
            let header = |name| reply.header(name).unwrap_or("-").to_owned();
            (header("x-loopbreaker-verdict"), header("x-loopbreaker-budget"))
        })
        .collect();
    let told: Vec<_> = told.iter().map(|(verdict, stage)| (&**verdict, &**stage)).collect();
    let (half, most) = (("warn", "rule=r; stage=0.5"), ("warn", "rule=r; stage=0.75"));
    assert_eq!(told, [("allow", "-"), half, most, ("allow", "-"), ("reject", "-")]);
}

#[test]
fn a_rule_that_only_warns_lets_everything_pass() {
    let lab = Lab::with(&rules("{ id: r, key: tenant, requests: 1, period: 1h, on_exceed: warn }"));
    let verdicts: Vec<_> = (0..3).map(|index| lab.verdict(&[], question(&index.to_string()))).collect();
    assert_eq!(verdicts, [(200, "allow".into()), (200, "warn".into()), (200, "warn".into())]);
}

#[test]
fn a_rule_that_throttles_lets_it_pass_later() {
    let lab = Lab::with(&rules("{ id: r, key: tenant, requests: 1, period: 1h, on_exceed: throttle }"));
    assert_eq!(lab.verdict(&[], question("a")), (200, "allow".into()));
    let began = Instant::now();
    assert_eq!(lab.verdict(&[], question("b")), (200, "throttle".into()));
    assert!(began.elapsed() >= Duration::from_millis(500));
}

#[test]
fn a_rule_that_pauses_holds_the_session_and_then_asks_to_come_back() {
    let config = format!(
        "pause: {{ hold: 300ms }}\n{}",
        rules("{ id: r, key: session, requests: 1, on_exceed: pause }")
    );
    let lab = Lab::with(&config);
    let session = [("x-session-id", "s")];
    assert_eq!(lab.verdict(&session, question("a")), (200, "allow".into()));
    let began = Instant::now();
    let held = lab.chat(&session, question("b"));
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert_eq!((held.status, held.header("x-loopbreaker-verdict")), (429, Some("pause")));
    assert_eq!(held.header("x-should-retry"), Some("true"));
    assert!(held.header("retry-after").is_some());
    assert_eq!(lab.chat(&[("x-session-id", "other")], question("b")).status, 200);
}

#[test]
fn a_call_that_a_rule_paused_goes_on_when_the_session_is_resumed_and_the_next_one_is_paused_again() {
    let config = format!(
        "pause: {{ hold: 20s }}\n{}",
        rules("{ id: r, key: session, requests: 1, on_exceed: pause }")
    );
    let lab = Lab::with(&config);
    let session = [("x-session-id", "s")];
    assert_eq!(lab.verdict(&session, question("a")), (200, "allow".into()));
    let held = std::thread::scope(|scope| {
        let held = scope.spawn(|| lab.chat(&session, question("b")));
        until("it is held", || lab.metric("loopbreaker_held") == 1.0);
        lab.post("/api/v1/sessions/s/resume", &[], "");
        held.join().expect("it is answered")
    });
    assert_eq!(held.status, 200);
    let next = std::thread::scope(|scope| {
        let next = scope.spawn(|| lab.chat(&session, question("c")));
        until("it is held", || lab.metric("loopbreaker_held") == 1.0);
        lab.post("/api/v1/sessions/s/reject", &[], "{}");
        next.join().expect("it is answered")
    });
    assert_eq!(next.status, 403);
}

#[test]
fn a_call_that_comes_back_after_its_pause_was_lifted_is_told_of_no_hint_where_there_is_none() {
    let config = format!(
        "pause: {{ hold: 50ms }}\n{}",
        rules("{ id: r, key: session, requests: 1, on_exceed: pause }")
    );
    let lab = Lab::with(&config);
    let session = [("x-session-id", "s")];
    assert_eq!(lab.verdict(&session, question("a")), (200, "allow".into()));
    assert_eq!(lab.verdict(&session, question("b")), (429, "pause".into()));
    assert_eq!(lab.post("/api/v1/sessions/s/resume", &[], "").status, 200);
    assert_eq!(lab.verdict(&session, question("b")), (200, "allow".into()));
}

#[test]
fn a_budget_in_shadow_refuses_nobody() {
    let lab = Lab::with(
        "policies: [{ id: p, spec: { mode: shadow, rules: [{ id: r, key: tenant, requests: 1, period: 1h }] } }]",
    );
    assert_eq!(statuses(&lab, 4, &[]), [200; 4]);
}
