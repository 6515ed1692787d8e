//! Hashes that nobody outside can aim at.

use std::hash::{BuildHasher, RandomState};

use twox_hash::XxHash3_128;

/// Hashes with a seed of this process: nobody can prepare two texts or two tenants that meet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keyed {
    seed: u64,
}

impl Keyed {
    pub(crate) fn new() -> Self {
        Self { seed: RandomState::new().hash_one(0) }
    }

    pub(crate) fn text(self, text: &str) -> u128 {
        XxHash3_128::oneshot_with_seed(self.seed, text.as_bytes())
    }

    /// Two names as one: `("a", "b:c")` is not `("a:b", "c")`.
    pub(crate) fn pair(self, first: &str, second: &str) -> u128 {
        let mut bytes = Vec::with_capacity(first.len() + second.len() + 8);
        bytes.extend_from_slice(&(first.len() as u64).to_le_bytes());
        bytes.extend_from_slice(first.as_bytes());
        bytes.extend_from_slice(second.as_bytes());
        XxHash3_128::oneshot_with_seed(self.seed, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::Keyed;

    #[test]
    fn where_a_name_ends_makes_a_difference() {
        let keyed = Keyed::new();
        assert_ne!(keyed.pair("a", "b:c"), keyed.pair("a:b", "c"));
        assert_ne!(keyed.pair("a", ""), keyed.pair("", "a"));
    }
}
