//! Reminders: words that a client puts behind the newest result of each request, and takes away when the next one comes.
//!
//! A transcript that ends so looks as if somebody had spoken just now, whatever came before. But what stood at the end of
//! an earlier request of the same run is a verbatim repeat, although this transcript does not show it.

use std::sync::{Mutex, PoisonError};

use xxhash_rust::xxh3::xxh3_128;

use crate::inspect::mix;
use crate::recency::Recency;

/// The words at the ends of requests, as hashes, each with the length of the shortest transcript that ended with them.
#[derive(Debug, Default)]
pub(crate) struct Reminders {
    known: Mutex<Recency<usize>>,
}

impl Reminders {
    /// So many are remembered; only words right behind a result are looked at, and hardly any client writes such.
    const MAX: usize = 65_536;

    /// Whether a shorter transcript of this run has ended with these words. One of the same length is the same request
    /// once more, in which they are as new as they were.
    pub(crate) fn stood_before(&self, run: u128, words: &str, messages: usize) -> bool {
        let key = mix(run, xxh3_128(words.as_bytes()));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shortest) = known.get(key) {
            let stood_before = *shortest < messages;
            *shortest = messages.min(*shortest);
            return stood_before;
        }
        known.put(key, messages);
        if known.len() > Self::MAX {
            known.pop_oldest();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::Reminders;

    #[test]
    fn words_that_move_along_were_there_before() {
        let reminders = Reminders::default();
        assert!(!reminders.stood_before(1, "Answer with a tool call.", 4));
        assert!(reminders.stood_before(1, "Answer with a tool call.", 6));
        assert!(!reminders.stood_before(1, "Stop that, please.", 6), "others are new");
        assert!(!reminders.stood_before(2, "Answer with a tool call.", 6), "and so they are to another run");
    }

    #[test]
    fn a_request_that_comes_again_is_judged_as_it_was() {
        let reminders = Reminders::default();
        for _ in 0..3 {
            assert!(!reminders.stood_before(1, "Stop that, please.", 6));
        }
        assert!(
            !reminders.stood_before(1, "Stop that, please.", 4),
            "nor does a longer one speak for a shorter"
        );
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let reminders = Reminders::default();
        for run in 0..=Reminders::MAX as u128 {
            reminders.stood_before(run, "go on", 4);
        }
        assert_eq!(reminders.known.lock().unwrap().len(), Reminders::MAX);
        assert!(!reminders.stood_before(0, "go on", 6), "the oldest is forgotten");
    }
}
