//! The count of one key in one window.

use std::collections::VecDeque;

use crate::limit::{Charge, Standing, Window};

/// What is counted for one key: a plain sum for a window without end, a ring of buckets for one that slides.
#[derive(Debug, Default)]
pub(super) struct Counter {
    used: u64,
    /// Absent where the window has no end.
    ring: Option<Box<Ring>>,
    /// How many stages of warnings were announced.
    announced: u8,
    // The shard's notes. They fill what would be padding here, and would cost eight bytes in the shard's own slot.
    /// Tells this counter from an earlier one of the same key that was dropped.
    pub(super) generation: u16,
    /// Which of the shard's queues it is in.
    pub(super) queue: u8,
    /// Second of its last use.
    pub(super) seen: u32,
}

#[derive(Debug)]
struct Ring {
    window: u64,
    announced_at: u64,
    /// Oldest first, no two in one slot.
    buckets: VecDeque<Bucket>,
}

/// What was counted in one slot of time. All of it counts until the last of it has left the window, so a window
/// never holds more than it may, and a lone amount leaves on time.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    last: u64,
    amount: u64,
}

/// A window is cut into so many slots: what leaves does so at most one sixtieth of the window late.
const SLOTS: u64 = 60;

impl Counter {
    pub(super) fn new(window: Window) -> Self {
        let ring = |window| Box::new(Ring { window, announced_at: 0, buckets: VecDeque::new() });
        Self { ring: window.millis().map(ring), ..Self::default() }
    }

    /// What counts at this time.
    pub(super) fn used(&mut self, now: u64) -> u64 {
        if let Some(ring) = &mut self.ring {
            ring.follow(now);
            self.used = self.used.saturating_sub(ring.drop_expired(now));
        }
        self.used
    }

    /// Counts an amount, and says for which time: later than `now` where the clock has jumped back.
    pub(super) fn add(&mut self, amount: u64, now: u64) -> u64 {
        // This drops what has left, so the number of buckets stays bounded.
        self.used = self.used(now).saturating_add(amount);
        self.ring.as_mut().map_or(now, |ring| ring.add(amount, now))
    }

    /// Replaces what is counted.
    pub(super) fn set(&mut self, used: u64, now: u64) {
        self.used = used;
        if let Some(ring) = &mut self.ring {
            ring.buckets.clear();
            ring.buckets.push_back(Bucket { last: now, amount: used });
        }
    }

    /// Takes back a part of what was counted for that time; nothing where it has left the window already.
    pub(super) fn take_back(&mut self, amount: u64, at: u64) {
        let taken = self.ring.as_mut().map_or(amount, |ring| ring.take_back(amount, at));
        self.used = self.used.saturating_sub(taken);
    }

    /// How a key stands for a charge, `pending` of the same request counted in. A key without a counter is unused.
    pub(super) fn standing(counter: Option<&mut Self>, charge: &Charge, pending: u64, now: u64) -> Standing {
        let Charge { limit, estimate, .. } = *charge;
        let (counted, ring) = match counter {
            Some(counter) => (counter.used(now), counter.ring.as_deref()),
            None => (0, None),
        };
        let used = counted.saturating_add(pending);
        let remaining = limit.amount.saturating_sub(used);
        let mut standing = Standing { used, amount: limit.amount, remaining, reset_seconds: 0 };
        let never_fits = estimate.max(1) > limit.amount;
        let millis = if never_fits {
            limit.window.millis().unwrap_or(0)
        } else {
            let excess = used.saturating_add(estimate.max(1)).saturating_sub(limit.amount);
            ring.map_or(0, |ring| ring.millis_until_left(excess, now))
        };
        standing.reset_seconds = millis.div_ceil(1_000);
        standing
    }

    /// Whether the stage of this number is announced for the first time in this window.
    pub(super) fn announce(&mut self, stage: u8, now: u64) -> bool {
        if let Some(ring) = &self.ring
            && now.saturating_sub(ring.announced_at) >= ring.window
        {
            self.announced = 0;
        }
        let is_new = stage > self.announced;
        if is_new {
            self.announced = stage;
            if let Some(ring) = &mut self.ring {
                ring.announced_at = now;
            }
        }
        is_new
    }
}

impl Ring {
    const fn width(&self) -> u64 {
        self.window.div_ceil(SLOTS)
    }

    /// Follows a clock that jumped back by more than a window: what was counted counts as of now, for one window more,
    /// and not until the clock has caught up. After a smaller jump time stands still until then. Nothing is handed out
    /// in either case.
    fn follow(&mut self, now: u64) {
        let jumped = |bucket: &Bucket| bucket.last > now.saturating_add(self.window);
        if self.buckets.back().is_some_and(jumped) {
            let amount = self.buckets.drain(..).fold(0, |sum: u64, bucket| sum.saturating_add(bucket.amount));
            self.buckets.push_back(Bucket { last: now, amount });
            self.announced_at = self.announced_at.min(now);
        }
    }

    /// Drops what has left the window and says how much that was.
    fn drop_expired(&mut self, now: u64) -> u64 {
        let mut dropped: u64 = 0;
        while let Some(bucket) = self.buckets.front()
            && now.saturating_sub(bucket.last) >= self.window
        {
            dropped = dropped.saturating_add(bucket.amount);
            self.buckets.pop_front();
        }
        dropped
    }

    fn add(&mut self, amount: u64, now: u64) -> u64 {
        let width = self.width();
        match self.buckets.back_mut() {
            Some(newest) if newest.last / width >= now / width => {
                newest.last = newest.last.max(now);
                newest.amount = newest.amount.saturating_add(amount);
                newest.last
            }
            _ => {
                self.buckets.push_back(Bucket { last: now, amount });
                now
            }
        }
    }

    /// Takes back at most `amount` from the bucket of that time, and says how much it was.
    fn take_back(&mut self, amount: u64, at: u64) -> u64 {
        let width = self.width();
        let bucket = self.buckets.iter_mut().rfind(|bucket| bucket.last / width == at / width);
        bucket.map_or(0, |bucket| {
            let taken = bucket.amount.min(amount);
            bucket.amount -= taken;
            taken
        })
    }

    /// How long it takes until so much has left, or anything at all; until everything has, where that is less.
    fn millis_until_left(&self, amount: u64, now: u64) -> u64 {
        let mut left: u64 = 0;
        let mut leaves = now;
        for bucket in self.buckets.iter().filter(|bucket| bucket.amount > 0) {
            left = left.saturating_add(bucket.amount);
            leaves = bucket.last.saturating_add(self.window);
            if left >= amount {
                break;
            }
        }
        leaves.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests;
