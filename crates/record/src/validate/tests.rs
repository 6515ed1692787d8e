use proptest::prelude::*;
use serde_json::{Value, json};

use super::SECTIONS;
use crate::{DecisionLog, Rejection, Versions};

fn minimal() -> Value {
    json!({
        "meta": { "trace_id": "3f2a9c1e-7b54-4e0d-9a61-0c5d8e2f7a10", "timestamp": "2026-02-21T10:00:00Z" },
        "identity": { "agent_id": "a", "agent_type": "coder", "capability_version": "1.0.0" },
        "cognition": { "intent": "build" },
        "action": { "status": "success" },
    })
}

/// The minimal log with one field changed; `Value::Null` at a path that is not there makes it absent.
fn with(section: &str, field: &str, value: Value) -> Value {
    let mut log = minimal();
    log[section][field] = value;
    log
}

fn violations(log: Value) -> Vec<String> {
    match DecisionLog::from_value(log) {
        Ok(_) => Vec::new(),
        Err(rejection) => rejection.violations().iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn an_empty_object_has_seven_violations() {
    let required = [
        "meta.trace_id is required",
        "meta.timestamp is required",
        "identity.agent_id is required",
        "identity.agent_type is required",
        "identity.capability_version is required",
        "cognition.intent is required",
        "action.status is required",
    ];
    assert_eq!(violations(json!({})), required);
    assert_eq!(violations(json!({ "meta": null, "action": {} })), required);
}

#[test]
fn each_required_field_is_missed_alone() {
    for (section, field) in [
        ("meta", "trace_id"),
        ("meta", "timestamp"),
        ("identity", "agent_id"),
        ("identity", "agent_type"),
        ("identity", "capability_version"),
        ("cognition", "intent"),
        ("action", "status"),
    ] {
        let mut log = minimal();
        log[section].as_object_mut().unwrap().remove(field);
        assert_eq!(violations(log), [format!("{section}.{field} is required")]);
        assert_eq!(violations(with(section, field, Value::Null)), [format!("{section}.{field} is required")]);
    }
}

#[test]
fn a_wrong_type_is_a_violation_of_its_field() {
    for (section, field, value, message) in [
        ("meta", "trace_id", json!(5), "must be a string"),
        ("meta", "parent_step_id", json!({}), "must be a string"),
        ("meta", "timestamp", json!(1_771_668_000), "must be a string"),
        ("meta", "session_id", json!(17), "must be a string"),
        ("identity", "agent_id", json!(["a"]), "must be a string"),
        ("cognition", "reasoning_chain", json!("because"), "must be an array of strings"),
        ("cognition", "confidence_score", json!("0.5"), "must be a number"),
        ("action", "tool_input", json!(["ls"]), "must be a string or an object"),
        ("action", "status", json!(true), "must be a string"),
        ("state_delta", "tokens_consumed", json!("many"), "must be an integer"),
        ("control", "hitl_required", json!("yes"), "must be true or false"),
        ("control", "interrupt_signal", json!(1), "must be a string"),
    ] {
        assert_eq!(violations(with(section, field, value)), [format!("{section}.{field} {message}")]);
    }
    let mut log = minimal();
    log["control"] = json!("stop");
    assert_eq!(violations(log), ["control must be an object"]);
}

#[test]
fn values_outside_of_their_range_are_violations() {
    for (section, field, value, message) in [
        ("meta", "trace_id", json!("17"), "must be a UUID of version 4"),
        ("meta", "timestamp", json!("now"), "must be an RFC 3339 timestamp"),
        ("meta", "session_id", json!("x".repeat(201)), "has 201 bytes, at most 200 are accepted"),
        ("identity", "agent_type", json!(""), "must not be empty"),
        ("identity", "capability_version", json!("1"), "must be a semantic version such as 1.4.0"),
        ("cognition", "confidence_score", json!(1.01), "must be from 0 to 1"),
        ("cognition", "entropy_score", json!(-0.1), "must be from 0 to 1"),
        ("cognition", "intent", json!("x".repeat(65_537)), "has 65537 bytes, at most 65536 are accepted"),
        (
            "cognition",
            "reasoning_chain",
            json!(vec!["x"; 1_001]),
            "has 1001 members, at most 1000 are accepted",
        ),
        ("action", "status", json!("done"), "must be one of success, failure, pending, skipped"),
        ("action", "tool_input", json!("{"), "must be JSON-encoded text, or an object"),
        ("state_delta", "tokens_consumed", json!(-1), "must be an integer from 0 to 9007199254740991"),
        ("state_delta", "tokens_consumed", json!(1.5), "must be an integer from 0 to 9007199254740991"),
        ("state_delta", "cumulative_session_cost", json!(-0.01), "must be from 0 to 1000000000000"),
        ("control", "interrupt_signal", json!("stop"), "must be null or one of pause, rewrite, inject"),
    ] {
        assert_eq!(violations(with(section, field, value)), [format!("{section}.{field} {message}")]);
    }
}

#[test]
fn limits_themselves_are_inside() {
    for (section, field, value) in [
        ("cognition", "intent", json!("x".repeat(65_536))),
        ("cognition", "reasoning_chain", json!(vec!["x"; 1_000])),
        ("cognition", "confidence_score", json!(1)),
        ("cognition", "entropy_score", json!(0.0)),
        ("state_delta", "tokens_consumed", json!(5.0)),
        ("state_delta", "cumulative_session_cost", json!(0)),
        ("meta", "parent_step_id", json!("")),
        ("action", "tool_input", json!("")),
        ("control", "interrupt_signal", json!(null)),
    ] {
        assert_eq!(violations(with(section, field, value)), Vec::<String>::new(), "{section}.{field}");
    }
}

#[test]
fn a_member_of_a_list_is_named_by_its_place() {
    let log = with("state_delta", "added_to_memory", json!(["a", 5, "c", null]));
    assert_eq!(
        violations(log),
        [
            "state_delta.added_to_memory[1] must be a string",
            "state_delta.added_to_memory[3] must be a string"
        ]
    );
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let log = json!({
        "meta": { "trace_id": 1, "timestamp": "x" },
        "identity": { "agent_id": "", "agent_type": "t", "capability_version": "1.0.0" },
        "cognition": { "intent": "i", "mood": "good" },
        "action": { "status": "done" },
        "colour": "red",
    });
    assert_eq!(
        violations(log),
        [
            "meta.trace_id must be a UUID of version 4".replace("a UUID of version 4", "a string"),
            "meta.timestamp must be an RFC 3339 timestamp".to_owned(),
            "identity.agent_id must not be empty".to_owned(),
            "action.status must be one of success, failure, pending, skipped".to_owned(),
            "cognition.mood is not a field of version 1".to_owned(),
            "colour is not a field of version 1".to_owned(),
        ]
    );
}

#[test]
fn version_2_keeps_unknown_fields_under_extensions() {
    let mut log = with("cognition", "mood", json!("good"));
    log["colour"] = json!(["red"]);
    log["extensions"] = json!({ "own": 1 });
    assert_eq!(violations(log.clone()).len(), 3, "version 1 has none of them");
    log["identity"]["capability_version"] = json!("v2.1.0-beta.3");
    let read = DecisionLog::from_value(log).unwrap();
    let expected = json!({ "own": 1, "cognition.mood": "good", "colour": ["red"] });
    assert_eq!(Value::Object(read.extensions), expected);
}

#[test]
fn a_field_that_stands_under_extensions_too_is_refused() {
    let mut log = with("identity", "capability_version", json!("2.0.0"));
    log["colour"] = json!("red");
    log["extensions"] = json!({ "colour": "blue" });
    assert_eq!(violations(log), ["colour stands under extensions as well"]);
}

#[test]
fn other_versions_are_refused_with_the_accepted_range_and_all_else() {
    for version in ["0.9.0", "3.0.0", "v17.1.2"] {
        let mut log = with("identity", "capability_version", json!(version));
        log["action"]["status"] = json!("done");
        let rejection = DecisionLog::from_value(log).unwrap_err();
        let answer = rejection.answer();
        assert_eq!(rejection.status(), 422);
        assert_eq!(answer["error"], "unsupported_version");
        assert_eq!(answer["accepted"], ">=1.0.0 <3.0.0");
        assert_eq!(answer["violations"][0]["field"], "identity.capability_version");
        assert_eq!(answer["violations"][1]["field"], "action.status");
    }
}

#[test]
fn what_is_not_json_or_too_large_is_told_apart() {
    assert_eq!(DecisionLog::parse(b"{\"meta\":").unwrap_err().status(), 400);
    assert_eq!(DecisionLog::parse(b"\xff").unwrap_err().status(), 400);
    assert_eq!(DecisionLog::parse("[".repeat(100_000).as_bytes()).unwrap_err().status(), 400);
    let large = vec![b' '; DecisionLog::MAX_BYTES + 1];
    assert_eq!(DecisionLog::parse(&large).unwrap_err().status(), 413);
}

#[test]
fn a_flood_of_violations_is_cut() {
    let mut log = minimal();
    for field in 0..5_000 {
        log[format!("unknown{field}")] = json!(1);
    }
    let violations = violations(log);
    assert_eq!(violations.len(), Rejection::MAX_VIOLATIONS + 1);
    assert_eq!(violations.last().unwrap(), "log has 4000 more violations");
}

#[test]
fn order_and_spacing_do_not_change_the_content() {
    let one = DecisionLog::parse(minimal().to_string().as_bytes()).unwrap();
    let other = DecisionLog::parse(
        br#"{ "action": {"status":"success"}, "cognition": {"intent":"build"},
             "identity": {"capability_version":"1.0.0","agent_type":"coder","agent_id":"a"},
             "meta": {"timestamp":"2026-02-21T10:00:00Z","trace_id":"3F2A9C1E-7B54-4E0D-9A61-0C5D8E2F7A10"} }"#,
    )
    .unwrap();
    assert_eq!(one.content(), other.content());
    let changed = DecisionLog::from_value(with("cognition", "intent", json!("test"))).unwrap();
    assert_ne!(one.content(), changed.content());
}

#[test]
fn the_content_of_an_input_is_its_value() {
    let content = |input: serde_json::Value| {
        DecisionLog::from_value(with("action", "tool_input", input)).unwrap().content()
    };
    assert_eq!(content(json!({ "b": 1, "a": 2 })), content(json!(r#"{ "b": 1.0, "a": 2 }"#)));
    assert_ne!(content(json!({ "b": 1 })), content(json!({ "b": 2 })));
    assert_ne!(content(json!({})), content(json!("")));
}

#[test]
fn the_registry_has_the_fields_of_the_types() {
    let version = Versions::builtin().newest().unwrap();
    let schema = crate::json_schema(version);
    let mut fields = Vec::new();
    for section in SECTIONS {
        let camel: String = section.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
        let properties = schema["$defs"][&camel]["properties"].as_object().unwrap();
        fields.extend(properties.keys().map(|field| format!("{section}.{field}")));
    }
    fields.sort();
    assert_eq!(version.fields().collect::<Vec<_>>(), fields);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z0-9.-]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A path of a known field, or of one that is not known.
fn any_place() -> impl Strategy<Value = (String, String)> {
    let known: Vec<String> = Versions::builtin().newest().unwrap().fields().map(str::to_owned).collect();
    let known = prop::sample::select(known).prop_map(|path| {
        let (section, field) = path.split_once('.').unwrap();
        (section.to_owned(), field.to_owned())
    });
    prop_oneof![4 => known, 1 => ("[a-z]{1,6}", "[a-z]{1,6}")]
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        drop(DecisionLog::parse(&bytes));
    }

    #[test]
    fn no_json_makes_it_panic_and_what_is_accepted_is_read_as_it_was_written(
        changes in prop::collection::vec((any_place(), any_json()), 0..5),
        version in prop::sample::select(vec!["1.0.0", "2.0.0"]),
    ) {
        let mut log = with("identity", "capability_version", json!(version));
        for ((section, field), value) in changes {
            if log.get(&section).is_none_or(Value::is_object) {
                log[section][field] = value;
            }
        }
        if let Ok(read) = DecisionLog::from_value(log) {
            let written = serde_json::to_vec(&read).unwrap();
            prop_assert_eq!(DecisionLog::parse(&written).unwrap(), read.clone());
            prop_assert_eq!(serde_json::from_slice::<DecisionLog>(&written).unwrap(), read);
        }
    }
}
