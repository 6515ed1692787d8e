//! What an answer in JSON says of the call. The order of its fields means nothing, and neither does what it is wrapped
//! in: a tool of one server puts its answer into a string inside of a list inside of another answer.
//!
//! Only the answer's own fields count, and those of what it wraps. What stands deeper tells of something else: a list of
//! jobs may name one that failed.

use crate::outcome::answer::fields::{Fields, Kind};

mod fields;

/// What the fields of an answer say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Answer<'a> {
    /// The call failed.
    pub(super) failed: bool,
    /// What it says about that.
    pub(super) words: Option<&'a [u8]>,
}

/// So much of an answer is read. What comes later is data.
const LOOK_AT: usize = 1_500;
/// So long a heading may be.
const HEADING: usize = 60;
/// So deep an answer may be wrapped: each level is a call of its own here.
const DEEP: usize = 6;

impl<'a> Answer<'a> {
    /// Reads a text that is one object, or a list of the parts of a message; `None` when it is something else.
    pub(super) fn of(text: &'a [u8]) -> Option<Self> {
        let text = without_heading(text);
        let text = &text[..text.len().min(LOOK_AT)];
        let is_parts = text.starts_with(b"[{\"type\"") || text.starts_with(b"[{'type'");
        if !is_parts && text.first() != Some(&b'{') {
            return None;
        }
        let mut fields = Fields::default();
        let mut reader = Reader { text, at: 0, quoted: 0 };
        reader.value(Kind::Parts, 0, &mut fields);
        Some(fields.inner)
    }
}

/// What stands behind a few words and a colon or the end of their line, up to the end: who passes an object on may say
/// what it is, `Response: {…}`.
fn without_heading(text: &[u8]) -> &[u8] {
    let heading = text.iter().take(HEADING).position(|byte| matches!(byte, b'{' | b'['));
    let Some((heading, object)) = heading.and_then(|end| text.split_at_checked(end)) else { return text };
    let is_heading = heading.trim_ascii_end().ends_with(b":") || heading.ends_with(b"\n");
    if is_heading && object.ends_with(b"}") { object } else { text }
}

/// Reads JSON, and Python's way to write it, as far as it goes: results are cut short, and parts of them are folded.
#[derive(Debug)]
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    /// In how many strings all of this stands: their quotes have 1, 3, 7 … backslashes before them.
    quoted: u32,
}

impl<'a> Reader<'a> {
    /// Reads an object's fields.
    fn object(&mut self, depth: usize, fields: &mut Fields<'a>) {
        self.at += 1;
        loop {
            self.skip_space();
            match self.text.get(self.at) {
                None => return,
                Some(b'}' | b']') => {
                    self.at += 1;
                    return;
                }
                Some(_) => {}
            }
            let Some(quote) = self.quote() else {
                self.at += 1;
                continue;
            };
            if self.skip_folded() {
                continue;
            }
            let key = self.string(quote);
            self.skip_space();
            if self.text.get(self.at) == Some(&b':') {
                self.at += 1;
                self.skip_space();
                self.value(Kind::of(key), depth, fields);
            }
        }
    }

    /// Reads the value of a field.
    fn value(&mut self, kind: Kind, depth: usize, fields: &mut Fields<'a>) {
        if let Some(quote) = self.quote() {
            let text = self.string(quote);
            if kind.wraps() && depth < DEEP && matches!(text.first(), Some(b'{' | b'[')) {
                let mut inside = Reader { text, at: 0, quoted: self.quoted + 1 };
                inside.value(kind, depth + 1, fields);
            }
            fields.string(kind, text);
            return;
        }
        match self.text.get(self.at) {
            Some(opening @ (b'{' | b'[')) if depth < DEEP && fields.looks_into(kind, *opening) => {
                let is_list = *opening == b'[';
                let mut inside = fields.inside(kind);
                if is_list {
                    self.list(kind, depth + 1, &mut inside);
                } else {
                    self.object(depth + 1, &mut inside);
                }
                fields.group(kind, is_list, &inside);
            }
            Some(b'{' | b'[') => self.skip_group(),
            Some(_) => {
                let rest = &self.text[self.at..];
                let end = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b'\\'));
                let word = &rest[..end.unwrap_or(rest.len())];
                self.at += word.len();
                fields.word(kind, word.trim_ascii());
            }
            None => {}
        }
    }

    /// Reads a list as if each of its elements were the value of the field.
    fn list(&mut self, kind: Kind, depth: usize, fields: &mut Fields<'a>) {
        self.at += 1;
        loop {
            self.skip_space();
            let before = self.at;
            match self.text.get(self.at) {
                None => return,
                Some(b'}' | b']') => {
                    self.at += 1;
                    return;
                }
                Some(_) => self.value(kind, depth, fields),
            }
            // What cannot be read is left out.
            self.at = self.at.max(before + 1);
        }
    }

    /// White space, written as such or as `\n`, and commas.
    fn skip_space(&mut self) {
        while let Some(byte) = self.text.get(self.at) {
            let slashes = self.slashes();
            let escaped = slashes > 0 && matches!(self.text.get(self.at + slashes), Some(b'n' | b't' | b'r'));
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b',' => self.at += 1,
                b'\\' if escaped => self.at += slashes + 1,
                _ => return,
            }
        }
    }

    /// Backslashes that stand here.
    fn slashes(&self) -> usize {
        self.text[self.at..].iter().take_while(|byte| **byte == b'\\').count()
    }

    /// The quote that opens a string here, if one does.
    fn quote(&mut self) -> Option<u8> {
        let slashes = self.slashes();
        let quote = *self.text.get(self.at + slashes)?;
        let opens = match quote {
            b'"' => slashes.trailing_ones() == self.quoted,
            // Python's own needs no backslash in another string.
            b'\'' => slashes == 0,
            _ => false,
        };
        if opens {
            self.at += slashes + 1;
        }
        opens.then_some(quote)
    }

    /// The string that was opened, up to the same quote.
    fn string(&mut self, quote: u8) -> &'a [u8] {
        let start = self.at;
        while let Some(found) = memchr::memchr2(quote, b'\\', &self.text[self.at..]) {
            self.at += found;
            let slashes = self.slashes();
            let stop = self.at + slashes;
            let is_quote = self.text.get(stop) == Some(&quote);
            let closes = if quote == b'"' { slashes.trailing_ones() == self.quoted } else { slashes == 0 };
            if is_quote && closes {
                // The backslashes before the quote are its own.
                let end = stop - (1_usize << self.quoted.min(8)).saturating_sub(1).min(slashes);
                self.at = stop + 1;
                return &self.text[start..end];
            }
            self.at = (stop + 1).min(self.text.len());
        }
        self.at = self.text.len();
        &self.text[start..]
    }

    /// What was folded may have taken a field's closing quote and its value with it.
    fn skip_folded(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let end = rest.iter().take(12).position(|byte| *byte == b'>').filter(|_| rest.starts_with(b"<"));
        let Some(behind) = end.map(|end| &rest[end + 1..]) else { return false };
        let next = behind.trim_ascii_start().first();
        let is_field = matches!(next, None | Some(b',' | b'}' | b']'));
        if is_field {
            self.at = self.text.len() - behind.len();
        }
        is_field
    }

    /// Goes past an object or a list.
    fn skip_group(&mut self) {
        let mut open = 0_usize;
        while let Some(byte) = self.text.get(self.at) {
            if let Some(quote) = self.quote() {
                if !self.skip_folded() {
                    self.string(quote);
                }
                continue;
            }
            match byte {
                b'{' | b'[' => open += 1,
                b'}' | b']' => open = open.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
