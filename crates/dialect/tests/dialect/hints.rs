//! Hints in recorded requests.

use std::fmt::Write as _;

use loopbreaker_dialect::{Dialect, Hint, Placement, asking_for_usage, with_hint};
use serde_json::Value;

use crate::golden;

pub(crate) const PLACEMENTS: [Placement; 3] = [Placement::Prepend, Placement::Extend, Placement::Append];

const TEXT: &str = "You repeat yourself:\n\"bash\" \\ größer 🔁\u{1}";

fn hint(placement: Placement) -> Hint<'static> {
    Hint { text: TEXT, placement, append_role: "user" }
}

/// The bytes that were put in, and where; the rest is as it was.
fn inserted<'e>(body: &[u8], edited: &'e [u8]) -> (usize, &'e [u8]) {
    let start = body.iter().zip(edited).take_while(|(old, new)| old == new).count();
    let length = edited.len() - body.len();
    // What is put in may begin like what stands behind it, so the place is only one of those that it could be.
    let (before, behind) = (&edited[..start], &edited[start + length..]);
    assert_eq!([before, behind].concat(), body, "all other bytes stay");
    (start, &edited[start..start + length])
}

#[test]
fn hints_stand_where_they_should_and_nothing_else_changes() {
    for dialect in Dialect::ALL {
        for (name, body) in golden::inputs(dialect, "request") {
            let mut text = String::new();
            for placement in PLACEMENTS {
                let Some(edited) = with_hint(dialect, &body, &hint(placement)) else {
                    writeln!(text, "{placement:?}: none").unwrap();
                    continue;
                };
                serde_json::from_slice::<serde::de::IgnoredAny>(&edited).unwrap();
                let replaces = edited.windows(5).filter(|bytes| bytes == b":null").count()
                    < body.windows(5).filter(|bytes| bytes == b":null").count();
                let wraps = dialect == Dialect::Responses
                    && placement == Placement::Append
                    && name.contains("string");
                if replaces || wraps {
                    writeln!(text, "{placement:?}: {}", String::from_utf8_lossy(&edited).trim_ascii())
                        .unwrap();
                    continue;
                }
                let (at, put) = inserted(&body, &edited);
                let before = String::from_utf8_lossy(&body[at.saturating_sub(40)..at]).replace('\n', " ");
                writeln!(text, "{placement:?} at {at}: …{before}▶{}◀", String::from_utf8_lossy(put)).unwrap();
            }
            golden::check(dialect, &format!("{name}.hints"), &text);
        }
    }
}

fn edited(dialect: Dialect, placement: Placement, body: &str) -> Option<Value> {
    let hint = Hint { text: "H", placement, append_role: "system" };
    let edited = with_hint(dialect, body.as_bytes(), &hint)?;
    Some(serde_json::from_slice(&edited).unwrap())
}

#[test]
fn nothing_is_appended_between_a_call_and_its_result() {
    for (dialect, body) in [
        (
            Dialect::Chat,
            r#"{"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f"}}]}]}"#,
        ),
        (
            Dialect::Chat,
            r#"{"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f"}},{"id":"2","function":{"name":"f"}}]},{"role":"tool","tool_call_id":"1","content":"x"}]}"#,
        ),
        (
            Dialect::Responses,
            r#"{"input":[{"type":"function_call","call_id":"1","name":"f","arguments":"{}"}]}"#,
        ),
        (
            Dialect::Anthropic,
            r#"{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]}]}"#,
        ),
        (
            Dialect::Gemini,
            r#"{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}}]}]}"#,
        ),
    ] {
        assert_eq!(edited(dialect, Placement::Append, body), None, "{body}");
        assert!(edited(dialect, Placement::Prepend, body).is_some(), "{body}");
    }
}

#[test]
fn nothing_is_appended_where_calls_are_too_many_to_be_told_apart() {
    let calls: Vec<_> = (0..300).map(|id| format!(r#"{{"id":"{id}","function":{{"name":"f"}}}}"#)).collect();
    let results: Vec<_> =
        (0..256).map(|id| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"x"}}"#)).collect();
    let body = format!(
        r#"{{"messages":[{{"role":"assistant","tool_calls":[{}]}},{}]}}"#,
        calls.join(","),
        results.join(",")
    );
    assert_eq!(edited(Dialect::Chat, Placement::Append, &body), None);
}

#[test]
fn a_body_without_messages_or_with_a_signature_is_not_edited() {
    for dialect in Dialect::ALL {
        for placement in PLACEMENTS {
            for body in ["", "[]", "{", r#"{"model":"m"}"#, r#"{"messages":5,"input":5,"contents":5}"#] {
                let is_chain = dialect == Dialect::Responses && placement != Placement::Append;
                if !(is_chain && body.contains("model")) {
                    assert_eq!(edited(dialect, placement, body), None, "{dialect} {placement:?} {body}");
                }
            }
        }
    }
    let signed =
        r#"{"system":"x-anthropic-billing-header: cch=1","messages":[{"role":"user","content":"x"}]}"#;
    assert!(PLACEMENTS.iter().all(|placement| edited(Dialect::Anthropic, *placement, signed).is_none()));
}

#[test]
fn a_missing_or_empty_system_text_is_filled_in() {
    let system =
        |placement, body: &str| edited(Dialect::Anthropic, placement, body).unwrap()["system"].clone();
    for placement in [Placement::Prepend, Placement::Extend] {
        assert_eq!(system(placement, r#"{"messages":[]}"#), "H");
        assert_eq!(system(placement, r#"{"messages":[],"system":null}"#), "H");
        assert_eq!(system(placement, r#"{"messages":[],"system":""}"#), "H");
        assert_eq!(system(placement, r#"{"messages":[],"system":[]}"#)[0]["text"], "H");
    }
    let chat = edited(Dialect::Chat, Placement::Prepend, r#"{"messages":[]}"#).unwrap();
    assert_eq!(chat["messages"], serde_json::json!([{"role":"system","content":"H"}]));
    let gemini =
        edited(Dialect::Gemini, Placement::Extend, r#"{"contents":[],"systemInstruction":{"role":"x"}}"#);
    assert_eq!(gemini.unwrap()["systemInstruction"]["parts"][0]["text"], "H");
}

#[test]
fn a_text_that_is_extended_is_kept_apart_by_a_blank_line() {
    let body = r#"{"messages":[{"role":"user","content":"x"},{"role":"system","content":[{"type":"text","text":"S"}]}]}"#;
    let chat = edited(Dialect::Chat, Placement::Extend, body).unwrap();
    assert_eq!(chat["messages"][1]["content"][0]["text"], "S\n\nH");
    let body = r#"{"messages":[{"role":"user","content":"x"}],"system":"S"}"#;
    assert_eq!(edited(Dialect::Anthropic, Placement::Extend, body).unwrap()["system"], "S\n\nH");
    assert_eq!(edited(Dialect::Anthropic, Placement::Prepend, body).unwrap()["system"], "H\n\nS");
    let append = edited(Dialect::Anthropic, Placement::Append, body).unwrap();
    assert_eq!(append["messages"][0]["content"], "x\n\nH");
}

#[test]
fn an_appended_message_has_the_role_that_it_is_given() {
    let chat =
        edited(Dialect::Chat, Placement::Append, r#"{"messages":[{"role":"user","content":"x"}]}"#).unwrap();
    assert_eq!(chat["messages"][1], serde_json::json!({"role":"system","content":"H"}));
    let responses = edited(Dialect::Responses, Placement::Append, r#"{"input":"x"}"#).unwrap();
    assert_eq!(
        responses["input"],
        serde_json::json!([{"type":"message","role":"user","content":"x"},{"type":"message","role":"system","content":"H"}])
    );
}

#[test]
fn a_hint_and_the_question_for_usage_go_together() {
    let body = br#"{"stream":true,"messages":[{"role":"user","content":"x"}]}"#;
    let hinted = with_hint(Dialect::Chat, body, &hint(Placement::Prepend)).unwrap();
    let asking = asking_for_usage(&hinted).unwrap();
    let (_, put) = inserted(&hinted, &asking);
    assert_eq!(put.len(), r#""stream_options":{"include_usage":true},"#.len());
}
