use proptest::prelude::*;
use serde_json::Value;

use super::{Keep, Writer, canonical_json};

#[track_caller]
fn canonical(text: &str, expected: &str) {
    assert_eq!(canonical_json(text).as_deref(), Some(expected));
}

#[test]
fn keys_are_sorted_inside_arrays_too() {
    canonical(r#"[{"b":1,"a":{"d":[{"f":1,"e":2}],"c":3}}]"#, r#"[{"a":{"c":3,"d":[{"e":2,"f":1}]},"b":1}]"#);
}

#[test]
fn keys_are_sorted_by_utf16_code_units() {
    // The example of RFC 8785, section 3.2.3: the smiley's surrogates sort before U+FB33.
    let text = r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#;
    let values: Vec<String> = match serde_json::from_str(&canonical_json(text).unwrap()).unwrap() {
        Value::Object(map) => {
            // serde_json's map sorts by bytes, so read the order off the text itself.
            let canonical = canonical_json(text).unwrap();
            let mut found: Vec<_> = map.values().map(|value| value.as_str().unwrap().to_owned()).collect();
            found.sort_by_key(|value| canonical.find(value.as_str()));
            found
        }
        _ => unreachable!(),
    };
    let expected = [
        "Carriage Return",
        "One",
        "Control",
        "Latin Small Letter O With Diaeresis",
        "Euro Sign",
        "Emoji: Grinning Face",
        "Hebrew Letter Dalet With Dagesh",
    ];
    assert_eq!(values, expected);
}

#[test]
fn of_duplicate_keys_the_last_counts() {
    canonical(r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#);
    canonical(r#"{"a":1,"\u0061":2}"#, r#"{"a":2}"#);
}

#[test]
fn strings_have_one_spelling() {
    canonical(r#""\u0041\/\u000a\u001f\u00e9""#, "\"A/\\n\\u001fé\"");
    canonical(r#""\ud83d\ude00""#, "\"😀\"");
}

#[test]
fn a_lone_surrogate_keeps_its_escape() {
    canonical(r#""\ud800x""#, r#""\ud800x""#);
    canonical(r#""\uD83D\u0041""#, r#""\ud83dA""#);
    canonical(r#""\udc00""#, r#""\udc00""#);
}

#[test]
fn empty_containers_and_white_space_are_kept_apart() {
    canonical(" { } ", "{}");
    canonical("\t[ ]\r\n", "[]");
    canonical(r#" { "a" : [ ] , "b" : { } } "#, r#"{"a":[],"b":{}}"#);
}

#[test]
fn what_is_not_json_is_refused() {
    for text in [
        "", " ", "{", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "[1 2]", "1 2", "tru", "\"\n\"", "\"\\x\"",
        "{,}", "]",
    ] {
        assert_eq!(canonical_json(text), None, "{text:?}");
    }
}

#[test]
fn ten_thousand_levels_do_not_overflow_the_stack() {
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(canonical_json(&deep), Some(deep.clone()));
    let objects = format!("{}1{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
    assert_eq!(canonical_json(&objects), Some(objects.clone()));
}

#[test]
fn only_the_named_members_of_the_outermost_object_are_kept() {
    let mut writer = Writer::default();
    let only = ["path".to_owned(), "q\"".to_owned()];
    writer.write(r#"{"time":5,"path":{"time":6},"q\"":1}"#, Keep::Only(&only)).unwrap();
    assert_eq!(writer.written(), br#"{"path":{"time":6},"q\"":1}"#);
}

/// Any JSON value, with keys that need escapes.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no NaN", |number| number.is_finite()).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((".{0,4}", inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn the_canonical_form_means_the_same(value in value()) {
        let canonical = canonical_json(&value.to_string()).unwrap();
        let read: Value = serde_json::from_str(&canonical).unwrap();
        prop_assert!(same_value(&read, &value), "{value} became {canonical}");
    }

    #[test]
    fn the_canonical_form_is_its_own_canonical_form(value in value()) {
        let once = canonical_json(&value.to_string()).unwrap();
        prop_assert_eq!(canonical_json(&once), Some(once.clone()));
    }

    #[test]
    fn white_space_and_key_order_never_matter(value in value()) {
        let pretty = serde_json::to_string_pretty(&reversed(&value)).unwrap();
        prop_assert_eq!(canonical_json(&pretty), canonical_json(&value.to_string()));
    }

    #[test]
    fn arbitrary_text_never_panics_and_agrees_with_serde(text in ".{0,40}") {
        prop_assert_eq!(canonical_json(&text).is_some(), serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok());
    }
}

/// Equal as values: `1.0` and `1` are one number.
fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same_value(a, b)))
        }
        _ => a == b,
    }
}

/// The same value with the members of each object in reverse order.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(reversed).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().rev().map(|(k, v)| (k.clone(), reversed(v))).collect())
        }
        _ => value.clone(),
    }
}
