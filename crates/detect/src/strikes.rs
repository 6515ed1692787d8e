//! Strikes: how often a loop went on after it was found, and which rung of the ladder that is.

use std::collections::VecDeque;

use crate::finding::{Finding, Severity};
use crate::fingerprint::Fingerprint;
use crate::ladder::{Action, Ladder};
use crate::saved::saved;

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
/// Strikes belong to a loop: an agent that obeyed the hint and later hits another loop starts at the bottom of the
/// ladder again. Findings with one identity are one loop, and so are findings that two of the same steps prove.
/// Progress in between steps back down by one.
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

#[derive(Debug, Clone, Default)]
struct KnownLoop {
    /// What was found of it: several rules may see one loop, each with an identity of its own.
    faces: Vec<Face>,
    strikes: u32,
    /// Whether it has been found as a loop, and not only as a warning.
    found: bool,
    /// The steps that proved it last.
    evidence: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Face {
    identity: Fingerprint,
    worst: Severity,
    count: usize,
}

saved!(Strikes { loops });
saved!(KnownLoop { faces, strikes, found, evidence });
saved!(Face { identity, worst, count });

impl Strikes {
    /// More loops than this in one session are forgotten, the oldest first.
    const MAX_LOOPS: usize = 32;

    /// Counts a finding and says what the ladder does about it.
    pub fn rule(&mut self, finding: &Finding, ladder: &Ladder) -> Ruling {
        // A cycle shares steps with the repeats that it is made of: all that it shows to be one loop is one from now on.
        let (seen, others): (VecDeque<_>, VecDeque<_>) =
            self.loops.drain(..).partition(|known| known.is_seen_in(finding));
        self.loops = others;
        let mut entry = seen.into_iter().reduce(KnownLoop::merged_with).unwrap_or_default();
        let ruling = entry.rule(finding, ladder);
        if self.loops.len() == Self::MAX_LOOPS {
            self.loops.pop_front();
        }
        self.loops.push_back(entry);
        ruling
    }

    /// Strikes of one loop so far.
    pub fn of(&self, identity: &Fingerprint) -> u32 {
        let known = self.loops.iter().find(|known| known.faces.iter().any(|face| face.identity == *identity));
        known.map_or(0, |known| known.strikes)
    }
}

impl KnownLoop {
    /// More faces than this are one too many to remember; the oldest goes first.
    const MAX_FACES: usize = 8;

    /// Whether a finding shows this loop: by its identity, by two of the steps that prove it, or because both went
    /// on at a time.
    fn is_seen_in(&self, finding: &Finding) -> bool {
        self.faces.iter().any(|face| face.identity == finding.identity)
            || finding.evidence.iter().filter(|step| self.evidence.contains(step)).take(2).count() == 2
            || overlap(&self.evidence, &finding.evidence)
    }

    /// Two loops that turned out to be one.
    fn merged_with(mut self, other: Self) -> Self {
        self.faces.extend(other.faces);
        let excess = self.faces.len().saturating_sub(Self::MAX_FACES);
        self.faces.drain(..excess);
        self.strikes = self.strikes.max(other.strikes);
        self.found |= other.found;
        self
    }

    fn rule(&mut self, finding: &Finding, ladder: &Ladder) -> Ruling {
        let is_loop = finding.severity == Severity::Loop;
        let face = self.faces.iter_mut().find(|face| face.identity == finding.identity);
        // A count that fell started again, so there was progress in between; one that only lost its oldest steps out of
        // sight still stands on steps that were known before.
        let goes_on = finding.evidence.iter().any(|step| self.evidence.contains(step));
        let progress = !goes_on && face.as_ref().is_some_and(|face| finding.count < face.count);
        let is_new = face.as_ref().is_none_or(|face| finding.severity > face.worst);
        if progress {
            self.strikes = self.strikes.saturating_sub(1);
        } else if is_loop && self.found && !finding.is_between_copies() {
            self.strikes = self.strikes.saturating_add(1);
        }
        if let Some(face) = face {
            face.worst = face.worst.max(finding.severity);
            face.count = finding.count;
        } else {
            if self.faces.len() == Self::MAX_FACES {
                self.faces.remove(0);
            }
            let Finding { identity, severity, count, .. } = *finding;
            self.faces.push(Face { identity, worst: severity, count });
        }
        self.found |= is_loop;
        self.evidence.clone_from(&finding.evidence);
        let action = ladder.action(finding, self.strikes);
        Ruling { action, strikes: self.strikes, is_new }
    }
}

/// Whether a repeat was under way while the other one still went on: two of its steps stand before the last one of the
/// other. An agent that is in both at a time is in one loop, however much else stands in between.
fn overlap(known: &[usize], new: &[usize]) -> bool {
    matches!((known.last(), new.get(1)), (Some(last), Some(second)) if second < last)
}

#[cfg(test)]
mod tests {
    use super::{Strikes, overlap};
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
    fn repeats_that_go_on_at_a_time_are_one_loop() {
        assert!(overlap(&[1, 5, 8], &[2, 6, 9]));
        assert!(!overlap(&[1, 2, 3], &[4, 5, 6]), "one after the other");
        assert!(!overlap(&[1, 5, 8], &[6, 9, 12]), "the second began when the first was nearly over");
        assert!(!overlap(&[], &[1, 2]) && !overlap(&[1], &[0]));
    }

    #[test]
    fn a_count_that_loses_its_oldest_steps_is_no_progress() {
        let (mut strikes, ladder) = (Strikes::default(), Ladder::default());
        let proved_by = |evidence: &[usize]| Finding {
            evidence: evidence.to_vec(),
            ..finding("a", Severity::Loop, evidence.len())
        };
        strikes.rule(&proved_by(&[1, 2, 3, 4]), &ladder);
        assert_eq!(strikes.rule(&proved_by(&[3, 4, 13]), &ladder).strikes, 1);
        assert_eq!(strikes.rule(&proved_by(&[20, 21, 22]), &ladder).strikes, 2, "as many as before");
        assert_eq!(strikes.rule(&proved_by(&[30, 31]), &ladder).strikes, 1, "it started again");
    }

    #[test]
    fn two_rules_that_see_the_same_steps_see_one_loop() {
        let (mut strikes, ladder) = (Strikes::default(), Ladder::default());
        let proved_by = |identity, evidence: &[usize]| Finding {
            evidence: evidence.to_vec(),
            ..finding(identity, Severity::Loop, evidence.len())
        };
        strikes.rule(&proved_by("a", &[1, 2, 3]), &ladder);
        let other = strikes.rule(&proved_by("b", &[2, 3, 4]), &ladder);
        assert_eq!((other.strikes, other.is_new), (1, true));
        let apart = strikes.rule(&proved_by("c", &[4, 9, 10]), &ladder);
        assert_eq!(apart.strikes, 0);
    }

    #[test]
    fn loops_that_a_cycle_is_made_of_are_one_with_it() {
        let (mut strikes, ladder) = (Strikes::default(), Ladder::default());
        let mut rule = |identity, evidence: &[usize], count| {
            let found = Finding { evidence: evidence.to_vec(), ..finding(identity, Severity::Loop, count) };
            strikes.rule(&found, &ladder).strikes
        };
        assert_eq!([rule("a", &[0, 3, 6], 3), rule("b", &[1, 4, 7], 3), rule("c", &[2, 5, 8], 3)], [0, 1, 2]);
        let cycle = |copies: usize| (0..copies * 3).collect::<Vec<_>>();
        assert_eq!([3, 4, 5].map(|copies| rule("abc", &cycle(copies), copies)), [3, 4, 5]);
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
    fn a_loop_that_is_found_with_the_same_count_went_on() {
        let (mut strikes, ladder) = (Strikes::default(), Ladder::default());
        let mut again = |severity| strikes.rule(&finding("sweep", severity, 2), &ladder).strikes;
        assert_eq!([(); 3].map(|()| again(Severity::Loop)), [0, 1, 2]);
        assert_eq!(again(Severity::Warning), 2, "a warning is no strike");
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
        let known = |name: usize| {
            let identity = finding(&name.to_string(), Severity::Loop, 3).identity;
            strikes.loops.iter().any(|known| known.faces[0].identity == identity)
        };
        assert!((968..1_000).all(known), "the oldest went first");
    }
}
