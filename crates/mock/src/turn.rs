//! One scripted answer.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

/// What the provider does with one request. Everything is optional; an empty turn answers with a short text.
///
/// ```
/// use loopbreaker_mock::Turn;
/// let turn = Turn::text("one moment").and_call("bash", r#"{"command":"ls"}"#).chunk_delay_ms(5);
/// assert_eq!(turn.calls[0].tool, "bash");
/// assert_eq!(Turn::status(429).header("retry-after", "7").status, Some(429));
/// ```
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Turn {
    /// What the model says.
    pub text: Option<String>,
    /// What the model thinks before it speaks.
    pub reasoning: Option<String>,
    /// The tools the model calls, all in one round.
    pub calls: Vec<Call>,
    /// A text that the model says over and over, [`Turn::copies`] times, after [`Turn::text`].
    pub chant: Option<String>,
    /// How often the chant is said.
    pub copies: usize,
    /// Answers with this status, and an error in the provider's own shape when it is 400 or more.
    pub status: Option<u16>,
    /// Headers of the answer beside the provider's own, which they replace.
    pub headers: BTreeMap<String, String>,
    /// The body of the answer, as it is, in place of everything above.
    pub body: Option<String>,
    /// Waits before the answer begins.
    pub delay_ms: u64,
    /// Waits before every chunk of a stream but the first.
    pub chunk_delay_ms: u64,
    /// Breaks the connection after this many chunks of a stream.
    pub drop_after: Option<usize>,
    /// The status for a request that somebody has edited on its way; the turn then stays for the next request.
    pub status_if_edited: Option<u16>,
    /// The words that give an edited request away, `Loopbreaker` without it.
    pub edited_mark: Option<String>,
    /// The tokens that are reported, estimated from the bytes without it.
    pub usage: Option<Usage>,
    /// How the answer's body is packed.
    pub encoding: Option<Encoding>,
}

/// One tool call of a scripted answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// The arguments, with the bytes of the script: a model does not sort its keys.
    pub args: Box<RawValue>,
}

/// Tokens of one answer, each counted once: `input` without what the cache gave, `output` without reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Fresh input tokens.
    pub input: u64,
    /// Input tokens read from the provider's cache.
    pub cache_read: u64,
    /// Input tokens written to the provider's cache.
    pub cache_write: u64,
    /// Output tokens that are said.
    pub output: u64,
    /// Output tokens that are thought.
    pub reasoning: u64,
}

/// How an answer's body is packed on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// `content-encoding: gzip`, flushed after each chunk of a stream.
    Gzip,
}

impl Turn {
    /// An answer in words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// One tool call, its arguments as JSON text; what is no JSON becomes a JSON string.
    pub fn call(tool: impl Into<String>, args: &str) -> Self {
        Self::default().and_call(tool, args)
    }

    /// One text over and over.
    pub fn chant(unit: impl Into<String>, copies: usize) -> Self {
        Self { chant: Some(unit.into()), copies, ..Self::default() }
    }

    /// An answer with this status: an error of the provider when it is 400 or more.
    pub fn status(status: u16) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// This turn with one more tool call in its round.
    #[must_use]
    pub fn and_call(mut self, tool: impl Into<String>, args: &str) -> Self {
        let args = RawValue::from_string(args.to_owned())
            .or_else(|_| serde_json::value::to_raw_value(args))
            .unwrap_or_else(|_| RawValue::NULL.to_owned());
        self.calls.push(Call { tool: tool.into(), args });
        self
    }

    /// This turn with a thought before it.
    #[must_use]
    pub fn reasoning(mut self, thought: impl Into<String>) -> Self {
        self.reasoning = Some(thought.into());
        self
    }

    /// This turn with one more header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// This turn, begun later.
    #[must_use]
    pub fn delay_ms(mut self, delay: u64) -> Self {
        self.delay_ms = delay;
        self
    }

    /// This turn with a pause before each further chunk of its stream.
    #[must_use]
    pub fn chunk_delay_ms(mut self, delay: u64) -> Self {
        self.chunk_delay_ms = delay;
        self
    }

    /// This turn with these tokens reported.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// The words that an edited request contains.
    pub(crate) fn mark(&self) -> &str {
        self.edited_mark.as_deref().unwrap_or("Loopbreaker")
    }

    /// All that is said, the chant behind the text.
    pub(crate) fn said(&self) -> Option<String> {
        let chant = self.chant.as_deref().map(|unit| {
            let copies = self.copies.min(MAX_SAID_BYTES / unit.len().max(1));
            unit.repeat(copies)
        });
        match (&self.text, chant) {
            (None, None) => None,
            (text, chant) => Some(text.clone().unwrap_or_default() + &chant.unwrap_or_default()),
        }
    }
}

/// A chant longer than this ends early, so that one script line cannot fill the memory.
const MAX_SAID_BYTES: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::{MAX_SAID_BYTES, Turn};

    #[test]
    fn arguments_keep_the_bytes_of_the_script() {
        let turn: Turn =
            serde_json::from_str(r#"{"calls":[{"tool":"f","args":{"b": 1.0, "a": 2}}]}"#).unwrap();
        assert_eq!(turn.calls[0].args.get(), r#"{"b": 1.0, "a": 2}"#);
        assert_eq!(Turn::call("f", "{broken").calls[0].args.get(), r#""{broken""#);
    }

    #[test]
    fn a_misspelt_key_is_refused() {
        assert!(serde_json::from_str::<Turn>(r#"{"txt":"hello"}"#).is_err());
    }

    #[test]
    fn a_chant_follows_the_text_and_has_a_limit() {
        let turn = Turn { text: Some("so: ".into()), ..Turn::chant("la ", 3) };
        assert_eq!(turn.said().as_deref(), Some("so: la la la "));
        assert!(Turn::chant("la ", usize::MAX).said().unwrap().len() <= MAX_SAID_BYTES);
        assert_eq!(Turn::default().said(), None);
    }
}
