//! The counters of one shard: a slab, an index into it, and who was used when.

use hashbrown::HashTable;

use super::counter::Counter;
use crate::limit::Window;

/// Counters that share one lock.
///
/// Every window has a queue of its own, oldest use last: the last of a queue is the first of it to expire, so a
/// counter that holds nothing any more is found without a search, and goes before one that still does.
#[derive(Debug)]
pub(super) struct Shard {
    index: HashTable<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    queues: Vec<Queue>,
    max_counters: usize,
    generation: u16,
    evicted: u64,
}

/// A key in which quantity and window are mixed. Not a `u128`, whose alignment would cost eight bytes a slot.
pub(crate) type CounterKey = [u64; 2];

#[derive(Debug)]
struct Slot {
    key: CounterKey,
    counter: Counter,
    newer: u32,
    older: u32,
}

#[derive(Debug)]
struct Queue {
    window: Window,
    newest: u32,
    oldest: u32,
}

/// No slot.
const NONE: u32 = u32::MAX;

/// Keys are hashes already; this only folds them, and spreads those that a caller counted up.
pub(super) const fn fold(key: CounterKey) -> u64 {
    (key[0] ^ key[1]).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Shard {
    pub(super) fn new(max_counters: usize) -> Self {
        Self {
            index: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            queues: Vec::new(),
            max_counters,
            generation: 0,
            evicted: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    /// Counters that were dropped although they still held something.
    pub(super) const fn evicted(&self) -> u64 {
        self.evicted
    }

    /// The counter of a key, which is thereby used.
    pub(super) fn get(&mut self, key: CounterKey, now: u64) -> Option<&mut Counter> {
        self.find(key).map(|at| self.touch(at, now))
    }

    /// The counter of a key, a new one where there is none.
    pub(super) fn get_or_insert(&mut self, key: CounterKey, window: Window, now: u64) -> &mut Counter {
        let at = self.find(key).unwrap_or_else(|| self.insert(key, window, now));
        self.touch(at, now)
    }

    pub(super) fn remove(&mut self, key: CounterKey) -> bool {
        let slots = &self.slots;
        let Ok(entry) = self.index.find_entry(fold(key), |slot| slots[*slot as usize].key == key) else {
            return false;
        };
        let (at, _) = entry.remove();
        self.unlink(at);
        self.slots[at as usize].counter = Counter::default();
        self.free.push(at);
        true
    }

    fn find(&self, key: CounterKey) -> Option<u32> {
        self.index.find(fold(key), |slot| self.slots[*slot as usize].key == key).copied()
    }

    fn touch(&mut self, at: u32, now: u64) -> &mut Counter {
        self.unlink(at);
        self.link_newest(at);
        let slot = &mut self.slots[at as usize];
        slot.counter.seen = seconds(now);
        &mut slot.counter
    }

    fn insert(&mut self, key: CounterKey, window: Window, now: u64) -> u32 {
        self.make_room(now);
        self.generation = self.generation.wrapping_add(1);
        let mut counter = Counter::new(window);
        (counter.generation, counter.queue) = (self.generation, self.queue_of(window));
        let slot = Slot { key, counter, newer: NONE, older: NONE };
        let at = if let Some(at) = self.free.pop() {
            self.slots[at as usize] = slot;
            at
        } else {
            if self.slots.len() == self.slots.capacity() {
                // Doubling would leave up to half of the memory unused.
                self.slots.reserve_exact((self.slots.len() / 8).max(4));
            }
            self.slots.push(slot);
            self.slots.len() as u32 - 1
        };
        let slots = &self.slots;
        self.index.insert_unique(fold(key), at, |slot| fold(slots[*slot as usize].key));
        self.link_newest(at);
        at
    }

    /// Drops what holds nothing any more, one counter a window, so that memory follows what is really in use. Where
    /// that leaves no room, the counter that was used longest ago goes.
    fn make_room(&mut self, now: u64) {
        let mut longest_unused: Option<(u32, CounterKey)> = None;
        for queue in 0..self.queues.len() {
            let Some(slot) = self.slots.get_mut(self.queues[queue].oldest as usize) else { continue };
            let (key, seen) = (slot.key, slot.counter.seen);
            if slot.counter.used(now) == 0 {
                self.remove(key);
            } else if longest_unused.is_none_or(|(longest, _)| seen < longest) {
                longest_unused = Some((seen, key));
            }
        }
        if self.len() >= self.max_counters
            && let Some((_, key)) = longest_unused
        {
            self.remove(key);
            self.evicted += 1;
        }
    }

    /// The queue of a window; one that has run empty is used again. Should there ever be more windows than queues, the
    /// rest share the last one.
    fn queue_of(&mut self, window: Window) -> u8 {
        let known = self.queues.iter().position(|queue| queue.window == window);
        let at = known.or_else(|| self.queues.iter().position(|queue| queue.oldest == NONE));
        match at {
            Some(at) => {
                self.queues[at].window = window;
                at as u8
            }
            None if self.queues.len() > usize::from(u8::MAX) => u8::MAX,
            None => {
                self.queues.push(Queue { window, newest: NONE, oldest: NONE });
                (self.queues.len() - 1) as u8
            }
        }
    }

    fn unlink(&mut self, at: u32) {
        let Slot { ref counter, newer, older, .. } = self.slots[at as usize];
        let queue = &mut self.queues[usize::from(counter.queue)];
        if newer == NONE {
            queue.newest = older;
        } else {
            self.slots[newer as usize].older = older;
        }
        if older == NONE {
            queue.oldest = newer;
        } else {
            self.slots[older as usize].newer = newer;
        }
    }

    fn link_newest(&mut self, at: u32) {
        let queue = &mut self.queues[usize::from(self.slots[at as usize].counter.queue)];
        let older = std::mem::replace(&mut queue.newest, at);
        if older == NONE {
            queue.oldest = at;
        } else {
            self.slots[older as usize].newer = at;
        }
        let slot = &mut self.slots[at as usize];
        (slot.newer, slot.older) = (NONE, older);
    }
}

fn seconds(millis: u64) -> u32 {
    u32::try_from(millis / 1_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
