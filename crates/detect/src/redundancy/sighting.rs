//! A sighting: what one rule saw, before it is put into words.

use crate::finding::{DetectorName, Finding, Kind, Severity};
use crate::fingerprint::Fingerprint;
use crate::redundancy::message;
use crate::redundancy::print::Print;
use crate::step::Step;

/// What one rule saw.
#[derive(Debug, Clone)]
pub(super) struct Sighting {
    pub(super) rule: Rule,
    pub(super) severity: Severity,
    /// How often the unit occurred.
    pub(super) count: usize,
    /// Steps in one copy of the unit.
    pub(super) period: usize,
    pub(super) identity: Fingerprint,
    /// The steps that prove it, in order.
    pub(super) evidence: Vec<usize>,
}

/// One rule: the kind of loop that it sees, and from how many occurrences on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// Its name, for those who want to know exactly what fired.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Occurrences that are a warning.
    pub(super) warning: usize,
    /// Occurrences that are a loop.
    pub(super) looping: usize,
}

impl Rule {
    pub(super) const fn new(name: &'static str, kind: Kind, warning: usize, looping: usize) -> Self {
        Self { name, kind, warning, looping }
    }

    /// How sure this many occurrences make it.
    pub(super) const fn severity(self, count: usize) -> Option<Severity> {
        if count >= self.looping {
            Some(Severity::Loop)
        } else if count >= self.warning {
            Some(Severity::Warning)
        } else {
            None
        }
    }

    /// A sighting of `now` and these earlier occurrences, newest first, if they are enough.
    pub(super) fn sight(
        self,
        identity: impl FnOnce() -> Fingerprint,
        now: &Print,
        earlier: impl Iterator<Item = usize>,
    ) -> Option<Sighting> {
        // Nearly every step is compared with all others and found to be new: that should cost no allocation.
        let mut few = [now.index; FEW];
        let mut many = Vec::new();
        let mut count = 1;
        for step in earlier {
            match few.get_mut(count) {
                Some(place) => *place = step,
                None => many.push(step),
            }
            count += 1;
        }
        let severity = self.severity(count)?;
        let few = &few[..count.min(FEW)];
        let evidence = many.iter().rev().chain(few.iter().rev()).copied().collect();
        Some(Sighting { rule: self, severity, count, period: 1, identity: identity(), evidence })
    }
}

/// As many occurrences as most findings have.
const FEW: usize = 8;

impl Sighting {
    /// The one that a step is reported with: the strongest, and of equally strong ones the kind that names the loop
    /// best.
    pub(super) fn strongest(sightings: impl Iterator<Item = Self>) -> Option<Self> {
        let weight = |sighting: &Self| (sighting.severity, rank(sighting.rule.kind));
        sightings.reduce(|best, next| if weight(&next) > weight(&best) { next } else { best })
    }

    pub(super) fn into_finding(self, step: &Step<'_>, index: usize) -> Finding {
        let message = message::of(&self, step);
        Finding {
            step: index,
            detector: DetectorName::Redundancy,
            kind: self.rule.kind,
            rule: self.rule.name,
            severity: self.severity,
            score: (self.count as f64 / (2.0 * self.rule.looping.max(1) as f64)).min(1.0),
            onset: self.evidence.first().copied().unwrap_or(index),
            period: self.period,
            count: self.count,
            identity: self.identity,
            evidence: self.evidence,
            message,
            prevented_by: message::prevented_by(self.rule),
        }
    }
}

/// How well a kind names a loop when several fit the same step.
pub(super) const fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Chant => 9,
        Kind::UnknownTool => 8,
        Kind::Cycle => 7,
        Kind::Sweep => 6,
        Kind::FailingRepeat => 5,
        Kind::Repeat => 4,
        Kind::Oscillation => 3,
        Kind::StalePoll => 2,
        Kind::Monologue => 1,
        _ => 0,
    }
}

/// What a step is compared with when occurrences are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// The same thing again.
    Same,
    /// The same question with another answer: the count starts here.
    Other,
    /// Something else.
    Unrelated,
}

impl Sight {
    /// The same thing, or something else that changes nothing.
    pub(super) const fn same_if(same: bool) -> Self {
        if same { Self::Same } else { Self::Unrelated }
    }
}

/// The earlier occurrences that lead up to `now`, newest first: back to the first step that `cut` says no count
/// crosses, or to another answer. Occurrences of one round count once, by the first of them, and a cut in the round of an
/// occurrence counts as behind it, so that the order inside a round never matters.
pub(super) fn occurrences<'a>(
    earlier: impl Iterator<Item = &'a Print> + Clone,
    now: &Print,
    cut: impl Fn(&Print) -> bool,
    sight: impl Fn(&'a Print) -> Sight,
) -> impl Iterator<Item = usize> {
    let mut rest = earlier;
    let mut round = now.round;
    let mut over = false;
    std::iter::from_fn(move || {
        while !over {
            let print = rest.next()?;
            over = cut(print);
            if over {
                break;
            }
            match sight(print) {
                Sight::Other => over = true,
                Sight::Same if print.round != round => {
                    let beside = || rest.clone().take_while(|other| other.round == print.round);
                    over = beside().any(&cut);
                    round = print.round;
                    let first = beside().filter(|other| sight(other) == Sight::Same).map(|other| other.index);
                    return (!over).then(|| first.fold(print.index, usize::min));
                }
                Sight::Same | Sight::Unrelated => {}
            }
        }
        None
    })
}
