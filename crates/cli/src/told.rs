//! What the gateway tells a client about its request: the headers of every answer, and the words of a refusal.

use std::fmt;

use anstyle::{AnsiColor, Style};
use hyper::header::HeaderMap;
use loopbreaker::Action;
use serde::Deserialize;

/// The headers of one answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Whether it names a session, which every answer of a gateway does and no answer of anybody else.
    pub(crate) is_ours: bool,
    /// Not told while every policy is in shadow.
    pub(crate) verdict: Option<Action>,
    pub(crate) seen: Option<SeenLoop>,
}

/// A loop as the headers tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenLoop {
    pub(crate) kind: String,
    pub(crate) count: u64,
}

/// Why a request was refused.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RefusalWords {
    /// `loop_detected`, `budget_exceeded`…
    pub(crate) code: Option<String>,
    pub(crate) message: String,
}

impl Told {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        Self {
            is_ours: headers.contains_key("x-loopbreaker-session"),
            verdict: text("x-loopbreaker-verdict").and_then(Action::parse),
            seen: text("x-loopbreaker-loop").and_then(SeenLoop::parse),
        }
    }
}

impl SeenLoop {
    /// Reads `kind=cycle; count=6; period=2`.
    fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let mut pairs = text.split(';').filter_map(|pair| pair.trim().split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        Some(Self { kind: value("kind")?.to_owned(), count: value("count")?.parse().ok()? })
    }
}

impl fmt::Display for SeenLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ×{}", self.kind, self.count)
    }
}

impl RefusalWords {
    /// The words of a refusal in any dialect; empty when there are none.
    pub(crate) fn of(body: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Body {
            error: Fields,
        }
        #[derive(Deserialize)]
        struct Fields {
            // Gemini has a number here.
            code: Option<serde_json::Value>,
            message: String,
        }
        let Ok(Body { error }) = serde_json::from_slice(body) else { return Self::default() };
        if let Some(code) = error.code.as_ref().and_then(serde_json::Value::as_str) {
            return Self { code: Some(code.to_owned()), message: error.message };
        }
        // A dialect that has no place for the code has it before the message.
        let is_code = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        match error.message.split_once(": ") {
            Some((code, message)) if is_code(code) => {
                Self { code: Some(code.to_owned()), message: message.to_owned() }
            }
            _ => Self { code: None, message: error.message },
        }
    }
}

/// How an action looks on a terminal.
pub(crate) fn style_of(action: Action) -> Style {
    match action {
        Action::Allow => AnsiColor::Green.on_default(),
        Action::Warn => AnsiColor::Yellow.on_default(),
        Action::Hint => AnsiColor::Cyan.on_default().bold(),
        Action::Throttle | Action::Pause => AnsiColor::Yellow.on_default().bold(),
        Action::Reject => AnsiColor::Red.on_default().bold(),
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn a_loop_is_read_from_its_header_whatever_stands_behind_it() {
        let mut headers = HeaderMap::new();
        headers.insert("x-loopbreaker-session", HeaderValue::from_static("s"));
        headers.insert("x-loopbreaker-verdict", HeaderValue::from_static("throttle"));
        headers.insert("x-loopbreaker-loop", HeaderValue::from_static("kind=cycle; count=6; period=2"));
        let told = Told::of(&headers);
        assert_eq!((told.is_ours, told.verdict), (true, Some(Action::Throttle)));
        assert_eq!(told.seen.unwrap().to_string(), "cycle ×6");
    }

    #[test]
    fn an_answer_of_somebody_else_tells_nothing() {
        assert_eq!(Told::of(&HeaderMap::new()), Told::default());
    }

    #[test]
    fn the_words_of_a_refusal_are_found_in_every_dialect() {
        use loopbreaker_dialect::{Dialect, Refusal, refusal};
        for dialect in Dialect::ALL {
            let body = refusal(Some(dialect), Refusal::LoopDetected, 429, "bash: the same call 5 times");
            let words = RefusalWords::of(body.as_bytes());
            assert_eq!(words.code.as_deref(), Some("loop_detected"), "{dialect}");
            assert_eq!(words.message, "bash: the same call 5 times", "{dialect}");
        }
        assert_eq!(RefusalWords::of(b"<html>"), RefusalWords::default());
    }
}
