//! Words in JSON.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::Json;

/// A JSON string, borrowed from the input where it has no escapes.
///
/// Half a surrogate pair, which tools that print raw bytes leave behind, becomes a replacement character: a run is
/// worth more than one strange letter in it.
///
/// ```
/// use loopbreaker_dialect::json::Text;
/// let text: Text<'_> = serde_json::from_str(r#""a\ud83d!""#)?;
/// assert!(text.0.starts_with("a\u{fffd}"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Asked for bytes, serde_json hands out a string's bytes without refusing half a surrogate pair.
        deserializer.deserialize_bytes(TextVisitor).map(Text)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(String::from_utf8_lossy(bytes))
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Cow::Owned(String::from_utf8_lossy(bytes).into_owned()))
    }
}

/// The words of any JSON value: a string is decoded, everything else is its JSON text.
pub fn words<'a>(value: impl Into<Json<'a>>) -> Cow<'a, str> {
    let value = value.into();
    value.string().unwrap_or(Cow::Borrowed(value.get()))
}

/// A number that is whole and not negative, however it is written; what is too large is as large as can be.
#[expect(clippy::cast_sign_loss, reason = "what begins with a digit is not negative")]
pub(crate) fn whole_number(value: Json<'_>) -> Option<u64> {
    // Nearly all are a few digits.
    if let Ok(number) = value.get().parse() {
        return Some(number);
    }
    let words = words(value);
    let as_float = || {
        let number: f64 = words.parse().ok()?;
        let is_whole = number.fract() == 0.0 || number.is_infinite();
        (words.starts_with(|first: char| first.is_ascii_digit()) && is_whole).then_some(number as u64)
    };
    words.parse().ok().or_else(as_float)
}

/// The decoded string, when the value is one.
pub fn string<'a>(value: impl Into<Json<'a>>) -> Option<Cow<'a, str>> {
    value.into().string()
}

/// A short number for long words (FNV-1a): the same words always have the same one.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn a_string_without_escapes_is_borrowed() {
        let text: Text<'_> = serde_json::from_str(r#""plain""#).unwrap();
        assert!(matches!(text.0, Cow::Borrowed("plain")));
        let raw: &RawValue = serde_json::from_str(r#""plain""#).unwrap();
        assert!(matches!(string(raw), Some(Cow::Borrowed("plain"))));
    }

    #[test]
    fn half_a_surrogate_pair_becomes_a_replacement_character() {
        let text: Text<'_> = serde_json::from_str(r#""a\ud83db\n\ud83d\ude00""#).unwrap();
        assert!(text.0.starts_with("a\u{fffd}") && text.0.ends_with("b\n😀"), "{}", text.0);
    }

    #[test]
    fn a_number_is_no_string() {
        assert!(serde_json::from_str::<Text<'_>>("5").is_err());
        assert!(serde_json::from_str::<Text<'_>>("[1]").is_err());
        let raw: &RawValue = serde_json::from_str("5").unwrap();
        assert_eq!((string(raw), words(raw)), (None, Cow::Borrowed("5")));
    }
}
