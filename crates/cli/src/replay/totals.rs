//! All runs together.

use loopbreaker::{Action, Wasted};

use crate::replay::run::Run;

/// What all runs add up to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) runs: u64,
    pub(crate) loops: u64,
    pub(crate) warnings: u64,
    pub(crate) steps: u64,
    pub(crate) wasted: Wasted,
    /// Wasted steps that would not have been done had the first hint been obeyed.
    pub(crate) avoidable_steps: u64,
    /// How many runs would have come to this action.
    pub(crate) hinted: u64,
    pub(crate) throttled: u64,
    pub(crate) paused: u64,
    pub(crate) rejected: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, run: &Run) {
        let report = &run.report;
        self.runs += 1;
        self.steps += report.steps as u64;
        match report.verdict() {
            "loop" => self.loops += 1,
            "warning" => self.warnings += 1,
            _ => {}
        }
        self.wasted.steps += report.wasted.steps;
        self.wasted.tokens = self.wasted.tokens.saturating_add(report.wasted.tokens);
        self.wasted.cost_usd += report.wasted.cost_usd;
        self.avoidable_steps += run.avoidable_steps as u64;
        self.hinted += u64::from(run.came_to(Action::Hint));
        self.throttled += u64::from(run.came_to(Action::Throttle));
        self.paused += u64::from(run.came_to(Action::Pause));
        self.rejected += u64::from(run.came_to(Action::Reject));
    }

    pub(crate) fn ok(&self) -> u64 {
        self.runs - self.loops - self.warnings
    }
}
