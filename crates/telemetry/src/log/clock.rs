//! Moments in lines: RFC 3339, in UTC, with milliseconds.

use std::time::SystemTime;

/// Appends a moment such as `2026-03-01T08:30:00.250Z`. What lies before 1970 or after 9999 is shown as the nearest.
pub(super) fn push_moment(line: &mut Vec<u8>, moment: SystemTime) {
    let since_1970 = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = since_1970.as_secs().min(LAST_SECOND);
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    digits(line, year, 4);
    for (before, number) in [(b'-', month), (b'-', day), (b'T', hour), (b':', minute), (b':', second)] {
        line.push(before);
        digits(line, number, 2);
    }
    line.push(b'.');
    digits(line, u64::from(since_1970.subsec_millis()), 3);
    line.push(b'Z');
}

/// The last second of the year 9999.
const LAST_SECOND: u64 = 253_402_300_799;

/// Year, month and day of a day since 1970. Counted in years that begin in March, so that the leap day is their last.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    /// From March of year 0 to January 1970.
    const DAYS_BEFORE_1970: u64 = 719_468;
    let days = days + DAYS_BEFORE_1970;
    let (era, day_of_era) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Five months from March on always have 153 days.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

fn digits(line: &mut Vec<u8>, number: u64, count: u32) {
    line.extend((0..count).rev().map(|place| b'0' + (number / 10_u64.pow(place) % 10) as u8));
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::{date, push_moment};

    #[test]
    fn moments_are_written_in_utc() {
        let shown = |millis| {
            let mut line = Vec::new();
            push_moment(&mut line, SystemTime::UNIX_EPOCH + Duration::from_millis(millis));
            String::from_utf8(line).unwrap()
        };
        assert_eq!(shown(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(shown(951_827_696_007), "2000-02-29T12:34:56.007Z");
        assert_eq!(shown(1_793_923_199_999), "2026-11-05T23:59:59.999Z");
        assert_eq!(shown(u64::MAX), "9999-12-31T23:59:59.615Z");
    }

    #[test]
    fn every_day_of_800_years_follows_the_one_before() {
        let mut last = (1969, 12, 31);
        for day in 0..292_194 {
            let (year, month, day_of_month) = date(day);
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let lengths = [31, 28 + u64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            assert!((1..=lengths[month as usize - 1]).contains(&day_of_month));
            let expected = match last {
                (year, 12, 31) => (year + 1, 1, 1),
                (year, month, _) if day_of_month == 1 => (year, month + 1, 1),
                (year, month, day) => (year, month, day + 1),
            };
            assert_eq!((year, month, day_of_month), expected);
            last = expected;
        }
    }
}
