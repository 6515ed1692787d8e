//! One run that was read to its end.

use std::borrow::Cow;

use loopbreaker::{Action, Finding, Report, Severity};
use loopbreaker_telemetry::mask;

use crate::replay::note::StepNote;

/// One run that was read to its end.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) report: Report,
    /// The first steps in short, where somebody wants to see them.
    pub(crate) notes: Vec<StepNote>,
    /// Redundant steps that an agent which obeyed the very first hint would not have done.
    pub(crate) avoidable_steps: usize,
}

impl Run {
    /// What is shown of a run in whatever form goes through here, so this is where credentials end.
    pub(crate) fn new(mut id: String, mut report: Report, notes: Vec<StepNote>) -> Self {
        mask_in(&mut id);
        // A finding speaks of its tool by a name that somebody else wrote.
        report.findings.iter_mut().for_each(|finding| mask_in(&mut finding.message));
        let told_at = report.actions.first().map_or(usize::MAX, |(step, _)| *step);
        let avoidable_steps = report.redundant_steps.iter().filter(|step| **step > told_at).count();
        Self { id, report, notes, avoidable_steps }
    }

    /// The finding that decides the verdict: the first of the worst ones.
    pub(crate) fn headline(&self) -> Option<&Finding> {
        let worst = self.report.findings.iter().map(|finding| finding.severity).max()?;
        self.report.findings.iter().find(|finding| finding.severity == worst)
    }

    /// The findings that are loops.
    pub(crate) fn loops(&self) -> impl Iterator<Item = &Finding> {
        self.report.findings.iter().filter(|finding| finding.severity == Severity::Loop)
    }

    /// The step at which the ladder would have stopped the run, and how many came after it.
    pub(crate) fn stop(&self) -> Option<(usize, usize)> {
        match self.report.actions.last() {
            Some((step, Action::Reject)) => Some((*step, self.report.steps.saturating_sub(step + 1))),
            _ => None,
        }
    }

    /// Whether the ladder would have come to this action.
    pub(crate) fn came_to(&self, action: Action) -> bool {
        self.report.actions.iter().any(|(_, taken)| *taken == action)
    }
}

fn mask_in(text: &mut String) {
    if let Cow::Owned(masked) = mask(text) {
        *text = masked;
    }
}
