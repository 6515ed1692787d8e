//! One spelling for every way of writing the same number.

use crate::canonical::NotJson;

/// Writes a JSON number in canonical form: like ECMAScript where a double is exact, in all its digits where it is not.
pub(crate) fn write_number(text: &[u8], out: &mut Vec<u8>) -> Result<(), NotJson> {
    let parts = Parts::of(text).ok_or(NotJson)?;
    if parts.fraction.is_empty() && parts.exponent.is_empty() && parts.integer.len() <= PLAIN_DIGITS {
        // Nearly every number in practice.
        out.extend_from_slice(if parts.integer == b"0" { b"0" } else { text });
        return Ok(());
    }
    let digits = || parts.integer.iter().chain(parts.fraction).copied();
    let leading = digits().take_while(|digit| *digit == b'0').count();
    let all = parts.integer.len() + parts.fraction.len();
    if leading == all {
        out.push(b'0');
        return Ok(());
    }
    let trailing = digits().rev().take_while(|digit| *digit == b'0').count();
    let significant = all - leading - trailing;
    // The value is `significant` digits times ten to the power of `scale`.
    let Some(scale) = parts.exponent_value().and_then(|exponent| {
        exponent.checked_add(signed(trailing))?.checked_sub(signed(parts.fraction.len()))
    }) else {
        // An exponent of more than eighteen digits: nobody's arithmetic, so its text is its value.
        out.extend_from_slice(text);
        return Ok(());
    };
    if scale < 0
        && let Some(double) = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok())
        && double != 0.0
        && double.is_finite()
    {
        out.extend_from_slice(ryu_js::Buffer::new().format(double).as_bytes());
        return Ok(());
    }
    if parts.negative {
        out.push(b'-');
    }
    let mut kept = digits().skip(leading).take(significant);
    if scale >= 0 && signed(significant).saturating_add(scale) <= signed(PLAIN_DIGITS) {
        out.extend(kept);
        out.extend(std::iter::repeat_n(b'0', usize::try_from(scale).unwrap_or(0)));
        return Ok(());
    }
    out.extend(kept.next());
    if significant > 1 {
        out.push(b'.');
        out.extend(kept);
    }
    let exponent = scale.saturating_add(signed(significant) - 1);
    out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
    write_digits(exponent.unsigned_abs(), out);
    Ok(())
}

/// Writes a whole number without allocating.
fn write_digits(number: u64, out: &mut Vec<u8>) {
    if number >= 10 {
        write_digits(number / 10, out);
    }
    out.push(b'0' + (number % 10) as u8);
}

/// A number of digits; no text has more than fit.
fn signed(digits: usize) -> i64 {
    i64::try_from(digits).unwrap_or(i64::MAX)
}

/// Integers of up to this many digits are written plainly, as ECMAScript does below 1e21.
const PLAIN_DIGITS: usize = 21;

/// A number, taken apart by JSON's grammar.
struct Parts<'a> {
    negative: bool,
    integer: &'a [u8],
    fraction: &'a [u8],
    exponent: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(text: &'a [u8]) -> Option<Self> {
        let negative = text.first() == Some(&b'-');
        let rest = &text[usize::from(negative)..];
        let (mantissa, exponent) = match rest.iter().position(|byte| matches!(byte, b'e' | b'E')) {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (rest, &[][..]),
        };
        let (integer, fraction) = match mantissa.iter().position(|byte| *byte == b'.') {
            Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
            None => (mantissa, &[][..]),
        };
        let digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
        let unsigned = exponent.strip_prefix(b"+").or(exponent.strip_prefix(b"-")).unwrap_or(exponent);
        let grammar = digits(integer)
            && (integer.len() == 1 || integer[0] != b'0')
            && (mantissa.len() == integer.len() || digits(fraction))
            && (mantissa.len() == rest.len() || digits(unsigned));
        grammar.then_some(Self { negative, integer, fraction, exponent })
    }

    fn exponent_value(&self) -> Option<i64> {
        if self.exponent.is_empty() {
            return Some(0);
        }
        std::str::from_utf8(self.exponent).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use crate::canonical_json;

    #[track_caller]
    fn same(a: &str, b: &str) {
        assert_eq!(canonical_json(a), canonical_json(b), "{a} and {b}");
    }

    #[track_caller]
    fn differ(a: &str, b: &str) {
        assert_ne!(canonical_json(a), canonical_json(b), "{a} and {b}");
    }

    #[test]
    fn one_is_one_however_it_is_written() {
        for spelling in ["1.0", "1e0", "1E0", "1.000", "10e-1", "0.1e1", "0.1E+1"] {
            same("1", spelling);
        }
    }

    #[test]
    fn minus_zero_is_zero() {
        for spelling in ["-0", "-0.0", "0e9", "-0E-7", "0.000"] {
            same("0", spelling);
        }
    }

    #[test]
    fn integers_beyond_double_precision_stay_exact() {
        differ("9007199254740993", "9007199254740992");
        differ("123456789012345678901234567890", "123456789012345678901234567891");
        differ("1234567890123456789012345", "1234567890123456789012346");
        same("1000000000000000000000000", "1e24");
    }

    #[test]
    fn a_number_and_its_negative_differ_however_large_they_are() {
        for number in ["7", "7.5", "12345678901234567890123", "1e400", "1e-400"] {
            differ(number, &format!("-{number}"));
        }
    }

    #[test]
    fn integers_are_written_plainly_below_1e21() {
        assert_eq!(canonical_json("1e20").as_deref(), Some("100000000000000000000"));
        assert_eq!(canonical_json("1e21").as_deref(), Some("1e+21"));
    }

    #[test]
    fn fractions_take_the_shortest_form_of_their_double() {
        assert_eq!(canonical_json("0.1000000000000000055").as_deref(), Some("0.1"));
        assert_eq!(canonical_json("4.50").as_deref(), Some("4.5"));
        assert_eq!(canonical_json("2e-3").as_deref(), Some("0.002"));
        assert_eq!(canonical_json("0.000000000000000000000000001").as_deref(), Some("1e-27"));
        assert_eq!(canonical_json("1E30").as_deref(), Some("1e+30"));
    }

    #[test]
    fn numbers_outside_the_double_range_are_compared_as_decimals() {
        differ("1e400", "1e401");
        differ("1e-400", "0");
        same("10e399", "1e400");
        same("-1.50e-400", "-15e-401");
        differ("1e99999999999999999999", "1e99999999999999999998");
        let long = "7".repeat(400);
        differ(&format!("{long}.5"), &format!("{long}.6"));
        same(&format!("{long}.50"), &format!("{long}.5"));
        let canonical = canonical_json(&format!("{long}.5"));
        assert_eq!(canonical.as_deref().and_then(canonical_json), canonical, "it has one form only");
    }

    #[test]
    fn what_json_does_not_call_a_number_is_refused() {
        for text in
            ["01", "1.", ".5", "-", "1e", "1e+", "+1", "1.2.3", "--1", "1-2", "0x10", "NaN", "Infinity"]
        {
            assert_eq!(canonical_json(text), None, "{text}");
        }
    }
}
