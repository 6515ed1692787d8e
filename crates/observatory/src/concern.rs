//! What the last calls of a session amount to, where its agent writes the logs itself: a gateway says it by its verdicts.

use loopbreaker::{Finding, Severity};
use serde::{Deserialize, Serialize};

/// The level of this name, as all of them are written.
pub(crate) fn level_named(name: &str) -> &'static str {
    ["warning", "loop"].into_iter().find(|level| *level == name).unwrap_or("normal")
}

/// The loop that a session is in, by what was found with its last calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Concern {
    /// `loop` or `warning`; nothing while all is well.
    pub(crate) level: String,
    /// How sure it is.
    pub(crate) score: f64,
    /// Steps in one copy of what repeats: a cycle is told with each copy, and goes on in between.
    period: usize,
    /// Logs since it was told last.
    quiet: usize,
    /// Whether it was a loop that has not been left behind yet.
    recovery: Recovery,
}

/// The way out of a loop. One step that is no repeat may be chance: a session that was in a loop, or refused for one,
/// stays a `warning` until it has taken several steps in a row without redundancy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Recovery {
    /// Steps that are still to come.
    left: u8,
}

/// So many steps in a row without redundancy lead out of a loop: as many as it takes equal ones to be in it.
pub const STEPS_OUT_OF_A_LOOP: u8 = 3;

impl Recovery {
    /// One more step, and what was found with it; says what the session is in for all that.
    pub(crate) fn step<'a>(&mut self, found: &'a str) -> &'a str {
        self.left = match found {
            "loop" => STEPS_OUT_OF_A_LOOP,
            "warning" if self.is_under_way() => STEPS_OUT_OF_A_LOOP,
            "warning" => 0,
            _ => self.left.saturating_sub(1),
        };
        if rank(found) == 0 && self.is_under_way() { "warning" } else { found }
    }

    /// Whether a loop is not left behind yet.
    pub(crate) const fn is_under_way(self) -> bool {
        self.left > 0
    }

    /// Whether good steps have led part of the way out.
    pub(crate) const fn is_fading(self) -> bool {
        self.left > 0 && self.left < STEPS_OUT_OF_A_LOOP
    }

    /// The part of a loop's score that is left after one more good step.
    pub(crate) fn fade(self, score: f64) -> f64 {
        score * f64::from(self.left) / f64::from(self.left.saturating_add(1))
    }
}

impl Concern {
    /// An agent that only talks says nothing about its calls, until it has talked this often.
    const TALKED_ENOUGH: usize = 5;

    /// Takes in what was found with one more log. `is_judged` says whether the log could have been part of a loop.
    pub(crate) fn take(&mut self, findings: &[Finding], is_judged: bool) {
        let worst =
            findings.iter().max_by(|a, b| a.severity.cmp(&b.severity).then(a.score.total_cmp(&b.score)));
        if let Some(worst) = worst.filter(|worst| rank(worst.severity.as_str()) >= rank(&self.level)) {
            *self = self.then(worst);
            return;
        }
        self.quiet += 1;
        // Whoever has stopped to repeat calls may also talk its way out.
        let is_progress = is_judged || (self.recovery.is_under_way() && self.level != "loop");
        if (is_progress && self.quiet >= self.period) || self.quiet >= self.period.max(Self::TALKED_ENOUGH) {
            // It has made progress, or does something that is less of a loop.
            *self = worst.map_or_else(|| self.better(), |worst| self.then(worst));
        }
    }

    /// What it is with this finding.
    fn then(&self, finding: &Finding) -> Self {
        let mut recovery = self.recovery;
        let level = recovery.step(finding.severity.as_str()).to_owned();
        Self { level, score: finding.score, period: finding.period, quiet: 0, recovery }
    }

    /// What it is with a step in which nothing was found.
    fn better(&self) -> Self {
        let mut recovery = self.recovery;
        let level = recovery.step("").to_owned();
        Self { level, score: recovery.fade(self.score), period: 0, quiet: 0, recovery }
    }

    /// Whether the session has left a loop, and not yet for good.
    pub(crate) fn is_recovering(&self) -> bool {
        self.recovery.is_under_way() && self.level == "warning"
    }
}

/// The worst level of some findings.
pub(crate) fn level_of(findings: &[Finding]) -> &'static str {
    findings.iter().map(|finding| finding.severity).max().map_or("normal", Severity::as_str)
}

/// The worse of two levels.
pub(crate) fn worse<'a>(one: &'a str, other: &'a str) -> &'a str {
    if rank(other) > rank(one) { other } else { one }
}

pub(crate) fn rank(level: &str) -> u8 {
    match level {
        "loop" => 2,
        "warning" => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use loopbreaker::{Finding, Redundancy, RedundancyConfig, Severity, Step};

    use super::Concern;

    /// A loop of so many steps.
    fn a_loop(period: usize) -> Finding {
        let mut detector = Redundancy::new(&RedundancyConfig::default());
        let step = Step::call("bash", r#"{"command":"ls"}"#).answered("a b", None);
        let finding = (0..3).filter_map(|_| detector.observe(&step).pop()).last().unwrap();
        Finding { period, severity: Severity::Loop, ..finding }
    }

    #[test]
    fn a_loop_is_a_warning_until_three_steps_in_a_row_are_no_repeat() {
        let mut concern = Concern::default();
        concern.take(&[a_loop(1)], true);
        assert_eq!(concern.level, "loop");
        let mut scores = vec![concern.score];
        for _ in 0..2 {
            concern.take(&[], true);
            assert_eq!(concern.level, "warning");
            scores.push(concern.score);
        }
        assert!(scores.is_sorted_by(|a, b| a > b), "{scores:?}");
        concern.take(&[], true);
        assert_eq!(concern, Concern::default());
    }

    #[test]
    fn a_repeat_on_the_way_out_of_a_loop_begins_it_anew() {
        let mut concern = Concern::default();
        concern.take(&[a_loop(1)], true);
        concern.take(&[], true);
        concern.take(&[], true);
        concern.take(&[Finding { severity: Severity::Warning, ..a_loop(1) }], true);
        for level in ["warning", "warning", ""] {
            concern.take(&[], true);
            assert_eq!(concern.level, level);
        }
    }

    #[test]
    fn a_warning_that_was_never_a_loop_is_over_with_the_next_step() {
        let mut concern = Concern::default();
        concern.take(&[Finding { severity: Severity::Warning, ..a_loop(1) }], true);
        assert_eq!(concern.level, "warning");
        concern.take(&[], true);
        assert_eq!(concern, Concern::default());
    }

    #[test]
    fn a_cycle_goes_on_between_its_copies() {
        let mut concern = Concern::default();
        concern.take(&[a_loop(2)], true);
        concern.take(&[Finding { severity: Severity::Warning, ..a_loop(1) }], true);
        assert_eq!(concern.level, "loop");
        concern.take(&[], true);
        assert_eq!(concern.level, "warning");
    }

    #[test]
    fn words_between_the_calls_are_no_progress_until_there_are_many() {
        let mut concern = Concern::default();
        concern.take(&[a_loop(1)], true);
        for _ in 0..4 {
            concern.take(&[], false);
        }
        assert_eq!(concern.level, "loop");
        for level in ["warning", "warning", ""] {
            concern.take(&[], false);
            assert_eq!(concern.level, level);
        }
    }
}
