//! Paused sessions: their calls are held until somebody decides.

mod refusals;
mod turns;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loopbreaker::Timestamp;
use tokio::sync::watch;

use crate::sessions::RunName;
use refusals::Refusals;
use turns::Turns;
pub(crate) use turns::{Sent, Turn};

/// What was decided about a paused session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Nothing yet.
    Waiting,
    /// It may go on.
    Resumed,
    /// It may not, and is told why.
    Rejected(Arc<str>),
}

/// Every paused session.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    paused: Mutex<HashMap<RunName, Pause>>,
    /// Transcripts of sessions that an operator has let go on, newest last: a client that comes back with one is not
    /// paused for it again.
    approved: Mutex<VecDeque<(RunName, u128)>>,
    /// What operators have refused.
    pub(crate) refusals: Refusals,
}

#[derive(Debug)]
struct Pause {
    since: Since,
    /// Whether a policy of this process paused it, and no person.
    by_policy: bool,
    decision: watch::Sender<Decision>,
    /// The order in which its calls came, and in which they go on.
    turns: Arc<Turns>,
    /// The transcripts that it holds up.
    tips: Vec<u128>,
}

/// When a pause began: so many milliseconds before a time of this process's clock, which may be before the clock began.
#[derive(Debug, Clone, Copy)]
struct Since {
    at: Timestamp,
    before: u64,
}

impl Since {
    const fn millis_until(self, now: Timestamp) -> u64 {
        now.millis_since(self.at).saturating_add(self.before)
    }
}

/// The pause of one session, as a held call sees it.
#[derive(Debug)]
pub(crate) struct Wait {
    since: Since,
    by_policy: bool,
    decision: watch::Receiver<Decision>,
    turn: Turn,
}

impl Pauses {
    /// More paused sessions than this are too many to decide about; the oldest go on being refused by their timeout.
    const MAX: usize = 100_000;
    /// Transcripts of one session that are remembered while it is paused.
    const MAX_TIPS: usize = 16;
    /// Transcripts that are remembered after they were let go on.
    const MAX_APPROVED: usize = 4_096;

    /// Pauses a session; says whether it was running.
    pub(crate) fn pause(&self, session: RunName, now: Timestamp) -> bool {
        self.begin(session, 0, now, false)
    }

    /// A policy pauses a session; says whether it was running.
    pub(crate) fn pause_by_policy(&self, session: RunName, now: Timestamp) -> bool {
        self.begin(session, 0, now, true)
    }

    /// A session has been paused for so many milliseconds, perhaps since before this process began; says whether it was
    /// running here.
    pub(crate) fn paused_for(&self, session: RunName, millis: u64, now: Timestamp) -> bool {
        self.begin(session, millis, now, false)
    }

    fn begin(&self, session: RunName, millis: u64, now: Timestamp, by_policy: bool) -> bool {
        let mut paused = self.lock();
        if paused.contains_key(&session) || paused.len() >= Self::MAX {
            return false;
        }
        if !by_policy {
            // Whoever pauses it again wants to decide again.
            self.refusals.lift(session);
        }
        let decision = watch::Sender::new(Decision::Waiting);
        let since = Since { at: now, before: millis };
        let turns = Arc::default();
        paused.insert(session, Pause { since, by_policy, decision, turns, tips: Vec::new() });
        true
    }

    /// Whether an operator has let one of these sessions go on with this transcript. Requests without one have the tip 0
    /// in common, so nothing is known of them.
    pub(crate) fn is_approved(&self, sessions: [RunName; 2], tip: u128) -> bool {
        let approved = self.approved.lock().unwrap_or_else(PoisonError::into_inner);
        tip != 0 && sessions.into_iter().any(|session| approved.contains(&(session, tip)))
    }

    /// An operator has let a session go on with this transcript, at another process.
    pub(crate) fn approve(&self, session: RunName, tip: u128) {
        self.approve_all(session, &[tip]);
    }

    /// How many milliseconds nobody has decided about a session, if it is paused.
    pub(crate) fn has_waited(&self, session: RunName, now: Timestamp) -> Option<u64> {
        self.lock().get(&session).map(|pause| pause.since.millis_until(now))
    }

    /// Whether no session is paused at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Whether nobody has decided about a session yet.
    pub(crate) fn is_paused(&self, session: RunName) -> bool {
        self.lock().contains_key(&session)
    }

    /// Whether any of a session's calls is held here.
    pub(crate) fn holds(&self, session: RunName) -> bool {
        self.lock().get(&session).is_some_and(|pause| pause.decision.receiver_count() > 0)
    }

    /// Forgets a pause that was decided elsewhere, and that holds nothing up here; says whether there was one.
    pub(crate) fn forget(&self, session: RunName) -> bool {
        self.lock().remove(&session).is_some()
    }

    /// Lets a session go on; says whether it was paused.
    pub(crate) fn resume(&self, session: RunName) -> bool {
        self.decide(session, Decision::Resumed)
    }

    /// Refuses the held calls of a session; says whether it was paused.
    pub(crate) fn reject(&self, session: RunName, message: &str) -> bool {
        self.decide(session, Decision::Rejected(message.into()))
    }

    /// The pause of a session, if it is paused, for a call with this transcript.
    pub(crate) fn of(&self, session: RunName, tip: u128) -> Option<Wait> {
        let mut paused = self.lock();
        let pause = paused.get_mut(&session)?;
        if matches!(*pause.decision.borrow(), Decision::Rejected(_)) {
            // Nobody was waiting when it was rejected, so this is the call that is told.
            return paused.remove(&session).map(|pause| pause.wait());
        }
        if pause.tips.len() < Self::MAX_TIPS && !pause.tips.contains(&tip) {
            pause.tips.push(tip);
        }
        Some(pause.wait())
    }

    fn decide(&self, session: RunName, decision: Decision) -> bool {
        let mut paused = self.lock();
        let is_waiting = |pause: &Pause| *pause.decision.borrow() == Decision::Waiting;
        if !paused.get(&session).is_some_and(is_waiting) {
            return false;
        }
        let pause = paused.remove(&session);
        pause.is_some_and(|pause| {
            if decision == Decision::Resumed {
                self.approve_all(session, &pause.tips);
            }
            let waits = pause.decision.receiver_count() > 0;
            let is_rejected = decision != Decision::Resumed;
            pause.decision.send_replace(decision);
            if is_rejected && !waits {
                paused.insert(session, pause);
            }
            true
        })
    }

    fn approve_all(&self, session: RunName, tips: &[u128]) {
        let mut approved = self.approved.lock().unwrap_or_else(PoisonError::into_inner);
        for tip in tips {
            if !approved.contains(&(session, *tip)) {
                approved.push_back((session, *tip));
            }
        }
        let excess = approved.len().saturating_sub(Self::MAX_APPROVED);
        approved.drain(..excess);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunName, Pause>> {
        self.paused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pause {
    /// One more call waits, behind all others.
    fn wait(&self) -> Wait {
        let decision = self.decision.subscribe();
        Wait { since: self.since, by_policy: self.by_policy, decision, turn: self.turns.enter() }
    }
}

impl Wait {
    /// The call goes on when those have that came before it.
    pub(crate) fn into_turn(self) -> Turn {
        self.turn
    }

    /// Whether a policy of this process paused it, and no person.
    pub(crate) const fn is_by_policy(&self) -> bool {
        self.by_policy
    }

    /// Whether nobody has decided for so long that it is a refusal. A pause never becomes an approval by itself.
    pub(crate) fn is_over(&self, timeout: Duration, now: Timestamp) -> bool {
        u128::from(self.since.millis_until(now)) >= timeout.as_millis()
    }

    /// The words with which it was refused, if it was.
    pub(crate) fn rejection(&self) -> Option<Arc<str>> {
        match &*self.decision.borrow() {
            Decision::Rejected(words) => Some(Arc::clone(words)),
            Decision::Waiting | Decision::Resumed => None,
        }
    }

    /// Waits for a decision, for at most `hold`.
    pub(crate) async fn decision(&mut self, hold: Duration) -> Decision {
        let decided = self.decision.wait_for(|decision| *decision != Decision::Waiting);
        match tokio::time::timeout(hold, decided).await {
            Ok(Ok(decision)) => decision.clone(),
            // The sender is only dropped after it has told its decision.
            Ok(Err(_)) | Err(_) => Decision::Waiting,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use loopbreaker::Timestamp;

    use super::{Decision, Pauses};
    use crate::sessions::RunName;

    fn session() -> RunName {
        RunName::of("acme", "run-17")
    }

    const HOLD: Duration = Duration::from_secs(60);
    const MOMENT: Duration = Duration::from_millis(5);

    #[tokio::test]
    async fn a_held_call_goes_on_when_the_session_is_resumed() {
        let pauses = std::sync::Arc::new(Pauses::default());
        assert!(pauses.pause(session(), Timestamp::from_secs(0)));
        let mut wait = pauses.of(session(), 7).unwrap();
        let resuming = std::sync::Arc::clone(&pauses);
        tokio::spawn(async move {
            tokio::time::sleep(MOMENT).await;
            assert!(resuming.resume(session()));
        });
        assert_eq!(wait.decision(HOLD).await, Decision::Resumed);
        assert!(pauses.of(session(), 7).is_none());
        let other = RunName::of("acme", "another run");
        assert!(
            pauses.is_approved([other, session()], 7),
            "a client that comes back with it is not paused again"
        );
        assert!(!pauses.is_approved([session(); 2], 8));
        assert!(!pauses.is_approved([other; 2], 7), "another session that says the same is");
    }

    #[test]
    fn a_pause_that_is_older_than_this_process_has_waited_all_that_time() {
        let pauses = Pauses::default();
        assert!(pauses.paused_for(session(), 60_000, Timestamp::from_secs(1)));
        assert_eq!(pauses.has_waited(session(), Timestamp::from_secs(2)), Some(61_000));
        let wait = pauses.of(session(), 7).unwrap();
        assert!(wait.is_over(Duration::from_secs(61), Timestamp::from_secs(2)));
        assert!(!wait.is_over(Duration::from_secs(62), Timestamp::from_secs(2)));
    }

    #[test]
    fn a_request_without_a_transcript_is_not_approved_for_others() {
        let pauses = Pauses::default();
        pauses.pause(session(), Timestamp::from_secs(0));
        assert!(pauses.of(session(), 0).is_some());
        pauses.resume(session());
        assert!(!pauses.is_approved([session(); 2], 0));
    }

    #[tokio::test]
    async fn nobody_deciding_is_no_approval() {
        let pauses = Pauses::default();
        pauses.pause(session(), Timestamp::from_secs(0));
        assert_eq!(pauses.of(session(), 7).unwrap().decision(MOMENT).await, Decision::Waiting);
        let wait = pauses.of(session(), 7).unwrap();
        assert!(!wait.is_over(Duration::from_secs(1_800), Timestamp::from_secs(1_799)));
        assert!(wait.is_over(Duration::from_secs(1_800), Timestamp::from_secs(1_800)));
    }

    #[tokio::test]
    async fn a_rejection_reaches_the_held_call_with_its_reason() {
        let pauses = Pauses::default();
        pauses.pause(session(), Timestamp::from_secs(0));
        let mut wait = pauses.of(session(), 7).unwrap();
        assert!(pauses.reject(session(), "enough"));
        assert_eq!(wait.decision(HOLD).await, Decision::Rejected("enough".into()));
    }

    #[tokio::test]
    async fn a_rejection_that_meets_no_held_call_is_told_to_the_next_one() {
        let pauses = Pauses::default();
        pauses.pause(session(), Timestamp::from_secs(0));
        assert!(pauses.reject(session(), "enough"));
        assert!(!pauses.resume(session()), "it is decided");
        let mut wait = pauses.of(session(), 7).unwrap();
        assert_eq!(wait.decision(HOLD).await, Decision::Rejected("enough".into()));
        assert!(pauses.of(session(), 7).is_none(), "it is told once");
    }

    #[test]
    fn pausing_twice_and_resuming_what_runs_does_nothing() {
        let pauses = Pauses::default();
        assert!(pauses.pause(session(), Timestamp::from_secs(0)));
        assert!(!pauses.pause(session(), Timestamp::from_secs(9)));
        assert!(pauses.resume(session()));
        assert!(!pauses.resume(session()));
    }
}
