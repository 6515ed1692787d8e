//! Numbers for people.

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 run`, `2 runs`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// Dollars with as many decimals as such an amount needs.
pub(crate) fn dollars(amount: f64) -> String {
    match amount {
        small if small < 0.01 => format!("${small:.4}"),
        _ => format!("${amount:.2}"),
    }
}

/// `12 %`, rounded; a share that is not zero never reads as none, and one that is not the whole never as all.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let hundredfold = part.saturating_mul(100);
    match hundredfold.saturating_add(whole / 2).checked_div(whole) {
        None => "0 %".into(),
        _ if part > 0 && hundredfold < whole => "under 1 %".into(),
        Some(100) if part < whole => "over 99 %".into(),
        Some(share) => format!("{share} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        let numbers = [0, 999, 1_000, 12_345, 1_234_567].map(grouped);
        assert_eq!(numbers, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }

    #[test]
    fn small_amounts_keep_their_digits() {
        assert_eq!([dollars(0.0042), dollars(0.41), dollars(12.0)], ["$0.0042", "$0.41", "$12.00"]);
    }

    #[test]
    fn a_share_is_told_in_whole_percent() {
        assert_eq!([percent(0, 0), percent(1, 1000), percent(1, 4)], ["0 %", "under 1 %", "25 %"]);
        assert_eq!([percent(2, 3), percent(7, 1_000), percent(6, 202)], ["67 %", "under 1 %", "3 %"]);
        assert_eq!([percent(0, 7), percent(999, 1_000), percent(7, 7)], ["0 %", "over 99 %", "100 %"]);
    }
}
