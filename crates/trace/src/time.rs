//! Moments as recordings write them.

use loopbreaker::Timestamp;

/// The moment of an RFC 3339 text such as `2026-03-01T08:30:00.250Z`; `None` when it is none, or before 1970.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    let (date, rest) = text.split_at_checked(10)?;
    let mut parts = date.split('-');
    let (year, month, day) =
        (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (clock, rest) = rest.split_at_checked(8)?;
    let mut parts = clock.split(':');
    let (hour, minute, second) =
        (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    // A leap second is written as the sixtieth.
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (millis, zone) = fraction(rest)?;
    let seconds =
        days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset(zone)?;
    u64::try_from(seconds * 1_000 + millis).ok().map(Timestamp::from_millis)
}

/// The moment of a number: seconds, or milliseconds when it is too large to be seconds.
pub(crate) fn from_number(number: f64) -> Option<Timestamp> {
    let millis = if number.abs() < LEAST_MILLIS { number * 1_000.0 } else { number };
    #[expect(clippy::cast_sign_loss, reason = "negative numbers are refused here")]
    (0.0..1e18).contains(&millis).then(|| Timestamp::from_millis(millis.round() as u64))
}

fn digits(text: &str, count: usize) -> Option<i64> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// The milliseconds of `.123456Z`, and what follows them.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Some((0, text)) };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, zone) = rest.split_at_checked(end)?;
    if digits.is_empty() {
        return None;
    }
    let millis =
        digits.bytes().chain(*b"000").take(3).fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    Some((millis, zone))
}

/// The zone's offset in seconds. Recordings often leave the zone out, and then mean one and the same clock.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "" | "Z" | "z") {
        return Some(0);
    }
    let (sign, rest) = match zone.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    Some(sign * (digits(hours, 2)? * 3_600 + digits(minutes, 2)? * 60))
}

/// Days from 1970-01-01 to a day of the Gregorian calendar, with years that begin in March.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

// 1e11 seconds are the year 5138, 1e11 milliseconds are 1973: recorded runs lie between.
const LEAST_MILLIS: f64 = 1e11;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_rfc_3339_text_is_milliseconds_since_1970() {
        let millis = |text| parse(text).map(Timestamp::as_millis);
        assert_eq!(millis("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(millis("2000-03-01T00:00:00Z"), Some(951_868_800_000));
        assert_eq!(millis("2024-02-29T12:34:56.789Z"), Some(1_709_210_096_789));
        assert_eq!(millis("2024-02-29T14:34:56.7+02:00"), Some(1_709_210_096_700));
        assert_eq!(millis("2024-02-29 12:34:56.123456"), Some(1_709_210_096_123));
    }

    #[test]
    fn what_is_no_moment_is_none() {
        for text in [
            "",
            "yesterday",
            "2024-13-01T00:00:00Z",
            "2024-02-29",
            "1969-12-31T23:59:59Z",
            "2024-02-29T1:2:3Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("２０24-02-29T00:00:00Z"), None);
    }

    #[test]
    fn a_number_is_seconds_or_milliseconds_by_its_size() {
        assert_eq!(from_number(1_709_210_096.5), Some(Timestamp::from_millis(1_709_210_096_500)));
        assert_eq!(from_number(1_709_210_096_789.0), Some(Timestamp::from_millis(1_709_210_096_789)));
        assert_eq!(from_number(-1.0), None);
        assert_eq!(from_number(f64::NAN), None);
    }
}
