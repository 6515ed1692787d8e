//! JSON as it is written: words, and the walk over objects and lists without a tree.

mod cursor;
mod escape;
mod scan;
mod text;

pub use cursor::Broken;
pub use text::{Text, hash, string, words};

pub(crate) use cursor::Cursor;
pub(crate) use escape::{has_escapes, push_escaped, push_unescaped};
pub(crate) use text::whole_number;

use std::borrow::Cow;

use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A JSON value as it is written.
///
/// ```
/// use loopbreaker_dialect::json::{Json, string};
/// let value: Json<'_> = serde_json::from_str(r#" "a\nb" "#)?;
/// assert_eq!((value.get(), string(value).as_deref()), (r#""a\nb""#, Some("a\nb")));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    /// A value that we write ourselves.
    pub(crate) const fn of(text: &'a str) -> Self {
        Self(text)
    }

    /// The text.
    pub const fn get(self) -> &'a str {
        self.0
    }

    /// What stands between the quotes, when the value is a string.
    pub(crate) fn inside(self) -> Option<&'a str> {
        self.0.strip_prefix('"')?.strip_suffix('"')
    }

    pub(crate) fn is_null(self) -> bool {
        self.0 == "null"
    }

    pub(crate) fn is_string(self) -> bool {
        self.0.starts_with('"')
    }

    fn string(self) -> Option<Cow<'a, str>> {
        self.inside().map(escape::unescaped)
    }

    /// Whether what stands between the quotes can be written in no other way.
    pub(crate) fn has_one_spelling(self) -> bool {
        self.inside().is_some_and(|inside| !escape::leaves_a_choice(inside))
    }

    /// The form that all ways of writing a string have in common, without the quotes.
    pub(crate) fn canonical_string(self) -> Option<Cow<'a, str>> {
        self.inside().map(escape::canonical)
    }
}

impl<'a> From<&'a RawValue> for Json<'a> {
    fn from(value: &'a RawValue) -> Self {
        Self(value.get())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Self::from)
    }
}
