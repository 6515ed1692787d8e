//! The words of a message that holds nothing else.

use serde_json::Value;

/// What a person said, if the message is theirs and there is nothing but words in it: a picture or a result beside them
/// would be compared with nothing.
pub(crate) fn only_words(message: &[u8]) -> Option<String> {
    // A longer text says more than its embedding sees.
    const MAX: usize = 4 << 10;
    if message.len() > 2 * MAX {
        return None;
    }
    let message: Value = serde_json::from_slice(message).ok()?;
    let mut words = String::new();
    collect(&message, &mut words)?;
    (!words.trim().is_empty() && words.len() <= MAX).then_some(words)
}

fn collect(value: &Value, words: &mut String) -> Option<()> {
    match value {
        Value::String(text) => {
            if !words.is_empty() {
                words.push('\n');
            }
            words.push_str(text);
            Some(())
        }
        Value::Array(parts) => parts.iter().try_for_each(|part| collect(part, words)),
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| match name.as_str() {
            "role" => (value == "user").then_some(()),
            "type" => (value == "message" || value == "text" || value == "input_text").then_some(()),
            "content" | "text" | "parts" => collect(value, words),
            _ => None,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::only_words;

    #[test]
    fn words_are_found_in_every_dialect() {
        for message in [
            r#"{"role":"user","content":"list the files"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"list the files"}]}"#,
            r#"{"role":"user","parts":[{"text":"list the files"}]}"#,
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"list the files"}]}"#,
            r#""list the files""#,
        ] {
            assert_eq!(only_words(message.as_bytes()).as_deref(), Some("list the files"), "{message}");
        }
    }

    #[test]
    fn a_message_with_anything_else_has_no_words_of_its_own() {
        for message in [
            r#"{"role":"assistant","content":"list the files"}"#,
            r#"{"role":"tool","tool_call_id":"c1","content":"a.txt"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"x"}}]}"#,
            r#"{"role":"user","name":"anna","content":"a"}"#,
            r#"{"role":"user","content":""}"#,
            "null",
            "{",
        ] {
            assert_eq!(only_words(message.as_bytes()), None, "{message}");
        }
        let long = format!(r#"{{"role":"user","content":"{}"}}"#, "word ".repeat(1_000));
        assert_eq!(only_words(long.as_bytes()), None);
    }
}
