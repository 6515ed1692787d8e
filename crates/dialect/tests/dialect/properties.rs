//! What holds for every body.

use loopbreaker_dialect::{Dialect, Facts, Hint, asking_for_usage, read_answer, with_hint};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bodies::{Seen, read};
use crate::golden;
use crate::hints::PLACEMENTS;

/// A message of this dialect.
fn message(dialect: Dialect) -> BoxedStrategy<Value> {
    let word = prop::sample::select(vec![
        "a",
        "b \"c\"",
        "größe\n",
        "",
        "tool_result",
        "🌍",
        "x-anthropic-billing-header: cch=1",
    ]);
    let role = prop::sample::select(vec!["user", "assistant", "system", "tool", "model", "function"]);
    (role, word.clone(), word.clone(), word, 0..6_u8)
        .prop_map(move |(role, one, two, id, shape)| match (dialect, shape) {
            (Dialect::Gemini, 0) => json!({"role": role, "parts": [{"text": one}, {"text": two, "thought": true}]}),
            (Dialect::Gemini, 1) => json!({"role": role, "parts": {"text": one}}),
            (Dialect::Gemini, 2) => json!({"role": role, "parts": [{"functionCall": {"id": id, "name": one, "args": {two: 1}}}]}),
            (Dialect::Gemini, 3) => json!({"role": role, "parts": [{"functionResponse": {"name": one, "response": {"error": two}}}]}),
            (Dialect::Gemini, _) => json!({"parts": [{"inlineData": {"data": one}}, {"text": two}]}),
            (Dialect::Responses, 0) => json!({"type": "function_call", "call_id": id, "name": one, "arguments": two}),
            (Dialect::Responses, 1) => json!({"type": "function_call_output", "call_id": id, "output": two}),
            (Dialect::Responses, 2) => json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": one}]}),
            (_, 3) => json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": one}, {"type": "text", "text": two}]}),
            (_, 4) => json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": one, "input": {two: [1, null]}}]}),
            (_, 5) => json!({"role": role, "content": one, "tool_calls": [{"id": id, "function": {"name": two, "arguments": "{\"a\": 1}"}}]}),
            (_, _) => json!({"role": role, "content": one, "tool_call_id": id, "name": two}),
        })
        .boxed()
}

fn key(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat | Dialect::Anthropic => "messages",
        Dialect::Responses => "input",
        Dialect::Gemini => "contents",
    }
}

/// What a body may say before or behind its messages.
fn members() -> impl Strategy<Value = Vec<(String, Value)>> {
    let member = prop::sample::select(vec![
        ("model", json!("m")),
        ("stream", json!(true)),
        ("temperature", json!(0.5)),
        ("tools", json!([{"name": "messages", "input": []}])),
        ("metadata", json!({"session_id": "s", "user_id": "u"})),
        ("system", json!("Be brief.")),
        ("system", json!([{"type": "text", "text": "x-anthropic-billing-header: cch=2"}])),
        ("instructions", json!(null)),
        ("systemInstruction", json!({"parts": [{"text": "a"}]})),
        ("cachedContent", json!("c")),
        ("stream_options", json!({"include_usage": false})),
        ("max_tokens", json!(5)),
        ("unknown", json!([[{"messages": [1]}]])),
    ]);
    prop::collection::vec(member, 0..5)
        .prop_map(|all| all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// A request as its parts, to be written in any way.
#[derive(Debug, Clone)]
struct Request {
    dialect: Dialect,
    head: Vec<(String, Value)>,
    messages: Vec<Value>,
    tail: Vec<(String, Value)>,
    space: &'static str,
}

impl Request {
    fn written(&self, count: usize) -> String {
        let space = self.space;
        let member =
            |(name, value): &(String, Value)| format!("{space}\"{name}\"{space}:{space}{value}{space}");
        let messages: Vec<_> =
            self.messages[..count].iter().map(|message| format!("{space}{message}{space}")).collect();
        let list = format!("\"{}\":{space}[{}]{space}", key(self.dialect), messages.join(","));
        let members: Vec<_> =
            self.head.iter().map(member).chain([list]).chain(self.tail.iter().map(member)).collect();
        format!("{space}{{{}}}{space}", members.join(","))
    }
}

fn request() -> impl Strategy<Value = Request> {
    prop::sample::select(Dialect::ALL.to_vec()).prop_flat_map(|dialect| {
        let messages = prop::collection::vec(message(dialect), 0..8);
        let space = prop::sample::select(vec!["", " ", "\r\n\t"]);
        (members(), messages, members(), space).prop_map(move |(head, messages, tail, space)| Request {
            dialect,
            head,
            messages,
            tail,
            space,
        })
    })
}

/// The same object with its members the other way round, everywhere.
fn turned(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<_> = members
                .iter()
                .rev()
                .map(|(name, value)| format!("{}: {}", json!(name), turned(value)))
                .collect();
            format!("{{ {} }}", members.join(" ,\n"))
        }
        Value::Array(elements) => {
            format!("[ {} ]", elements.iter().map(turned).collect::<Vec<_>>().join(" , "))
        }
        other => other.to_string(),
    }
}

/// The same message with other ids.
fn renamed(message: &Value) -> Value {
    match message {
        Value::Object(members) => {
            let is_id = |name: &str| matches!(name, "id" | "call_id" | "tool_call_id" | "tool_use_id");
            members
                .iter()
                .map(|(name, value)| {
                    (name.clone(), if is_id(name) { json!("other") } else { renamed(value) })
                })
                .collect()
        }
        Value::Array(elements) => elements.iter().map(renamed).collect(),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn reading_on_is_the_same_as_reading_all(request in request(), first in any::<prop::sample::Index>(), other_tail in members()) {
        let count = first.index(request.messages.len() + 1);
        let Request { dialect, .. } = request;
        let (before, _) = read(dialect, request.written(count).as_bytes(), None).unwrap();
        for tail in [request.tail.clone(), other_tail] {
            let whole = Request { tail, ..request.clone() }.written(request.messages.len());
            let (all, messages) = read(dialect, whole.as_bytes(), None).unwrap();
            let (on, new) = read(dialect, whole.as_bytes(), before.mark.as_ref()).unwrap();
            let known = if before.mark.is_some() { count } else { 0 };
            prop_assert_eq!(&messages[known..], &new[..]);
            prop_assert_eq!(on.messages, all.messages);
            prop_assert_eq!(&*on.facts, &*all.facts);
            let place = |mark: &Option<loopbreaker_dialect::Mark>| mark.as_ref().map(|mark| (mark.offset(), mark.messages()));
            prop_assert_eq!(place(&on.mark), place(&all.mark));
            // A third body goes on from the second as it would from the first.
            if let Some(mark) = &on.mark {
                let (again, none) = read(dialect, whole.as_bytes(), Some(mark)).unwrap();
                prop_assert!(none.is_empty() && again.facts == all.facts && again.messages == all.messages);
            }
        }
    }

    #[test]
    fn the_order_of_keys_and_the_ids_do_not_make_a_digest(request in request()) {
        let plain = request.written(request.messages.len());
        let turned: Vec<_> = request.messages.iter().map(|message| turned(&renamed(message))).collect();
        let other = format!("{{\"{}\":[{}]}}", key(request.dialect), turned.join(","));
        let digests = |messages: &[Seen]| messages.iter().map(|message| message.digest).collect::<Vec<_>>();
        let (_, one) = read(request.dialect, plain.as_bytes(), None).unwrap();
        let (_, two) = read(request.dialect, other.as_bytes(), None).unwrap();
        prop_assert_eq!(digests(&one), digests(&two));
    }

    #[test]
    fn a_hint_changes_nothing_but_where_it_stands(request in request(), text in "(?s).{1,40}", at in 0..3_usize, as_user in any::<bool>()) {
        let body = request.written(request.messages.len());
        let hint = Hint { text: &text, placement: PLACEMENTS[at], append_role: if as_user { "user" } else { "system" } };
        let Some(edited) = with_hint(request.dialect, body.as_bytes(), &hint) else { return Ok(()) };
        let (old, new): (Value, Value) = (serde_json::from_str(&body).unwrap(), serde_json::from_slice(&edited).unwrap());
        let may_change = match (request.dialect, at) {
            (Dialect::Chat, _) | (Dialect::Anthropic, 2) => "messages",
            (Dialect::Anthropic, _) => "system",
            (Dialect::Responses, 2) => "input",
            (Dialect::Responses, _) => "instructions",
            (Dialect::Gemini, 2) => "contents",
            (Dialect::Gemini, _) => "systemInstruction",
        };
        let without = |value: &Value| {
            let mut members = value.as_object().unwrap().clone();
            members.remove(may_change);
            members
        };
        prop_assert_eq!(without(&old), without(&new));
        prop_assert_ne!(&old[may_change], &new[may_change]);
        // Every message is still there, at most with the hint in it.
        let count = |value: &Value| value[key(request.dialect)].as_array().map_or(0, Vec::len);
        prop_assert!(count(&new) == count(&old) || count(&new) == count(&old) + 1);
        let written = json!(text).to_string();
        let escaped = written.trim_start_matches('"').trim_end_matches('"');
        prop_assert!(text.contains('"') || new.to_string().contains(escaped), "{}", new);
    }

    #[test]
    fn asking_for_usage_changes_nothing_else(request in request()) {
        let body = request.written(request.messages.len());
        let old: Value = serde_json::from_str(&body).unwrap();
        let asks = |value: &Value| value["stream_options"]["include_usage"] == true;
        match asking_for_usage(body.as_bytes()) {
            Some(edited) => {
                let new: Value = serde_json::from_slice(&edited).unwrap();
                prop_assert!(asks(&new) && !asks(&old) && old["stream"] == true);
                let mut members = new.as_object().unwrap().clone();
                members.remove("stream_options");
                let mut before = old.as_object().unwrap().clone();
                before.remove("stream_options");
                prop_assert_eq!(members, before);
            }
            None => prop_assert!(asks(&old) || old["stream"] != true),
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        survive(&bytes);
    }

    #[test]
    fn no_damage_to_a_body_makes_it_panic(
        (dialect, kind) in (prop::sample::select(Dialect::ALL.to_vec()), prop::sample::select(vec!["request", "answer"])),
        which in any::<prop::sample::Index>(),
        wounds in prop::collection::vec((any::<prop::sample::Index>(), 0..40_usize, prop::collection::vec(any::<u8>(), 0..3)), 1..4),
    ) {
        let inputs = golden::inputs(dialect, kind);
        let mut body = inputs[which.index(inputs.len())].1.clone();
        for (at, length, put) in wounds {
            let at = at.index(body.len() + 1);
            let end = (at + length).min(body.len());
            body.splice(at..end, put);
        }
        survive(&body);
    }

    #[test]
    fn a_mark_of_any_other_body_does_no_harm(one in request(), other in request()) {
        let (reading, _) = read(one.dialect, one.written(one.messages.len()).as_bytes(), None).unwrap();
        let body = other.written(other.messages.len());
        // What comes of it may be nonsense, since the caller did not keep its word.
        read(one.dialect, body.as_bytes(), reading.mark.as_ref());
        read(other.dialect, &body.as_bytes()[..=body.len() / 2], reading.mark.as_ref());
    }
}

fn survive(bytes: &[u8]) {
    for dialect in Dialect::ALL {
        let reading = read(dialect, bytes, None);
        let facts = reading.as_ref().map_or(Facts::default(), |(reading, _)| Facts::clone(&reading.facts));
        assert!(facts.session.is_none_or(|session| !session.is_empty()));
        for placement in PLACEMENTS {
            let hint = Hint { text: "\"H\"", placement, append_role: "user" };
            if let Some(edited) = with_hint(dialect, bytes, &hint) {
                let (_, messages) = read(dialect, &edited, None).unwrap();
                assert!(messages.iter().all(|message| message.end <= edited.len()));
            }
        }
        read_answer(dialect, bytes);
    }
    asking_for_usage(bytes);
}
