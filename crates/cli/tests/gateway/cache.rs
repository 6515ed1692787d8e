//! Answers that are given again.

use std::thread::sleep;
use std::time::Duration;

use loopbreaker_mock::{Turn, Usage};
use serde_json::Value;

use crate::lab::{Bench, Lab, until};
use crate::provider::Provider;
use crate::talk::{Chat, question};
use crate::wire::{Reply, answer, chunk, request};

/// A policy with this cache and whatever else.
fn caching(cache: &str, rest: &str) -> String {
    format!("policies: [{{ id: p, spec: {{ cache: {{ enabled: true{cache} }}{rest} }} }}]")
}

fn lab(cache: &str) -> Lab {
    let lab = Lab::with(&caching(cache, ""));
    lab.mock.script((1..20).map(|number| Turn::text(format!("answer {number}"))));
    lab
}

fn is_hit(reply: &Reply) -> bool {
    let told = reply.header("x-loopbreaker-cache");
    assert!(told.is_none_or(|told| told.starts_with("hit; age=")), "{told:?}");
    told.is_some()
}

/// Whether the second of two requests is answered from the cache.
fn hits(lab: &Lab, first: &str, second: &str) -> bool {
    assert!(!is_hit(&lab.chat(&[], first)));
    is_hit(&lab.chat(&[], second))
}

#[test]
fn an_equal_request_gets_the_same_bytes_and_the_provider_is_not_asked() {
    let lab = lab("");
    let first = lab.chat(&[], question("hello"));
    assert!(!is_hit(&first));
    let again = lab.chat(&[], question("hello"));
    assert_eq!(again.header("x-loopbreaker-cache"), Some("hit; age=0"));
    assert_eq!(again.header("x-loopbreaker-verdict"), Some("allow"));
    assert_eq!(again.header("content-type"), first.header("content-type"));
    assert_eq!((again.status, again.body), (first.status, first.body));
    assert_eq!(lab.sent(), 1);
}

#[test]
fn key_order_and_white_space_do_not_matter_and_everything_else_does() {
    let lab = lab("");
    let body = r#"{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}"#;
    assert!(hits(&lab, body, r#"{"messages": [{"content":"hi","role":"user"}], "model": "gpt-4o"}"#));
    for other in [
        r#"{"model":"gpt-4o-mini","messages":[{"role":"user","content":"hi"}]}"#,
        r#"{"model":"gpt-4o","messages":[{"role":"user","content":"hi!"}]}"#,
        r#"{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}],"max_tokens":7}"#,
        r#"{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}],"stream":true}"#,
    ] {
        assert!(!is_hit(&lab.chat(&[], other)), "{other}");
    }
    assert!(!is_hit(&lab.chat(&[("accept-encoding", "gzip")], body)), "another form may come back");
}

#[test]
fn without_a_word_in_the_config_nothing_is_given_again() {
    let lab = Lab::new();
    assert!(!hits(&lab, &question("hello"), &question("hello")));
    let off = Lab::with("policies: [{ id: p, spec: { cache: { enabled: false } } }]");
    assert!(!hits(&off, &question("hello"), &question("hello")));
}

#[test]
fn a_policy_in_shadow_gives_nothing_again() {
    let lab = Lab::with(&caching("", ", mode: shadow"));
    assert!(!hits(&lab, &question("hello"), &question("hello")));
    assert_eq!(lab.sent(), 2);
}

#[test]
fn a_stream_is_given_again_as_a_stream_in_the_same_pieces() {
    const PIECES: [&str; 4] = [
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hé\"}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"llo\"}}]}\n\n: a comment\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: [DONE]\n\n",
    ];
    let provider = Provider::doing(|conversation| {
        while conversation.asked().is_some() {
            let wire = &mut conversation.wire;
            wire.send(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
            );
            for piece in PIECES {
                wire.send(&chunk(piece.as_bytes()));
            }
            wire.send(b"0\r\n\r\n");
        }
    });
    let lab = Bench::new().config(&caching("", "")).upstream(provider.url()).start();
    let body = r#"{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let first = lab.chat(&[], body);
    let again = lab.chat(&[], body);
    assert!(is_hit(&again));
    assert_eq!(again.header("content-type"), Some("text/event-stream"));
    assert_eq!(again.header("transfer-encoding"), Some("chunked"), "a stream has no length");
    assert_eq!(again.text(), PIECES.concat());
    assert_eq!(again.body, first.body);
    assert_eq!(provider.seen().len(), 1);
}

#[test]
fn every_dialect_is_given_again_whole_and_streamed() {
    let lab = lab("");
    let contents = r#""contents":[{"role":"user","parts":[{"text":"hi"}]}]"#;
    let messages = r#""messages":[{"role":"user","content":"hi"}]"#;
    for (path, body) in [
        ("/v1/chat/completions", format!(r#"{{"model":"m",{messages}}}"#)),
        ("/v1/chat/completions", format!(r#"{{"model":"m","stream":true,{messages}}}"#)),
        ("/v1/messages", format!(r#"{{"model":"m","max_tokens":9,{messages}}}"#)),
        ("/v1/messages", format!(r#"{{"model":"m","max_tokens":9,"stream":true,{messages}}}"#)),
        ("/v1/responses", r#"{"model":"m","input":"hi"}"#.to_owned()),
        ("/v1/responses", r#"{"model":"m","input":"hi","stream":true}"#.to_owned()),
        ("/v1beta/models/m:generateContent", format!("{{{contents}}}")),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", format!("{{{contents}}}")),
    ] {
        let headers = [match path.split_once("/v1beta") {
            Some(_) => ("x-goog-api-key", "k"),
            None if path == "/v1/messages" => ("x-api-key", "k"),
            None => ("authorization", "Bearer k"),
        }];
        let first = lab.post(path, &headers, &body);
        let again = lab.post(path, &headers, &body);
        assert!(is_hit(&again) && !is_hit(&first), "{path} {body}\n{}", first.text());
        assert_eq!(again.body, first.body, "{path}");
        assert_eq!(again.header("content-type"), first.header("content-type"));
    }
    assert_eq!(lab.sent(), 8);
}

#[test]
fn tenants_never_share_an_answer() {
    let lab = lab("");
    for tenant in ["plumless", "buckeroo", "a", "a:b", "*"] {
        let first = lab.chat(&[("x-tenant-id", tenant)], question("a secret"));
        assert!(!is_hit(&first), "{tenant}");
        let again = lab.chat(&[("x-tenant-id", tenant)], question("a secret"));
        assert!(is_hit(&again) && again.body == first.body, "{tenant}");
    }
    let key = |key| lab.post("/v1/chat/completions", &[("authorization", key)], question("a secret"));
    assert!(!is_hit(&key("Bearer sk-1")));
    assert!(!is_hit(&key("Bearer sk-2")));
    assert!(is_hit(&key("Bearer sk-1")));
}

#[test]
fn a_key_of_the_same_tenant_gets_only_what_it_has_asked_for_itself() {
    let lab = lab("");
    let ask = |key| {
        let headers = [("x-tenant-id", "acme"), ("authorization", key)];
        is_hit(&lab.post("/v1/chat/completions", &headers, question("hello")))
    };
    assert!(!ask("Bearer sk-good"));
    assert!(!ask("Bearer sk-revoked"), "the provider decides who may ask");
    assert!(ask("Bearer sk-good"));
}

#[test]
fn an_answer_is_forgotten_when_its_time_is_over() {
    let lab = lab(", ttl: 300ms");
    assert!(hits(&lab, &question("hello"), &question("hello")));
    until("it is too old", || !is_hit(&lab.chat(&[], question("hello"))));
    assert_eq!(lab.sent(), 2);
}

#[test]
fn the_age_is_told_in_seconds() {
    let lab = lab("");
    lab.chat(&[], question("hello"));
    sleep(Duration::from_millis(1_100));
    let age = lab.chat(&[], question("hello")).header("x-loopbreaker-cache").unwrap().to_owned();
    let age: u64 = age.strip_prefix("hit; age=").unwrap().parse().unwrap();
    assert!((1..20).contains(&age), "{age}");
}

#[test]
fn the_oldest_answers_make_room_for_new_ones() {
    let long = "word ".repeat(400);
    let lab = Lab::with(&caching(", max_bytes: 16KiB", ""));
    lab.mock.script([Turn::text(long)]);
    for number in 0..10 {
        assert!(!is_hit(&lab.chat(&[], question(&format!("question {number}")))));
    }
    assert!(is_hit(&lab.chat(&[], question("question 9"))));
    assert!(!is_hit(&lab.chat(&[], question("question 0"))));
    let bytes = lab.metric("loopbreaker_cache_bytes");
    assert!((1.0..=16_384.0).contains(&bytes), "{bytes}");
}

#[test]
fn an_answer_that_calls_a_tool_that_writes_is_never_given_again() {
    let reads = r#"{"path":"a.rs"}"#;
    let config = "redundancy: { tools: { page: { effect: write }, note: { effect: read } } }\n".to_owned();
    let lab = Lab::with(&(config + &caching("", "")));
    for (tool, args, is_kept) in [
        ("read_file", reads, true),
        ("note", "{}", true),
        ("page", "{}", false),
        ("write_file", reads, false),
        ("bash", r#"{"command":"rm -r build"}"#, false),
        ("bash", r#"{"command":"ls"}"#, true),
    ] {
        lab.mock.script([Turn::call(tool, args)]);
        let body = question(&format!("{tool} {args}"));
        assert_eq!(hits(&lab, &body, &body), is_kept, "{tool} {args}");
    }
}

#[test]
fn a_request_with_a_call_that_wrote_is_never_given_an_answer_again() {
    let lab = lab("");
    let read = Chat::new("fix it").call("ls", "a.txt").body();
    assert!(hits(&lab, &read, &read));
    let wrote = Chat::new("fix it").call("rm a.txt", "").call("ls", "b.txt").body();
    assert!(!hits(&lab, &wrote, &wrote));
}

#[test]
fn only_the_tools_that_are_named_may_be_called_again() {
    let lab = Lab::with(&caching(", tools: [\"read_*\"]", ""));
    for (tool, is_kept) in [("read_file", true), ("list_files", false)] {
        lab.mock.script([Turn::call(tool, "{}")]);
        let body = question(tool);
        assert_eq!(hits(&lab, &body, &body), is_kept, "{tool}");
    }
}

#[test]
fn a_sampled_answer_is_given_again_only_where_that_is_allowed() {
    let sampled = r#"{"model":"m","temperature":0.7,"messages":[{"role":"user","content":"hi"}]}"#;
    let steady = r#"{"model":"m","temperature":0,"messages":[{"role":"user","content":"hi"}]}"#;
    let careful = lab("");
    assert!(!hits(&careful, sampled, sampled));
    assert!(hits(&careful, steady, steady));
    assert!(hits(&lab(", allow_sampled: true"), sampled, sampled));
}

#[test]
fn only_whole_answers_that_ended_well_are_kept() {
    let lab = lab("");
    let stream = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    for (turn, body) in [
        (Turn::status(500), question("one")),
        (Turn::status(429), question("two")),
        (Turn { body: Some("no json".to_owned()), ..Turn::default() }, question("three")),
        (Turn { drop_after: Some(1), ..Turn::text("a b c d e f") }, stream.to_owned()),
    ] {
        lab.mock.script([turn, Turn::text("fine")]);
        let mut wire = lab.wire();
        let headers = [("authorization", "Bearer sk-test"), ("content-type", "application/json")];
        wire.send(&request("POST", "/v1/chat/completions", &headers, body.as_bytes()));
        drop(wire.try_reply());
        assert!(!is_hit(&lab.chat(&[], &body)), "{body}");
        assert!(is_hit(&lab.chat(&[], &body)), "the good one is: {body}");
    }
}

#[test]
fn an_answer_that_was_cut_by_its_length_is_not_kept() {
    let body = br#"{"choices":[{"index":0,"message":{"role":"assistant","content":"half a"},"finish_reason":"length"}]}"#;
    let provider = Provider::answering(answer("200 OK", &[("content-type", "application/json")], body));
    let lab = Bench::new().config(&caching("", "")).upstream(provider.url()).start();
    assert!(!hits(&lab, &question("hello"), &question("hello")));
}

#[test]
fn a_session_with_an_open_finding_asks_the_provider() {
    let lab = Lab::with(&caching("", ", tool_loops: { enabled: true, ladder: [warn] }"));
    let once = Chat::new("look").again(1).body();
    assert!(hits(&lab, &once, &once));
    let looping = Chat::new("look").again(3).body();
    assert!(!hits(&lab, &looping, &looping));
}

#[test]
fn detectors_count_what_is_given_again() {
    let rest = ", loop_detection: { enabled: true, window_seconds: 60, threshold_identical_requests: 3, action: reject }";
    let lab = Lab::with(&caching("", rest));
    assert!(hits(&lab, &question("hello"), &question("hello")));
    let third = lab.chat(&[], question("hello"));
    assert_eq!((third.status, is_hit(&third)), (429, false));
}

#[test]
fn what_is_given_again_costs_nothing() {
    let rest = ", rules: [{ id: r, key: tenant, requests: 2, period: 1h }, { id: t, key: tenant, tokens: 100000, period: 1h }]";
    let lab = Lab::with(&caching("", rest));
    lab.mock.script([Turn::text("fine").usage(Usage { input: 40, output: 2, ..Usage::default() })]);
    for _ in 0..5 {
        assert_eq!(lab.chat(&[], question("hello")).status, 200);
    }
    let lines = lab.logged(5);
    assert_eq!(lines[0]["tokens"]["input"], 40);
    assert_eq!((&lines[0]["cache"], &lines[4]["cache"]), (&Value::Null, &Value::from("hit")));
    assert!(lines[1..].iter().all(|line| line["tokens"].is_null() && line["cost_usd"] == 0.0));
    assert_eq!(lab.chat(&[], question("another")).status, 200, "only one of five was counted");
    assert_eq!(lab.chat(&[], question("a third")).status, 429);
}

#[test]
fn metrics_and_the_decision_log_tell_of_it() {
    let lab = lab("");
    let headers = [("x-session-id", "run-1")];
    lab.chat(&headers, question("hello"));
    lab.chat(&headers, question("hello"));
    assert_eq!(lab.metric("loopbreaker_cache_total{result=\"hit\"}"), 1.0);
    assert_eq!(lab.metric("loopbreaker_cache_total{result=\"miss\"}"), 1.0);
    assert_eq!(lab.metric("loopbreaker_cache_total{result=\"stored\"}"), 1.0);
    until("the log has the step", || {
        let steps = lab.get("/api/v1/sessions/run-1/steps").text();
        steps.contains("\"cache\":\"hit\"")
    });
}

#[test]
fn a_client_may_ask_for_a_new_answer() {
    let lab = lab("");
    let first = lab.chat(&[], question("hello"));
    let fresh = lab.chat(&[("cache-control", "no-cache")], question("hello"));
    assert!(!is_hit(&fresh) && fresh.body != first.body);
    let again = lab.chat(&[], question("hello"));
    assert!(is_hit(&again) && again.body == fresh.body, "the new one has taken its place");
    assert!(!is_hit(&lab.chat(&[("cache-control", "no-store")], question("hello"))));
}

#[test]
fn what_the_provider_keeps_itself_is_asked_for() {
    let lab = lab("");
    for body in [
        r#"{"model":"m","previous_response_id":"resp_1","input":"go on"}"#,
        r#"{"model":"m","conversation":"conv_1","input":"go on"}"#,
    ] {
        for _ in 0..2 {
            assert!(!is_hit(&lab.post("/v1/responses", &[("authorization", "Bearer k")], body)), "{body}");
        }
    }
}

#[test]
fn a_tool_that_is_marked_as_writing_by_a_reload_is_not_called_again() {
    let lab = Lab::with(&caching("", ""));
    lab.mock.script([Turn::call("read_file", "{}")]);
    assert!(hits(&lab, &question("hello"), &question("hello")));
    lab.reconfigure(&format!(
        "redundancy: {{ tools: {{ read_file: {{ effect: write }} }} }}\n{}",
        caching("", "")
    ));
    until("the new config is in force", || !is_hit(&lab.chat(&[], question("hello"))));
}

#[test]
fn other_words_for_the_same_get_the_same_answer_where_that_is_wanted() {
    let config = "semantic: { timeout: 10s, threshold: 0.9 }\n".to_owned();
    let lab = Lab::with(&(config + &caching(", similarity: semantic", "")));
    lab.mock.script((1..100).map(|number| Turn::text(format!("answer {number}"))));
    let asked = "Which tickets of the billing team are open since Monday?";
    lab.chat(&[], question(asked));
    // The model is loaded when it is first needed; until then everything goes to the provider.
    let mut paraphrase = asked.to_owned();
    until("other words are recognised", || {
        paraphrase.push_str(" Please!");
        let before = lab.sent();
        let again = lab.chat(&[], question(&paraphrase));
        assert_eq!(is_hit(&again), lab.sent() == before);
        is_hit(&again)
    });
    for other in [
        "Which tickets of the billing team are not open since Monday?",
        "Which tickets of the billing team are open since Friday?",
        "Which 3 tickets of the billing team are open since Monday?",
        "What is the name of the largest ocean?",
    ] {
        assert!(!is_hit(&lab.chat(&[], question(other))), "{other}");
    }
    let tenant = [("x-tenant-id", "another")];
    assert!(!is_hit(&lab.chat(&tenant, question(&paraphrase))));
}
