//! What int8 takes from a similarity, given back.

/// Brings the similarities of a compressed model to what the full model would say.
///
/// Rounding to int8 adds a little noise to each vector, and noise makes every pair look less alike. What is lost was
/// measured on recorded runs: a share of the distance from 1, up to a bound. `model/SOURCE.md` has the numbers. The
/// same text stays at 1, and the order of similarities is kept.
///
/// ```
/// use loopbreaker_embed::Correction;
/// assert_eq!(Correction::NONE.apply(0.93), 0.93);
/// assert!(Correction::INT8.apply(0.948) > 0.95);
/// assert_eq!(Correction::INT8.apply(1.0), 1.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correction {
    share: f64,
    most: f64,
}

impl Correction {
    /// For models that need none.
    pub const NONE: Self = Self { share: 0.0, most: 0.0 };

    /// For the bundled `model_int8.onnx`.
    pub const INT8: Self = Self { share: 0.06, most: 0.003 };

    /// The correction of a known model, by the SHA-256 of its file; none for any other.
    pub(crate) fn for_model(sum: &[u8; 32]) -> Self {
        if *sum == INT8_SUM { Self::INT8 } else { Self::NONE }
    }

    /// The similarity that the full model would give.
    pub fn apply(self, similarity: f64) -> f64 {
        let distance = 1.0 - similarity;
        similarity + (self.share * distance).clamp(0.0, self.most)
    }
}

/// `585b2c95…ca8a91`, the file that the correction was measured with.
const INT8_SUM: [u8; 32] = [
    0x58, 0x5b, 0x2c, 0x95, 0x24, 0x2e, 0xc8, 0x56, 0xa4, 0x4b, 0x6e, 0x41, 0x3a, 0x02, 0x4b, 0xed, 0x70,
    0x7a, 0x8f, 0x6d, 0x0f, 0x2f, 0x76, 0xe6, 0x98, 0x23, 0x06, 0x12, 0xe7, 0xca, 0x8a, 0x91,
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Correction;

    #[test]
    fn at_the_usual_threshold_three_thousandths_are_given_back() {
        assert!((Correction::INT8.apply(0.947) - 0.95).abs() < 1e-9);
        assert!((Correction::INT8.apply(0.5) - 0.503).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn order_and_bounds_are_kept(a in 0.0..=1.0_f64, b in 0.0..=1.0_f64) {
            let (low, high) = (Correction::INT8.apply(a.min(b)), Correction::INT8.apply(a.max(b)));
            prop_assert!(low <= high && (0.0..=1.0).contains(&low) && (0.0..=1.0).contains(&high));
        }
    }
}
