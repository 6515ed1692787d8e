//! The runs that the page shows: the most interesting ones, within bounds.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::replay::note::StepNote;
use crate::replay::run::Run;
use crate::replay::runs::MAX_NOTES;

/// Keeps loops before warnings before the rest, and among them those that wasted most.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    runs: BTreeMap<Rank, Run>,
    bytes: usize,
    offered: u64,
}

/// The smaller, the more interesting.
type Rank = (u8, Reverse<usize>, u64);

impl Shelf {
    pub(crate) fn offer(&mut self, mut run: Run) {
        self.offered += 1;
        let severity = match run.report.verdict() {
            "loop" => 0,
            "warning" => 1,
            _ => 2,
        };
        let rank = (severity, Reverse(run.report.wasted.steps), self.offered);
        // What is not shown is not kept either.
        run.report.findings.truncate(MAX_FINDINGS);
        run.report.redundant_steps.retain(|step| *step < MAX_NOTES);
        self.bytes += bytes(&run);
        self.runs.insert(rank, run);
        while self.runs.len() > MAX_RUNS || self.bytes > MAX_BYTES {
            let Some((_, dropped)) = self.runs.pop_last() else { break };
            self.bytes -= bytes(&dropped);
        }
    }

    /// The runs, the most interesting first.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.values()
    }

    pub(crate) fn len(&self) -> u64 {
        self.runs.len() as u64
    }

    /// How many runs did not fit.
    pub(crate) fn left_out(&self) -> u64 {
        self.offered - self.len()
    }
}

/// About how many bytes a run holds.
fn bytes(run: &Run) -> usize {
    let notes: usize = run.notes.iter().map(StepNote::bytes).sum();
    let findings: usize = run
        .report
        .findings
        .iter()
        .map(|finding| 256 + finding.message.len() + finding.evidence.len() * 8)
        .sum();
    256 + run.id.len()
        + notes
        + findings
        + run.report.redundant_steps.len() * 8
        + run.report.actions.len() * 16
}

// A page with more than this is not looked through, and slow to open.
const MAX_RUNS: usize = 500;
const MAX_BYTES: usize = 24 << 20;
const MAX_FINDINGS: usize = 50;

#[cfg(test)]
mod tests {
    use loopbreaker::{DetectorsConfig, ReplayRules, Step};

    use super::*;

    fn run(id: String, repeats: usize) -> Run {
        let mut replay = ReplayRules::new(&DetectorsConfig::default()).start();
        for _ in 0..repeats {
            replay.observe(&Step::call("bash", r#"{"command":"ls"}"#).answered("a b", None));
        }
        Run::new(id, replay.finish(), Vec::new())
    }

    #[test]
    fn what_wasted_most_comes_first() {
        let mut shelf = Shelf::default();
        for (id, repeats) in [("ok", 1), ("warning", 2), ("short", 3), ("long", 9)] {
            shelf.offer(run(id.into(), repeats));
        }
        let ids: Vec<_> = shelf.runs().map(|run| run.id.as_str()).collect();
        assert_eq!(ids, ["long", "short", "warning", "ok"]);
    }

    #[test]
    fn the_least_interesting_runs_make_room() {
        let mut shelf = Shelf::default();
        for index in 0..MAX_RUNS {
            shelf.offer(run(format!("ok-{index}"), 1));
        }
        shelf.offer(run("loop".into(), 5));
        assert_eq!((shelf.len(), shelf.left_out()), (MAX_RUNS as u64, 1));
        assert_eq!(shelf.runs().next().map(|run| run.id.as_str()), Some("loop"));
    }
}
