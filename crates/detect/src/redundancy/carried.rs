//! A detector that goes on in another process: its window of hashes as bytes.

use crate::finding::{DetectorName, Finding, Kind};
use crate::redundancy::message::prevented_by;
use crate::redundancy::rules::RedundancyRules;
use crate::redundancy::sighting::Rule;
use crate::redundancy::{Redundancy, frame::Frame, window::Window};
use crate::saved::Saved;

impl Redundancy {
    /// Writes down everything that it knows, in a few hundred bytes for each step of its window.
    ///
    /// ```
    /// use loopbreaker::{RedundancyConfig, RedundancyRules, Step};
    ///
    /// let rules = RedundancyRules::compile(&RedundancyConfig::default());
    /// let step = Step::call("bash", r#"{"command":"ls"}"#).answered("a b", None);
    /// let mut here = rules.detector();
    /// here.observe(&step);
    /// let mut bytes = Vec::new();
    /// here.save(&mut bytes);
    /// let mut there = rules.load(&mut bytes.as_slice()).expect("the same rules");
    /// assert_eq!(there.observe(&step), here.observe(&step));
    /// ```
    pub fn save(&self, out: &mut Vec<u8>) {
        let Self { rules, window, frame, next, round, named_round, acted, heard, seen, told } = self;
        rules.mark().save(out);
        window.save(out);
        frame.save(out);
        next.save(out);
        round.save(out);
        named_round.save(out);
        acted.save(out);
        heard.save(out);
        seen.save(out);
        told.save(out);
    }
}

impl RedundancyRules {
    /// The detector that was saved; `None` when it was one of another version or with other settings, whose hashes
    /// cannot be compared with ours.
    pub fn load(&self, from: &mut &[u8]) -> Option<Redundancy> {
        let mut detector = self.detector();
        if u64::load(from)? != detector.rules.mark() {
            return None;
        }
        detector.window = Window::load(from)?;
        detector.frame = Frame::load(from)?;
        detector.next = usize::load(from)?;
        detector.round = u64::load(from)?;
        detector.named_round = Saved::load(from)?;
        detector.acted = bool::load(from)?;
        detector.heard = bool::load(from)?;
        detector.seen = Vec::load(from)?;
        detector.told = Saved::load(from)?;
        Some(detector)
    }
}

impl Saved for Finding {
    fn save(&self, out: &mut Vec<u8>) {
        self.step.save(out);
        self.kind.save(out);
        self.rule.to_owned().save(out);
        self.severity.save(out);
        self.score.save(out);
        self.onset.save(out);
        self.period.save(out);
        self.count.save(out);
        self.identity.save(out);
        self.evidence.save(out);
        self.message.save(out);
    }

    /// Only what this detector finds is carried.
    fn load(from: &mut &[u8]) -> Option<Self> {
        let (step, kind) = (usize::load(from)?, Kind::load(from)?);
        let name = String::load(from)?;
        let name = RULES.iter().copied().find(|known| **known == *name)?;
        Some(Self {
            step,
            detector: DetectorName::Redundancy,
            kind,
            rule: name,
            severity: Saved::load(from)?,
            score: Saved::load(from)?,
            onset: Saved::load(from)?,
            period: Saved::load(from)?,
            count: Saved::load(from)?,
            identity: Saved::load(from)?,
            evidence: Saved::load(from)?,
            message: Saved::load(from)?,
            prevented_by: prevented_by(Rule::new(name, kind, 0, 0)),
        })
    }
}

/// The names of all rules.
pub(super) const RULES: [&str; 36] = [
    "aside_row",
    "alike_words",
    "all_aside",
    "blind_cycle",
    "canned_reply",
    "chant",
    "counting_on",
    "cycle",
    "failing_despite_writes",
    "failing_everywhere",
    "failing_poll",
    "failing_repeat",
    "failing_row",
    "few_words",
    "framed",
    "final_poll",
    "move",
    "near_failing",
    "nothing_found",
    "one_answer",
    "oscillation",
    "plans_only",
    "poll",
    "put_aside",
    "repeat",
    "retry",
    "same_change",
    "same_question",
    "same_words",
    "standstill",
    "sweep",
    "talks_on",
    "tool_down",
    "unknown_tool",
    "waiting_cycle",
    "whatever_asked",
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::RULES;
    use crate::{RedundancyConfig, RedundancyRules, Step};

    #[test]
    fn every_rule_can_be_carried() {
        let sources = [
            include_str!("../redundancy.rs"),
            include_str!("churn.rs"),
            include_str!("cycle.rs"),
            include_str!("monologue.rs"),
            include_str!("oscillation.rs"),
            include_str!("repeat.rs"),
            include_str!("standstill.rs"),
        ];
        let mut named: Vec<&str> = sources
            .iter()
            .flat_map(|source| source.split("Rule::new(\"").skip(1))
            .filter_map(|rest| rest.split('"').next())
            .collect();
        named.sort_unstable();
        let mut known = RULES;
        known.sort_unstable();
        assert_eq!(named, known);
    }

    #[test]
    fn a_window_of_another_detector_is_not_taken_up() {
        let rules = RedundancyRules::compile(&RedundancyConfig::default());
        let others = RedundancyRules::compile(&RedundancyConfig::new(32).unwrap());
        let mut bytes = Vec::new();
        rules.detector().save(&mut bytes);
        assert!(rules.load(&mut bytes.as_slice()).is_some());
        assert!(others.load(&mut bytes.as_slice()).is_none());
    }

    /// One of few calls, so that they repeat: what, what came of it, and whether it is a new round.
    type Done = (u8, u8, bool);

    fn step(done: Done, round: u64) -> Step<'static> {
        const CALLS: [(&str, &str); 5] = [
            ("bash", r#"{"command":"ls -la src tests"}"#),
            ("bash", r#"{"command":"cargo test"}"#),
            ("read_file", r#"{"path":"a.rs"}"#),
            ("edit_file", r#"{"path":"a.rs","old":"x","new":"y"}"#),
            (
                "search",
                r#"{"query":"where does the long text about all of the many different things that somebody wrote down on some day stand, and who of us has read any of it since the last of these days came to an end"}"#,
            ),
        ];
        const RESULTS: [&str; 4] = ["a b", "error: no such file", "ok", "1 failed"];
        let heard = Step::heard(RESULTS[usize::from(done.1) % RESULTS.len()]);
        let said = Step::said("I will look at it once more, and then at all of the rest.");
        match usize::from(done.0) % (CALLS.len() + 2) {
            5 => heard,
            6 => said.in_round(round),
            call => {
                let (tool, args) = CALLS[call];
                let result = RESULTS[usize::from(done.1) % RESULTS.len()];
                Step::call(tool, args).answered(result, None).in_round(round)
            }
        }
    }

    #[test]
    fn a_repeat_that_was_told_is_not_told_again_because_the_detector_was_carried() {
        let rules = RedundancyRules::compile(&RedundancyConfig::default());
        let (mut stays, mut carried) = (rules.detector(), rules.detector());
        for turn in 0..8 {
            let mut bytes = Vec::new();
            carried.save(&mut bytes);
            carried = rules.load(&mut bytes.as_slice()).unwrap();
            let step = step((turn % 2 * 2, 0, true), turn.into());
            assert_eq!(carried.observe(&step), stays.observe(&step), "two calls in turns");
        }
    }

    proptest! {
        #[test]
        fn a_detector_that_was_carried_goes_on_as_if_it_had_stayed(
            steps in proptest::collection::vec(any::<Done>(), 1..120),
        ) {
            let rules = RedundancyRules::compile(&RedundancyConfig::default());
            let (mut stays, mut round) = (rules.detector(), 0);
            let mut carried = rules.detector();
            for done in steps {
                round += u64::from(done.2);
                let mut bytes = Vec::new();
                carried.save(&mut bytes);
                carried = rules.load(&mut bytes.as_slice()).unwrap();
                let step = step(done, round);
                prop_assert_eq!(carried.observe(&step), stays.observe(&step));
            }
            prop_assert_eq!(carried.finish(), stays.finish());
        }

        #[test]
        fn bytes_that_nobody_saved_are_no_detector(bytes: Vec<u8>, cut in 0_usize..400) {
            let rules = RedundancyRules::compile(&RedundancyConfig::default());
            let mut whole = Vec::new();
            let mut detector = rules.detector();
            detector.observe(&step((0, 0, true), 1));
            detector.save(&mut whole);
            whole.truncate(cut.max(8));
            whole.extend(bytes);
            if let Some(mut loaded) = rules.load(&mut whole.as_slice()) {
                loaded.observe(&step((1, 1, true), 2));
            }
        }
    }
}
