//! Staged warnings: `warn_at`.

use std::fmt;

/// Shares of a limit at which to warn, each once per key and window; see [`Ledger::announce`](crate::Ledger::announce).
///
/// ```
/// use loopbreaker_budget::Stages;
/// let stages = Stages::new(&[0.8, 0.5])?;
/// assert_eq!(stages.reached(79, 100).map(|stage| stage.to_string()).as_deref(), Some("50%"));
/// assert_eq!(stages.reached(49, 100), None);
/// assert!(Stages::new(&[1.5]).is_err());
/// # Ok::<(), loopbreaker_budget::StagesError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stages {
    /// In millionths, ascending, no two equal.
    shares: Box<[u32]>,
}

/// One share of a limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stage {
    number: u8,
    share: u32,
}

/// Why shares cannot be stages.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum StagesError {
    /// A share outside of the limit.
    #[error("a stage is a share of the limit, more than 0 and at most 1, but this one is {0}")]
    OutOfRange(f64),
    /// More stages than anyone reads.
    #[error("there are {0} stages; use at most {max}", max = Stages::MAX)]
    TooMany(usize),
}

const WHOLE: u32 = 1_000_000;

impl Stages {
    /// The most stages that one limit may have.
    pub const MAX: usize = 100;

    /// Stages at these shares, in any order.
    pub fn new(shares: &[f64]) -> Result<Self, StagesError> {
        if shares.len() > Self::MAX {
            return Err(StagesError::TooMany(shares.len()));
        }
        let mut millionths =
            shares.iter().map(|share| to_millionths(*share)).collect::<Result<Vec<u32>, _>>()?;
        millionths.sort_unstable();
        millionths.dedup();
        Ok(Self { shares: millionths.into() })
    }

    /// The highest stage that this use of a limit has reached.
    pub fn reached(&self, used: u64, amount: u64) -> Option<Stage> {
        let count = self.shares.partition_point(|share| {
            u128::from(used) * u128::from(WHOLE) >= u128::from(amount) * u128::from(*share)
        });
        let share = *self.shares.get(count.checked_sub(1)?)?;
        Some(Stage { number: count as u8, share })
    }

    /// The amounts at which the stages of a limit begin, ascending.
    ///
    /// ```
    /// use loopbreaker_budget::Stages;
    /// assert_eq!(Stages::new(&[0.5, 0.8])?.amounts(999), [500, 800]);
    /// # Ok::<(), loopbreaker_budget::StagesError>(())
    /// ```
    pub fn amounts(&self, amount: u64) -> Vec<u64> {
        let from = |share: &u32| (u128::from(amount) * u128::from(*share)).div_ceil(u128::from(WHOLE)) as u64;
        self.shares.iter().map(from).collect()
    }

    /// The stage of this number, counted from one.
    pub fn numbered(&self, number: u8) -> Option<Stage> {
        let share = *self.shares.get(usize::from(number).checked_sub(1)?)?;
        Some(Stage { number, share })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.shares.is_empty()
    }
}

#[expect(clippy::cast_sign_loss, reason = "negative shares are refused here")]
fn to_millionths(share: f64) -> Result<u32, StagesError> {
    let millionths = (share * f64::from(WHOLE)).round();
    if (1.0..=f64::from(WHOLE)).contains(&millionths) {
        Ok(millionths as u32)
    } else {
        Err(StagesError::OutOfRange(share))
    }
}

impl Stage {
    /// Which stage it is, counted from one.
    pub const fn number(self) -> u8 {
        self.number
    }

    /// The share of the limit at which it begins.
    pub fn fraction(self) -> f64 {
        f64::from(self.share) / f64::from(WHOLE)
    }
}

/// As a percentage, such as `80%`.
impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.share) / 10_000.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Stages, StagesError};

    #[test]
    fn a_stage_begins_exactly_at_its_share() {
        let stages = Stages::new(&[0.8]).unwrap();
        assert_eq!(stages.reached(799_999, 1_000_000), None);
        assert_eq!(stages.reached(800_000, 1_000_000).map(super::Stage::number), Some(1));
    }

    #[test]
    fn the_highest_stage_is_the_one_that_was_reached() {
        let stages = Stages::new(&[1.0, 0.5, 0.9, 0.5]).unwrap();
        let reached = |used| stages.reached(used, 10).map(|stage| (stage.number(), stage.to_string()));
        assert_eq!(reached(8), Some((1, "50%".to_owned())));
        assert_eq!(reached(9), Some((2, "90%".to_owned())));
        assert_eq!(reached(50), Some((3, "100%".to_owned())));
    }

    #[test]
    fn shares_outside_of_the_limit_are_refused() {
        for share in [0.0, -0.1, 1.000_1, f64::NAN, f64::INFINITY] {
            assert!(matches!(Stages::new(&[share]), Err(StagesError::OutOfRange(_))), "{share}");
        }
        assert_eq!(Stages::new(&[0.5; 101]), Err(StagesError::TooMany(101)));
    }

    #[test]
    fn without_stages_none_is_reached() {
        assert_eq!(Stages::default().reached(u64::MAX, 0), None);
    }

    proptest! {
        #[test]
        fn more_use_never_reaches_a_lower_stage(
            shares in proptest::collection::vec(0.001_f64..=1.0, 0..8),
            used in 0_u64..2_000,
            more in 0_u64..2_000,
        ) {
            let stages = Stages::new(&shares).unwrap();
            let number = |used| stages.reached(used, 1_000).map_or(0, super::Stage::number);
            prop_assert!(number(used) <= number(used + more));
        }
    }
}
