//! Numbers with a unit: durations, sizes, percentages.

use std::time::Duration;

use crate::path::quote;

/// A duration such as `50ms`, `25s`, `30m`, `1h`, `30d`.
pub(crate) fn duration(text: &str) -> Result<Duration, UnitError> {
    let (number, unit) = split(text, "1h")?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(UnitError::unknown(unit, "use `ms`, `s`, `m`, `h` or `d`, such as `1h`")),
    };
    number.checked_mul(millis).map(Duration::from_millis).ok_or_else(UnitError::too_large)
}

/// A size in bytes such as `512B`, `64KiB`, `32MiB`, `10GiB`.
pub(crate) fn size(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text, "32MiB")?;
    let bytes: u64 = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return Err(UnitError::unknown(unit, "use `B`, `KiB`, `MiB`, `GiB` or `TiB`, such as `32MiB`")),
    };
    number.checked_mul(bytes).ok_or_else(UnitError::too_large)
}

/// A share such as `0%`, `12.5%`, `100%`, as a number from 0 to 1.
pub(crate) fn percentage(text: &str) -> Result<f64, UnitError> {
    let number = text
        .strip_suffix('%')
        .ok_or_else(|| UnitError::new("has no `%`", "write a percentage, such as `5%`"))?;
    let plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match number.parse::<f64>() {
        Ok(value) if plain && value <= 100.0 => Ok(value / 100.0),
        _ => Err(UnitError::new("is not a percentage", "write a number from 0 to 100 and `%`, such as `5%`")),
    }
}

/// Why a text is no such number: `reason` continues a sentence that begins with the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnitError {
    pub(crate) reason: String,
    pub(crate) hint: String,
}

impl UnitError {
    fn new(reason: &str, hint: &str) -> Self {
        Self { reason: reason.to_owned(), hint: hint.to_owned() }
    }

    fn unknown(unit: &str, hint: &str) -> Self {
        Self::new(&format!("has the unknown unit {}", quote(unit)), hint)
    }

    fn too_large() -> Self {
        Self::new("is too large", "write a smaller number")
    }
}

fn split<'t>(text: &'t str, example: &str) -> Result<(u64, &'t str), UnitError> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if number.is_empty() {
        return Err(UnitError::new("does not begin with a number", &format!("write it like `{example}`")));
    }
    if unit.is_empty() {
        return Err(UnitError::new("has no unit", &format!("write it like `{example}`")));
    }
    let number = number.parse().map_err(|_| UnitError::too_large())?;
    Ok((number, unit))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{duration, percentage, size};

    #[test]
    fn durations_have_five_units() {
        let read: Vec<u64> =
            ["50ms", "25s", "30m", "1h", "30d"].map(|text| duration(text).unwrap().as_millis() as u64).into();
        assert_eq!(read, [50, 25_000, 1_800_000, 3_600_000, 2_592_000_000]);
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
    }

    #[test]
    fn sizes_count_in_powers_of_two() {
        assert_eq!(size("32MiB"), Ok(33_554_432));
        assert_eq!(size("10GiB"), Ok(10_737_418_240));
    }

    #[test]
    fn a_missing_or_unknown_unit_is_told_with_what_to_write() {
        assert_eq!(duration("3600").unwrap_err().reason, "has no unit");
        assert_eq!(duration("1w").unwrap_err().reason, "has the unknown unit \"w\"");
        assert!(size("32MB").unwrap_err().hint.contains("`MiB`"));
    }

    #[test]
    fn nothing_but_digits_and_a_unit_is_accepted() {
        for text in ["", "h", "-1h", "1.5h", "1 h", " 1h", "1h ", "1h30m", "١h"] {
            assert!(duration(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_value_beyond_64_bits_is_refused_and_does_not_wrap() {
        assert_eq!(duration("99999999999999999999s").unwrap_err().reason, "is too large");
        assert_eq!(duration("18446744073709551615d").unwrap_err().reason, "is too large");
        assert_eq!(size("18446744073709551615TiB").unwrap_err().reason, "is too large");
    }

    #[test]
    fn percentages_are_shares_from_0_to_1() {
        assert_eq!(percentage("12.5%"), Ok(0.125));
        for text in ["5", "%", "101%", "-1%", "inf%", "NaN%", "1e1%"] {
            assert!(percentage(text).is_err(), "{text:?}");
        }
    }
}
