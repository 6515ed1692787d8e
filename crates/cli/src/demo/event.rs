//! What an agent meets, as it happens.

use loopbreaker::{Action, Kind};

use super::estimate::Saved;
use crate::told::SeenLoop;

/// What happened to one agent.
#[derive(Debug)]
pub(super) enum Event {
    /// One request and its answer.
    Step {
        /// Which agent.
        agent: usize,
        step: Met,
    },
    /// It has ended, or was stopped.
    Ended {
        /// Which agent.
        agent: usize,
        run: Run,
    },
}

/// One request and what became of it.
#[derive(Debug, Clone)]
pub(super) struct Met {
    /// Counted from 0, as everywhere.
    pub(super) step: usize,
    pub(super) outcome: Outcome,
    pub(super) seen: Option<SeenLoop>,
    /// What the model answered, or why it was not asked.
    pub(super) words: String,
}

/// What was done with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    /// The verdict on the request.
    Verdict(Action),
    /// Its answer was cut.
    Cut,
}

/// One agent from beginning to end.
#[derive(Debug, Clone, Default)]
pub(super) struct Run {
    pub(super) met: Vec<Met>,
    /// What it did not do any more, when it was stopped.
    pub(super) saved: Option<Saved>,
}

impl Met {
    /// The kind of the loop, if there was one.
    pub(super) fn kind(&self) -> Option<&str> {
        match self.outcome {
            Outcome::Cut => Some(Kind::Chant.as_str()),
            Outcome::Verdict(_) => self.seen.as_ref().map(|seen| seen.kind.as_str()),
        }
    }

    /// `repeat ×3`, or nothing.
    pub(super) fn loop_in_words(&self) -> String {
        match (self.outcome, &self.seen) {
            (Outcome::Cut, _) => Kind::Chant.to_string(),
            (Outcome::Verdict(_), Some(seen)) => seen.to_string(),
            (Outcome::Verdict(_), None) => String::new(),
        }
    }
}

impl Outcome {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Verdict(action) => action.as_str(),
            Self::Cut => "cut",
        }
    }

    /// Whether the agent was stopped by it.
    pub(super) const fn stops(self) -> bool {
        matches!(self, Self::Verdict(Action::Reject) | Self::Cut)
    }
}

impl Run {
    /// The strictest thing that was done, and the loop that was the reason.
    pub(super) fn worst(&self) -> Option<&Met> {
        // Of equal ones the first.
        self.met.iter().rev().max_by_key(|met| met.outcome)
    }

    /// The step at which it was stopped.
    pub(super) fn stopped_at(&self) -> Option<usize> {
        self.met.last().filter(|met| met.outcome.stops()).map(|met| met.step)
    }

    /// Steps that it did: those that got an answer.
    pub(super) fn steps(&self) -> usize {
        self.met.iter().filter(|met| met.outcome != Outcome::Verdict(Action::Reject)).count()
    }

    /// The verdict as `replay` words it.
    pub(super) fn verdict(&self) -> &'static str {
        match self.worst().map(|met| met.outcome) {
            None | Some(Outcome::Verdict(Action::Allow)) => "ok",
            Some(Outcome::Verdict(Action::Warn)) => "warning",
            Some(_) => "loop",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(outcomes: &[Outcome]) -> Run {
        let met = |(step, outcome): (usize, &Outcome)| Met {
            step,
            outcome: *outcome,
            seen: None,
            words: String::new(),
        };
        Run { met: outcomes.iter().enumerate().map(met).collect(), saved: None }
    }

    #[test]
    fn a_refused_step_was_not_done_and_a_cut_one_was() {
        use Action::{Allow, Hint, Reject};
        let refused = run(&[Allow, Hint, Reject].map(Outcome::Verdict));
        assert_eq!((refused.steps(), refused.stopped_at(), refused.verdict()), (2, Some(2), "loop"));
        let cut = run(&[Outcome::Verdict(Allow), Outcome::Cut]);
        assert_eq!((cut.steps(), cut.stopped_at(), cut.verdict()), (2, Some(1), "loop"));
    }

    #[test]
    fn the_strictest_outcome_counts_and_of_equal_ones_the_first() {
        use Action::{Allow, Hint};
        let hinted = run(&[Allow, Hint, Hint, Allow].map(Outcome::Verdict));
        assert_eq!((hinted.worst().unwrap().step, hinted.stopped_at()), (1, None));
        assert_eq!(run(&[Outcome::Verdict(Allow)]).verdict(), "ok");
        assert_eq!(run(&[Outcome::Verdict(Action::Warn)]).verdict(), "warning");
    }
}
