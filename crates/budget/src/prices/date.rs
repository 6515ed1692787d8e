//! Days of the calendar.

/// Days from 1970-01-01 to a date such as `2026-11-01`; `None` for what is no date since then.
pub(super) fn days_since_1970(date: &str) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| {
        let digits = date.get(range).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        digits.and_then(|digits| digits.parse::<u64>().ok())
    };
    let bytes = date.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let leap = u64::from(is_leap(year));
    let months = [31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *months.get(usize::try_from(month.checked_sub(1)?).ok()?)?;
    if year < 1970 || !(1..=length).contains(&day) {
        return None;
    }
    let years: u64 = (1970..year).map(|year| 365 + u64::from(is_leap(year))).sum();
    let before: u64 = months.iter().take(month as usize - 1).sum();
    Some(years + before + day - 1)
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::days_since_1970;

    #[test]
    fn dates_are_counted_from_1970() {
        for (date, days) in [
            ("1970-01-01", 0),
            ("1970-03-01", 59),
            ("2000-02-29", 11_016),
            ("2000-03-01", 11_017),
            ("2026-11-01", 20_758),
        ] {
            assert_eq!(days_since_1970(date), Some(days), "{date}");
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for date in [
            "", "2026-11", "2026-13-01", "2026-00-01", "2026-02-29", "2026-11-00", "1969-12-31",
            "2026/11/01", "+026-11-01", "20260-1-01",
        ] {
            assert_eq!(days_since_1970(date), None, "{date}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_date_or_not(text in ".{0,12}") {
            let _day = days_since_1970(&text);
        }
    }
}
