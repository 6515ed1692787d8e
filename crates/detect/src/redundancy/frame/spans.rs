//! The lines at both ends of a text, or the members of an object, and what they say without what may change.

use super::{HEAD, TAIL};
use crate::fingerprint::Fingerprint;
use crate::words::{EMPTY, fnv1a};

/// Where the lines at both ends of a text stand, those of white space left out.
pub(super) struct Spans {
    lines: [(usize, usize); HEAD + TAIL],
    count: usize,
    /// What stands between those of the head and those of the tail.
    between: (usize, usize),
    /// They are the members of one object.
    pub(super) are_members: bool,
}

impl Spans {
    pub(super) fn of(text: &[u8]) -> Self {
        Self::of_members(text).unwrap_or_else(|| Self::of_lines(text))
    }

    const fn none() -> Self {
        Self { lines: [(0, 0); HEAD + TAIL], count: 0, between: (0, 0), are_members: false }
    }

    fn of_lines(text: &[u8]) -> Self {
        let mut spans = Self::none();
        let mut from = 0;
        while from < text.len() && spans.count < HEAD {
            let end = memchr::memchr(b'\n', &text[from..]).map_or(text.len(), |at| from + at);
            spans.add(text, from, end);
            from = end + 1;
        }
        let head = spans.count;
        let mut until = text.len();
        while from < until {
            if spans.count == head + TAIL {
                spans.between = (from, until);
                break;
            }
            let start = memchr::memrchr(b'\n', &text[from..until]).map_or(from, |at| from + at + 1);
            spans.add(text, start, until);
            until = start.saturating_sub(1);
        }
        spans.lines[head..spans.count].reverse();
        spans
    }

    /// The members of an object that stands on one line, as JSON or as Python writes it, and those of the objects in it; `None`
    /// when the text is something else, or there are more of them than lines are looked at.
    fn of_members(text: &[u8]) -> Option<Self> {
        let is_object = text.len() <= LONGEST && text.starts_with(b"{") && text.ends_with(b"}");
        if !is_object || memchr::memchr(b'\n', text).is_some() {
            return None;
        }
        let mut spans = Self { are_members: true, ..Self::none() };
        let (mut depth, mut start, mut at) = (0, 0, 0);
        while let Some(byte) = text.get(at) {
            match byte {
                b'"' | b'\'' => at = end_of_string(text, at),
                b'[' => at = end_of_group(text, at),
                b'{' if depth == DEEP => at = end_of_group(text, at),
                b'{' | b'}' | b',' => {
                    if spans.count == spans.lines.len() {
                        return None;
                    }
                    // The key of an object within is a member of its own.
                    spans.add(text, start, at);
                    depth = if *byte == b'{' { depth + 1 } else { depth - usize::from(*byte == b'}') };
                    start = at + 1;
                }
                _ => {}
            }
            at += 1;
            if depth == 0 {
                break;
            }
        }
        (at == text.len() && spans.count > 1).then_some(spans)
    }

    fn add(&mut self, text: &[u8], start: usize, end: usize) {
        if !text[start..end].trim_ascii().is_empty() {
            self.lines[self.count] = (start, end);
            self.count += 1;
        }
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (usize, usize)> + ExactSizeIterator {
        self.lines[..self.count].iter().copied()
    }

    /// The hash of what stands between them; 0 when nothing does.
    pub(super) fn between(&self, text: &[u8]) -> u128 {
        match &text[self.between.0..self.between.1] {
            [] => 0,
            between => Fingerprint::of_bytes(b"result", between).short(),
        }
    }
}

/// A longer object is data.
const LONGEST: usize = 16 * 1024;
/// Objects in objects are looked into as deep as this: data lies deeper than what is said about it.
const DEEP: usize = 2;

/// Where the string that begins here ends. What was folded may have taken the quote at its end with it.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let (quote, mut at) = (text[start], start + 1);
    if let Some(folded) = text[at..].strip_prefix(b"<") {
        let name = folded.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        if let [b'>', b',' | b'}', ..] = folded[name..] {
            return at + 1 + name;
        }
    }
    while let Some(found) = memchr::memchr2(quote, b'\\', &text[at..]) {
        at += found;
        if text[at] == quote {
            return at;
        }
        at = (at + 2).min(text.len());
    }
    text.len()
}

/// Where the list or the object that begins here ends.
fn end_of_group(text: &[u8], start: usize) -> usize {
    let (mut open, mut at) = (0_usize, start);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' | b'\'' => at = end_of_string(text, at),
            b'{' | b'[' => open += 1,
            b'}' | b']' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// What a line says, numbers and made-up names aside: each run of letters and digits with a digit in it counts as one
/// and the same.
#[derive(Default)]
pub(super) struct Shape {
    /// 0 when there are no words.
    pub(super) hash: u32,
    /// The first number.
    pub(super) number: u32,
}

impl Shape {
    pub(super) fn of(line: &[u8]) -> Self {
        let (mut hash, mut letters, mut number) = (EMPTY, 0, 0);
        let mut rest = line;
        while let Some(first) = rest.first() {
            // A word is hashed while its end is looked for: most have no digit, and are what they say.
            let (mut run, mut said, mut has_digit) = (0, hash, false);
            for byte in rest {
                match IN_WORDS[usize::from(*byte)] {
                    InWords::Never => break,
                    letter_or_digit => has_digit |= letter_or_digit == InWords::Digit,
                }
                said = fnv1a(said, *byte);
                run += 1;
            }
            if run == 0 {
                hash = fnv1a(hash, *first);
                rest = &rest[1..];
                continue;
            }
            let (word, behind) = rest.split_at(run);
            rest = behind;
            if has_digit {
                hash = fnv1a(hash, b'0');
                if number == 0 {
                    number = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok()).unwrap_or(0);
                }
                // `12,731`, `9,731` and `0.3` are a number each.
                while let [b',' | b'.' | b':', digit, ..] = rest
                    && digit.is_ascii_digit()
                {
                    rest = &rest[1..];
                    rest = &rest[rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count()..];
                }
            } else {
                letters += run;
                hash = said;
            }
        }
        let hash = if letters >= 2 { (hash ^ hash >> 32) as u32 | 1 } else { 0 };
        Self { hash, number }
    }
}

/// What a byte is to words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InWords {
    Never,
    Letter,
    Digit,
}

/// Of each byte. A line of a result is read byte by byte, so there is a table.
const IN_WORDS: [InWords; 256] = {
    let mut kinds = [InWords::Letter; 256];
    let mut byte = 0;
    while byte < 128 {
        kinds[byte] = match byte as u8 {
            b'0'..=b'9' => InWords::Digit,
            b'a'..=b'z' | b'A'..=b'Z' => InWords::Letter,
            _ => InWords::Never,
        };
        byte += 1;
    }
    kinds
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Spans;

    fn members(text: &str) -> Vec<&str> {
        let Some(spans) = Spans::of_members(text.as_bytes()) else { return Vec::new() };
        spans.iter().map(|(start, end)| text[start..end].trim()).collect()
    }

    #[test]
    fn an_object_has_members() {
        assert_eq!(
            members(r#"{"id":"a,}","rows":[{"n":1},2],"ok":true}"#),
            [r#""id":"a,}""#, r#""rows":[{"n":1},2]"#, r#""ok":true"#]
        );
        assert_eq!(members(r"{'said': 'it\'s, so', 'n': 1}"), [r"'said': 'it\'s, so'", "'n': 1"]);
        assert_eq!(
            members(r#"{"a":1,"meta":{"b":2,"deep":{"c":3,"d":4}}}"#),
            [r#""a":1"#, r#""meta":"#, r#""b":2"#, r#""deep":{"c":3,"d":4}"#]
        );
    }

    #[test]
    fn what_was_folded_leaves_a_member() {
        assert_eq!(
            members(r#"{"<time>,"a":"b","<duration>}"#),
            [r#""<time>"#, r#""a":"b""#, r#""<duration>"#]
        );
    }

    #[test]
    fn what_is_no_object_on_one_line_has_none() {
        for text in [
            r#"{"a":1}"#,
            r#"{"a":1,"b":2"#,
            r#"{"a":1,"b":2} {}"#,
            r#"[{"a":1,"b":2}]"#,
            "{\"a\":1,\n\"b\":2}",
        ] {
            assert!(members(text).is_empty(), "{text}");
        }
        let many: Vec<String> = (0..30).map(|n| format!("\"m{n}\":{n}")).collect();
        assert!(members(&format!("{{{}}}", many.join(","))).is_empty());
    }

    proptest! {
        #[test]
        fn members_stand_one_after_the_other(text in r#"\{([{}\[\],:"'<>\\ a-c0-1]|"[a-b]{1,3}":[0-9],){0,40}\}"#) {
            let mut from = 0;
            for (start, end) in Spans::of(text.as_bytes()).iter() {
                prop_assert!(from <= start && start < end && end <= text.len());
                from = end;
            }
        }
    }
}
