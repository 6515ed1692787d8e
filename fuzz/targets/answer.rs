//! Answers that come whole, in every dialect: what one says does not depend on how its JSON is written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopbreaker::canonical_json;
use loopbreaker_dialect::{Answer, read_answer};
use loopbreaker_fuzz::spoken;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Some((dialect, body)) = spoken(data) else { return };
    let answer = read_answer(dialect, body);
    // Of two members of one name nobody says which counts, so only a body that has none is compared.
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return };
    let written = serde_json::to_string(&value).expect("a value can be written");
    let has_doubles = canonical_json(&written) != str::from_utf8(body).ok().and_then(canonical_json);
    if has_doubles || members(&value) != colons(body) {
        return;
    }
    let again = read_answer(dialect, written.as_bytes());
    assert_eq!(plain(answer), plain(again), "{written}");
});

/// An answer with its arguments in one spelling; their length, which is counted, depends on the spelling too.
fn plain(answer: Option<Answer>) -> Option<Answer> {
    answer.map(|mut answer| {
        for call in &mut answer.calls {
            call.args = canonical_json(&call.args).unwrap_or_default();
        }
        Answer { text_bytes: 0, ..answer }
    })
}

/// How many members a value has in all.
fn members(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(members).sum(),
        Value::Object(fields) => fields.len() + fields.values().map(members).sum::<usize>(),
        _ => 0,
    }
}

/// How many members are written, seen from outside of strings.
fn colons(body: &[u8]) -> usize {
    let (mut count, mut inside, mut escaped) = (0, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b':' if !inside => count += 1,
            _ => {}
        }
    }
    count
}
