//! What the last calls of a session amount to, where its agent writes the logs itself: a gateway says it by its verdicts.

use loopbreaker::{Finding, Severity};
use serde::{Deserialize, Serialize};

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
}

impl Concern {
    /// An agent that only talks says nothing about its calls, until it has talked this often.
    const TALKED_ENOUGH: usize = 5;

    /// Takes in what was found with one more log. `is_judged` says whether the log could have been part of a loop.
    pub(crate) fn take(&mut self, findings: &[Finding], is_judged: bool) {
        let worst =
            findings.iter().max_by(|a, b| a.severity.cmp(&b.severity).then(a.score.total_cmp(&b.score)));
        if let Some(worst) = worst.filter(|worst| rank(worst.severity.as_str()) >= rank(&self.level)) {
            *self = Self::of(worst);
            return;
        }
        self.quiet += 1;
        if (is_judged && self.quiet >= self.period) || self.quiet >= self.period.max(Self::TALKED_ENOUGH) {
            // It has made progress, or does something that is less of a loop.
            *self = worst.map(Self::of).unwrap_or_default();
        }
    }

    fn of(finding: &Finding) -> Self {
        let level = finding.severity.as_str().to_owned();
        Self { level, score: finding.score, period: finding.period, quiet: 0 }
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
    fn a_call_that_is_no_repeat_ends_a_loop_of_one_step() {
        let mut concern = Concern::default();
        concern.take(&[a_loop(1)], true);
        assert_eq!(concern.level, "loop");
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
        assert_eq!(concern.level, "");
    }

    #[test]
    fn words_between_the_calls_are_no_progress_until_there_are_many() {
        let mut concern = Concern::default();
        concern.take(&[a_loop(1)], true);
        for _ in 0..4 {
            concern.take(&[], false);
        }
        assert_eq!(concern.level, "loop");
        concern.take(&[], false);
        assert_eq!(concern.level, "");
    }
}
