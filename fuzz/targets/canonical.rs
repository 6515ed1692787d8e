//! Canonical JSON beside serde_json: the same texts are JSON, and the canonical text says the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopbreaker::canonical_json;
use loopbreaker_fuzz::{is_json, same};
use serde_json::Value;

fuzz_target!(|text: &str| {
    let canonical = canonical_json(text);
    assert_eq!(canonical.is_some(), is_json(text.as_bytes()), "who is right about {text:?}?");
    let Some(canonical) = canonical else { return };
    assert_eq!(canonical_json(&canonical).as_deref(), Some(canonical.as_str()), "it has one form only");
    // Texts that serde_json takes for JSON but has no value for: lone surrogates, huge exponents, deep nesting.
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
    let read: Value = serde_json::from_str(&canonical).expect("what is canonical can be read");
    assert!(same(&value, &read), "{text:?} became {canonical:?}");
    let again = canonical_json(&value.to_string()).expect("what was written is JSON");
    let read: Value = serde_json::from_str(&again).expect("what is canonical can be read");
    assert!(same(&value, &read), "{text:?} became {again:?}");
});
