//! The wire formats that are understood.

use std::fmt;

/// A provider's wire format.
///
/// ```
/// use loopbreaker_dialect::Dialect;
/// assert_eq!(Dialect::Anthropic.as_str(), "anthropic");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Chat completions of `OpenAI`, and of everyone who speaks like it.
    Chat,
    /// The Responses API of `OpenAI`.
    Responses,
    /// Messages of Anthropic.
    Anthropic,
    /// `generateContent` and `streamGenerateContent` of Gemini.
    Gemini,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 4] = [Self::Chat, Self::Responses, Self::Anthropic, Self::Gemini];

    /// The dialect's name, as in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
