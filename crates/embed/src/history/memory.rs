//! A history in this process.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use loopbreaker::similarity;
use lru::LruCache;

use super::{Entry, History, HistoryLimits, Key, Neighbour, Pending, now_millis};
use crate::keyed::Keyed;

/// Histories in memory, bounded in bytes; whoever was quiet longest goes first.
#[derive(Debug)]
pub struct MemoryHistory {
    limits: HistoryLimits,
    keyed: Keyed,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    sessions: LruCache<u128, VecDeque<Remembered>>,
    bytes: usize,
}

#[derive(Debug, Clone)]
struct Remembered {
    id: u64,
    at: u64,
    vector: Arc<[f32]>,
    prompt: Option<Arc<str>>,
}

impl MemoryHistory {
    /// An empty one.
    pub fn new(limits: HistoryLimits) -> Self {
        let kept = Mutex::new(Kept { sessions: LruCache::unbounded(), bytes: 0 });
        Self { limits, keyed: Keyed::new(), kept }
    }

    fn exchange_at(&self, key: Key<'_>, entry: Entry<'_>, now: u64) -> Vec<Neighbour> {
        let (id, vector, prompt) = (entry.id, entry.vector.into(), entry.prompt.map(Into::into));
        let new = Remembered { id, at: now, vector, prompt };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if !key.session.is_empty() {
            // What a session says is part of its tenant's history as well.
            kept.push(self.keyed.pair(key.tenant, ""), new.clone(), &self.limits);
        }
        let earlier = kept.push(self.keyed.pair(key.tenant, key.session), new, &self.limits);
        while kept.bytes > self.limits.max_bytes
            && let Some((_, gone)) = kept.sessions.pop_lru()
        {
            kept.bytes -= bytes_of(&gone);
        }
        drop(kept);
        earlier.iter().rev().map(|earlier| earlier.seen_from(entry.vector)).collect()
    }
}

impl Kept {
    /// Adds an entry; gives those that were there before, oldest first.
    fn push(&mut self, session: u128, new: Remembered, limits: &HistoryLimits) -> Vec<Remembered> {
        let ttl = u64::try_from(limits.ttl.as_millis()).unwrap_or(u64::MAX);
        let mut entries = self.sessions.pop(&session).unwrap_or_default();
        self.bytes -= bytes_of(&entries);
        entries.retain(|entry| new.at.saturating_sub(entry.at) < ttl);
        let earlier = entries.iter().cloned().collect();
        while entries.len() >= limits.size.max(1) {
            entries.pop_front();
        }
        entries.push_back(new);
        self.bytes += bytes_of(&entries);
        self.sessions.put(session, entries);
        earlier
    }
}

impl History for MemoryHistory {
    fn exchange<'a>(&'a self, key: Key<'a>, entry: Entry<'a>) -> Pending<'a, Vec<Neighbour>> {
        Box::pin(async move { Ok(self.exchange_at(key, entry, now_millis())) })
    }

    fn prepare(&self, _dimensions: usize) -> Pending<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

impl Remembered {
    fn seen_from(&self, vector: &[f32]) -> Neighbour {
        let prompt = self.prompt.as_deref().map(str::to_owned);
        Neighbour { id: self.id, similarity: similarity(&self.vector, vector), prompt }
    }
}

/// About what the entries of a key take; a key without entries is not kept.
fn bytes_of(entries: &VecDeque<Remembered>) -> usize {
    let prompt = |entry: &Remembered| entry.prompt.as_ref().map_or(0, |prompt| prompt.len());
    entries.iter().map(|entry| 128 + 4 * entry.vector.len() + prompt(entry)).sum()
}

#[cfg(test)]
mod tests {
    use super::{Entry, HistoryLimits, Key, MemoryHistory};

    #[test]
    fn what_is_too_old_is_not_compared() {
        let history = MemoryHistory::new(HistoryLimits::default());
        let key = Key { tenant: "a", session: "" };
        let entry = |id| Entry { id, vector: &[1.0], prompt: None };
        assert!(history.exchange_at(key, entry(1), 0).is_empty());
        assert_eq!(history.exchange_at(key, entry(2), 3_599_999).len(), 1);
        assert_eq!(history.exchange_at(key, entry(3), 3_600_000).len(), 1);
        assert!(history.exchange_at(key, entry(4), 8_000_000).is_empty());
    }

    #[test]
    fn bytes_are_bounded_and_the_quiet_go_first() {
        let history = MemoryHistory::new(HistoryLimits { max_bytes: 10_000, ..HistoryLimits::default() });
        let vector = [1.0; 100];
        let ask = |tenant: &str| {
            history
                .exchange_at(Key { tenant, session: "" }, Entry { id: 1, vector: &vector, prompt: None }, 0)
                .len()
        };
        for number in 0..100 {
            ask(&format!("tenant {number}"));
            ask("busy");
        }
        assert_eq!((ask("busy"), ask("tenant 0"), ask("tenant 99")), (5, 0, 1));
        assert!(history.kept.lock().unwrap().bytes <= 10_000);
    }
}
