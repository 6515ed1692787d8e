//! What to do about a loop: one rung per strike.

use std::fmt;

use crate::finding::{Finding, Severity};
use crate::redundancy::patience::may_refuse;

/// What is done with one request or call, from mildest to strictest.
///
/// ```
/// use loopbreaker::Action;
/// assert!(Action::Hint < Action::Reject);
/// assert_eq!(Action::parse("throttle"), Some(Action::Throttle));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Nothing.
    Allow,
    /// Say so in headers and logs.
    Warn,
    /// Tell the model what it repeats.
    Hint,
    /// Tell the model, and delay.
    Throttle,
    /// Hold until an operator decides.
    Pause,
    /// Refuse.
    Reject,
}

impl Action {
    /// The action of this name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Allow, Self::Warn, Self::Hint, Self::Throttle, Self::Pause, Self::Reject]
            .into_iter()
            .find(|action| action.as_str() == name)
    }

    /// The action's name on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Warn => "warn",
            Self::Hint => "hint",
            Self::Throttle => "throttle",
            Self::Pause => "pause",
            Self::Reject => "reject",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The action at strike 0, 1, 2…; the last one stays.
///
/// ```
/// use loopbreaker::{Action, Ladder};
/// let ladder = Ladder::default();
/// assert_eq!(ladder.rung(0), Action::Hint);
/// assert_eq!(ladder.rung(99), Action::Reject);
/// assert!(Ladder::new(vec![]).is_none());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ladder(Vec<Action>);

impl Ladder {
    /// A ladder with these rungs; `None` when there are none.
    pub fn new(rungs: Vec<Action>) -> Option<Self> {
        (!rungs.is_empty()).then_some(Self(rungs))
    }

    /// The action at this many strikes.
    pub fn rung(&self, strikes: u32) -> Action {
        let top = self.0.len() - 1;
        self.0[top.min(strikes as usize)]
    }

    /// What is done about a finding whose loop has this many strikes. A warning is only told, and so is what goes on
    /// between two copies of a short cycle: it was dealt with at the end of the last copy. What is refused stays refused.
    /// What a rule only infers is refused when it has gone on for long.
    pub fn action(&self, finding: &Finding, strikes: u32) -> Action {
        let mut rung = self.rung(strikes);
        if !may_refuse(finding.rule, finding.count) {
            rung = self.without_refusal(rung);
        }
        let is_between = finding.is_between_copies() && rung < Action::Reject;
        if finding.severity < Severity::Loop || is_between { Action::Warn } else { rung }
    }

    /// The strictest rung up to this one that lets a request pass. A ladder that has none is meant to refuse everything.
    fn without_refusal(&self, rung: Action) -> Action {
        self.0.iter().copied().filter(|lower| *lower <= rung.min(Action::Throttle)).max().unwrap_or(rung)
    }

    /// All rungs from the first strike on.
    pub fn rungs(&self) -> &[Action] {
        &self.0
    }
}

impl Default for Ladder {
    fn default() -> Self {
        Self(vec![Action::Hint, Action::Hint, Action::Throttle, Action::Reject])
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, Ladder};

    const MILDEST_FIRST: [Action; 6] =
        [Action::Allow, Action::Warn, Action::Hint, Action::Throttle, Action::Pause, Action::Reject];

    #[test]
    fn every_action_is_known_by_its_name() {
        for action in MILDEST_FIRST {
            assert_eq!(Action::parse(action.as_str()), Some(action));
        }
        assert_eq!(Action::parse("Hint"), None);
    }

    #[test]
    fn actions_go_from_mild_to_strict() {
        assert!(MILDEST_FIRST.is_sorted());
    }

    #[test]
    fn the_last_rung_stays() {
        let ladder = Ladder::new(vec![Action::Hint, Action::Pause]).unwrap();
        assert_eq!(
            [0, 1, 2, 3].map(|strikes| ladder.rung(strikes)),
            [Action::Hint, Action::Pause, Action::Pause, Action::Pause]
        );
    }
}
