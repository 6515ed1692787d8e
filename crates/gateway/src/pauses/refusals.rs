//! Transcripts that an operator has refused: they stay refused as long as they come again unchanged.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loopbreaker::Timestamp;

use crate::judge::RETRY_AFTER_SECONDS;
use crate::sessions::RunName;

/// Every refusal that still holds.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// The newest last.
    given: Mutex<VecDeque<Given>>,
    /// Whether there is any, so that nearly every request can tell without a lock.
    any: AtomicBool,
}

#[derive(Debug)]
struct Given {
    session: RunName,
    tip: u128,
    words: Arc<str>,
    until: Timestamp,
    /// When the other processes were told of it last.
    told: Timestamp,
}

/// A refused transcript that has come again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Again {
    pub(crate) words: Arc<str>,
    /// Whether the other processes have to hear that it still comes, before they forget it.
    pub(crate) is_news: bool,
}

impl Refusals {
    /// Refusals that are remembered; the oldest are forgotten.
    const MAX: usize = 4_096;

    /// An operator refuses a session with this transcript. Requests without one have the tip 0 in common, so nothing is
    /// known of them.
    pub(crate) fn add(&self, session: RunName, tip: u128, words: &str, now: Timestamp) {
        if tip == 0 {
            return;
        }
        let mut given = self.lock();
        given.retain(|known| !known.is_of(session, tip) && now < known.until);
        if given.len() >= Self::MAX {
            given.pop_front();
        }
        given.push_back(Given { session, tip, words: words.into(), until: until(now), told: now });
        self.any.store(true, Ordering::Release);
    }

    /// How one of these sessions was refused with this transcript. Each time that it comes again, the time begins anew: a
    /// client that asks and asks does not get what an operator has refused by being patient.
    pub(crate) fn of(
        &self,
        sessions: [RunName; 2],
        tip: u128,
        now: impl FnOnce() -> Timestamp,
    ) -> Option<Again> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let now = now();
        let mut given = self.lock();
        given.retain(|known| now < known.until);
        self.any.store(!given.is_empty(), Ordering::Release);
        let known =
            given.iter_mut().find(|known| sessions.iter().any(|session| known.is_of(*session, tip)))?;
        let was_told = known.told;
        known.until = until(now);
        let is_news = now.millis_since(was_told) >= RETRY_AFTER_SECONDS * 1_000 / 2;
        if is_news {
            known.told = now;
        }
        Some(Again { words: Arc::clone(&known.words), is_news })
    }

    /// An operator has said something else about the session since.
    pub(crate) fn lift(&self, session: RunName) {
        if self.any.load(Ordering::Acquire) {
            self.lock().retain(|known| known.session != session);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Given>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Given {
    fn is_of(&self, session: RunName, tip: u128) -> bool {
        self.session == session && self.tip == tip
    }
}

const fn until(now: Timestamp) -> Timestamp {
    Timestamp::from_millis(now.as_millis().saturating_add(RETRY_AFTER_SECONDS * 1_000))
}

#[cfg(test)]
mod tests {
    use loopbreaker::Timestamp;

    use super::{Again, Refusals};
    use crate::sessions::RunName;

    const fn at(seconds: u64) -> Timestamp {
        Timestamp::from_secs(seconds)
    }

    #[test]
    fn a_refused_transcript_stays_refused_until_it_has_not_come_for_a_minute() {
        let (refusals, run) = (Refusals::default(), RunName::of("acme", "run-17"));
        let fork = RunName::of("acme", "lb-1");
        assert_eq!(refusals.of([run, run], 7, || at(0)), None);
        refusals.add(run, 7, "enough", at(0));
        for (seconds, is_news) in [(1, false), (59, true), (60, false), (118, true)] {
            let again = Again { words: "enough".into(), is_news };
            assert_eq!(refusals.of([fork, run], 7, || at(seconds)), Some(again), "{seconds} s");
        }
        assert_eq!(refusals.of([run, run], 8, || at(118)), None, "it changed");
        assert_eq!(refusals.of([fork, fork], 7, || at(118)), None, "another session says the same");
        assert_eq!(refusals.of([run, run], 7, || at(178)), None);
    }

    #[test]
    fn a_refusal_is_over_when_an_operator_says_something_else() {
        let (refusals, run) = (Refusals::default(), RunName::of("acme", "run-17"));
        refusals.add(run, 7, "enough", at(0));
        refusals.lift(RunName::of("acme", "another"));
        assert!(refusals.of([run, run], 7, || at(1)).is_some());
        refusals.lift(run);
        assert_eq!(refusals.of([run, run], 7, || at(1)), None);
    }

    #[test]
    fn requests_without_a_transcript_are_not_refused_for_each_other() {
        let (refusals, run) = (Refusals::default(), RunName::of("acme", "run-17"));
        refusals.add(run, 0, "enough", at(0));
        assert_eq!(refusals.of([run, run], 0, || at(0)), None);
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let refusals = Refusals::default();
        let run = RunName::of("acme", "run-17");
        for tip in 1..=u128::try_from(Refusals::MAX).unwrap() + 1 {
            refusals.add(run, tip, "enough", at(0));
        }
        assert_eq!(refusals.lock().len(), Refusals::MAX);
        assert_eq!(refusals.of([run, run], 1, || at(0)), None, "the oldest is forgotten");
    }
}
