//! Usage that only we ask for: the client neither sees the question nor the answer.

use loopbreaker_mock::{Turn, Usage};

use super::rules;
use crate::lab::{Bench, Lab};
use crate::provider::Provider;
use crate::talk::looping;
use crate::wire::chunk;

const STREAMED: &str = r#"{"model":"gpt-4o", "stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

fn script() -> Turn {
    Turn::text("one two three").usage(Usage { input: 7, output: 3, ..Usage::default() })
}

fn limited() -> Lab {
    Lab::with(&rules("{ id: r, key: tenant, tokens: 100000, period: 1h }"))
}

fn limited_with_ladder() -> Lab {
    Lab::with(
        "policies: [{ id: p, spec: { tool_loops: { enabled: true }, rules: [{ id: r, key: tenant, tokens: 100000, period: 1h }] } }]",
    )
}

#[test]
fn a_stream_under_a_token_rule_is_the_stream_that_the_client_asked_for() {
    let (free, limited) = (Lab::with("policies: [{ id: p, spec: {} }]"), limited());
    free.mock.script([script()]);
    limited.mock.script([script()]);
    let expected = free.chat(&[], STREAMED).text();
    assert!(!expected.contains("usage\":{"), "{expected}");
    // A provider that is asked says in every other chunk that it has no usage, as it may do at any time.
    assert_eq!(limited.chat(&[], STREAMED).text().replace("\"usage\":null,", ""), expected);
    assert_eq!(free.mock.requests()[0].body, STREAMED.as_bytes());
    let asked = String::from_utf8(limited.mock.requests()[0].body.to_vec()).unwrap();
    assert_eq!(asked, STREAMED.replacen('{', r#"{"stream_options":{"include_usage":true},"#, 1));
    assert_eq!(limited.logged(1)[0]["tokens"]["input"], 7);
}

#[test]
fn a_client_that_asks_for_usage_gets_it() {
    let lab = limited();
    lab.mock.script([script()]);
    let body =
        STREAMED.replace(r#""stream":true"#, r#""stream":true,"stream_options":{"include_usage":true}"#);
    let reply = lab.chat(&[], &body);
    assert!(reply.text().contains(r#""choices":[],"#), "{}", reply.text());
    assert_eq!(lab.mock.requests()[0].body, body.as_bytes(), "there was nothing to splice");
}

#[test]
fn a_policy_in_shadow_changes_nothing_of_what_is_sent() {
    let rule = rules("{ id: r, key: tenant, tokens: 100000, period: 1h }");
    for config in [format!("global_shadow: true\n{rule}"), rule.replace("spec: {", "spec: { mode: shadow,")] {
        let lab = Lab::with(&config);
        lab.mock.script([script()]);
        lab.chat(&[("accept-encoding", "gzip")], STREAMED);
        let sent = &lab.mock.requests()[0];
        assert_eq!(sent.body, STREAMED.as_bytes(), "{config}");
        assert_eq!(sent.header("accept-encoding"), Some("gzip"), "{config}");
        assert_eq!(lab.logged(1)[0]["tokens_estimated"], true, "{config}");
    }
}

#[test]
fn where_only_requests_are_counted_nothing_is_asked_for() {
    let lab = Lab::with(&rules("{ id: r, key: tenant, requests: 100, period: 1h }"));
    lab.chat(&[], STREAMED);
    assert_eq!(lab.mock.requests()[0].body, STREAMED.as_bytes());
}

#[test]
fn a_provider_that_does_not_know_the_question_is_asked_without_it() {
    let lab = limited();
    lab.mock.script([Turn {
        status_if_edited: Some(400),
        edited_mark: Some("include_usage".to_owned()),
        ..Turn::text("the answer")
    }]);
    let reply = lab.chat(&[], STREAMED);
    assert_eq!(reply.status, 200);
    assert!(reply.text().contains(" answer"), "{}", reply.text());
    assert_eq!(lab.mock.requests().last().unwrap().body, STREAMED.as_bytes());
    assert_eq!(lab.logged(1)[0]["tokens_estimated"], true);
}

#[test]
fn a_provider_that_does_not_know_the_question_is_asked_it_once_and_its_hints_are_not_to_blame() {
    let lab = limited_with_ladder();
    lab.mock.script([Turn {
        status_if_edited: Some(400),
        edited_mark: Some("include_usage".to_owned()),
        ..Turn::text("the answer")
    }]);
    let streamed = |times| looping("fix it", times).replacen('{', r#"{"stream":true,"#, 1);
    assert_eq!(
        lab.chat(&[], streamed(3)).header("x-loopbreaker-verdict"),
        Some("warn"),
        "it was told nothing"
    );
    assert_eq!(lab.sent(), 2);
    assert_eq!(lab.chat(&[], streamed(4)).header("x-loopbreaker-verdict"), Some("hint"));
    assert_eq!(lab.sent(), 3, "nobody asks again");
    let hinted = String::from_utf8(lab.mock.requests()[2].body.to_vec()).unwrap();
    assert!(hinted.contains(r#""messages":[{"role":"system","content":"[Loopbreaker]"#), "{hinted}");
}

#[test]
fn the_usage_chunk_is_taken_out_wherever_the_stream_is_cut() {
    let events = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}],\"usage\":null}\n\n\
                  data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,\"total_tokens\":13}}\n\n\
                  data: [DONE]\n\n";
    for size in [1, 2, 7, 64, 1_000] {
        let provider = Provider::doing(move |conversation| {
            conversation.asked();
            conversation.wire.send(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
            );
            for piece in events.as_bytes().chunks(size) {
                conversation.wire.send(&chunk(piece));
            }
            conversation.wire.send(b"0\r\n\r\n");
        });
        let config = rules("{ id: r, key: tenant, tokens: 100000, period: 1h }");
        let lab = Bench::new().config(&config).upstream(provider.url()).start();
        let text = lab.chat(&[], STREAMED).text();
        assert_eq!(
            text, "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}],\"usage\":null}\n\ndata: [DONE]\n\n",
            "in pieces of {size}"
        );
        let line = &lab.logged(1)[0];
        assert_eq!((line["tokens"]["input"].as_u64(), line["tokens"]["output"].as_u64()), (Some(9), Some(4)));
    }
}

#[test]
fn a_signed_body_is_not_asked_for_usage() {
    let lab = limited();
    let signed = [("authorization", "AWS4-HMAC-SHA256 Credential=x, SignedHeaders=host, Signature=y")];
    assert_eq!(lab.post("/v1/chat/completions", &signed, STREAMED).status, 200);
    assert_eq!(lab.mock.requests()[0].body, STREAMED.as_bytes());
    let system = r#"{"role":"system","content":"x-anthropic-billing-header: cc_version=2.1; cch=0a1b2;"}"#;
    let body = STREAMED.replacen(r#""messages":["#, &format!(r#""messages":[{system},"#), 1);
    assert_eq!(lab.chat(&[], &body).status, 200);
    assert_eq!(lab.mock.requests()[1].body, body.as_bytes());
}

#[test]
fn absurd_usage_costs_no_answer() {
    let usage = r#"{"prompt_tokens":18446744073709551615,"completion_tokens":18446744073709551615}"#;
    let body =
        format!(r#"{{"choices":[{{"message":{{"role":"assistant","content":"hi"}}}}],"usage":{usage}}}"#);
    let head = [("content-type", "application/json")];
    let provider = Provider::answering(crate::wire::answer("200 OK", &head, body.as_bytes()));
    let lab = Bench::new()
        .config(&rules("{ id: r, key: tenant, tokens: 100000, period: 1h }"))
        .upstream(provider.url())
        .start();
    let question = r#"{"model":"gpt-4o","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}"#;
    let reply = lab.chat(&[], question);
    assert_eq!((reply.status, reply.text()), (200, body));
    assert_eq!(lab.metric("loopbreaker_panics_total"), 0.0);
    assert_eq!(lab.chat(&[], question).status, 429, "that was all that there was");
}
