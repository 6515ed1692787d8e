//! One run that was read to its end.

use loopbreaker::{Action, Finding, Report, Severity};

use crate::replay::note::StepNote;

/// One run that was read to its end.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) report: Report,
    /// The first steps in short, where somebody wants to see them.
    pub(crate) notes: Vec<StepNote>,
}

impl Run {
    /// The finding that decides the verdict: the first of the worst ones.
    pub(crate) fn headline(&self) -> Option<&Finding> {
        let worst = self.report.findings.iter().map(|finding| finding.severity).max()?;
        self.report.findings.iter().find(|finding| finding.severity == worst)
    }

    /// The findings that are loops.
    pub(crate) fn loops(&self) -> impl Iterator<Item = &Finding> {
        self.report.findings.iter().filter(|finding| finding.severity == Severity::Loop)
    }

    /// Redundant steps that an agent which obeyed the very first hint would not have done.
    pub(crate) fn avoidable_steps(&self) -> usize {
        let Some((told_at, _)) = self.report.actions.first() else { return 0 };
        self.report.redundant_steps.iter().filter(|step| *step > told_at).count()
    }

    /// Whether the ladder would have come to this action.
    pub(crate) fn came_to(&self, action: Action) -> bool {
        self.report.actions.iter().any(|(_, taken)| *taken == action)
    }
}
