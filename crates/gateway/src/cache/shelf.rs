//! Where answers are kept: a shelf per policy, bounded in bytes, the one that was used longest ago goes first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loopbreaker::Timestamp;
use lru::LruCache;

use super::{Asked, Stored};

/// Every answer that is kept.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    shelves: Mutex<HashMap<Arc<str>, Shelf>>,
}

#[derive(Debug)]
struct Shelf {
    answers: LruCache<u128, Arc<Stored>>,
    /// For each frame the newest words that were answered in it.
    alike: HashMap<u128, Vec<(Arc<str>, u128)>>,
    bytes: usize,
}

impl Cache {
    /// An answer by its key, unless it is too old.
    pub(crate) fn get(&self, asked: &Asked, key: u128, now: Timestamp) -> Option<Arc<Stored>> {
        let mut shelves = self.lock();
        let shelf = shelves.get_mut(&asked.policy)?;
        let stored = shelf.answers.get(&key)?;
        if u128::from(now.millis_since(stored.at)) < asked.ttl.as_millis() {
            return Some(Arc::clone(stored));
        }
        shelf.remove(key);
        None
    }

    /// Words that were answered in the same frame, each with the key of its answer.
    pub(crate) fn alike(&self, asked: &Asked, frame: u128) -> Vec<(Arc<str>, u128)> {
        let shelves = self.lock();
        let known = shelves.get(&asked.policy).and_then(|shelf| shelf.alike.get(&frame));
        known.cloned().unwrap_or_default()
    }

    /// Keeps an answer in place of the one that was there; says whether it fits.
    pub(crate) fn put(&self, asked: &Asked, stored: Stored) -> bool {
        let size = stored.size();
        if size > asked.max_bytes {
            return false;
        }
        let mut shelves = self.lock();
        let shelf = shelves.entry(Arc::clone(&asked.policy)).or_default();
        shelf.remove(asked.key);
        while shelf.bytes + size > asked.max_bytes
            && let Some(oldest) = shelf.answers.peek_lru().map(|(key, _)| *key)
        {
            shelf.remove(oldest);
        }
        if let Some((frame, words)) = &stored.alike {
            let known = shelf.alike.entry(*frame).or_default();
            if known.len() >= Shelf::MAX_ALIKE {
                known.remove(0);
            }
            known.push((Arc::clone(words), asked.key));
        }
        shelf.bytes += size;
        shelf.answers.put(asked.key, Arc::new(stored));
        true
    }

    /// Bytes that are kept in all.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().values().map(|shelf| shelf.bytes).sum()
    }

    /// Forgets what policies kept that are no longer there.
    pub(crate) fn keep_only(&self, is_there: impl Fn(&str) -> bool) {
        self.lock().retain(|policy, _| is_there(policy));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Shelf>> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Shelf {
    fn default() -> Self {
        Self { answers: LruCache::unbounded(), alike: HashMap::new(), bytes: 0 }
    }
}

impl Shelf {
    /// So many texts are compared with a new one; each may have to be embedded.
    const MAX_ALIKE: usize = 8;

    fn remove(&mut self, key: u128) {
        let Some(gone) = self.answers.pop(&key) else { return };
        self.bytes -= gone.size();
        if let Some((frame, _)) = &gone.alike
            && let Some(known) = self.alike.get_mut(frame)
        {
            known.retain(|(_, of)| *of != key);
            if known.is_empty() {
                self.alike.remove(frame);
            }
        }
    }
}

impl Stored {
    /// What it takes, with its place on the shelf.
    fn size(&self) -> usize {
        let calls =
            self.answer.calls.iter().map(|call| call.id.len() + call.tool.len() + call.args.len() + 72);
        let words = self.alike.as_ref().map_or(0, |(_, words)| words.len() + 64);
        size_of::<Self>() + 128 + self.kept.size() + self.answer.text.len() + calls.sum::<usize>() + words
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use hyper::StatusCode;
    use loopbreaker::Timestamp;
    use loopbreaker_dialect::Answer;

    use super::super::{Alike, Asked, Head, Recording, Stored};
    use super::Cache;

    fn asked(key: u128, max_bytes: usize) -> Asked {
        Asked {
            policy: "p".into(),
            key,
            ttl: Duration::from_secs(10),
            max_bytes,
            alike: None,
            is_fresh_wanted: false,
        }
    }

    fn stored(length: usize, second: u64, alike: Option<(u128, Arc<str>)>) -> Stored {
        let mut recording = Recording::new(1 << 20, false);
        recording.take(&vec![7; length]);
        Stored {
            head: Head { status: StatusCode::OK, content_type: None, content_encoding: None },
            kept: recording.finish().unwrap(),
            answer: Answer::default(),
            at: Timestamp::from_secs(second),
            alike,
        }
    }

    fn has(cache: &Cache, key: u128, second: u64) -> bool {
        cache.get(&asked(key, 0), key, Timestamp::from_secs(second)).is_some()
    }

    #[test]
    fn an_answer_is_given_again_until_its_time_is_over() {
        let cache = Cache::default();
        assert!(cache.put(&asked(1, 100_000), stored(100, 5, None)));
        assert!(has(&cache, 1, 14));
        assert!(!has(&cache, 1, 15));
        assert_eq!(cache.bytes(), 0, "what is too old is gone");
    }

    #[test]
    fn the_one_that_was_used_longest_ago_goes_first() {
        let cache = Cache::default();
        let size = stored(1_000, 0, None).size();
        let room = 3 * size;
        for key in 1..=3 {
            cache.put(&asked(key, room), stored(1_000, 0, None));
        }
        assert!(has(&cache, 1, 0));
        cache.put(&asked(4, room), stored(1_000, 0, None));
        assert_eq!([1, 2, 3, 4].map(|key| has(&cache, key, 0)), [true, false, true, true]);
        assert!(cache.bytes() <= room);
    }

    #[test]
    fn an_answer_that_does_not_fit_takes_no_other_away() {
        let cache = Cache::default();
        cache.put(&asked(1, 10_000), stored(1_000, 0, None));
        assert!(!cache.put(&asked(2, 10_000), stored(20_000, 0, None)));
        assert!(has(&cache, 1, 0) && !has(&cache, 2, 0));
    }

    #[test]
    fn a_new_answer_takes_the_place_of_the_old_one() {
        let cache = Cache::default();
        cache.put(&asked(1, 10_000), stored(1_000, 0, None));
        let before = cache.bytes();
        cache.put(&asked(1, 10_000), stored(1_000, 9, None));
        assert_eq!(cache.bytes(), before);
        assert!(has(&cache, 1, 18));
    }

    #[test]
    fn words_go_with_their_answers() {
        let cache = Cache::default();
        let say = |key: u128| {
            let alike = Alike { frame: 7, words: format!("words {key}").into(), threshold: 0.95 };
            let words = Arc::clone(&alike.words);
            let asked = Asked { alike: Some(alike), ..asked(key, 100_000) };
            cache.put(&asked, stored(10, 0, Some((7, words))));
        };
        (0..20).for_each(say);
        let known = cache.alike(&asked(0, 0), 7);
        assert_eq!(known.first().map(|(words, _)| &**words), Some("words 12"));
        assert_eq!(known.len(), 8);
        assert!(!has(&cache, 19, 10));
        assert_eq!(cache.alike(&asked(0, 0), 7).len(), 7);
    }

    #[test]
    fn a_policy_that_is_gone_keeps_nothing() {
        let cache = Cache::default();
        cache.put(&asked(1, 10_000), stored(1_000, 0, None));
        cache.keep_only(|policy| policy == "p");
        assert!(has(&cache, 1, 0));
        cache.keep_only(|_| false);
        assert_eq!((has(&cache, 1, 0), cache.bytes()), (false, 0));
    }
}
