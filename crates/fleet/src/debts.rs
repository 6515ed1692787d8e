//! What happened while Redis was away: owed until it is back.

use std::collections::HashMap;
use std::time::Instant;

use crate::after::{Aftermath, AttemptMissed, AttemptOver, ChargeOver, Refused, SharedKey, Struck};

/// Amounts, attempts, refusals and strikes, by tenant.
#[derive(Debug)]
pub(crate) struct Debts {
    /// What was used and nobody could be asked about, added up for each count and part of its window.
    spent: HashMap<(u64, SharedKey, u64), ChargeOver>,
    /// What was reserved there, and what was really used of it.
    settled: Vec<(u64, ChargeOver)>,
    missed: Vec<(u64, AttemptMissed)>,
    /// Attempts that Redis takes for being on their way.
    over: Vec<(u64, AttemptOver)>,
    /// The last refusal of each session.
    refused: HashMap<(u64, u128), Refused>,
    /// The most strikes of each loop of each session.
    strikes: HashMap<(u64, u128), Struck>,
    /// What was tried to write, and may have been written: it is written again as it is.
    again: Vec<Aftermath>,
    /// Parts of windows are counted from here.
    since: Instant,
    forgotten: u64,
}

impl Debts {
    /// More than this of each kind is not remembered; how much was not is told.
    const MAX: usize = 100_000;
    /// So many are written at once: Redis does nothing else meanwhile.
    const AT_ONCE: usize = 256;
    /// A window is kept in so many parts, as a count is.
    const SLOTS: u64 = 60;

    /// Nothing is owed.
    pub(crate) fn none() -> Self {
        Self {
            spent: HashMap::new(),
            settled: Vec::new(),
            missed: Vec::new(),
            over: Vec::new(),
            refused: HashMap::new(),
            strikes: HashMap::new(),
            again: Vec::new(),
            since: Instant::now(),
            forgotten: 0,
        }
    }

    /// Remembers what has to be known everywhere of what a request left behind.
    pub(crate) fn owe(&mut self, aftermath: &Aftermath) {
        let tenant = aftermath.tenant;
        for charge in &aftermath.charges {
            if charge.at == 0 {
                self.owe_spent(tenant, charge);
            } else {
                self.forgotten += add(&mut self.settled, tenant, std::slice::from_ref(charge));
            }
        }
        if self.missed.len() + aftermath.missed.len() > Self::MAX {
            self.missed.retain(|(_, attempt)| !attempt.is_past());
        }
        self.forgotten += add(&mut self.missed, tenant, &aftermath.missed);
        self.forgotten += add(&mut self.over, tenant, &aftermath.attempts);
        if let Some(refused) = aftermath.refused {
            let key = (tenant, refused.session);
            self.strikes.remove(&key);
            if !has_room(&self.refused, &key) {
                self.refused.retain(|_, refused| !refused.is_past());
            }
            if has_room(&self.refused, &key) {
                self.refused.insert(key, refused);
            } else {
                self.forgotten += 1;
            }
        }
        if let Some(struck) = &aftermath.strikes {
            let key = (tenant, struck.session);
            if !has_room(&self.strikes, &key) {
                self.forgotten += 1;
            } else if let Some(kept) = self.strikes.get_mut(&key) {
                kept.tip = struck.tip;
                raise(&mut kept.loops, &struck.loops);
            } else {
                self.strikes.insert(key, struck.clone());
            }
        }
    }

    /// Remembers what may have been written, and must be written again as it is to count once.
    pub(crate) fn owe_again(&mut self, aftermath: Aftermath) {
        if self.again.len() < Self::MAX {
            self.again.push(aftermath);
        } else {
            self.forgotten += 1;
        }
    }

    fn owe_spent(&mut self, tenant: u64, charge: &ChargeOver) {
        if charge.actual == 0 {
            return;
        }
        let age = charge.used.saturating_duration_since(self.since).as_millis() as u64;
        let slot = charge.window_millis.map_or(0, |window| age / window.div_ceil(Self::SLOTS).max(1));
        let key = (tenant, charge.counter.clone(), slot);
        if let Some(owed) = self.spent.get_mut(&key) {
            owed.actual = owed.actual.saturating_add(charge.actual);
            owed.used = owed.used.max(charge.used);
            return;
        }
        if self.spent.len() >= Self::MAX {
            self.spent.retain(|_, charge| !charge.is_past());
        }
        if self.spent.len() < Self::MAX {
            self.spent.insert(key, charge.clone());
        } else {
            self.forgotten += 1;
        }
    }

    /// Takes out everything that is owed and still counts, a part of one tenant at a time.
    pub(crate) fn take(&mut self) -> Vec<Aftermath> {
        let mut parts = std::mem::take(&mut self.again);
        let spent = self.spent.drain().map(|((tenant, ..), charge)| (tenant, charge));
        let spent = spent.filter(|(_, charge)| !charge.is_past());
        for (tenant, charges) in by_tenant(spent.chain(std::mem::take(&mut self.settled))) {
            for charges in charges.chunks(Self::AT_ONCE) {
                parts.push(Aftermath { tenant, charges: charges.to_vec(), ..Aftermath::default() });
            }
        }
        let missed = std::mem::take(&mut self.missed).into_iter();
        for (tenant, missed) in by_tenant(missed.filter(|(_, attempt)| !attempt.is_past())) {
            for missed in missed.chunks(Self::AT_ONCE) {
                parts.push(Aftermath { tenant, missed: missed.to_vec(), ..Aftermath::default() });
            }
        }
        for (tenant, over) in by_tenant(std::mem::take(&mut self.over).into_iter()) {
            for over in over.chunks(Self::AT_ONCE) {
                parts.push(Aftermath { tenant, attempts: over.to_vec(), ..Aftermath::default() });
            }
        }
        let refused = self.refused.drain().filter(|(_, refused)| !refused.is_past());
        parts.extend(refused.map(|((tenant, _), refused)| Aftermath {
            tenant,
            refused: Some(refused),
            ..Aftermath::default()
        }));
        // Behind the refusals, each of which forgets the strikes before it.
        parts.extend(self.strikes.drain().map(|((tenant, _), struck)| Aftermath {
            tenant,
            strikes: Some(struck),
            ..Aftermath::default()
        }));
        parts
    }

    /// How much had no room.
    pub(crate) const fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

/// Adds what there is room for; says how much there was none for.
fn add<T: Clone>(all: &mut Vec<(u64, T)>, tenant: u64, more: &[T]) -> u64 {
    let fits = more.len().min(Debts::MAX.saturating_sub(all.len()));
    all.extend(more[..fits].iter().map(|one| (tenant, one.clone())));
    (more.len() - fits) as u64
}

fn has_room<T>(all: &HashMap<(u64, u128), T>, key: &(u64, u128)) -> bool {
    all.len() < Debts::MAX || all.contains_key(key)
}

/// Keeps the higher of two counts of strikes, and the newest loops of those that are too many.
fn raise(kept: &mut Vec<(u128, u32)>, shown: &[(u128, u32)]) {
    for (identity, strikes) in shown {
        match kept.iter_mut().find(|(known, _)| known == identity) {
            Some((_, most)) => *most = (*most).max(*strikes),
            None => kept.push((*identity, *strikes)),
        }
    }
    let many = kept.len().saturating_sub(MAX_STRIKES);
    kept.drain(..many);
}

/// As many loops of a session as Redis remembers.
const MAX_STRIKES: usize = 8;

fn by_tenant<T>(all: impl Iterator<Item = (u64, T)>) -> HashMap<u64, Vec<T>> {
    let mut sorted: HashMap<u64, Vec<T>> = HashMap::new();
    for (tenant, one) in all {
        sorted.entry(tenant).or_default().push(one);
    }
    sorted
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Debts;
    use crate::after::{Aftermath, AttemptMissed, ChargeOver, Refused, SharedKey, Struck, Unit};

    fn used(tenant: u64, hash: u128, actual: u64) -> Aftermath {
        let charge = ChargeOver {
            counter: SharedKey::new(hash, None),
            window_millis: Some(60_000),
            estimate: 0,
            actual,
            at: 0,
            used: Instant::now(),
            unit: Unit::Tokens,
            limit: None,
        };
        Aftermath { tenant, charges: vec![charge], ..Aftermath::default() }
    }

    fn attempted(id: u64, window_millis: u64) -> Aftermath {
        let window = SharedKey::new(1, None);
        let missed = vec![AttemptMissed { window, window_millis, id, made: Instant::now() }];
        Aftermath { tenant: 1, missed, ..Aftermath::default() }
    }

    fn refused(session: u128, tip: u128, lasts: Duration) -> Aftermath {
        let refused = Refused { session, account: session, tip, until: Instant::now() + lasts };
        Aftermath { tenant: 1, refused: Some(refused), ..Aftermath::default() }
    }

    #[test]
    fn amounts_of_one_count_are_added_up_and_taken_once() {
        let mut debts = Debts::none();
        for aftermath in [used(1, 7, 10), used(1, 7, 5), used(2, 7, 1), used(1, 8, 0)] {
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
    fn what_was_used_longer_ago_than_its_window_is_owed_no_more() {
        let mut debts = Debts::none();
        for ago in [61, 30] {
            let mut old = used(1, 7, 10);
            old.charges[0].used = Instant::now().checked_sub(Duration::from_secs(ago)).unwrap();
            debts.since = debts.since.min(old.charges[0].used);
            debts.owe(&old);
        }
        let taken = debts.take();
        assert_eq!(taken.iter().map(|part| part.charges.len()).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn what_may_have_been_written_is_written_again_as_it_is() {
        let mut debts = Debts::none();
        debts.owe_again(Aftermath { number: 9, ..used(1, 7, 10) });
        debts.owe(&used(1, 7, 5));
        let numbers: Vec<(u64, u64)> =
            debts.take().iter().map(|part| (part.number, part.charges[0].actual)).collect();
        assert_eq!(numbers, [(9, 10), (0, 5)]);
    }

    #[test]
    fn the_most_strikes_of_a_loop_are_owed_and_none_from_before_a_refusal() {
        let mut debts = Debts::none();
        let struck = |session: u128, loops: &[(u128, u32)]| Aftermath {
            tenant: 1,
            strikes: Some(Struck { session, account: session, tip: 1, loops: loops.to_vec() }),
            ..Aftermath::default()
        };
        debts.owe(&struck(5, &[(70, 3)]));
        debts.owe(&struck(5, &[(70, 2), (71, 1)]));
        debts.owe(&struck(6, &[(70, 4)]));
        debts.owe(&refused(6, 60, Duration::from_secs(60)));
        let taken = debts.take().into_iter().filter_map(|part| part.strikes);
        let strikes: Vec<_> = taken.map(|struck| (struck.session, struck.loops)).collect();
        assert_eq!(strikes, [(5, vec![(70, 3), (71, 1)])]);
    }

    #[test]
    fn of_attempts_and_refusals_only_those_are_owed_that_still_count() {
        let mut debts = Debts::none();
        let long = Duration::from_secs(60);
        for aftermath in [attempted(1, 0), attempted(2, 60_000), refused(5, 50, long), refused(5, 51, long)] {
            debts.owe(&aftermath);
        }
        debts.owe(&refused(6, 60, Duration::ZERO));
        let taken = debts.take();
        let ids: Vec<u64> = taken.iter().flat_map(|part| part.missed.iter().map(|one| one.id)).collect();
        let tips: Vec<u128> = taken.iter().filter_map(|part| Some(part.refused?.tip)).collect();
        assert_eq!((ids, tips), (vec![2], vec![51]));
    }

    #[test]
    fn what_is_owed_is_bounded_and_what_is_not_remembered_is_counted() {
        let mut debts = Debts::none();
        for number in 0..Debts::MAX as u64 + 3 {
            debts.owe(&used(1, number.into(), 1));
            debts.owe(&attempted(number, 60_000));
            debts.owe(&refused(number.into(), 1, Duration::from_secs(60)));
        }
        assert_eq!(debts.forgotten(), 9);
        let largest = debts.take().iter().map(|part| part.charges.len().max(part.missed.len())).max();
        assert_eq!(largest, Some(Debts::AT_ONCE), "Redis is not kept busy for long");
    }
}
