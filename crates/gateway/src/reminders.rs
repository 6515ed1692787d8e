//! Reminders: words that a client puts behind the newest result of each request, and takes away when the next one comes.
//!
//! A transcript that ends so looks as if somebody had spoken just now, whatever came before. So it is remembered what
//! stood at the end of a request that was answered. A later one that goes on from the same place, without these words
//! where they stood and with them at its end, says nothing new by them.

use std::sync::{Mutex, PoisonError};

use twox_hash::XxHash3_128;

use crate::inspect::mix;
use crate::recency::Recency;

/// The words behind the newest result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    /// The transcript's link before that result.
    pub(crate) behind: u128,
    /// Its last link, which has the words in it.
    pub(crate) tip: u128,
    /// The words, as hashes.
    pub(crate) words: Vec<u128>,
}

impl Ending {
    /// A client that puts more messages than this behind a result reminds of nothing, and is looked up for nothing.
    pub(crate) const MAX_WORDS: usize = 8;
}

/// Endings of requests that were answered.
#[derive(Debug, Default)]
pub(crate) struct Reminders {
    /// The tip of each, by its session, its place and its words.
    known: Mutex<Recency<u128>>,
}

impl Reminders {
    /// So many are remembered; hardly any client writes behind a result.
    const MAX: usize = 65_536;
    /// A reminder stood at the end of the request before this one, or of one not much older.
    const MAX_LOOK_BACK: usize = 64;

    /// The request was answered, so its words were heard.
    pub(crate) fn remember(&self, owner: u128, ending: &Ending) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for words in &ending.words {
            known.put(key(owner, ending.behind, *words), ending.tip);
            if known.len() > Self::MAX {
                known.pop_oldest();
            }
        }
    }

    /// Whether the words at the end of a transcript have moved there: an earlier request of the session, of which it
    /// goes on, ended with them, and it does not go on from them.
    pub(crate) fn has_moved(&self, owner: u128, ending: &Ending, chain: &[u128]) -> bool {
        let earlier = || chain.iter().rev().skip_while(|link| **link != ending.behind).skip(1);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let stood_at = |link: &u128, words: u128| {
            known.peek(key(owner, *link, words)).is_some_and(|tip| !chain.contains(tip))
        };
        ending
            .words
            .iter()
            .all(|words| earlier().take(Self::MAX_LOOK_BACK).any(|link| stood_at(link, *words)))
    }
}

fn key(owner: u128, behind: u128, words: u128) -> u128 {
    mix(mix(owner, behind), words)
}

/// The hash of words without regard to their numbers: a reminder may count steps, or tell the time.
pub(crate) fn hash_of_words(words: &str) -> u128 {
    let mut folded = Vec::with_capacity(words.len());
    for byte in words.bytes() {
        let byte = if byte.is_ascii_digit() { b'0' } else { byte };
        if byte != b'0' || folded.last() != Some(&b'0') {
            folded.push(byte);
        }
    }
    XxHash3_128::oneshot(&folded)
}

#[cfg(test)]
mod tests {
    use super::{Ending, Reminders, hash_of_words};

    /// The chain of a transcript of so many rounds, and what it ends with. Links of what is kept are small numbers.
    fn ended(rounds: u128, words: &str) -> (Vec<u128>, Ending) {
        let words = hash_of_words(words);
        let ending = Ending { behind: 2 * rounds, tip: 1_000 * rounds, words: vec![words] };
        ((0..=2 * rounds + 1).chain([ending.tip]).collect(), ending)
    }

    fn remembering(owner: u128, rounds: u128, words: &str) -> Reminders {
        let reminders = Reminders::default();
        reminders.remember(owner, &ended(rounds, words).1);
        reminders
    }

    fn has_moved(reminders: &Reminders, owner: u128, rounds: u128, words: &str) -> bool {
        let (chain, ending) = ended(rounds, words);
        reminders.has_moved(owner, &ending, &chain)
    }

    #[test]
    fn words_that_stood_at_the_end_before_and_are_there_again_have_moved() {
        let reminders = remembering(1, 2, "Step 2 of 50: answer with a tool call.");
        assert!(has_moved(&reminders, 1, 3, "Step 3 of 50: answer with a tool call."));
        assert!(!has_moved(&reminders, 1, 3, "Stop that, please."), "others are new");
        assert!(!has_moved(&reminders, 2, 3, "Step 3 of 50: answer with a tool call."), "to another session");
    }

    #[test]
    fn a_request_that_comes_again_says_it_for_the_first_time() {
        let reminders = remembering(1, 3, "Stop that, please.");
        assert!(!has_moved(&reminders, 1, 3, "Stop that, please."));
    }

    #[test]
    fn words_that_stayed_where_they_were_said_have_not_moved() {
        let reminders = remembering(1, 2, "Try port 8080.");
        let (mut chain, ending) = ended(3, "Try port 8081.");
        chain.insert(6, ended(2, "Try port 8080.").1.tip);
        assert!(!reminders.has_moved(1, &ending, &chain));
    }

    #[test]
    fn a_request_that_went_another_way_says_nothing_about_this_one() {
        let reminders = remembering(1, 2, "Answer with a tool call.");
        let (chain, ending) = ended(3, "Answer with a tool call.");
        let elsewhere: Vec<u128> =
            chain.iter().map(|link| if *link < ending.behind { link + 500 } else { *link }).collect();
        assert!(!reminders.has_moved(1, &ending, &elsewhere));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let reminders = Reminders::default();
        for owner in 0..=Reminders::MAX as u128 {
            reminders.remember(owner, &ended(2, "go on").1);
        }
        assert_eq!(reminders.known.lock().unwrap().len(), Reminders::MAX);
        assert!(!has_moved(&reminders, 0, 3, "go on"), "the oldest is forgotten");
    }
}
