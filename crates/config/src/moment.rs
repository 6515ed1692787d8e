//! Moments as a config writes them: RFC 3339, always with a zone.

use loopbreaker::Timestamp;

/// The moment of a text such as `2027-01-01T00:00:00Z`; `None` when it is none, or before 1970.
///
/// Stricter than what recordings are read with: a deadline without a zone would end hours early or late.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let number = |from: usize, digits: usize| whole(bytes.get(from..from + digits)?);
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    let signs = [4, 7, 10, 13, 16].map(|at| bytes[at].to_ascii_uppercase());
    if !matches!(&signs, b"--T::" | b"-- ::") {
        return None;
    }
    if !(1..=12).contains(&month) || !(1..=days_of(year, month)).contains(&day) {
        return None;
    }
    // A leap second is written as the sixtieth.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (millis, zone) = fraction(&bytes[19..])?;
    let seconds =
        days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset(zone)?;
    u64::try_from(seconds * 1_000 + millis).ok().map(Timestamp::from_millis)
}

/// The moment as one would write it in a config, in UTC and to the second.
pub(crate) fn write(moment: Timestamp) -> String {
    let seconds = moment.as_millis() / 1_000;
    let (mut days, clock) = (i64::try_from(seconds / 86_400).unwrap_or(i64::MAX), seconds % 86_400);
    let mut year = 1970;
    let leap_era = days / DAYS_OF_400_YEARS;
    (year, days) = (year + leap_era * 400, days % DAYS_OF_400_YEARS);
    while days >= days_of_year(year) {
        days -= days_of_year(year);
        year += 1;
    }
    let mut month = 1;
    while days >= days_of(year, month) {
        days -= days_of(year, month);
        month += 1;
    }
    let (hour, minute, second) = (clock / 3_600, clock / 60 % 60, clock % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", days + 1)
}

fn whole(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

/// The milliseconds of `.123456Z`, and the zone after them.
fn fraction(rest: &[u8]) -> Option<(i64, &[u8])> {
    let Some(rest) = rest.strip_prefix(b".") else { return Some((0, rest)) };
    let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    let (digits, zone) = rest.split_at(end);
    let millis: Vec<u8> = digits.iter().copied().chain(*b"000").take(3).collect();
    if digits.is_empty() { None } else { Some((whole(&millis)?, zone)) }
}

/// The zone's offset from UTC in seconds.
fn offset(zone: &[u8]) -> Option<i64> {
    if matches!(zone, b"Z" | b"z") {
        return Some(0);
    }
    let [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] = *zone else { return None };
    let (hours, minutes) = (whole(&[h1, h2])?, whole(&[m1, m2])?);
    let seconds = hours * 3_600 + minutes * 60;
    (hours < 24 && minutes < 60).then_some(if sign == b'+' { seconds } else { -seconds })
}

/// Days from 1970-01-01 to a day of the Gregorian calendar.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let before = year - 1;
    let leap_days = before / 4 - before / 100 + before / 400;
    let months: i64 = (1..month).map(|month| days_of(year, month)).sum();
    before * 365 + leap_days + months + day - 1 - DAYS_TO_1970
}

const fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

const fn days_of_year(year: i64) -> i64 {
    if is_leap(year) { 366 } else { 365 }
}

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// From the first day of the year 1 to that of 1970.
const DAYS_TO_1970: i64 = 719_162;
const DAYS_OF_400_YEARS: i64 = 146_097;

#[cfg(test)]
mod tests {
    use loopbreaker::Timestamp;
    use proptest::prelude::*;

    use super::{parse, write};

    fn millis(text: &str) -> Option<u64> {
        parse(text).map(Timestamp::as_millis)
    }

    #[test]
    fn an_rfc_3339_text_is_milliseconds_since_1970() {
        assert_eq!(millis("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(millis("2000-03-01T00:00:00Z"), Some(951_868_800_000));
        assert_eq!(millis("2027-01-01t00:00:00z"), Some(1_798_761_600_000));
        assert_eq!(millis("2024-02-29 12:34:56.789Z"), Some(1_709_210_096_789));
        assert_eq!(millis("2024-02-29T14:34:56.7+02:00"), Some(1_709_210_096_700));
        assert_eq!(millis("2024-02-29T07:04:56-05:30"), Some(1_709_210_096_000));
    }

    #[test]
    fn a_text_without_a_zone_or_with_a_day_that_is_not_there_is_no_moment() {
        for text in [
            "",
            "tomorrow",
            "2027-01-01",
            "2027-01-01T00:00:00",
            "2027-01-01T00:00Z",
            "2027-02-29T00:00:00Z",
            "2027-13-01T00:00:00Z",
            "2027-00-01T00:00:00Z",
            "2027-01-01T24:00:00Z",
            "2027-01-01T00:00:00.Z",
            "2027-01-01T00:00:00+0200",
            "2027-01-01T00:00:00+24:00",
            "1969-12-31T23:59:59Z",
            "2027-01-01T00:00:00ZZ",
            "２０27-01-01T00:00:00Z",
        ] {
            assert_eq!(millis(text), None, "{text}");
        }
    }

    #[test]
    fn a_moment_is_written_in_utc_to_the_second() {
        assert_eq!(write(Timestamp::from_millis(1_709_210_096_789)), "2024-02-29T12:34:56Z");
        assert_eq!(write(Timestamp::from_millis(0)), "1970-01-01T00:00:00Z");
    }

    proptest! {
        #[test]
        fn a_written_moment_reads_as_itself(seconds in 0..253_402_300_800_u64) {
            let moment = Timestamp::from_secs(seconds);
            prop_assert_eq!(parse(&write(moment)), Some(moment));
        }

        #[test]
        fn no_text_breaks_the_reader(text in any::<String>()) {
            if let Some(moment) = parse(&text) {
                prop_assert!(!write(moment).is_empty());
            }
        }
    }
}
