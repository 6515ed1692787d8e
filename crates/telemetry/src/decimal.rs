//! Exact decimals from whole numbers.

use std::fmt;

/// A whole number of small units as an exact decimal: sums of money must not lose cents to rounding.
pub(crate) struct Decimal {
    pub(crate) units: u64,
    /// How many digits stand behind the point.
    pub(crate) digits: u32,
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = 10_u64.pow(self.digits);
        let (whole, rest) = (self.units / one, self.units % one);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let rest = format!("{rest:0width$}", width = self.digits as usize);
        write!(f, "{whole}.{}", rest.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::Decimal;

    #[test]
    fn decimals_are_exact_and_short() {
        let text = |units, digits| Decimal { units, digits }.to_string();
        assert_eq!(text(1_234_567, 6), "1.234567");
        assert_eq!(text(5, 6), "0.000005");
        assert_eq!(text(2_500_000, 6), "2.5");
        assert_eq!(text(0, 6), "0");
        assert_eq!(text(u64::MAX, 9), "18446744073.709551615");
    }
}
