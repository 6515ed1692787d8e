//! Heads that came before.
//!
//! Clients and providers send nearly the same head each time: a length, a date or an id is all that differs. Lines that
//! are known to the letter were parsed and checked when they came first. What is known is shared by all connections of
//! a worker, so that it is at hand; what is nobody else's business is not compared, but read anew.

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// The heads that were read from their start of late, the one that was seen last in front.
#[derive(Debug)]
pub(super) struct Heads<T> {
    known: Vec<(Known, T)>,
}

/// A head.
#[derive(Debug)]
pub(super) struct Known {
    written: Bytes,
    /// Where the first header begins.
    first: usize,
    lines: Vec<Line>,
    /// Without the values that are read anew.
    headers: HeaderMap,
}

/// A header, with its name and the end of its line.
#[derive(Debug)]
struct Line {
    name: HeaderName,
    end: usize,
    value: Value,
}

/// What may be said of another value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    /// All of the head has to be read anew.
    Fixed,
    /// It may be another one, and all else is as it was.
    Free,
    /// It is read each time: how much of it is right is not to be found out by trying.
    Secret,
}

/// More changes than this are read like something new.
const MAX_CHANGES: usize = 12;
/// A worker hears from so many kinds of clients at a time.
const MAX_KNOWN: usize = 8;

impl<T> Heads<T> {
    pub(super) const fn new() -> Self {
        Self { known: Vec::new() }
    }

    /// What is known of a head like one of these, its headers, and its end.
    pub(super) fn again(&mut self, came: &[u8]) -> Option<(&T, HeaderMap, usize)> {
        let found = |(at, (known, _)): (usize, &(Known, T))| known.again(came).map(|again| (at, again));
        let (at, (headers, end)) = self.known.iter().enumerate().find_map(found)?;
        if let Some(before) = at.checked_sub(1) {
            self.known.swap(before, at);
        }
        let (_, about) = self.known.get(at.saturating_sub(1))?;
        Some((about, headers, end))
    }

    /// Keeps a head in place of the one that was not seen for longest.
    pub(super) fn keep(&mut self, known: Known, about: T) {
        self.known.truncate(MAX_KNOWN - 1);
        self.known.push((known, about));
    }
}

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
        let (mut own, mut headers) = (written.to_vec(), headers.clone());
        let mut lines = Vec::with_capacity(parsed.len());
        for (at, header) in parsed.iter().enumerate() {
            let (start, end) =
                (place(header.name)?, parsed.get(at + 1).map_or(Some(last), |next| place(next.name))?);
            if !written.get(..end)?.ends_with(b"\r\n") {
                return None;
            }
            let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
            let is_alone = headers.get_all(&name).iter().nth(1).is_none();
            let value = match (is_fixed(header.name), is_secret(name.as_str())) {
                // One of several cannot be put in the place of the old one.
                (true, _) | (false, true) if !is_alone => return None,
                (true, _) => Value::Fixed,
                (false, true) => Value::Secret,
                (false, false) => {
                    if is_alone {
                        Value::Free
                    } else {
                        Value::Fixed
                    }
                }
            };
            if value == Value::Secret {
                own.get_mut(start + header.name.len() + 1..end)?.fill(b' ');
                headers.insert(&name, HeaderValue::from_static(""));
            }
            lines.push(Line { name, end, value });
        }
        let first = parsed.first().map_or(Some(last), |header| place(header.name))?;
        // A target may name a key.
        let names_a_key = own.get(..first)?.contains(&b'?');
        (!names_a_key).then(|| Self { written: own.into(), first, lines, headers })
    }

    /// The headers and the end of a head that differs in a few values only; `None` where it has to be read from its
    /// start.
    fn again(&self, came: &[u8]) -> Option<(HeaderMap, usize)> {
        let mut at = self.first;
        if came.get(..at)? != self.written.get(..at)? {
            return None;
        }
        let (mut before, mut changes) = (at, Vec::new());
        for line in &self.lines {
            let known = self.written.get(before..line.end)?;
            before = line.end;
            let rest = came.get(at..)?;
            if line.value != Value::Secret && rest.starts_with(known) {
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

/// Whether a header may carry what lets its sender in somewhere.
fn is_secret(name: &str) -> bool {
    ["auth", "key", "token", "secret", "cookie", "session", "sign", "pass", "cred"]
        .iter()
        .any(|part| name.contains(part))
}

/// The new value of a known header, and the end of its line.
fn changed(rest: &[u8], known: &[u8], line: &Line) -> Option<(HeaderValue, usize)> {
    let name = known.get(..=line.name.as_str().len()).filter(|name| name.ends_with(b":"))?;
    let end = 1 + memchr::memchr(b'\n', rest)?;
    let value = rest.get(..end)?.strip_suffix(b"\r\n")?.strip_prefix(name)?;
    let value = HeaderValue::from_bytes(without_blanks(value)).ok()?;
    (line.value != Value::Fixed).then_some((value, end))
}

/// Blanks around a value are no part of it; a carriage return is no blank.
fn without_blanks(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::{Heads, MAX_KNOWN};
    use crate::wire::written::Written;

    fn keep(heads: &mut Heads<usize>, text: &str, about: usize) {
        let mut slots = [httparse::EMPTY_HEADER; 8];
        let mut parsed = httparse::Request::new(&mut slots);
        assert!(parsed.parse(text.as_bytes()).unwrap().is_complete());
        let written = Written::copy(text.as_bytes());
        let headers = written.headers(text.as_bytes(), parsed.headers).unwrap();
        if let Some(known) = written.known(text.as_bytes(), parsed.headers, &headers, |name| name == "host") {
            heads.keep(known, about);
        }
    }

    fn head(target: &str, key: &str) -> String {
        format!("GET {target} HTTP/1.1\r\nhost: h\r\nX-Api-Key: {key}\r\n\r\n")
    }

    #[test]
    fn a_credential_is_read_anew_and_not_kept() {
        let mut heads = Heads::new();
        keep(&mut heads, &head("/a", "sk-one"), 1);
        assert!(!format!("{heads:?}").contains("sk-one"));
        for key in ["sk-one", "sk-two", ""] {
            let text = head("/a", key);
            let (_, headers, end) = heads.again(text.as_bytes()).unwrap();
            assert_eq!((headers["x-api-key"].as_bytes(), end), (key.as_bytes(), text.len()));
        }
    }

    #[test]
    fn a_target_with_a_query_is_not_kept_for_it_may_be_a_credential() {
        let mut heads = Heads::new();
        keep(&mut heads, &head("/a?key=sk-one", ""), 1);
        assert!(heads.again(head("/a?key=sk-one", "").as_bytes()).is_none());
    }

    #[test]
    fn of_many_heads_those_that_come_again_stay_known() {
        let mut heads = Heads::new();
        for about in 0..3 * MAX_KNOWN {
            keep(&mut heads, &head(&format!("/{about}"), ""), about);
            for often in [0, 1] {
                let text = head(&format!("/{often}"), "");
                assert_eq!(heads.again(text.as_bytes()).is_some(), often <= about);
            }
        }
        assert_eq!(heads.known.len(), MAX_KNOWN);
        let known =
            |target: &str| heads.known.iter().any(|(known, _)| known.written.starts_with(target.as_bytes()));
        assert!(known("GET /0 ") && known("GET /1 ") && !known("GET /9 "));
    }
}
