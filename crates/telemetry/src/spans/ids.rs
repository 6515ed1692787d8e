//! Ids of traces and spans.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A source of ids that nobody else has: a counter behind a hash with a random key.
#[derive(Debug, Default)]
pub(super) struct Ids {
    key: RandomState,
    next: AtomicU64,
}

impl Ids {
    pub(super) fn trace_id(&self) -> [u8; 16] {
        (u128::from(self.number()) << 64 | u128::from(self.number())).to_be_bytes()
    }

    pub(super) fn span_id(&self) -> [u8; 8] {
        self.number().to_be_bytes()
    }

    /// Never 0, which is no id.
    fn number(&self) -> u64 {
        self.key.hash_one(self.next.fetch_add(1, Relaxed)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::Ids;

    #[test]
    fn no_two_ids_are_the_same() {
        let ids = [Ids::default(), Ids::default()];
        let traces: HashSet<_> = (0..10_000).map(|at| ids[at % 2].trace_id()).collect();
        let spans: HashSet<_> = (0..10_000).map(|at| ids[at % 2].span_id()).collect();
        assert_eq!((traces.len(), spans.len()), (10_000, 10_000));
    }
}
