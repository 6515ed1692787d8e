//! Where steps go.

use std::fmt;

use crate::Format;

/// Receives what a reader finds.
///
/// Some formats interleave their runs (`claude-code`, `decision-log`, `otlp-json`): steps of one run may come between
/// those of another, so keep the state of a run under its id until [`Sink::end`].
pub trait Sink {
    /// One step of the run `run`. The borrowed data is only valid during the call.
    fn step(&mut self, run: &str, step: &loopbreaker::Step<'_>);

    /// No more steps of this run will come (called once per run, for a run without steps too).
    fn end(&mut self, run: &str);

    /// A part of the input could not be read; reading goes on behind it.
    fn problem(&mut self, problem: Problem);

    /// Bytes consumed so far, for a progress bar.
    fn progress(&mut self, bytes: u64) {
        let _ = bytes;
    }
}

/// A part of the input that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line on which it is, counted from 1.
    pub line: u64,
    /// What is wrong and what to do about it, in lower case and without the line.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// What was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// The format that was given or detected.
    pub format: Format,
    /// How many runs there were, those without steps included.
    pub runs: u64,
    /// How many steps these runs had.
    pub steps: u64,
    /// How many parts could not be read.
    pub problems: u64,
    /// How many bytes were consumed.
    pub bytes: u64,
}
