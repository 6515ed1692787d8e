//! Moments as RFC 3339 writes them.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment, kept as it was written.
///
/// ```
/// use loopbreaker_record::Moment;
///
/// let moment = Moment::parse("2026-02-21T11:00:00.25+01:00").expect("RFC 3339");
/// assert_eq!(Moment::from_millis(moment.millis()).to_string(), "2026-02-21T10:00:00.250Z");
/// assert_eq!(Moment::parse("yesterday"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    text: Box<str>,
    millis: i64,
}

impl Moment {
    pub(crate) const PATTERN: &str = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt]\
         ([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$";
    /// Nobody measures finer; a longer fraction is no time.
    const MAX_LENGTH: usize = 64;
    /// Where the last digit of each part stands, from the year to the thousandths, and how many it has.
    const ENDS: [(usize, usize); 7] = [(3, 4), (6, 2), (9, 2), (12, 2), (15, 2), (18, 2), (22, 3)];

    /// The moment that is written so; `None` when it is not RFC 3339.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() < 20 || bytes.len() > Self::MAX_LENGTH || !text.is_ascii() {
            return None;
        }
        let number = |from: usize, to: usize| {
            let digits = &bytes[from..to];
            digits
                .iter()
                .all(u8::is_ascii_digit)
                .then(|| digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
        };
        let marks = bytes[4] == b'-' && bytes[7] == b'-' && bytes[13] == b':' && bytes[16] == b':';
        if !marks || !matches!(bytes[10], b'T' | b't') {
            return None;
        }
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let in_range = (1..=12).contains(&month)
            && (1..=days_of(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second <= 60;
        if !in_range {
            return None;
        }
        let mut at = 19;
        let mut fraction = 0;
        if bytes[at] == b'.' {
            let digits = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return None;
            }
            let thousandths = digits.min(3);
            fraction = number(at + 1, at + 1 + thousandths)? * [100, 10, 1][thousandths - 1];
            at += 1 + digits;
        }
        let offset = match bytes.get(at..)? {
            [b'Z' | b'z'] => 0,
            [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
                let (hours, minutes) = (number(at + 1, at + 3)?, number(at + 4, at + 6)?);
                if hours > 23 || minutes > 59 {
                    return None;
                }
                (hours * 60 + minutes) * if *sign == b'-' { -1 } else { 1 }
            }
            _ => return None,
        };
        let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
        Some(Self { text: text.into(), millis: (seconds - offset * 60) * 1_000 + fraction })
    }

    /// A moment by its milliseconds since 1970, between the years 0 and 9999.
    pub fn from_millis(millis: i64) -> Self {
        let millis = millis.clamp(-62_167_219_200_000, 253_402_300_799_999);
        let (days, rest) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
        let (year, month, day) = date_of(days);
        let (seconds, thousandths) = (rest / 1_000, rest % 1_000);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        // It is written twice for each step, so it is done without a formatter.
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let parts = [year, month, day, hour, minute, second, thousandths];
        for ((last, width), mut rest) in Self::ENDS.into_iter().zip(parts) {
            for digit in text[..=last].iter_mut().rev().take(width) {
                *digit = b'0' + u8::try_from(rest % 10).unwrap_or_default();
                rest /= 10;
            }
        }
        let text = std::str::from_utf8(&text).unwrap_or_default();
        Self { text: text.into(), millis }
    }

    /// Milliseconds since 1970; negative before.
    pub const fn millis(&self) -> i64 {
        self.millis
    }

    /// The moment as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Days from 1970 to a date of the Gregorian calendar. Years are counted from March, so that the leap day is the last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12 + 1;
    (era * 400 + year + i64::from(month <= 2), month, day)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("must be an RFC 3339 timestamp"))
    }
}

impl JsonSchema for Moment {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "date-time",
            "maxLength": Self::MAX_LENGTH,
            "pattern": Self::PATTERN,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Moment;

    #[test]
    fn known_moments_have_their_milliseconds() {
        for (text, millis) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1969-12-31T23:59:59.999Z", -1),
            ("2000-02-29t12:00:00z", 951_825_600_000),
            ("2026-02-21T10:00:00.1234567+02:30", 1_771_659_000_123),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000),
        ] {
            assert_eq!(Moment::parse(text).unwrap().millis(), millis, "{text}");
        }
    }

    #[test]
    fn what_is_no_rfc_3339_is_refused() {
        for text in [
            "2026-02-21",
            "2026-02-21T10:00:00",
            "2026-02-21 10:00:00Z",
            "2026-02-30T10:00:00Z",
            "2026-13-01T10:00:00Z",
            "2026-02-21T24:00:00Z",
            "2026-02-21T10:00:00.Z",
            "2026-02-21T10:00:00+25:00",
            "2026-02-21T10:00:00+0100",
            "2026-02-21T10:00:00Zé",
            "+026-02-21T10:00:00Z",
        ] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_millisecond_is_read_as_it_was_written(millis in -62_167_219_200_000_i64..253_402_300_799_999) {
            let written = Moment::from_millis(millis).to_string();
            prop_assert_eq!(Moment::parse(&written).unwrap().millis(), millis);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[0-9TtZz:.+é-]{0,40}") {
            Moment::parse(&text);
        }
    }
}
