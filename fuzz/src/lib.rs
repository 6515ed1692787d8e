//! What the targets have in common: which dialect an input speaks, and when two JSON values are the same.

use loopbreaker_dialect::Dialect;
use serde_json::Value;
use serde_json::value::RawValue;

/// The dialect that the first byte of an input names, and the rest of it.
pub fn spoken(data: &[u8]) -> Option<(Dialect, &[u8])> {
    let (name, rest) = data.split_first()?;
    let dialect = match name {
        b'c' => Dialect::Chat,
        b'r' => Dialect::Responses,
        b'a' => Dialect::Anthropic,
        b'g' => Dialect::Gemini,
        _ => return None,
    };
    Some((dialect, rest))
}

/// Whether bytes are one JSON value, as somebody else sees it.
pub fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(bytes).is_ok()
}

/// Whether two values say the same; a number is the same however it is written.
pub fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|there| same(value, there)))
        }
        (one, other) => one == other,
    }
}
