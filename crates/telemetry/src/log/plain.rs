//! Texts that are safe to write: no credential, and nothing that a terminal or a log reader would obey.

use crate::mask::mask;

/// Appends a text that a client chose. Quotes, backslashes and everything that is invisible are escaped as in JSON, so
/// that a value can neither end its line nor colour it nor turn its direction.
pub(super) fn push_plain(line: &mut Vec<u8>, text: &str) {
    let text = mask(text);
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\') {
        line.extend_from_slice(text.as_bytes());
        return;
    }
    for character in text.chars() {
        match character {
            '"' => line.extend_from_slice(b"\\\""),
            '\\' => line.extend_from_slice(b"\\\\"),
            '\n' => line.extend_from_slice(b"\\n"),
            '\r' => line.extend_from_slice(b"\\r"),
            '\t' => line.extend_from_slice(b"\\t"),
            hidden if is_hidden(hidden) => {
                let mut units = [0; 2];
                for unit in hidden.encode_utf16(&mut units) {
                    line.extend_from_slice(b"\\u");
                    let digits =
                        [12, 8, 4, 0].map(|shift| b"0123456789abcdef"[usize::from(*unit >> shift & 15)]);
                    line.extend_from_slice(&digits);
                }
            }
            shown => line.extend_from_slice(shown.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// A text in quotes.
pub(super) fn push_quoted(line: &mut Vec<u8>, text: &str) {
    line.push(b'"');
    push_plain(line, text);
    line.push(b'"');
}

/// A text that is quoted only where a reader could take it for several words.
pub(super) fn push_word(line: &mut Vec<u8>, text: &str) {
    let is_word = |byte: u8| byte.is_ascii_graphic() && !b"\"=\\".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_word) {
        push_plain(line, text);
    } else {
        push_quoted(line, text);
    }
}

/// Control characters, line and paragraph separators, and the marks that change the direction of what follows.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{push_quoted, push_word};

    fn quoted(text: &str) -> String {
        let mut line = Vec::new();
        push_quoted(&mut line, text);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn a_value_cannot_begin_a_line_or_colour_it() {
        assert_eq!(quoted("a\nINFO fake\x1b[31m\u{9b}"), r#""a\nINFO fake\u001b[31m\u009b""#);
        assert_eq!(quoted("a\u{2028}b\u{202e}c"), r#""a\u2028b\u202ec""#);
    }

    #[test]
    fn a_credential_is_masked_before_it_is_escaped() {
        assert_eq!(quoted("id\tsk-abcdef012345"), r#""id\tsk-***""#);
    }

    #[test]
    fn a_word_needs_no_quotes() {
        let word = |text: &str| {
            let mut line = Vec::new();
            push_word(&mut line, text);
            String::from_utf8(line).unwrap()
        };
        assert_eq!(word("gpt-4o:free"), "gpt-4o:free");
        assert_eq!(word("two words"), r#""two words""#);
        assert_eq!(word("a=b"), r#""a=b""#);
        assert_eq!(word(""), r#""""#);
    }

    proptest! {
        #[test]
        fn what_is_quoted_is_json_on_one_line(text in any::<String>()) {
            let quoted = quoted(&text);
            prop_assert!(!quoted.chars().any(char::is_control));
            let back: String = serde_json::from_str(&quoted).unwrap();
            prop_assert_eq!(back, crate::mask(&text));
        }
    }
}
