//! Runs whose steps come interleaved.

use std::collections::HashMap;

use loopbreaker::Step;

use crate::Problem;
use crate::output::Output;
use loopbreaker_dialect::conversation::{Conversation, Event};

/// The runs that have begun and not ended, each with its conversation and with what its format keeps beside it.
///
/// Not more than [`MAX_RUNS`] are open at once: then those that have been silent longest end. Should one of them speak
/// again, it begins anew under another name.
pub(crate) struct Runs<S> {
    open: HashMap<String, Run<S>>,
    clock: u64,
    bytes: usize,
}

/// An open run.
pub(crate) struct Run<S> {
    name: String,
    conversation: Conversation<'static>,
    began: u64,
    spoke: u64,
    /// What the format keeps.
    pub(crate) state: S,
}

impl<S: Default> Runs<S> {
    pub(crate) fn new() -> Self {
        Self { open: HashMap::new(), clock: 0, bytes: 0 }
    }

    /// The run `id`, begun when it is new.
    pub(crate) fn get(&mut self, id: &str, out: &mut Output<'_>) -> &mut Run<S> {
        self.clock += 1;
        let clock = self.clock;
        if self.open.len() >= MAX_RUNS && !self.open.contains_key(id) {
            self.end_silent(out);
        }
        if self.bytes > MAX_BYTES {
            self.release(out);
        }
        let run = self.open.entry(id.to_owned()).or_insert_with(|| Run {
            name: out.begin(id),
            conversation: Conversation::default(),
            began: clock,
            spoke: clock,
            state: S::default(),
        });
        run.spoke = clock;
        run
    }

    /// Takes the events of one record, through which `walk` goes twice: nothing is taken of a record with a problem.
    pub(crate) fn walk<'e>(
        &mut self,
        id: &str,
        out: &mut Output<'_>,
        mut walk: impl FnMut(&mut dyn FnMut(Event<'e>)) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        walk(&mut |_| ())?;
        self.take(id, out, walk)
    }

    /// Takes the events of a record that is known to have no problem.
    pub(crate) fn take<'e, T>(
        &mut self,
        id: &str,
        out: &mut Output<'_>,
        walk: impl FnOnce(&mut dyn FnMut(Event<'e>)) -> T,
    ) -> T {
        let run = self.get(id, out);
        let before = run.conversation.bytes();
        let done = walk(&mut |event| {
            run.conversation.take(event.into_owned(), &mut |step: &Step<'_>| out.step(&run.name, step));
        });
        let after = run.conversation.bytes();
        self.bytes = (self.bytes + after).saturating_sub(before);
        done
    }

    /// Ends one run.
    pub(crate) fn end(&mut self, id: &str, out: &mut Output<'_>) {
        if let Some(run) = self.open.remove(id) {
            self.bytes = self.bytes.saturating_sub(run.conversation.bytes());
            run.end(out);
        }
    }

    /// Ends every run, in the order in which they began.
    pub(crate) fn end_all(&mut self, out: &mut Output<'_>) {
        let mut runs: Vec<_> = self.open.drain().map(|(_, run)| run).collect();
        runs.sort_unstable_by_key(|run| run.began);
        for run in runs {
            run.end(out);
        }
        self.bytes = 0;
    }

    /// Ends the quarter that has been silent longest. One at a time would mean to look at all of them each time.
    fn end_silent(&mut self, out: &mut Output<'_>) {
        let mut spoke: Vec<_> = self.open.values().map(|run| run.spoke).collect();
        spoke.sort_unstable();
        let limit = spoke.get(spoke.len() / 4).copied().unwrap_or_default();
        let mut silent: Vec<_> =
            self.open.extract_if(|_, run| run.spoke < limit).map(|(_, run)| run).collect();
        silent.sort_unstable_by_key(|run| run.began);
        for run in silent {
            self.bytes = self.bytes.saturating_sub(run.conversation.bytes());
            run.end(out);
        }
    }

    /// Passes on what all conversations hold, without waiting for results any longer.
    fn release(&mut self, out: &mut Output<'_>) {
        let mut runs: Vec<_> = self.open.values_mut().collect();
        runs.sort_unstable_by_key(|run| run.began);
        for run in runs {
            run.conversation.finish(&mut |step: &Step<'_>| out.step(&run.name, step));
        }
        self.bytes = 0;
    }
}

impl<S> Run<S> {
    fn end(mut self, out: &mut Output<'_>) {
        self.conversation.finish(&mut |step: &Step<'_>| out.step(&self.name, step));
        out.end(&self.name);
    }
}

/// How many runs may be open at once. Whoever listens keeps state for each of them, too.
const MAX_RUNS: usize = 4096;

/// How many bytes the open calls of all runs may have together.
const MAX_BYTES: usize = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sink;

    #[derive(Default)]
    struct Ends(Vec<String>);

    impl Sink for Ends {
        fn step(&mut self, _run: &str, _step: &Step<'_>) {}
        fn end(&mut self, run: &str) {
            self.0.push(run.to_owned());
        }
        fn problem(&mut self, _problem: Problem) {}
    }

    #[test]
    fn runs_end_in_the_order_in_which_they_began() {
        let mut ends = Ends::default();
        let mut out = Output::new("x", &mut ends);
        let mut runs = Runs::<()>::new();
        for id in ["b", "c", "a", "b"] {
            runs.get(id, &mut out);
        }
        runs.end_all(&mut out);
        assert_eq!(ends.0, ["b", "c", "a"]);
    }

    #[test]
    fn the_runs_that_were_silent_longest_end_when_there_are_too_many() {
        let mut ends = Ends::default();
        let mut out = Output::new("x", &mut ends);
        let mut runs = Runs::<()>::new();
        for id in 0..MAX_RUNS {
            runs.get(&id.to_string(), &mut out);
        }
        runs.get("0", &mut out);
        runs.get("new", &mut out);
        assert_eq!(runs.open.len(), MAX_RUNS - MAX_RUNS / 4 + 1);
        assert!(runs.open.contains_key("0"));
        assert_eq!(ends.0.first().map(String::as_str), Some("1"));
    }
}
