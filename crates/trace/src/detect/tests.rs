use super::*;

fn detect(text: &str) -> Option<Format> {
    format_of(Record { line: 1, text, only: true }).ok()
}

#[test]
fn a_list_of_steps_is_a_trace() {
    assert_eq!(detect(r#"{"id":"a","steps":[]}"#), Some(Format::Trace));
    assert_eq!(detect(r#"[{"id":"a","steps":[]}]"#), Some(Format::Trace));
}

#[test]
fn messages_are_openai_until_a_block_shows_that_they_are_anthropic() {
    assert_eq!(detect(r#"[{"role":"user","content":"hi"}]"#), Some(Format::OpenAi));
    assert_eq!(detect(r#"{"messages":[{"role":"user","content":"hi"}]}"#), Some(Format::OpenAi));
    let answer = r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}"#;
    let list = format!(r#"[{{"role":"user","content":"hi"}},{answer}]"#);
    assert_eq!(detect(&list), Some(Format::Anthropic));
    assert_eq!(detect(&format!(r#"{{"messages":{list}}}"#)), Some(Format::Anthropic));
}

#[test]
fn items_of_the_responses_api_are_openai() {
    assert_eq!(detect(r#"[{"type":"function_call","call_id":"c","name":"n"}]"#), Some(Format::OpenAi));
    assert_eq!(detect(r#"{"id":"r","output":[{"type":"reasoning","summary":[]}]}"#), Some(Format::OpenAi));
    assert_eq!(detect(r#"{"input":[{"type":"message","role":"user","content":"x"}]}"#), Some(Format::OpenAi));
}

#[test]
fn every_kind_of_entry_of_a_session_is_claude_code() {
    for text in [
        r#"{"type":"summary","summary":"x","leafUuid":"u"}"#,
        r#"{"type":"file-history-snapshot","messageId":"m","snapshot":{}}"#,
        r#"{"type":"queue-operation","operation":"enqueue","sessionId":"s"}"#,
        r#"{"type":"user","sessionId":"s","uuid":"u","message":{"role":"user","content":"hi"}}"#,
    ] {
        assert_eq!(detect(text), Some(Format::ClaudeCode), "{text}");
    }
}

#[test]
fn the_sections_of_a_decision_log_tell_it_apart_from_an_openhands_event() {
    let log =
        r#"{"meta":{"trace_id":"t"},"identity":{},"cognition":{"intent":"x"},"action":{"status":"success"}}"#;
    assert_eq!(detect(log), Some(Format::DecisionLog));
    assert_eq!(detect(&format!("[{log}]")), Some(Format::DecisionLog));
    let event = r#"{"id":1,"source":"agent","action":"run","args":{"command":"ls"}}"#;
    assert_eq!(detect(event), Some(Format::OpenHands));
    assert_eq!(detect(&format!(r#"{{"history":[{event}]}}"#)), Some(Format::OpenHands));
    assert_eq!(detect(&format!(r#"{{"history":[[{event}]]}}"#)), Some(Format::OpenHands));
}

#[test]
fn trajectories_and_spans_are_known_by_their_lists() {
    assert_eq!(detect(r#"{"environment":"e","trajectory":[],"history":[]}"#), Some(Format::SweAgent));
    assert_eq!(detect(r#"{"resourceSpans":[]}"#), Some(Format::OtlpJson));
}

#[test]
fn anything_else_is_unknown() {
    for text in ["{}", "[]", "5", "null", "\"x\"", "[[]]", r#"{"name":"package","version":"1"}"#] {
        assert_eq!(detect(text), None, "{text}");
    }
}

#[test]
fn a_list_of_any_depth_is_looked_at_without_going_down() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(detect(&deep), None);
}
