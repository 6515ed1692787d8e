//! The JSON values of an input: one per line, or documents that are spread over several lines.

use std::io::{self, BufRead};
use std::ops::Range;

use serde::de::IgnoredAny;

use crate::Problem;
use crate::line::{Line, Lines};
use crate::record::{Record, describe};

/// Cuts an input into records.
///
/// The first line decides: when it is the beginning of a JSON value but not all of it, lines are put together until
/// the value is complete. Everything else is one value per line.
pub(crate) struct Records<R> {
    lines: Lines<R>,
    max: usize,
    mode: Mode,
    /// The document that is being put together. When it turns out to be none, its lines are read again one by one.
    document: String,
    /// What is still to be read again.
    again: Option<Again>,
    first: bool,
}

/// What [`Records::next`] came to.
pub(crate) enum Item<'a> {
    Record(Record<'a>),
    Problem(Problem),
    End,
}

impl<R: BufRead> Records<R> {
    pub(crate) fn new(input: R, max: usize) -> Self {
        Self {
            lines: Lines::new(input, max),
            max,
            mode: Mode::Undecided,
            document: String::new(),
            again: None,
            first: true,
        }
    }

    /// Bytes consumed so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.lines.bytes()
    }

    /// Goes on to the next record.
    pub(crate) fn next(&mut self) -> io::Result<Item<'_>> {
        let found = self.find()?;
        let only =
            self.first && matches!(found, Found::Document { .. } | Found::Line(_)) && self.is_last()?;
        self.first = false;
        Ok(match found {
            Found::End => Item::End,
            Found::Problem(problem) => Item::Problem(problem),
            Found::Document { line, at } => {
                Item::Record(Record { line, text: self.document.get(at).unwrap_or_default(), only })
            }
            Found::Line(line) => match checked(self.lines.text()) {
                Ok(text) => Item::Record(Record { line, text, only }),
                Err(message) => Item::Problem(Problem { line, message: message.to_owned() }),
            },
        })
    }

    fn find(&mut self) -> io::Result<Found> {
        if let Some(found) = self.line_again() {
            return Ok(found);
        }
        if self.mode == Mode::Finished {
            return Ok(Found::End);
        }
        loop {
            match self.lines.advance()? {
                Line::End => return Ok(Found::End),
                Line::TooLong => return Ok(Found::Problem(self.too_long())),
                Line::Whole if self.lines.text().trim_ascii().is_empty() => {}
                Line::Whole => break,
            }
        }
        if self.mode == Mode::Undecided && checked(self.lines.text()).is_ok_and(is_beginning) {
            return self.put_together();
        }
        self.mode = Mode::Lines;
        Ok(Found::Line(self.line()))
    }

    /// Reads lines until the document that begins on the current line is complete.
    fn put_together(&mut self) -> io::Result<Found> {
        let begin = self.line();
        let mut depth = Depth::default();
        let mut lines = 0_u64;
        self.document.clear();
        self.document.shrink_to(KEPT_CAPACITY);
        loop {
            let text = match checked(self.lines.text()) {
                Ok(text) => text,
                Err(message) => {
                    let problem = Problem { line: self.line(), message: message.to_owned() };
                    return Ok(self.give_up(begin, problem));
                }
            };
            if self.document.len() + text.len() >= self.max {
                return Ok(self.stop(Problem { line: begin, message: self.too_large() }));
            }
            self.document.push_str(text);
            self.document.push('\n');
            lines += 1;
            match depth.pass(text.as_bytes()) {
                Pass::Closed => return Ok(Found::Document { line: begin, at: 0..self.document.len() }),
                Pass::Open => {}
                Pass::Broken => {
                    let message = "a string has no end on its line; repair the document".to_owned();
                    return Ok(self.give_up(begin, Problem { line: self.line(), message }));
                }
            }
            // A first line that was cut short looks like a document, too. Looking at ever longer beginnings finds
            // that out early, and costs no more than reading the document twice.
            if lines > 1
                && (lines < 5 || lines.is_power_of_two())
                && let Err(error) = serde_json::from_str::<IgnoredAny>(&self.document)
                && !error.is_eof()
            {
                let line = begin + (error.line() as u64).saturating_sub(1);
                return Ok(self.give_up(begin, Problem { line, message: describe(&error) }));
            }
            match self.lines.advance()? {
                Line::Whole => {}
                Line::TooLong => return Ok(self.give_up(begin, self.too_long())),
                Line::End => {
                    let message = "the document that begins here breaks off; record it again".to_owned();
                    return Ok(self.give_up(begin, Problem { line: begin, message }));
                }
            }
        }
    }

    /// The lines since `begin` are no document. Where they make sense one by one, they are read that way.
    fn give_up(&mut self, begin: u64, problem: Problem) -> Found {
        let mut others = self.document.lines().skip(1);
        let last = self.document.lines().last();
        if others.by_ref().take(3).chain(last).any(|line| line.starts_with(['{', '[']) && is_whole(line)) {
            self.mode = Mode::Lines;
            self.again = Some(Again { from: 0, line: begin });
            // A problem of a line that was not held would be forgotten; the others come up again.
            let held = begin + memchr::memchr_iter(b'\n', self.document.as_bytes()).count() as u64;
            let found = if problem.line < held { self.line_again() } else { None };
            return found.unwrap_or(Found::Problem(problem));
        }
        self.stop(problem)
    }

    /// Reads nothing any more: behind a document without an end, no place is known where another one begins.
    fn stop(&mut self, mut problem: Problem) -> Found {
        self.mode = Mode::Finished;
        self.document = String::new();
        problem.message.push_str(" (nothing behind this place was read)");
        Found::Problem(problem)
    }

    /// The next line of what was taken for a document.
    fn line_again(&mut self) -> Option<Found> {
        while let Some(Again { from, line }) = self.again {
            let rest = self.document.get(from..).unwrap_or_default();
            let Some(length) = memchr::memchr(b'\n', rest.as_bytes()) else {
                self.again = None;
                self.document = String::new();
                break;
            };
            self.again = Some(Again { from: from + length + 1, line: line + 1 });
            let at = from..from + length;
            if !self.document.get(at.clone()).unwrap_or_default().trim_ascii().is_empty() {
                return Some(Found::Document { line, at });
            }
        }
        None
    }

    fn is_last(&mut self) -> io::Result<bool> {
        Ok(self.again.is_none() && self.lines.at_end()?)
    }

    fn line(&self) -> u64 {
        self.lines.number()
    }

    fn too_long(&self) -> Problem {
        let message =
            format!("the line is longer than {} bytes and was skipped; split it into shorter ones", self.max);
        Problem { line: self.line(), message }
    }

    fn too_large(&self) -> String {
        format!("the document is larger than {} bytes; write one JSON value per line instead", self.max)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Undecided,
    Lines,
    Finished,
}

/// Where a record is; its text is borrowed only once nothing is read any more.
enum Found {
    /// In the current line, which has this number.
    Line(u64),
    /// In the document.
    Document {
        line: u64,
        at: Range<usize>,
    },
    Problem(Problem),
    End,
}

#[derive(Clone, Copy)]
struct Again {
    from: usize,
    line: u64,
}

fn checked(bytes: &[u8]) -> Result<&str, &'static str> {
    if memchr::memchr(0, bytes).is_some() {
        return Err("a NUL byte is in the line; the file is damaged or binary, so write it again");
    }
    str::from_utf8(bytes).map_err(|_| "the line is not valid UTF-8; convert the file to UTF-8")
}

/// Whether the text is the beginning of an object or a list, but not all of it.
fn is_beginning(text: &str) -> bool {
    text.trim_ascii_start().starts_with(['{', '['])
        && serde_json::from_str::<IgnoredAny>(text).is_err_and(|error| error.is_eof())
        && !ends_in_string(text)
}

fn ends_in_string(text: &str) -> bool {
    matches!(Depth::default().pass(text.as_bytes()), Pass::Broken)
}

fn is_whole(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Follows the brackets of a document line by line, so that its end is found without parsing it again and again.
#[derive(Default)]
struct Depth(u64);

enum Pass {
    Open,
    Closed,
    /// The line ends within a string, which no JSON does.
    Broken,
}

impl Depth {
    fn pass(&mut self, line: &[u8]) -> Pass {
        let mut in_string = false;
        let mut escaped = false;
        for byte in line {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                b'{' | b'[' if !in_string => self.0 += 1,
                b'}' | b']' if !in_string => self.0 = self.0.saturating_sub(1),
                _ => {}
            }
        }
        match (in_string, self.0) {
            (true, _) => Pass::Broken,
            (false, 0) => Pass::Closed,
            (false, _) => Pass::Open,
        }
    }
}

const KEPT_CAPACITY: usize = 1 << 20;

#[cfg(test)]
mod tests;
