//! Ingest under arbitrary input: what comes in is either kept or refused by name, and the server goes on.
//!
//! It runs for a moment by default; `LOOPBREAKER_FUZZ_SECONDS` says for how long.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::server::{Server, id};

/// Any JSON, at any place.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
        Just(json!("2026-02-21T10:00:00Z")),
        (0_u32..20).prop_map(|number| json!(id(number))),
        (1_usize..80_000).prop_map(|length| json!("x".repeat(length))),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((".{0,8}", inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A log that is valid but for some of its fields.
fn nearly_a_log() -> impl Strategy<Value = Value> {
    const FIELDS: &[(&str, &str)] = &[
        ("meta", "trace_id"),
        ("meta", "parent_step_id"),
        ("meta", "timestamp"),
        ("meta", "session_id"),
        ("meta", "cluster_id"),
        ("identity", "agent_id"),
        ("identity", "capability_version"),
        ("cognition", "intent"),
        ("cognition", "reasoning_chain"),
        ("cognition", "confidence_score"),
        ("cognition", "entropy_score"),
        ("action", "tool_call"),
        ("action", "tool_input"),
        ("action", "tool_output_summary"),
        ("action", "status"),
        ("state_delta", "tokens_consumed"),
        ("state_delta", "cumulative_session_cost"),
        ("state_delta", "added_to_memory"),
        ("control", "hitl_required"),
        ("control", "interrupt_signal"),
        ("control", "is_terminal"),
        ("other", "field"),
    ];
    let change = (prop::sample::select(FIELDS), any_json());
    let parents = prop::option::of(0_u32..40);
    (0_u32..40, parents, prop::collection::vec(change, 0..3)).prop_map(|(number, parent, changes)| {
        let mut log = crate::server::in_session(number, &format!("run-{}", number % 3));
        if let Some(parent) = parent {
            log["meta"]["parent_step_id"] = id(parent).into();
        }
        for ((section, field), value) in changes {
            log[section][field] = value;
        }
        log
    })
}

/// What is sent: a log or nearly one, JSON of any kind, lists of them, lines of them, or bytes that are none.
fn any_body() -> impl Strategy<Value = (bool, Vec<u8>)> {
    let text = |value: Value| value.to_string().into_bytes();
    prop_oneof![
        4 => nearly_a_log().prop_map(move |log| (false, text(log))),
        1 => any_json().prop_map(move |value| (false, text(value))),
        1 => prop::collection::vec(prop_oneof![nearly_a_log(), any_json()], 0..5)
            .prop_map(move |logs| (false, text(Value::from(logs)))),
        1 => prop::collection::vec(prop_oneof![nearly_a_log(), any_json()], 0..5).prop_map(|logs| {
            let lines: Vec<String> = logs.iter().map(Value::to_string).collect();
            (true, lines.join("\n").into_bytes())
        }),
        1 => prop::collection::vec(any::<u8>(), 0..200).prop_map(|bytes| (false, bytes)),
        1 => (nearly_a_log(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(log, at, byte)| {
            let mut bytes = log.to_string().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            (false, bytes)
        }),
    ]
}

#[test]
fn whatever_comes_is_kept_or_refused_and_the_server_goes_on() {
    let seconds =
        std::env::var("LOOPBREAKER_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let server = Server::start();
    let mut runner = TestRunner::default();
    let (bodies, started) = (any_body(), Instant::now());
    let mut sent = 0_u64;
    while started.elapsed() < Duration::from_secs(seconds) {
        let (lines, body) = bodies.new_tree(&mut runner).unwrap().current();
        let kind = if lines { "application/x-ndjson" } else { "application/json" };
        let text = String::from_utf8_lossy(&body);
        let (status, answer) = server.call("POST", "/decision-logs", &[("content-type", kind)], &text);
        assert!([200, 201, 400, 409, 413, 422].contains(&status), "{status} {answer} for {text}");
        if status >= 400 {
            assert!(answer["error"].is_string(), "{answer} for {text}");
        }
        sent += 1;
        if sent.is_multiple_of(50) {
            look_at_everything(&server);
        }
    }
    assert!(sent > 10, "only {sent} were sent");
    assert_eq!(server.observatory.health().failure(), None);
    look_at_everything(&server);
}

/// Everything that came in can be shown.
fn look_at_everything(server: &Server) {
    let (_, sessions) = server.get("/sessions?limit=500");
    let mut steps = 0;
    for session in sessions["sessions"].as_array().unwrap() {
        let name = session["session_id"].as_str().unwrap();
        let name: Vec<String> = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let name = name.concat();
        for part in ["", "/graph", "/steps", "/findings"] {
            let (status, answer) = server.get(&format!("/sessions/{name}{part}"));
            assert_eq!(status, 200, "{answer}");
        }
        steps += session["steps"].as_u64().unwrap();
    }
    for path in ["/topology", "/cost?from=0", "/search?q=x", "/violations", "/overview"] {
        assert_eq!(server.get(path).0, 200, "{path}");
    }
    let (status, _, exported) = crate::server::exchange(server.address, "GET", "/export", &[], "").unwrap();
    assert_eq!((status, exported.lines().count() as u64), (200, steps));
}
