//! Times as the config file writes them: `50ms`, `25s`, `30m`, `1h`, `30d`.

const UNITS: [(&str, u64); 5] =
    [("d", 24 * 3_600_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A time in milliseconds.
pub(crate) fn millis(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*millis)
}

/// Milliseconds as a time, in the largest unit that says it exactly.
pub(crate) fn written(millis: u64) -> String {
    let fits = |unit: &&(&str, u64)| millis != 0 && millis.is_multiple_of(unit.1);
    let (name, of) = UNITS.iter().find(fits).copied().unwrap_or(("s", 1_000));
    format!("{}{name}", millis / of)
}

#[cfg(test)]
mod tests {
    use super::{millis, written};

    #[test]
    fn a_time_is_read_as_it_is_written() {
        for text in ["50ms", "25s", "30m", "1h", "30d", "0s"] {
            assert_eq!(millis(text).map(written).as_deref(), Some(text));
        }
        for odd in ["", "5", "h", "1.5h", "-1s", "99999999999999999999d", "1 h"] {
            assert_eq!(millis(odd), None, "{odd}");
        }
    }
}
