//! What of a log may be kept: no credentials, and no words at all where that is asked for.

use loopbreaker_record::DecisionLog;
use loopbreaker_telemetry::mask;
use serde_json::Value;

use crate::audit::sha256;

/// Masks credentials everywhere in a log. Without `keep_prompts`, words become hashes: equal words stay equal.
pub(crate) fn redact(log: &mut DecisionLog, keep_prompts: bool) {
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
        redact_value(&mut value, &words);
        log.extensions.insert(mask(&name).into_owned(), value);
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
    if let std::borrow::Cow::Owned(masked) = mask(text) {
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
    use serde_json::json;

    use super::redact;

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
        let mut log = log();
        redact(&mut log, true);
        let text = serde_json::to_string(&log).unwrap();
        for secret in ["abcdef0123456789", "abcdefghijklmnop", "IOSFODNN7EXAMPLE", "0123456789abcdefABCDEF"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert_eq!(log.cognition.intent, "use sk-***");
    }

    #[test]
    fn without_prompts_words_become_hashes_and_names_stay() {
        let (mut one, mut other) = (log(), log());
        redact(&mut one, false);
        redact(&mut other, false);
        assert!(one.cognition.intent.starts_with("sha256:"));
        assert_eq!(one.cognition.intent, other.cognition.intent);
        assert_eq!(one.action.tool_call.as_deref(), Some("curl"));
    }
}
