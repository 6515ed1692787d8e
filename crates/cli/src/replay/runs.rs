//! From steps to judged runs: where the reader puts what it reads.

use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use loopbreaker::{Replay, ReplayRules, Step};
use loopbreaker_trace::{Problem, Sink};

use crate::replay::likeness::{Likeness, Said};
use crate::replay::note::StepNote;
use crate::replay::problems::Problems;
use crate::replay::progress::Progress;
use crate::replay::run::Run;
use crate::replay::shelf::Shelf;
use crate::replay::totals::Totals;

/// Shows runs as they end, so that nothing of them must be kept.
pub(crate) trait View {
    /// One more run has ended.
    fn run(&mut self, run: &Run) -> io::Result<()>;
    /// All runs have ended.
    fn end(&mut self, totals: &Totals) -> io::Result<()>;
}

/// What is kept beyond verdicts.
#[derive(Debug, Default)]
pub(crate) struct Keep {
    /// Whether the view wants to see steps.
    pub(crate) notes: bool,
    /// Runs for the page.
    pub(crate) shelf: Option<Shelf>,
}

/// Judges every run, one [`Replay`] each, and passes it on when it ends.
pub(crate) struct Runs<'a> {
    rules: ReplayRules,
    likeness: Option<Likeness>,
    view: Box<dyn View + 'a>,
    keep: Keep,
    open: HashMap<String, OpenRun>,
    /// Bytes of all notes of open runs together.
    noted: usize,
    totals: Totals,
    problems: Problems,
    progress: Progress,
    stop: Rc<Cell<bool>>,
    failed: Option<io::Error>,
}

struct OpenRun {
    replay: Replay,
    said: Said,
    notes: Vec<StepNote>,
}

/// What is left when all inputs are read.
pub(crate) struct Done {
    pub(crate) totals: Totals,
    pub(crate) problems: Problems,
    pub(crate) shelf: Option<Shelf>,
}

impl<'a> Runs<'a> {
    pub(crate) fn new(
        rules: ReplayRules,
        likeness: Option<Likeness>,
        view: Box<dyn View + 'a>,
        keep: Keep,
        progress: Progress,
    ) -> Self {
        Self {
            rules,
            likeness,
            view,
            keep,
            open: HashMap::new(),
            noted: 0,
            totals: Totals::default(),
            problems: Problems::default(),
            progress,
            stop: Rc::default(),
            failed: None,
        }
    }

    /// The next input begins.
    pub(crate) fn begin(&mut self, name: &str) {
        self.problems.begin(name);
        self.progress.begin();
    }

    /// Set when reading on is no use, because nobody reads our output any longer.
    pub(crate) fn stop_sign(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.stop)
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.get()
    }

    /// Says something while the progress bar is out of the way.
    pub(crate) fn suspended<T>(&self, say: impl FnOnce() -> T) -> T {
        self.progress.suspended(say)
    }

    /// All inputs are read.
    pub(crate) fn finish(mut self) -> io::Result<Done> {
        self.progress.end();
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.view.end(&self.totals)?;
        Ok(Done { totals: self.totals, problems: self.problems, shelf: self.keep.shelf })
    }

    fn pass_on(&mut self, run: Run) {
        self.totals.add(&run);
        let view = &mut self.view;
        if let Err(error) = self.progress.suspended(|| view.run(&run)) {
            self.stop.set(true);
            self.failed = Some(error);
        }
        if let Some(shelf) = &mut self.keep.shelf {
            shelf.offer(run);
        }
    }
}

impl Sink for Runs<'_> {
    fn step(&mut self, run: &str, step: &Step<'_>) {
        if self.stopped() {
            return;
        }
        let wants_notes = self.keep.notes || self.keep.shelf.is_some();
        let rules = &self.rules;
        // Looking up first spares a copy of the name for every step but the first.
        let open = match self.open.get_mut(run) {
            Some(open) => open,
            None => self.open.entry(run.to_owned()).or_insert_with(|| OpenRun::new(rules)),
        };
        if let Some(likeness) = &self.likeness
            && let Some(finding) = likeness.step(run, &mut open.said, step)
        {
            open.replay.take(finding);
        }
        open.replay.observe(step);
        if wants_notes && open.notes.len() < MAX_NOTES && self.noted < MAX_NOTED_BYTES {
            let note = StepNote::of(step);
            self.noted += note.bytes();
            open.notes.push(note);
        }
    }

    fn end(&mut self, run: &str) {
        if self.stopped() {
            return;
        }
        let (id, mut open) =
            self.open.remove_entry(run).unwrap_or_else(|| (run.to_owned(), OpenRun::new(&self.rules)));
        self.noted = self.noted.saturating_sub(open.notes.iter().map(StepNote::bytes).sum());
        if let Some(likeness) = &self.likeness
            && let Some(finding) = likeness.end(run, &mut open.said)
        {
            open.replay.take(finding);
        }
        self.pass_on(Run::new(id, open.replay.finish(), open.notes));
    }

    fn problem(&mut self, problem: Problem) {
        if self.stopped() {
            return;
        }
        let problems = &mut self.problems;
        self.progress.suspended(|| problems.tell(&problem));
    }

    fn progress(&mut self, bytes: u64) {
        self.progress.at(bytes);
    }
}

impl OpenRun {
    fn new(rules: &ReplayRules) -> Self {
        Self { replay: rules.start(), said: Said::default(), notes: Vec::new() }
    }
}

/// Steps of one run that are noted; those behind them are judged like all others, but not shown.
pub(crate) const MAX_NOTES: usize = 2_000;

// Thousands of runs may be open at once in formats that interleave them. Notes that are not taken are missing from
// the page, which says so; the verdict does not depend on them.
const MAX_NOTED_BYTES: usize = 32 << 20;
