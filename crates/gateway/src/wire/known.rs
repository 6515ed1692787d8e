//! A head that came before on the same connection.
//!
//! Who sends one message after the other sends nearly the same head each time: a length, a date or an id is all that
//! differs. Lines that are known to the letter were parsed and checked when they came first.

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// The last head that was read from its start.
#[derive(Debug)]
pub(super) struct Known {
    written: Bytes,
    /// Where the first header begins.
    first: usize,
    lines: Vec<Line>,
    headers: HeaderMap,
}

/// A header, with its name and the end of its line.
#[derive(Debug)]
struct Line {
    name: HeaderName,
    end: usize,
    /// Whether its value may be another one, and all else is as it was.
    may_change: bool,
}

/// More changes than this are read like something new.
const MAX_CHANGES: usize = 8;

impl Known {
    /// A head whose bytes are those of `original`, from which its headers were parsed; `None` where a line ends in an
    /// unusual way. What is framed by the headers that `is_fixed` names has to be looked at again when they change.
    pub(super) fn new(
        written: &Bytes,
        original: &[u8],
        parsed: &[httparse::Header<'_>],
        headers: &HeaderMap,
        is_fixed: impl Fn(&str) -> bool,
    ) -> Option<Self> {
        let place = |name: &str| name.as_ptr().addr().checked_sub(original.as_ptr().addr());
        let last = written.len().checked_sub(2)?;
        let mut lines = Vec::with_capacity(parsed.len());
        for (at, header) in parsed.iter().enumerate() {
            let end = parsed.get(at + 1).map_or(Some(last), |next| place(next.name))?;
            if !written.get(..end)?.ends_with(b"\r\n") {
                return None;
            }
            let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
            let is_alone = headers.get_all(&name).iter().nth(1).is_none();
            lines.push(Line { may_change: is_alone && !is_fixed(header.name), name, end });
        }
        let first = parsed.first().map_or(Some(last), |header| place(header.name))?;
        Some(Self { written: written.clone(), first, lines, headers: headers.clone() })
    }

    /// The headers and the end of a head that differs in a few values only; `None` where it has to be read from its
    /// start.
    pub(super) fn again(&self, came: &[u8]) -> Option<(HeaderMap, usize)> {
        let mut at = self.first;
        if came.get(..at)? != self.written.get(..at)? {
            return None;
        }
        let (mut before, mut changes) = (at, Vec::new());
        for line in &self.lines {
            let known = self.written.get(before..line.end)?;
            before = line.end;
            let rest = came.get(at..)?;
            if rest.starts_with(known) {
                at += known.len();
                continue;
            }
            let (value, end) = changed(rest, known, line)?;
            at += end;
            changes.push((&line.name, value));
            if changes.len() > MAX_CHANGES {
                return None;
            }
        }
        if !came.get(at..)?.starts_with(b"\r\n") {
            return None;
        }
        let mut headers = self.headers.clone();
        for (name, value) in changes {
            *headers.get_mut(name)? = value;
        }
        Some((headers, at + 2))
    }
}

/// The new value of a known header, and the end of its line.
fn changed(rest: &[u8], known: &[u8], line: &Line) -> Option<(HeaderValue, usize)> {
    let name = known.get(..=line.name.as_str().len()).filter(|name| name.ends_with(b":"))?;
    let end = 1 + memchr::memchr(b'\n', rest)?;
    let value = rest.get(..end)?.strip_suffix(b"\r\n")?.strip_prefix(name)?;
    let value = HeaderValue::from_bytes(without_blanks(value)).ok()?;
    line.may_change.then_some((value, end))
}

/// Blanks around a value are no part of it; a carriage return is no blank.
fn without_blanks(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}
