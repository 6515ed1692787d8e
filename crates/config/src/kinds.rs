//! The kinds of values that a key may ask for, one reader each.
//!
//! These are functions and not methods, so that a section can hand them on by name, as in
//! `fields.check("url", text)`.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use loopbreaker::Timestamp;

use crate::cursor::{Cursor, Read};
use crate::moment;
use crate::path::quote;
use crate::scalar::{Meaning, meaning};
use crate::units::{self, UnitError};

/// Any text. What would be a number or a flag is refused: `model: 1.0` is more often a mistake than a name.
pub(crate) fn text(value: Cursor<'_>) -> Read<String> {
    let text = value.scalar().unwrap_or_default();
    match value.meaning() {
        Some(Meaning::Text) => Ok(text.to_owned()),
        Some(Meaning::Whole | Meaning::Real(_) | Meaning::Flag(_)) => {
            Err(value.mismatch("text", &format!("put it in quotes: \"{}\"", excerpt(text))))
        }
        _ => Err(value.mismatch("text", "write a text, or remove the key")),
    }
}

/// A text with something in it.
pub(crate) fn filled(value: Cursor<'_>) -> Read<String> {
    let text = text(value)?;
    if text.trim().is_empty() {
        return Err(value.refuse("this text is empty", "write something, or remove the key"));
    }
    Ok(text)
}

/// `true` or `false`.
pub(crate) fn flag(value: Cursor<'_>) -> Read<bool> {
    if let Some(Meaning::Flag(flag)) = value.meaning() {
        return Ok(flag);
    }
    let hint = match value.scalar().unwrap_or_default().to_lowercase().as_str() {
        "yes" | "on" | "true" | "1" => "write `true`",
        "no" | "off" | "false" | "0" => "write `false`",
        _ => "write `true` or `false`",
    };
    Err(value.mismatch("true or false", hint))
}

/// A whole number that is not negative.
pub(crate) fn whole(value: Cursor<'_>) -> Read<u32> {
    whole_up_to(value, &u32::MAX)
}

/// The same for what grows beyond 32 bits, such as tokens in a month.
pub(crate) fn large_whole(value: Cursor<'_>) -> Read<u64> {
    whole_up_to(value, &u64::MAX)
}

fn whole_up_to<T: FromStr + Display>(value: Cursor<'_>, max: &T) -> Read<T> {
    let text = value.scalar().unwrap_or_default();
    match value.meaning() {
        Some(Meaning::Whole) => {
            if text.starts_with('-') && text != "-0" {
                let hint = "write a whole number without a sign, such as 3";
                return Err(value.refuse(format!("{} is negative", excerpt(text)), hint));
            }
            let digits = text.trim_start_matches(['+', '-']);
            let too_large = || format!("{} is too large, at most {max} is possible", excerpt(text));
            digits.parse().map_err(|_| value.refuse(too_large(), "write a smaller number"))
        }
        Some(Meaning::Text) if meaning(text) == Meaning::Whole => {
            Err(value.mismatch("a whole number", &format!("write it without quotes: {}", excerpt(text))))
        }
        _ => Err(value.mismatch("a whole number", "write digits only, such as 3")),
    }
}

/// Any number. Infinity and not-a-number too: whoever checks the range refuses them in its own words.
pub(crate) fn number(value: Cursor<'_>) -> Read<f64> {
    let text = value.scalar().unwrap_or_default();
    match value.meaning() {
        Some(Meaning::Real(number)) => Ok(number),
        // Digits of any length are a number to Rust; the largest become infinite and fail the range check.
        Some(Meaning::Whole) => Ok(text.parse().unwrap_or(f64::NAN)),
        Some(Meaning::Text) if matches!(meaning(text), Meaning::Whole | Meaning::Real(_)) => {
            Err(value.mismatch("a number", &format!("write it without quotes: {}", excerpt(text))))
        }
        _ => Err(value.mismatch("a number", "write a number, such as 0.5")),
    }
}

/// A number above zero that is not infinite.
pub(crate) fn positive(value: Cursor<'_>) -> Read<f64> {
    match number(value)? {
        number if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err(value.refuse("this must be a number above 0", "write a larger number, such as 1")),
    }
}

/// A moment, such as `2027-01-01T00:00:00Z`.
pub(crate) fn moment(value: Cursor<'_>) -> Read<Timestamp> {
    let text = text(value)?;
    moment::parse(&text).ok_or_else(|| {
        let message = format!("{} is no moment with a zone (RFC 3339)", quote(&text));
        value.refuse(message, "write it like `2027-01-01T00:00:00Z`")
    })
}

/// A duration that is not zero.
pub(crate) fn some_time(value: Cursor<'_>) -> Read<Duration> {
    match duration(value)? {
        Duration::ZERO => Err(value.refuse("this must be longer than 0", "write a duration, such as `30s`")),
        duration => Ok(duration),
    }
}

/// A duration, such as `30m`.
pub(crate) fn duration(value: Cursor<'_>) -> Read<Duration> {
    with_unit(value, "a duration", "write it like `50ms`, `25s`, `30m`, `1h` or `30d`", units::duration)
}

/// A size in bytes, such as `32MiB`.
pub(crate) fn size(value: Cursor<'_>) -> Read<u64> {
    with_unit(value, "a size", "write it like `32MiB`", units::size)
}

/// A share from 0 to 1, such as `5%`.
pub(crate) fn percentage(value: Cursor<'_>) -> Read<f64> {
    with_unit(value, "a percentage", "write it like `5%`", units::percentage)
}

fn with_unit<T>(
    value: Cursor<'_>,
    kind: &str,
    hint: &str,
    read: fn(&str) -> Result<T, UnitError>,
) -> Read<T> {
    let Some(text) = value.scalar().filter(|_| !value.is_null()) else {
        return Err(value.mismatch(kind, hint));
    };
    read(text).map_err(|error| value.refuse(format!("{} {}", quote(text), error.reason), error.hint))
}

/// A number as it was written, unless somebody wrote pages of digits.
pub(crate) fn excerpt(text: &str) -> String {
    if text.len() <= 60 { text.to_owned() } else { quote(text) }
}
