//! `hint`: what the model is told, and where in the request.

use crate::cursor::{Cursor, Read};
use crate::kinds::filled;

/// What the model is told about its loop, and where in the request.
///
/// ```
/// use loopbreaker_config::{Config, Placement};
/// let hint = Config::parse("hint: { placement: append }").unwrap().hint;
/// assert_eq!((hint.placement, hint.message), (Placement::Append, None));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hint {
    /// Where it is put.
    pub placement: Placement,
    /// The text; `None` for our own, which names what repeats.
    pub message: Option<String>,
}

/// Where in a request the hint is put.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Placement {
    /// A system text of its own before all others.
    #[default]
    Prepend,
    /// Merged into the first system text.
    Extend,
    /// At the end of the conversation, which keeps the provider's prompt cache.
    Append,
}

impl Placement {
    /// The name in the config.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prepend => "prepend",
            Self::Extend => "extend",
            Self::Append => "append",
        }
    }
}

pub(super) fn read(section: Cursor<'_>) -> Read<Hint> {
    let mut fields = section.map()?;
    let placement = fields.field("placement", Placement::default(), |value| {
        let all = [Placement::Prepend, Placement::Extend, Placement::Append];
        value.choice(&all.map(|placement| (placement.as_str(), placement)))
    });
    let message = fields.field("message", None, |value| value.or_null(filled));
    fields.finish();
    Ok(Hint { placement: placement?, message: message? })
}
