//! Tokens and money: what is estimated before is replaced by what was really used.

use loopbreaker_mock::{Turn, Usage};

use super::rules;
use crate::lab::Lab;
use crate::talk::question;
use crate::wire::request;

/// A question in each dialect that allows an answer of 100 tokens, streamed or not.
fn questions(streamed: bool) -> Vec<(&'static str, String)> {
    let gemini = if streamed {
        "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    } else {
        "/v1beta/models/gemini-2.5-pro:generateContent"
    };
    vec![
        (
            "/v1/chat/completions",
            format!(r#"{{"model":"gpt-4o","stream":{streamed},"max_tokens":100,"messages":[{{"role":"user","content":"hi"}}]}}"#),
        ),
        ("/v1/responses", format!(r#"{{"model":"gpt-4o","stream":{streamed},"max_output_tokens":100,"input":"hi"}}"#)),
        (
            "/v1/messages",
            format!(r#"{{"model":"claude-sonnet-4-5","stream":{streamed},"max_tokens":100,"messages":[{{"role":"user","content":"hi"}}]}}"#),
        ),
        (
            gemini,
            r#"{"generationConfig":{"maxOutputTokens":100},"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#.to_owned(),
        ),
    ]
}

#[test]
fn tokens_are_settled_with_what_the_provider_counted() {
    for streamed in [false, true] {
        for (path, body) in questions(streamed) {
            let lab = Lab::with(&rules("{ id: r, key: tenant, tokens: 1000, period: 1h }"));
            let usage = Usage { input: 150, cache_read: 50, output: 60, reasoning: 40, ..Usage::default() };
            lab.mock.script([Turn::text("one two three").usage(usage)]);
            // Each asks for about 130 and uses 300, so the fourth does not fit any more.
            let statuses: Vec<_> = (0..4).map(|_| lab.post(path, &[], &body).status).collect();
            assert_eq!(statuses, [200, 200, 200, 429], "{path} streamed: {streamed}");
            let line = &lab.logged(1)[0];
            let tokens = |kind: &str| line["tokens"][kind].as_u64().unwrap();
            // Anthropic counts what was thought among what was said.
            let told = [tokens("input"), tokens("cache_read"), tokens("output") + tokens("reasoning")];
            assert_eq!(told, [150, 50, 100], "{path} streamed: {streamed}");
            assert_eq!(line.get("tokens_estimated"), None);
        }
    }
}

#[test]
fn an_answer_that_was_shorter_than_thought_leaves_room_for_more() {
    let lab = Lab::with(&rules("{ id: r, key: tenant, tokens: 1000, period: 1h }"));
    lab.mock.script([Turn::text("ok").usage(Usage { input: 5, output: 5, ..Usage::default() })]);
    let body = r#"{"model":"gpt-4o","max_tokens":800,"messages":[{"role":"user","content":"hi"}]}"#;
    for index in 0..15 {
        assert_eq!(lab.chat(&[], body).status, 200, "{index}");
    }
}

#[test]
fn an_estimate_that_does_not_fit_is_refused_before_anything_is_spent() {
    let lab = Lab::with(&rules("{ id: r, key: tenant, tokens: 1000, period: 1h }"));
    let body = r#"{"model":"gpt-4o","max_tokens":1000,"messages":[{"role":"user","content":"hi"}]}"#;
    let refused = lab.chat(&[], body);
    assert_eq!(refused.code(), "budget_exceeded");
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("1000 of 1000 tokens left") && message.contains("max_tokens"), "{message}");
    assert!(!message.contains("wait"), "no time helps: {message}");
    assert_eq!(lab.sent(), 0);
}

#[test]
fn parallel_turns_cannot_overrun_a_budget() {
    let lab = Lab::with(&rules("{ id: r, key: tenant, tokens: 1000, period: 1h }"));
    let usage = Usage { input: 10, output: 400, ..Usage::default() };
    lab.mock.script([Turn::text("slow").usage(usage).delay_ms(200)]);
    let body = r#"{"model":"gpt-4o","max_tokens":400,"messages":[{"role":"user","content":"hi"}]}"#;
    let passed = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..10).map(|_| scope.spawn(|| lab.chat(&[], body).status)).collect();
        clients.into_iter().map(|client| client.join().unwrap()).filter(|status| *status == 200).count()
    });
    assert_eq!(passed, 2);
}

const PRICES: &str =
    "prices: { gpt-4o: { input: 10, output: 20, cache_read: 5 }, dear: { input: 10000, output: 20000 } }";

#[test]
fn money_is_counted_by_the_price_of_the_model() {
    let lab = Lab::with(&format!("{PRICES}\n{}", rules("{ id: budget, key: session, cost_usd: 0.50 }")));
    let usage = Usage { input: 10_000, output: 5_000, ..Usage::default() };
    lab.mock.script([Turn::text("ok").usage(usage)]);
    let body = r#"{"model":"gpt-4o","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}"#;
    let session = [("x-session-id", "s")];
    let statuses: Vec<_> = (0..4).map(|_| lab.chat(&session, body).status).collect();
    assert_eq!(statuses, [200, 200, 200, 429], "0.20 each");
    let refused = lab.chat(&session, body);
    assert_eq!(
        (refused.code().as_str(), refused.header("ratelimit")),
        ("budget_exceeded", Some("\"budget\";r=0"))
    );
    assert_eq!(refused.header("ratelimit-policy"), Some("\"budget\";q=50"));
    assert_eq!(lab.logged(1)[0]["cost_usd"].as_f64(), Some(0.2));
    assert_eq!(lab.metric(r#"loopbreaker_cost_usd_total{dialect="chat",tenant_class="key"}"#), 0.6);
}

#[test]
fn tokens_and_money_are_counted_for_agents_and_headers_too() {
    let usage = Usage { input: 10_000, output: 5_000, ..Usage::default() };
    let body = r#"{"model":"gpt-4o","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}"#;
    for (rule, header) in [
        ("{ id: r, key: agent, cost_usd: 0.30, period: 1d }", "x-agent-id"),
        ("{ id: r, key: \"header:x-team\", cost_usd: 0.30, period: 1d }", "x-team"),
        ("{ id: r, key: agent, tokens: 20000, period: 1h }", "x-agent-id"),
        ("{ id: r, key: \"header:x-team\", tokens_per_minute: 20000 }", "x-team"),
    ] {
        let lab = Lab::with(&format!("{PRICES}\n{}", rules(rule)));
        lab.mock.script([Turn::text("ok").usage(usage)]);
        let ask = |value: &str| lab.chat(&[(header, value)], body).status;
        assert_eq!([ask("one"), ask("one"), ask("one")], [200, 200, 429], "{rule}");
        assert_eq!(ask("two"), 200, "{rule}");
    }
}

#[test]
fn a_model_without_a_price_is_charged_at_the_dearest_and_reported() {
    let lab = Lab::with(&format!("{PRICES}\n{}", rules("{ id: budget, key: session, cost_usd: 10 }")));
    lab.mock.script([Turn::text("ok").usage(Usage { input: 1_000, output: 100, ..Usage::default() })]);
    let body = r#"{"model":"nobody-knows-me","max_tokens":10,"messages":[{"role":"user","content":"hi"}]}"#;
    assert_eq!(lab.chat(&[("x-session-id", "s")], body).status, 200);
    let line = &lab.logged(1)[0];
    assert_eq!(line["price_unknown"], true);
    assert!(line["cost_usd"].as_f64().unwrap() > 0.0);
}

/// How many tokens were counted for an answer that did not end well.
fn counted_after(lab: &Lab) -> u64 {
    let line = &lab.logged(1)[0];
    assert_eq!(line["tokens_estimated"], true);
    line["tokens"]["output"].as_u64().unwrap()
}

#[test]
fn a_stream_that_the_client_leaves_is_paid_as_far_as_it_was_seen() {
    let lab = Lab::with(&rules("{ id: r, key: tenant, tokens: 2000, period: 1h }"));
    lab.mock.script([Turn::text("word ".repeat(2_000)).chunk_delay_ms(1)]);
    let body =
        r#"{"model":"gpt-4o","stream":true,"max_tokens":1800,"messages":[{"role":"user","content":"hi"}]}"#;
    let mut wire = lab.wire();
    wire.send(&request(
        "POST",
        "/v1/chat/completions",
        &[("authorization", "Bearer sk-test")],
        body.as_bytes(),
    ));
    wire.head();
    let mut seen = 0;
    while seen < 300 {
        seen += String::from_utf8_lossy(&wire.chunk().unwrap()).matches("word").count();
    }
    drop(wire);
    let counted = counted_after(&lab);
    assert!((300..1_800).contains(&counted), "{counted}");
    assert_eq!(lab.chat(&[], body).status, 429, "it was not paid back whole");
}

#[test]
fn a_stream_that_the_provider_breaks_is_paid_as_far_as_it_was_seen() {
    let lab = Lab::with(&rules("{ id: r, key: tenant, tokens: 2000, period: 1h }"));
    lab.mock.script([Turn { drop_after: Some(400), ..Turn::text("word ".repeat(2_000)) }]);
    let body =
        r#"{"model":"gpt-4o","stream":true,"max_tokens":1800,"messages":[{"role":"user","content":"hi"}]}"#;
    let mut wire = lab.wire();
    wire.send(&request(
        "POST",
        "/v1/chat/completions",
        &[("authorization", "Bearer sk-test")],
        body.as_bytes(),
    ));
    wire.head();
    while let Some(Some(_)) = wire.try_chunk() {}
    let counted = counted_after(&lab);
    assert!((300..1_800).contains(&counted), "{counted}");
    assert_eq!(lab.chat(&[], body).status, 429);
}

#[test]
fn a_budget_that_is_smaller_than_our_guess_at_an_answer_is_used_up_by_what_answers_take() {
    let lab = Lab::with(&rules("{ id: r, key: tenant, tokens: 100, period: 1h }"));
    lab.mock.script([Turn::text("ok").usage(Usage { input: 30, output: 10, ..Usage::default() })]);
    let statuses: Vec<u16> =
        (0..4).map(|number| lab.chat(&[], question(&number.to_string())).status).collect();
    assert_eq!(statuses, [200, 200, 429, 429]);
}
