//! Strikes: how often a loop went on after it was found, and which rung of the ladder that is.

use std::collections::VecDeque;

use crate::finding::{Finding, Severity};
use crate::fingerprint::Fingerprint;
use crate::ladder::{Action, Ladder};

/// What follows from one finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ruling {
    /// What the ladder does about it; [`Action::Warn`] for a warning.
    pub action: Action,
    /// Redundant repeats since the loop was found.
    pub strikes: u32,
    /// Whether this loop is found with this severity for the first time.
    pub is_new: bool,
}

/// The loops of one session and their strikes.
///
/// Strikes belong to a loop's identity: an agent that obeyed the hint and later hits another loop starts at the
/// bottom of the ladder again. Progress in between steps back down by one.
///
/// ```
/// use loopbreaker::{Action, Ladder, Redundancy, RedundancyConfig, Step, Strikes};
///
/// let mut detector = Redundancy::new(&RedundancyConfig::default());
/// let mut strikes = Strikes::default();
/// let ladder = Ladder::default();
/// let step = Step::call("bash", r#"{"command":"ls"}"#).answered("a b", None);
/// let mut actions = Vec::new();
/// for _ in 0..6 {
///     for finding in detector.observe(&step) {
///         actions.push(strikes.rule(&finding, &ladder).action);
///     }
/// }
/// assert_eq!(actions, [Action::Warn, Action::Hint, Action::Hint, Action::Throttle, Action::Reject]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Strikes {
    /// Known loops, the one that was seen last at the back.
    loops: VecDeque<KnownLoop>,
}

#[derive(Debug, Clone)]
struct KnownLoop {
    identity: Fingerprint,
    worst: Severity,
    strikes: u32,
    count: usize,
}

impl Strikes {
    /// More loops than this in one session are forgotten, the oldest first.
    const MAX_LOOPS: usize = 32;

    /// Counts a finding and says what the ladder does about it.
    pub fn rule(&mut self, finding: &Finding, ladder: &Ladder) -> Ruling {
        let known = self.loops.iter().position(|known| known.identity == finding.identity);
        let mut entry = match known.and_then(|at| self.loops.remove(at)) {
            Some(entry) => entry,
            None => KnownLoop { identity: finding.identity, worst: Severity::Warning, strikes: 0, count: 0 },
        };
        let is_new_loop = finding.severity == Severity::Loop && entry.worst < Severity::Loop;
        // A count that fell started again, so there was progress in between.
        if finding.count < entry.count {
            entry.strikes = entry.strikes.saturating_sub(1);
        } else if finding.severity == Severity::Loop && !is_new_loop {
            entry.strikes = entry.strikes.saturating_add(1);
        }
        entry.count = finding.count;
        entry.worst = entry.worst.max(finding.severity);
        let action = match finding.severity {
            Severity::Warning => Action::Warn,
            Severity::Loop => ladder.rung(entry.strikes),
        };
        let ruling = Ruling { action, strikes: entry.strikes, is_new: is_new_loop || known.is_none() };
        if self.loops.len() == Self::MAX_LOOPS {
            self.loops.pop_front();
        }
        self.loops.push_back(entry);
        ruling
    }

    /// Strikes of one loop so far.
    pub fn of(&self, identity: &Fingerprint) -> u32 {
        self.loops.iter().find(|known| known.identity == *identity).map_or(0, |known| known.strikes)
    }
}

#[cfg(test)]
mod tests {
    use super::Strikes;
    use crate::{Action, DetectorName, Finding, Fingerprint, Kind, Ladder, Severity};

    fn finding(identity: &str, severity: Severity, count: usize) -> Finding {
        Finding {
            step: count,
            detector: DetectorName::Redundancy,
            kind: Kind::Repeat,
            rule: "repeat",
            severity,
            score: 1.0,
            onset: 0,
            period: 1,
            count,
            identity: Fingerprint::of_call(identity, None),
            evidence: vec![],
            message: String::new(),
            prevented_by: "",
        }
    }

    #[test]
    fn another_loop_starts_at_the_bottom_again() {
        let (mut strikes, ladder) = (Strikes::default(), Ladder::default());
        for count in 3..6 {
            strikes.rule(&finding("a", Severity::Loop, count), &ladder);
        }
        assert_eq!(strikes.rule(&finding("b", Severity::Loop, 3), &ladder).action, Action::Hint);
        assert_eq!(strikes.rule(&finding("a", Severity::Loop, 6), &ladder).action, Action::Reject);
    }

    #[test]
    fn progress_steps_back_down() {
        let (mut strikes, ladder) = (Strikes::default(), Ladder::default());
        for count in 3..6 {
            strikes.rule(&finding("a", Severity::Loop, count), &ladder);
        }
        assert_eq!(strikes.of(&finding("a", Severity::Loop, 5).identity), 2);
        assert_eq!(strikes.rule(&finding("a", Severity::Warning, 2), &ladder).strikes, 1);
    }

    #[test]
    fn a_loop_is_new_once_per_severity() {
        let (mut strikes, ladder) = (Strikes::default(), Ladder::default());
        let mut is_new = |severity, count| strikes.rule(&finding("a", severity, count), &ladder).is_new;
        assert!(is_new(Severity::Warning, 2));
        assert!(is_new(Severity::Loop, 3));
        assert!(!is_new(Severity::Loop, 4));
        assert!(!is_new(Severity::Warning, 2));
    }

    #[test]
    fn only_the_last_loops_are_kept() {
        let (mut strikes, ladder) = (Strikes::default(), Ladder::default());
        for name in 0..1_000 {
            strikes.rule(&finding(&name.to_string(), Severity::Loop, 3), &ladder);
        }
        assert_eq!(strikes.loops.len(), Strikes::MAX_LOOPS);
    }
}
