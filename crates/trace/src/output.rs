//! The way from the readers to the sink: counts, and gives every run a name of its own.

use std::collections::HashMap;
use std::fmt::Write as _;

use loopbreaker::Step;

use crate::record::Record;
use crate::{Format, Problem, Sink, Summary};

/// Passes on to the sink.
pub(crate) struct Output<'s> {
    name: &'s str,
    sink: &'s mut dyn Sink,
    names: Names,
    runs: u64,
    steps: u64,
    problems: u64,
}

impl<'s> Output<'s> {
    pub(crate) fn new(name: &'s str, sink: &'s mut dyn Sink) -> Self {
        Self { name, sink, names: Names::default(), runs: 0, steps: 0, problems: 0 }
    }

    /// Begins the run `id` and returns the name under which its steps and its end must be passed on.
    pub(crate) fn begin(&mut self, id: &str) -> String {
        self.runs += 1;
        self.names.unique(id)
    }

    pub(crate) fn step(&mut self, run: &str, step: &Step<'_>) {
        self.steps += 1;
        self.sink.step(run, step);
    }

    pub(crate) fn end(&mut self, run: &str) {
        self.sink.end(run);
    }

    pub(crate) fn problem(&mut self, problem: Problem) {
        self.problems += 1;
        self.sink.problem(problem);
    }

    pub(crate) fn progress(&mut self, bytes: u64) {
        self.sink.progress(bytes);
    }

    pub(crate) fn problems(&self) -> u64 {
        self.problems
    }

    /// The name of the input, for a run that is all of it.
    pub(crate) fn name(&self) -> &'s str {
        self.name
    }

    /// The id of a run that has none and that is all of this record.
    pub(crate) fn id_of(&self, record: Record<'_>) -> String {
        if record.only { self.name.to_owned() } else { self.id_at(record.line) }
    }

    /// The id of a run that has none and begins on this line.
    pub(crate) fn id_at(&self, line: u64) -> String {
        format!("{}:{line}", self.name)
    }

    pub(crate) fn summary(&self, format: Format, bytes: u64) -> Summary {
        Summary { format, runs: self.runs, steps: self.steps, problems: self.problems, bytes }
    }
}

/// Gives the second run of an id the name `id#2`, the third `id#3`.
///
/// Only hashes are kept, and of a bounded number of ids: a repeated id among the millions behind them goes out as it
/// is, which mixes up names in a report but nothing else.
#[derive(Default)]
struct Names(HashMap<u64, u32>);

impl Names {
    fn unique(&mut self, id: &str) -> String {
        let mut name = id.to_owned();
        let mut count = self.take(id);
        while count > 1 {
            name.truncate(id.len());
            // Writing to a string cannot fail.
            if write!(name, "#{count}").is_err() || self.take(&name) == 1 {
                break;
            }
            count = self.take(id);
        }
        name
    }

    /// How often this name has been taken, this time included.
    fn take(&mut self, name: &str) -> u32 {
        let hash = loopbreaker_dialect::json::hash(name.as_bytes());
        if self.0.len() >= MAX_NAMES && !self.0.contains_key(&hash) {
            return 1;
        }
        let count = self.0.entry(hash).or_default();
        *count = count.saturating_add(1);
        *count
    }
}

// Just what fits into a table of two million places, which is 36 MB.
const MAX_NAMES: usize = 1_800_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_id_gets_a_number() {
        let mut names = Names::default();
        let given: Vec<_> = ["a", "a", "b", "a"].iter().map(|id| names.unique(id)).collect();
        assert_eq!(given, ["a", "a#2", "b", "a#3"]);
    }

    #[test]
    fn a_number_that_is_taken_is_left_out() {
        let mut names = Names::default();
        let given: Vec<_> = ["a#2", "a", "a", "a"].iter().map(|id| names.unique(id)).collect();
        assert_eq!(given, ["a#2", "a", "a#3", "a#4"]);
    }
}
