//! The ledger: what every key has used, and whether more fits.

mod counter;
mod shard;

use std::array;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loopbreaker::Timestamp;

use crate::limit::{Charge, Exceeded, Limit, Quantity, Standing, Window};
use crate::reservation::{Actual, Held, Reservation};
use crate::stages::{Stage, Stages};
use counter::Counter;
pub(crate) use shard::CounterKey;
use shard::Shard;

/// Counts requests, tokens and money against limits, for any number of threads.
///
/// An amount is *reserved* before the request goes out, *settled* once with what was really used, or *refunded* when
/// nothing was. Reserving is all or nothing over all charges of a request, whoever else does so at the same time.
///
/// # How windows slide
///
/// A window is cut into sixty slots, and what was counted in a slot counts until the last of it has left the window.
/// So no window of that length, wherever it begins, ever lets in more than its limit, and nothing is counted for
/// longer than one sixtieth of the window too long. A clock that jumps back hands out nothing.
///
/// # How memory stays bounded
///
/// There are at most `max_keys` counts. To make room for a new one, counts that hold nothing any more go first;
/// where there is none, the one that was used longest ago goes, and its key starts afresh.
/// [`evicted`](Self::evicted) tells how often that handed out a budget anew: where it grows, `max_keys` is too small.
/// A refused request creates no count, and a key that is refused again and again counts as used. Keys are spread over
/// shards by their hash, so the first shard may be full a few per cent before all are.
///
/// The handle is cheap to clone.
///
/// ```
/// use loopbreaker::Timestamp;
/// use loopbreaker_budget::{Actual, Charge, Ledger, Limit, Quantity, Window};
///
/// let ledger = Ledger::new(100_000);
/// let now = Timestamp::from_secs(1_000);
/// let budget = Limit { quantity: Quantity::Money, amount: 5_000_000, window: Window::Session };
/// let charge = Charge { key: 42, limit: budget, estimate: 4_000_000 };
///
/// let first = ledger.reserve(&[charge], now)?;
/// let second = ledger.reserve(&[charge], now).unwrap_err();
/// assert_eq!(second.standing.remaining, 1_000_000);
///
/// // The answer was cheaper than thought, so the next request fits.
/// ledger.settle(first, &Actual { tokens: 900, money_micros: 20_000 }, now);
/// let third = ledger.reserve(&[charge], now)?;
/// ledger.refund(third, now);
/// assert_eq!(ledger.standings(&[charge], now)[0].used, 20_000);
/// # Ok::<(), loopbreaker_budget::Exceeded>(())
/// ```
#[derive(Debug, Clone)]
pub struct Ledger {
    shards: Arc<[Mutex<Shard>]>,
}

/// The shards of one request's charges, locked.
type Locked<'a> = [Option<MutexGuard<'a, Shard>>; Ledger::MAX_SHARDS];

impl Ledger {
    const MAX_SHARDS: usize = 32;
    /// Fewer keys than this in a shard would be spread too unevenly: one would be full long before the others.
    const MIN_KEYS_PER_SHARD: usize = 1_024;

    /// A ledger that keeps at most `max_keys` counts.
    pub fn new(max_keys: usize) -> Self {
        let max_keys = max_keys.max(1);
        let shards = (max_keys / Self::MIN_KEYS_PER_SHARD).clamp(1, Self::MAX_SHARDS);
        let shard = |_| Mutex::new(Shard::new(max_keys / shards));
        Self { shards: (0..shards).map(shard).collect() }
    }

    /// Whether all charges would fit now; the first that would not, if any. Reserves nothing.
    pub fn check(&self, charges: &[Charge], now: Timestamp) -> Result<(), Exceeded> {
        for (index, charge) in charges.iter().enumerate() {
            let standing = self.standing(charge, pending(&charges[..index], charge), now);
            if standing.refuses(charge.estimate) {
                return Err(Exceeded { index, standing });
            }
        }
        Ok(())
    }

    /// How the key of every charge stands now, in their order. Reserves nothing.
    pub fn standings(&self, charges: &[Charge], now: Timestamp) -> Vec<Standing> {
        charges.iter().map(|charge| self.standing(charge, 0, now)).collect()
    }

    /// Reserves all charges, or none where one does not fit.
    ///
    /// Order does not matter, and neither does who asks at the same time: shards are locked in one order by everyone.
    pub fn reserve(&self, charges: &[Charge], now: Timestamp) -> Result<Reservation, Exceeded> {
        let mut locked = self.lock(charges);
        let now = now.as_millis();
        for (index, charge) in charges.iter().enumerate() {
            let key = counter_key(charge.key, charge.limit);
            let counter = locked[self.shard_of(key)].as_mut().and_then(|shard| shard.get(key, now));
            let standing = Counter::standing(counter, charge, pending(&charges[..index], charge), now);
            if standing.refuses(charge.estimate) {
                return Err(Exceeded { index, standing });
            }
        }
        let mut reservation = Reservation::with_room_for(charges.len());
        for charge in charges {
            let Charge { limit: Limit { quantity, window, .. }, estimate, .. } = *charge;
            let key = counter_key(charge.key, charge.limit);
            if let Some(shard) = &mut locked[self.shard_of(key)] {
                let counter = shard.get_or_insert(key, window, now);
                let at = counter.add(estimate, now);
                let generation = counter.generation;
                reservation.push(Held { key, quantity, window, estimate, at, generation });
            }
        }
        Ok(reservation)
    }

    /// Replaces the estimates by what was really used.
    ///
    /// What was estimated too high is taken back from where it was counted; what was estimated too low counts from
    /// now on, also beyond the limit, and the next request is refused.
    pub fn settle(&self, reservation: Reservation, actual: &Actual, now: Timestamp) {
        for held in reservation.into_held() {
            self.correct(&held, held.actual(actual), now);
        }
    }

    /// Takes the whole reservation back, the request itself too: the provider was never reached, or failed.
    pub fn refund(&self, reservation: Reservation, now: Timestamp) {
        for held in reservation.into_held() {
            self.correct(&held, 0, now);
        }
    }

    /// The highest stage that the key of this charge has reached and that was not announced in this window yet.
    ///
    /// ```
    /// use loopbreaker::Timestamp;
    /// use loopbreaker_budget::{Charge, Ledger, Limit, Quantity, Stages, Window};
    ///
    /// let ledger = Ledger::new(1_000);
    /// let stages = Stages::new(&[0.5, 0.8])?;
    /// let limit = Limit { quantity: Quantity::Tokens, amount: 1_000, window: Window::Session };
    /// let charge = Charge { key: 1, limit, estimate: 300 };
    /// let now = Timestamp::from_secs(1);
    /// let announced: Vec<Option<f64>> = (0..3)
    ///     .map(|_| {
    ///         assert!(ledger.reserve(&[charge], now).is_ok());
    ///         ledger.announce(&charge, &stages, now).map(|stage| stage.fraction())
    ///     })
    ///     .collect();
    /// assert_eq!(announced, [None, Some(0.5), Some(0.8)]);
    /// assert_eq!(ledger.announce(&charge, &stages, now), None);
    /// # Ok::<(), loopbreaker_budget::StagesError>(())
    /// ```
    pub fn announce(&self, charge: &Charge, stages: &Stages, now: Timestamp) -> Option<Stage> {
        let key = counter_key(charge.key, charge.limit);
        let now = now.as_millis();
        let mut shard = self.lock_one(key);
        let counter = shard.get(key, now)?;
        let stage = stages.reached(counter.used(now), charge.limit.amount)?;
        counter.announce(stage.number(), now).then_some(stage)
    }

    /// Takes over what a key has used as others have counted it, in place of what is counted here: all of it as if it
    /// were used now, so that a window hands out nothing too early.
    pub fn know(&self, charge: &Charge, used: u64, now: Timestamp) {
        let key = counter_key(charge.key, charge.limit);
        let now = now.as_millis();
        self.lock_one(key).get_or_insert(key, charge.limit.window, now).set(used, now);
    }

    /// Forgets what a key has used of a limit, and says whether anything was known: its session has ended, or an
    /// operator grants the budget anew.
    pub fn forget(&self, key: u128, limit: Limit) -> bool {
        let key = counter_key(key, limit);
        self.lock_one(key).remove(key)
    }

    /// Counts that are kept now.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// Whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often a count that still held something was dropped to make room.
    pub fn evicted(&self) -> u64 {
        self.shards.iter().map(|shard| lock(shard).evicted()).sum()
    }

    fn standing(&self, charge: &Charge, pending: u64, now: Timestamp) -> Standing {
        let key = counter_key(charge.key, charge.limit);
        let now = now.as_millis();
        Counter::standing(self.lock_one(key).get(key, now), charge, pending, now)
    }

    fn correct(&self, held: &Held, actual: u64, now: Timestamp) {
        let now = now.as_millis();
        let mut shard = self.lock_one(held.key);
        let excess = actual.saturating_sub(held.estimate);
        let late = match shard.get(held.key, now) {
            Some(counter) if counter.generation == held.generation => {
                counter.take_back(held.estimate.saturating_sub(actual), held.at);
                excess
            }
            // The count was dropped in between. Where its window has passed, so has the estimate; where it has not,
            // the estimate is lost and all of it counts afresh.
            _ if held.window.millis().is_some_and(|window| now.saturating_sub(held.at) >= window) => excess,
            _ => actual,
        };
        if late > 0 {
            shard.get_or_insert(held.key, held.window, now).add(late, now);
        }
    }

    /// Locks the shards of these charges, in ascending order, so that no two callers wait for each other.
    fn lock(&self, charges: &[Charge]) -> Locked<'_> {
        let wanted = charges
            .iter()
            .map(|charge| self.shard_of(counter_key(charge.key, charge.limit)))
            .fold(0_u32, |wanted, shard| wanted | 1 << shard);
        array::from_fn(|shard| (wanted >> shard & 1 == 1).then(|| lock(&self.shards[shard])))
    }

    fn lock_one(&self, key: CounterKey) -> MutexGuard<'_, Shard> {
        lock(&self.shards[self.shard_of(key)])
    }

    fn shard_of(&self, key: CounterKey) -> usize {
        // Other bits than the index inside of the shard looks at first.
        (shard::fold(key) >> 40) as usize % self.shards.len()
    }
}

/// What the earlier charges of a request add to the count of this one.
fn pending(earlier: &[Charge], charge: &Charge) -> u64 {
    let key = counter_key(charge.key, charge.limit);
    let same = earlier.iter().filter(|other| counter_key(other.key, other.limit) == key);
    same.fold(0, |sum, other| sum.saturating_add(other.estimate))
}

/// Mixes what is counted into the key, so that one key may have several limits.
fn counter_key(key: u128, limit: Limit) -> CounterKey {
    let quantity = match limit.quantity {
        Quantity::Requests => 1,
        Quantity::Tokens => 2,
        Quantity::Money => 3,
    };
    let window = match limit.window {
        Window::Seconds(seconds) => u64::from(seconds) << 2,
        Window::Session => 1 << 40,
    };
    [key as u64, (key >> 64) as u64 ^ (window | quantity).wrapping_mul(0xD6E8_FEB8_6659_FD93)]
}

/// A thread that panicked while it counted leaves at worst one amount uncounted, which is no reason to stop counting.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
