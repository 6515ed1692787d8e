//! Clients that do not send what the provider has kept: the AI SDK of Vercel only names calls of the provider's own tools,
//! and what ran at the provider is in its answers alone.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::lab::{Bench, Lab};
use crate::provider::Provider;
use crate::wire::answer;

/// Which items of an answer its client only names.
#[derive(Debug, Clone, Copy)]
enum Named {
    All,
    /// The words; the call is sent again.
    Words,
}

/// What the history goes on with after an answer: its items, and the result of its call.
fn gone_on(answer: &Value, named: Named, result: &str) -> Vec<Value> {
    let mut items = Vec::new();
    for item in answer["output"].as_array().unwrap() {
        let is_call = item["type"] == "function_call";
        match named {
            Named::Words if is_call => items.push(item.clone()),
            _ => items.push(json!({ "type": "item_reference", "id": item["id"] })),
        }
        if is_call {
            items.push(
                json!({ "type": "function_call_output", "call_id": item["call_id"], "output": result }),
            );
        }
    }
    items
}

/// The verdicts on a run whose tool gives these results.
fn verdicts(named: Named, result: impl Fn(usize) -> String) -> Vec<String> {
    let lab = Lab::new();
    lab.mock.script([loopbreaker_mock::Turn::call("bash", r#"{"command":"ls"}"#)]);
    let mut input = vec![json!({ "role": "user", "content": "fix it" })];
    let mut told = Vec::new();
    for turn in 0..7 {
        let body = json!({ "model": "gpt-4o", "input": input }).to_string();
        let reply = lab.post("/v1/responses", &[("authorization", "Bearer sk-test")], body);
        told.push(reply.header("x-loopbreaker-verdict").unwrap_or("none").to_owned());
        if reply.status == 200 {
            input.extend(gone_on(&reply.json(), named, &result(turn)));
        }
    }
    told
}

#[test]
fn a_loop_of_calls_that_are_only_named_is_found() {
    for named in [Named::All, Named::Words] {
        let told = verdicts(named, |_| "a.txt b.txt".to_owned());
        assert_eq!(told, ["allow", "allow", "warn", "hint", "hint", "throttle", "reject"], "{named:?}");
    }
}

#[test]
fn calls_that_are_only_named_and_answered_anew_are_no_loop() {
    for named in [Named::All, Named::Words] {
        let told = verdicts(named, |turn| format!("{} of 9 are done", turn + 1));
        assert_eq!(told, ["allow"; 7], "{named:?}");
    }
}

/// The verdicts on a conversation that the provider keeps, in which its model calls a tool there each time.
fn verdicts_at_provider(
    by_answer: bool,
    result: impl Fn(usize) -> String + Send + Sync + 'static,
) -> Vec<String> {
    let turns = AtomicUsize::new(0);
    let provider = Provider::doing(move |conversation| {
        while conversation.asked().is_some() {
            let turn = turns.fetch_add(1, Ordering::Relaxed);
            let call = json!({ "type": "mcp_call", "id": format!("mcp_{turn}"), "server_label": "docs", "name": "fetch",
                "arguments": "{\"page\":\"start\"}", "output": result(turn), "error": null, "status": "completed" });
            let body = json!({ "id": format!("resp_{turn}"), "object": "response", "status": "completed",
                "model": "gpt-4o", "output": [call] });
            let headers = [("content-type", "application/json")];
            conversation.wire.send(&answer("200 OK", &headers, body.to_string().as_bytes()));
        }
    });
    let lab = Bench::new().upstream(provider.url()).start();
    let asked = (0..7).map(|turn| {
        let mut body =
            json!({ "model": "gpt-4o", "input": "go on", "metadata": { "turn": turn.to_string() } });
        match turn {
            _ if !by_answer => body["conversation"] = "conv_1".into(),
            0 => {}
            _ => body["previous_response_id"] = format!("resp_{}", turn - 1).into(),
        }
        let reply = lab.post("/v1/responses", &[("authorization", "Bearer sk-test")], body.to_string());
        // It goes on when the answer has been noted, which is a moment after its last byte.
        lab.logged(turn + 1);
        reply.header("x-loopbreaker-verdict").unwrap_or("none").to_owned()
    });
    asked.collect()
}

#[test]
fn a_loop_of_calls_that_ran_at_the_provider_is_found_and_refused_where_it_keeps_the_history() {
    for by_answer in [true, false] {
        let told = verdicts_at_provider(by_answer, |_| "the same page".to_owned());
        assert_eq!(told, ["allow", "allow", "warn", "hint", "hint", "throttle", "reject"], "{by_answer}");
        let told = verdicts_at_provider(by_answer, |turn| format!("page number {turn}"));
        assert_eq!(told, ["allow"; 7], "{by_answer}");
    }
}
