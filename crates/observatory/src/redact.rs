//! What of a log may be kept: no credentials, and no words at all where that is asked for.

use std::borrow::Cow;

use loopbreaker_record::{DecisionLog, Rejection};
use loopbreaker_telemetry::mask;
use serde_json::Value;

use crate::audit::sha256;
use crate::graph::start_of;
use crate::hitl::Order;

/// So much of the name of a field that is refused is shown. It is far less than what a violation holds of it.
const MAX_NAME: usize = 120;

/// The log as it may be kept, where that is another than it is: masking seldom changes anything.
pub(crate) fn redacted(log: &DecisionLog, keep_prompts: bool) -> Option<DecisionLog> {
    if keep_prompts && is_harmless(log) {
        return None;
    }
    let mut kept = log.clone();
    redact(&mut kept, keep_prompts);
    Some(kept)
}

/// Whether no credential stands in a log.
fn is_harmless(log: &DecisionLog) -> bool {
    let DecisionLog { meta, identity, cognition, action, state_delta, extensions, .. } = log;
    let single = [
        Some(&identity.agent_id),
        Some(&identity.agent_type),
        meta.cluster_id.as_ref(),
        Some(&cognition.intent),
        cognition.strategy_used.as_ref(),
        action.tool_call.as_ref(),
        action.tool_input.as_ref(),
        action.tool_output_summary.as_ref(),
    ];
    let memory = state_delta.as_ref().and_then(|delta| delta.added_to_memory.as_ref());
    let lists = [cognition.reasoning_chain.as_ref(), memory];
    single.into_iter().flatten().chain(lists.into_iter().flatten().flatten()).all(|text| is_plain(text))
        && extensions.iter().all(|(name, value)| is_plain(name) && is_plain_value(value))
}

fn is_plain(text: &str) -> bool {
    matches!(mask(text), Cow::Borrowed(_))
}

fn is_plain_value(value: &Value) -> bool {
    match value {
        Value::String(text) => is_plain(text),
        Value::Array(members) => members.iter().all(is_plain_value),
        Value::Object(fields) => fields.values().all(is_plain_value),
        _ => true,
    }
}

/// Masks credentials everywhere in a log. Without `keep_prompts`, words become hashes: equal words stay equal.
fn redact(log: &mut DecisionLog, keep_prompts: bool) {
    let words = |text: &mut String| {
        if keep_prompts { mask_in(text) } else { hash_in(text) }
    };
    mask_in(&mut log.identity.agent_id);
    mask_in(&mut log.identity.agent_type);
    log.meta.cluster_id.iter_mut().for_each(mask_in);
    words(&mut log.cognition.intent);
    log.cognition.reasoning_chain.iter_mut().flatten().for_each(words);
    log.cognition.strategy_used.iter_mut().for_each(mask_in);
    log.action.tool_call.iter_mut().for_each(mask_in);
    log.action.tool_input.iter_mut().for_each(words);
    log.action.tool_output_summary.iter_mut().for_each(words);
    if let Some(delta) = &mut log.state_delta {
        delta.added_to_memory.iter_mut().flatten().for_each(words);
    }
    let extensions = std::mem::take(&mut log.extensions);
    for (name, mut value) in extensions {
        // What model it was is a name, and not what was said to it.
        if name == "model" && value.is_string() {
            redact_value(&mut value, &mask_in);
        } else {
            redact_value(&mut value, &words);
        }
        log.extensions.insert(mask(&name).into_owned(), value);
    }
}

/// What was refused and why, as it may be told and kept: clients have put keys into names and versions, too.
pub(crate) fn redacted_answer(rejection: &Rejection) -> Value {
    let mut answer = rejection.answer();
    if !is_plain_value(&answer) {
        redact_value(&mut answer, &mask_in);
    }
    for violation in answer["violations"].as_array_mut().into_iter().flatten() {
        // A longer name was cut, perhaps in the middle of a key, whose rest is not known for one any more.
        if let Some(field) = violation["field"].as_str().filter(|field| field.len() > MAX_NAME) {
            violation["field"] = format!("{}…", start_of(field, MAX_NAME)).into();
        }
    }
    answer
}

/// An order as it may be told: what a person wrote of a pause is a reason, and reaches no model. What is written for one
/// is handed out as it is.
pub(crate) fn redacted_order(order: Order) -> Order {
    match order {
        Order::Pause { reason } => Order::Pause { reason: redact_text(&reason, true) },
        other => other,
    }
}

/// One text as it may be kept.
pub(crate) fn redact_text(text: &str, keep_prompts: bool) -> String {
    let mut text = text.to_owned();
    if keep_prompts {
        mask_in(&mut text);
    } else {
        hash_in(&mut text);
    }
    text
}

fn redact_value(value: &mut Value, words: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => words(text),
        Value::Array(members) => members.iter_mut().for_each(|member| redact_value(member, words)),
        Value::Object(fields) => fields.values_mut().for_each(|field| redact_value(field, words)),
        _ => {}
    }
}

fn mask_in(text: &mut String) {
    if let Cow::Owned(masked) = mask(text) {
        *text = masked;
    }
}

fn hash_in(text: &mut String) {
    if !text.is_empty() {
        *text = format!("sha256:{}", &sha256(text.as_bytes())[..32]);
    }
}

#[cfg(test)]
mod tests {
    use loopbreaker_record::{DecisionLog, Moment, Status, TraceId};
    use serde_json::{Value, json};

    use super::{redacted, redacted_answer};

    fn log() -> DecisionLog {
        DecisionLog::builder("a", "coder", "2.0.0")
            .intent("use sk-abcdef0123456789")
            .thought("Bearer abcdefghijklmnop")
            .called("curl", r#"{"key":"ghp_0123456789abcdefABCDEF0123456789abcd"}"#)
            .answered("AKIAIOSFODNN7EXAMPLE", Status::Success)
            .remembers("sk-abcdef0123456789")
            .extension("note", json!({ "deep": ["sk-abcdef0123456789"] }))
            .build(TraceId::from_random_bytes([1; 16]), Moment::from_millis(0))
            .unwrap()
    }

    #[test]
    fn no_credential_is_kept_wherever_it_stands() {
        let log = redacted(&log(), true).unwrap();
        let text = serde_json::to_string(&log).unwrap();
        for secret in ["abcdef0123456789", "abcdefghijklmnop", "IOSFODNN7EXAMPLE", "0123456789abcdefABCDEF"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert_eq!(log.cognition.intent, "use sk-***");
    }

    /// The places of all texts in a log that may be any.
    fn places(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                fields.iter().for_each(|(name, field)| places(field, &format!("{at}/{name}"), found));
            }
            Value::Array(members) => {
                (0..)
                    .zip(members)
                    .for_each(|(index, member)| places(member, &format!("{at}/{index}"), found));
            }
            Value::String(_) => found.push(at.to_owned()),
            _ => {}
        }
    }

    #[test]
    fn one_credential_in_any_text_is_enough_to_be_masked() {
        let mut harmless = log();
        harmless.cognition.strategy_used = Some("ReAct".to_owned());
        harmless.meta.cluster_id = Some("eu".to_owned());
        harmless = redacted(&harmless, true).unwrap();
        assert_eq!(redacted(&harmless, true), None);
        let harmless = serde_json::to_value(&harmless).unwrap();
        let mut all = Vec::new();
        places(&harmless, "", &mut all);
        assert!(all.len() > 10, "{all:?}");
        for place in all {
            let mut log = harmless.clone();
            *log.pointer_mut(&place).unwrap() = "sk-abcdef0123456789".into();
            let Ok(log) = serde_json::from_value::<DecisionLog>(log) else { continue };
            if place == "/identity/capability_version" {
                // A version is checked before it comes here.
                continue;
            }
            let kept = redacted(&log, true).unwrap_or_else(|| panic!("{place} was taken for harmless"));
            assert!(!serde_json::to_string(&kept).unwrap().contains("abcdef0123456789"), "{place}");
        }
    }

    #[test]
    fn without_prompts_words_become_hashes_and_names_stay() {
        let (one, other) = (redacted(&log(), false).unwrap(), redacted(&log(), false).unwrap());
        assert!(one.cognition.intent.starts_with("sha256:"));
        assert_eq!(one.cognition.intent, other.cognition.intent);
        assert_eq!(one.action.tool_call.as_deref(), Some("curl"));
    }

    #[test]
    fn without_prompts_the_model_is_still_named() {
        let mut log = log();
        log.extensions.insert("model".to_owned(), json!("gpt-4o"));
        log.extensions.insert("models".to_owned(), json!("of things"));
        let kept = redacted(&log, false).unwrap();
        assert_eq!(kept.extensions["model"], "gpt-4o");
        assert!(kept.extensions["models"].as_str().unwrap().starts_with("sha256:"));
        log.extensions.insert("model".to_owned(), json!({ "words": "of somebody" }));
        assert!(!redacted(&log, false).unwrap().extensions["model"].to_string().contains("somebody"));
    }

    #[test]
    fn no_credential_is_told_of_what_was_refused() {
        let key = "sk-abcdef0123456789abcdef";
        let long = format!("{}{key}{key}{key}", "x".repeat(190));
        let mut log = serde_json::to_value(log()).unwrap();
        log["identity"]["capability_version"] = "1.0.0".into();
        log["extensions"] = Value::Null;
        log[key] = 1.into();
        log[&long] = 1.into();
        log["action"][key] = 1.into();
        let rejection = DecisionLog::parse(log.to_string().as_bytes()).unwrap_err();
        let told = redacted_answer(&rejection);
        assert!(told.to_string().contains("action.sk-***"), "{told}");
        assert!(!told.to_string().contains("sk-a"), "{told}");
        log["identity"]["capability_version"] = format!("9.0.0-{key}").into();
        let rejection = DecisionLog::parse(log.to_string().as_bytes()).unwrap_err();
        assert_eq!(rejection.code(), "unsupported_version");
        assert!(!redacted_answer(&rejection).to_string().contains("sk-a"));
    }
}
