//! What was used while Redis was away: owed until it is back.

use std::collections::HashMap;

use crate::after::{Aftermath, ChargeOver, SharedKey};

/// Amounts by tenant and count.
#[derive(Debug, Default)]
pub(crate) struct Debts {
    owed: HashMap<(u64, SharedKey), (Option<u64>, u64)>,
    forgotten: u64,
}

impl Debts {
    /// More counts than this are not remembered; how many were not is told.
    const MAX: usize = 100_000;

    /// Remembers what a request really used.
    pub(crate) fn owe(&mut self, aftermath: &Aftermath) {
        for charge in &aftermath.charges {
            let more = charge.actual.saturating_sub(charge.estimate);
            if more == 0 {
                continue;
            }
            let key = (aftermath.tenant, charge.counter.clone());
            if self.owed.len() >= Self::MAX && !self.owed.contains_key(&key) {
                self.forgotten += 1;
                continue;
            }
            let (_, owed) = self.owed.entry(key).or_insert((charge.window_millis, 0));
            *owed = owed.saturating_add(more);
        }
    }

    /// Takes out everything that is owed, one tenant at a time.
    pub(crate) fn take(&mut self) -> Vec<Aftermath> {
        let mut all: HashMap<u64, Aftermath> = HashMap::new();
        for ((tenant, counter), (window_millis, actual)) in self.owed.drain() {
            let aftermath = all.entry(tenant).or_insert_with(|| Aftermath { tenant, ..Aftermath::default() });
            aftermath.charges.push(ChargeOver { counter, window_millis, estimate: 0, actual, at: 0 });
        }
        all.into_values().collect()
    }

    /// How many amounts had no room.
    pub(crate) const fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::Debts;
    use crate::after::{Aftermath, ChargeOver, SharedKey};

    fn used(tenant: u64, hash: u128, estimate: u64, actual: u64) -> Aftermath {
        let counter = SharedKey::new(hash, None);
        let charge = ChargeOver { counter, window_millis: Some(60_000), estimate, actual, at: 0 };
        Aftermath { tenant, charges: vec![charge], ..Aftermath::default() }
    }

    #[test]
    fn amounts_of_one_count_are_added_up_and_taken_once() {
        let mut debts = Debts::default();
        for aftermath in [used(1, 7, 0, 10), used(1, 7, 0, 5), used(2, 7, 0, 1), used(1, 8, 0, 0)] {
            debts.owe(&aftermath);
        }
        let mut taken: Vec<(u64, u64)> = debts
            .take()
            .iter()
            .flat_map(|all| all.charges.iter().map(|charge| (all.tenant, charge.actual)).collect::<Vec<_>>())
            .collect();
        taken.sort_unstable();
        assert_eq!(taken, [(1, 15), (2, 1)]);
        assert!(debts.take().is_empty());
    }

    #[test]
    fn what_is_owed_is_bounded_and_what_is_not_remembered_is_counted() {
        let mut debts = Debts::default();
        for hash in 0..Debts::MAX as u128 + 3 {
            debts.owe(&used(1, hash, 0, 1));
        }
        assert_eq!(debts.forgotten(), 3);
    }
}
