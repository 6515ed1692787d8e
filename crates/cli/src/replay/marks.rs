//! What is worth seeing at each step of a run, for timelines.

use loopbreaker::{Action, Report, Severity};

/// One step on a timeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// What is later repeated happened here for the first time.
    pub(crate) onset: bool,
    /// A redundant repeat.
    pub(crate) repeat: bool,
    /// A finding of this severity became certain here.
    pub(crate) certain: Option<Severity>,
    /// What the ladder would have done here.
    pub(crate) action: Option<Action>,
    /// The run would have been stopped before this step.
    pub(crate) spared: bool,
}

impl Mark {
    /// The mark in one letter, so that no timeline depends on colour; `None` for a step like any other.
    pub(crate) fn letter(self) -> Option<char> {
        match self.action {
            Some(Action::Hint) => return Some('H'),
            Some(Action::Throttle) => return Some('T'),
            Some(Action::Pause) => return Some('P'),
            Some(Action::Reject) => return Some('X'),
            Some(Action::Allow | Action::Warn) | None => {}
        }
        match self {
            Self { repeat: true, .. } => Some('R'),
            Self { certain: Some(Severity::Warning), .. } => Some('W'),
            Self { onset: true, .. } => Some('O'),
            _ => None,
        }
    }
}

/// The marks of the first `steps` steps.
pub(crate) fn marks(report: &Report, steps: usize) -> Vec<Mark> {
    let mut marks = vec![Mark::default(); report.steps.min(steps)];
    let mut at = |step: usize, put: &dyn Fn(&mut Mark)| {
        if let Some(mark) = marks.get_mut(step) {
            put(mark);
        }
    };
    for step in &report.redundant_steps {
        at(*step, &|mark| mark.repeat = true);
    }
    for finding in &report.findings {
        at(finding.step, &|mark| mark.certain = mark.certain.max(Some(finding.severity)));
        if finding.severity == Severity::Loop {
            for step in finding.evidence.iter().take(finding.period) {
                at(*step, &|mark| mark.onset = true);
            }
        }
    }
    for (step, action) in &report.actions {
        at(*step, &|mark| mark.action = mark.action.max(Some(*action)));
    }
    if let Some((stopped_at, Action::Reject)) = report.actions.last() {
        for mark in marks.iter_mut().skip(stopped_at + 1) {
            mark.spared = true;
        }
    }
    marks
}

#[cfg(test)]
mod tests {
    use loopbreaker::{DetectorsConfig, ReplayRules, Step};

    use super::*;

    fn letters(report: &Report) -> String {
        marks(report, usize::MAX).into_iter().map(|mark| mark.letter().unwrap_or('.')).collect()
    }

    #[test]
    fn an_exact_loop_climbs_the_ladder() {
        let mut run = ReplayRules::new(&DetectorsConfig::default()).start();
        run.observe(&Step::call("read", r#"{"path":"a"}"#).answered("1", None));
        for _ in 0..8 {
            run.observe(&Step::call("bash", r#"{"command":"ls"}"#).answered("a b", None));
        }
        let report = run.finish();
        assert_eq!(letters(&report), ".ORHHTXRR");
        let marks = marks(&report, usize::MAX);
        assert_eq!(marks[3].certain, Some(Severity::Loop));
        assert_eq!((marks[6].spared, marks[7].spared), (false, true));
    }

    #[test]
    fn steps_beyond_the_bound_have_no_marks() {
        let mut run = ReplayRules::new(&DetectorsConfig::default()).start();
        for _ in 0..8 {
            run.observe(&Step::call("bash", r#"{"command":"ls"}"#).answered("a b", None));
        }
        assert_eq!(marks(&run.finish(), 3).len(), 3);
    }
}
