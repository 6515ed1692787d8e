//! A bounded memory of what was seen lately.

use std::collections::HashMap;
use std::mem;

/// Remembers at least the last [`GENERATION`] keys and at most twice as many.
///
/// The keys live in two generations; when the young one is full, the old one is forgotten as a whole, which needs no
/// bookkeeping per key.
pub(crate) struct Recent<V> {
    young: HashMap<u64, V>,
    old: HashMap<u64, V>,
}

impl<V> Recent<V> {
    pub(crate) fn get(&self, key: u64) -> Option<&V> {
        self.young.get(&key).or_else(|| self.old.get(&key))
    }

    pub(crate) fn insert(&mut self, key: u64, value: V) {
        if self.young.len() >= GENERATION && !self.young.contains_key(&key) {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self { young: HashMap::new(), old: HashMap::new() }
    }
}

const GENERATION: usize = 50_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_keys_are_known_and_old_ones_are_forgotten() {
        let mut recent = Recent::default();
        for key in 0..3 * GENERATION as u64 {
            recent.insert(key, ());
            assert!(recent.young.len() + recent.old.len() <= 2 * GENERATION);
        }
        assert!(recent.get(3 * GENERATION as u64 - 1).is_some());
        assert!(recent.get(2 * GENERATION as u64).is_some());
        assert!(recent.get(0).is_none());
    }
}
