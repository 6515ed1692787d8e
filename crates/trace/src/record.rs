//! One JSON value of the input, and where it stands.

use std::fmt;
use std::marker::PhantomData;

use loopbreaker_dialect::Malformed;
use loopbreaker_dialect::json::Broken;
use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::Problem;

/// One JSON value of the input: a line, or a document that is spread over several lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    /// The line on which it begins, counted from 1.
    pub(crate) line: u64,
    /// Its JSON text, which nobody has checked yet.
    pub(crate) text: &'a str,
    /// Whether it is the only one of the input.
    pub(crate) only: bool,
}

impl<'a> Record<'a> {
    /// Parses the whole record.
    pub(crate) fn parse<T: Deserialize<'a>>(self) -> Result<T, Problem> {
        serde_json::from_str(self.text).map_err(|error| self.problem(self.text, &error))
    }

    /// Parses a part of the record.
    pub(crate) fn parse_part<T: Deserialize<'a>>(self, part: &'a RawValue) -> Result<T, Problem> {
        serde_json::from_str(part.get()).map_err(|error| self.problem(part.get(), &error))
    }

    /// Parses the elements of an array one after the other, so that none but the current one is held. `part` is the
    /// record's text or a part of it.
    pub(crate) fn each<T, F>(self, part: &'a str, visit: F) -> Result<(), Problem>
    where
        T: Deserialize<'a>,
        F: FnMut(T) -> Result<(), Problem>,
    {
        each(part, visit).map_err(|error| match error {
            Stopped::ByVisit(problem) => problem,
            Stopped::ByJson(error) => self.problem(part, &error),
        })
    }

    /// Whether the record is an array.
    pub(crate) fn is_array(self) -> bool {
        self.text.trim_ascii_start().starts_with('[')
    }

    /// The problem that the record as a whole has.
    pub(crate) fn unusable(self, message: impl Into<String>) -> Problem {
        Problem { line: self.line, message: message.into() }
    }

    /// The problem of a message in the record.
    pub(crate) fn malformed(self, malformed: &Malformed<'_>) -> Problem {
        match malformed {
            Malformed::Part(Broken { part, error: Some(error) }) => self.problem(part, error),
            Malformed::Part(_) => self.unusable("a list in it is not valid JSON; repair or remove it"),
            Malformed::NoRole => self.unusable("a message has neither a role nor a type; add the role"),
        }
    }

    /// The problem that `error` found in `part` of the record.
    pub(crate) fn problem(self, part: &str, error: &serde_json::Error) -> Problem {
        // A part is a piece of the text, so the distance between the two says how many lines lie before it.
        let before = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let lines = self
            .text
            .as_bytes()
            .get(..before)
            .map_or(0, |skipped| memchr::memchr_iter(b'\n', skipped).count());
        let line = self.line + lines as u64 + (error.line() as u64).saturating_sub(1);
        Problem { line, message: describe(error) }
    }
}

/// What a JSON error means to the reader of a recording, without the place.
pub(crate) fn describe(error: &serde_json::Error) -> String {
    let whole = error.to_string();
    let what = whole.split(" at line ").next().unwrap_or_default();
    // The parser quotes a value of the wrong type, which may be as long as the line.
    let what = if what.len() > MAX_QUOTE { "a long value of the wrong type" } else { what };
    match error.classify() {
        Category::Eof => {
            "the JSON breaks off; the recording was cut short, so record it again or remove it".to_owned()
        }
        Category::Syntax | Category::Io => {
            format!("not valid JSON at column {}: {what}; repair or remove it", error.column())
        }
        Category::Data => format!("not of the expected shape: {what}; repair it, or name another format"),
    }
}

/// Why the visit of an array ended early.
enum Stopped {
    ByVisit(Problem),
    ByJson(serde_json::Error),
}

fn each<'a, T, F>(array: &'a str, visit: F) -> Result<(), Stopped>
where
    T: Deserialize<'a>,
    F: FnMut(T) -> Result<(), Problem>,
{
    let mut stopped = None;
    let mut parser = serde_json::Deserializer::from_str(array);
    let elements = Elements { visit, stopped: &mut stopped, of: PhantomData::<fn() -> T> };
    let parsed = parser.deserialize_seq(elements).and_then(|()| parser.end());
    match (stopped, parsed) {
        (Some(problem), _) => Err(Stopped::ByVisit(problem)),
        (None, Err(error)) => Err(Stopped::ByJson(error)),
        (None, Ok(())) => Ok(()),
    }
}

struct Elements<'s, T, F> {
    visit: F,
    stopped: &'s mut Option<Problem>,
    of: PhantomData<fn() -> T>,
}

impl<'de, T: Deserialize<'de>, F: FnMut(T) -> Result<(), Problem>> Visitor<'de> for Elements<'_, T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element::<T>()? {
            if let Err(problem) = (self.visit)(element) {
                *self.stopped = Some(problem);
                return Err(A::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}

const MAX_QUOTE: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_in_a_part_has_its_own_line() {
        let text = "{\n\"a\": [\n1,\nx]}";
        let record = Record { line: 10, text, only: true };
        let part = text.get(7..).unwrap();
        let problem = record.each::<u64, _>(part, |_| Ok(())).unwrap_err();
        assert_eq!(problem.line, 13);
    }

    #[test]
    fn a_long_value_is_not_quoted() {
        let text = format!("[\"{}\"]", "x".repeat(10_000));
        let record = Record { line: 1, text: &text, only: true };
        let problem = record.each::<u64, _>(&text, |_| Ok(())).unwrap_err();
        assert!(problem.message.len() < 200, "{}", problem.message);
    }

    #[test]
    fn text_that_breaks_off_is_described_as_cut_short() {
        let record = Record { line: 1, text: "{\"a\": [1, ", only: true };
        let problem = record.parse::<serde::de::IgnoredAny>().unwrap_err();
        assert!(problem.message.contains("cut short"), "{}", problem.message);
    }
}
