//! Enforce, shadow and off; the global shadow, the kill switch and the hold-out.

use crate::lab::{Lab, until};
use crate::talk::{looping, question};

/// A policy in this mode that would refuse nearly everything.
fn strict(mode: &str) -> String {
    format!(
        "policies: [{{ id: p, spec: {{ mode: {mode}, loop_detection: {{ enabled: true, window_seconds: 60, threshold_identical_requests: 2, \
         action: reject }}, tool_loops: {{ enabled: true, ladder: [reject] }}, \
         rules: [{{ id: r, key: tenant, requests: 1, period: 1h }}] }} }}]"
    )
}

/// What a client can see of three equal requests whose transcript loops.
fn seen_by_a_client(lab: &Lab) -> Vec<(u16, Vec<String>)> {
    let replies = (0..3).map(|_| lab.chat(&[("x-session-id", "s")], looping("fix it", 6)));
    replies.map(|reply| (reply.status, reply.ours())).collect()
}

fn in_the_shadow() -> Vec<(u16, Vec<String>)> {
    vec![(200, vec!["x-loopbreaker-session".to_owned()]); 3]
}

#[test]
fn a_policy_in_shadow_changes_nothing_that_a_client_can_see() {
    let lab = Lab::with(&strict("shadow"));
    assert_eq!(seen_by_a_client(&lab), in_the_shadow());
    for request in lab.mock.requests() {
        assert_eq!(request.body, looping("fix it", 6).as_bytes());
    }
    assert!(lab.metric(r#"loopbreaker_findings_total{kind="repeat",severity="loop",mode="shadow"}"#) >= 3.0);
    assert_eq!(
        lab.metric(r#"loopbreaker_findings_total{kind="identical_request",severity="loop",mode="shadow"}"#),
        2.0
    );
    assert_eq!(lab.logged(3)[2]["findings"][0]["mode"], "shadow");
}

#[test]
fn the_same_policy_enforced_refuses() {
    let lab = Lab::with(&strict("enforce"));
    assert_eq!(seen_by_a_client(&lab).last().unwrap().0, 429);
}

#[test]
fn a_policy_that_is_off_sees_nothing() {
    let lab = Lab::with(&strict("off"));
    assert!(seen_by_a_client(&lab).iter().all(|(status, _)| *status == 200));
    assert_eq!(lab.logged(3)[2]["findings"], serde_json::json!([]));
}

#[test]
fn the_global_shadow_turns_every_policy_to_shadow() {
    let lab = Lab::with(&format!("global_shadow: true\n{}", strict("enforce")));
    assert_eq!(seen_by_a_client(&lab), in_the_shadow());
}

#[test]
fn a_global_shadow_that_has_expired_holds_no_more() {
    let shadow =
        |end: &str| format!("global_shadow: {{ enabled: true, reason: roll-out, expires_at: {end} }}\n");
    let over = Lab::with(&(shadow("2020-01-01T00:00:00Z") + &strict("enforce")));
    assert_eq!(seen_by_a_client(&over).last().unwrap().0, 429);
    let on = Lab::with(&(shadow("2999-01-01T00:00:00Z") + &strict("enforce")));
    assert_eq!(seen_by_a_client(&on), in_the_shadow());
}

#[test]
fn counters_in_shadow_are_not_those_of_enforcement() {
    let lab = Lab::with(&format!("global_shadow: true\n{}", strict("enforce")));
    for _ in 0..5 {
        assert_eq!(lab.chat(&[], question("a")).status, 200);
    }
    lab.reconfigure(&strict("enforce"));
    crate::lab::until("the new config is in force", || {
        lab.metric(r#"loopbreaker_config_reloads_total{result="loaded"}"#) > 0.0
    });
    assert_eq!(lab.chat(&[], question("a")).status, 200, "it is the first that counts");
    assert_eq!(lab.chat(&[], question("a")).status, 429);
}

#[test]
fn a_kill_switch_refuses_its_tenant_at_once_in_every_dialect_and_nobody_else() {
    let lab = Lab::with("kill_switches: [{ tenant: acme, reason: runaway }]");
    let acme = [("x-tenant-id", "acme")];
    let chat = lab.chat(&acme, question("a"));
    assert_eq!((chat.status, chat.code().as_str()), (403, "kill_switch"));
    assert_eq!(chat.header("x-should-retry"), Some("false"));
    assert!(chat.text().contains("runaway"));
    let anthropic = lab.post("/v1/messages", &acme, "{}").json();
    assert_eq!(anthropic["error"]["type"], "permission_error");
    assert!(anthropic["error"]["message"].as_str().unwrap().starts_with("kill_switch: "));
    let gemini = lab.post("/v1beta/models/g:generateContent", &acme, "{}").json();
    assert_eq!(gemini["error"]["details"][0]["reason"], "kill_switch");
    assert_eq!(lab.ask("GET", "/v1/models", &acme, "").status, 403);
    assert_eq!(lab.sent(), 0);
    assert_eq!(lab.chat(&[("x-tenant-id", "acme2")], question("a")).status, 200);
    assert_eq!(lab.chat(&[], question("a")).status, 200);
}

#[test]
fn a_kill_switch_holds_for_web_sockets_too() {
    let lab = Lab::with("kill_switches: [{ tenant: acme }]");
    let upgrade = [("x-tenant-id", "acme"), ("connection", "upgrade"), ("upgrade", "websocket")];
    let reply = lab.ask("GET", "/v1/realtime", &upgrade, "");
    assert_eq!((reply.status, reply.code().as_str()), (403, "kill_switch"));
    assert_eq!(lab.sent(), 0);
}

#[test]
fn a_kill_switch_holds_in_the_global_shadow_and_ends_when_it_expires() {
    let lab = Lab::with("global_shadow: true\nkill_switches: [{ tenant: acme }]");
    assert_eq!(lab.chat(&[("x-tenant-id", "acme")], question("a")).status, 403);
    let lab = Lab::with("kill_switches: [{ tenant: acme, expires_at: 2020-01-01T00:00:00Z }]");
    assert_eq!(lab.chat(&[("x-tenant-id", "acme")], question("a")).status, 200);
}

#[test]
fn in_a_session_of_the_holdout_loops_are_only_observed() {
    let lab = Lab::with("holdout: 100%");
    for times in 1..8 {
        let (status, verdict) = lab.verdict(&[("x-session-id", "s")], looping("fix it", times));
        assert_eq!((status, verdict.as_str()), (200, "allow"));
    }
    for request in lab.mock.requests() {
        assert!(!String::from_utf8_lossy(&request.body).contains("Loopbreaker"));
    }
    assert!(lab.metric(r#"loopbreaker_findings_total{kind="repeat",severity="loop",mode="shadow"}"#) > 0.0);
}

#[test]
fn a_share_of_the_sessions_is_held_out_and_always_the_same_ones() {
    let lab = Lab::with("holdout: 50%");
    let held_out = || -> Vec<bool> {
        (0..40)
            .map(|index| {
                let session = format!("s{index}");
                lab.verdict(&[("x-session-id", &session)], looping(&session, 3)).1 == "allow"
            })
            .collect()
    };
    let first = held_out();
    let count = first.iter().filter(|held_out| **held_out).count();
    assert!((5..=35).contains(&count), "{count} of 40");
    assert_eq!(held_out(), first);
}

#[test]
fn whatever_else_refuses_a_request_a_kill_switch_says_why() {
    let policy = "policies: [{ id: p, spec: { tool_loops: { enabled: true }, loop_detection: { enabled: true, \
                  window_seconds: 60, threshold_identical_requests: 2, action: reject }, \
                  rules: [{ id: r, key: tenant, requests: 1, period: 1h }] } }]";
    let lab = Lab::with(&format!("kill_switches: [{{ tenant: acme }}]\n{policy}"));
    for times in [1, 2, 3, 4, 5, 6, 7, 7] {
        let reply = lab.chat(&[("x-tenant-id", "acme")], looping("fix it", times));
        assert_eq!((reply.status, reply.code().as_str()), (403, "kill_switch"), "{times}");
        assert_eq!(reply.header("retry-after"), None);
    }
}

#[test]
fn a_chant_in_an_answer_that_came_whole_is_told_of() {
    let lab = Lab::new();
    lab.mock.script([loopbreaker_mock::Turn::chant("and again the very same words, ", 100)]);
    assert_eq!(lab.chat(&[("x-session-id", "s")], question("a")).status, 200);
    until("it is written down", || {
        lab.get("/api/v1/sessions/s/findings").text().contains("\"kind\":\"chant\"")
    });
}

#[test]
fn a_chant_that_is_only_looked_at_is_charged_whole() {
    let policy = "policies: [{ id: p, spec: { mode: shadow, chant: { enabled: true, action: cut } } }]";
    let lab = Lab::with(policy);
    let usage = loopbreaker_mock::Usage { input: 7, output: 3_210, ..loopbreaker_mock::Usage::default() };
    lab.mock.script([loopbreaker_mock::Turn::chant("and again the very same words, ", 400).usage(usage)]);
    let asks = r#"{"stream":true,"stream_options":{"include_usage":true},"#;
    assert_eq!(lab.chat(&[], question("a").replacen('{', asks, 1)).status, 200);
    let line = &lab.logged(1)[0];
    assert_eq!((&line["findings"][0]["kind"], &line["tokens"]["output"]), (&"chant".into(), &3_210.into()));
}

#[test]
fn in_a_session_of_the_holdout_nothing_is_cut_and_equal_requests_are_only_counted() {
    let policy = "policies: [{ id: p, spec: { chant: { enabled: true, action: cut }, loop_detection: { enabled: true, \
                  window_seconds: 60, threshold_identical_requests: 2, action: reject } } }]";
    let lab = Lab::with(&format!("holdout: 100%\n{policy}"));
    lab.mock.script([loopbreaker_mock::Turn::chant("and again the very same words, ", 400)]);
    let body = question("a").replacen('{', r#"{"stream":true,"#, 1);
    let lengths: Vec<usize> = (0..3)
        .map(|_| {
            let reply = lab.chat(&[("x-session-id", "s")], &body);
            assert_eq!(reply.status, 200);
            reply.text().matches("again").count()
        })
        .collect();
    assert!(lengths.iter().all(|copies| *copies >= 400), "{lengths:?}");
}

#[test]
fn a_chant_behind_a_call_that_nobody_can_end_is_not_cut_but_told_of() {
    let call = r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\":"}}]}"#;
    let words = r#"{"content":"and again the very same words, "}"#;
    let event = |delta: &str| {
        let choice = [r#"data: {"choices":[{"index":0,"delta":"#, delta, "}]}\n\n"];
        choice.concat()
    };
    let body = event(call) + &event(words).repeat(100) + "data: [DONE]\n\n";
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunks = [&head[..], &crate::wire::chunk(body.as_bytes()), b"0\r\n\r\n"].concat();
    let provider = crate::provider::Provider::answering(chunks);
    let lab = crate::lab::Bench::new().upstream(provider.url()).start();
    let reply = lab.chat(&[], r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"go"}]}"#);
    assert_eq!(reply.text(), body);
    assert_eq!(lab.logged(1)[0]["findings"][0]["kind"], "chant");
    let told = r#"loopbreaker_findings_total{kind="chant",severity="loop",mode="enforce"}"#;
    assert_eq!(lab.metric(told), 1.0);
}
