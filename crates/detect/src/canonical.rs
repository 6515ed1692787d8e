//! Canonical JSON: one spelling for every way of writing the same value.
//!
//! RFC 8785 order and number form, with integers kept exact beyond 2^53. The writer goes over the text once, without
//! a tree: each object's members are written where they end up, and only an object whose keys came out of order is
//! put right when it closes. Nesting costs memory on the heap, never stack, so no input can overflow it.

use std::cmp::Ordering;

use crate::number::write_number;
use crate::remark::{Part, Parts};
use crate::scan::string_stop;

/// The canonical form of a JSON text, or `None` when it is not JSON.
///
/// ```
/// use loopbreaker::canonical_json;
/// assert_eq!(canonical_json(r#"{ "b": 1.0, "a": [1e0, "\u0041"] }"#).as_deref(), Some(r#"{"a":[1,"A"],"b":1}"#));
/// assert_eq!(canonical_json("{"), None);
/// ```
pub fn canonical_json(text: &str) -> Option<String> {
    let mut writer = Writer::default();
    writer.write(text, Keep::All).ok()?;
    String::from_utf8(writer.out).ok()
}

/// The text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotJson;

/// What is kept of the outermost object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keep<'k> {
    All,
    /// The members with these names.
    Only(&'k [String]),
    /// Of a call's arguments, what it does: without what it only says about itself.
    Deeds,
}

/// Writes canonical JSON; made to be kept and used again, so that it stops allocating once it is warm.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// What has been written of the current text.
    out: Vec<u8>,
    /// Open objects and arrays, the innermost last.
    open: Vec<Open>,
    /// Members of all open objects, the innermost last.
    members: Vec<Member>,
    /// Where an object is put into order.
    sorting: Vec<u8>,
    /// The outermost object, as that of a call, says something about itself.
    has_remarks: bool,
}

/// An object or array that is not closed yet.
#[derive(Debug, Clone, Copy)]
enum Open {
    Array,
    /// Index of the object's first entry in `members`.
    Object(usize),
}

/// Where one member of an object stands in `out`, with its comma.
#[derive(Debug, Clone, Copy)]
struct Member {
    start: usize,
    key_end: usize,
    end: usize,
    /// The key's first eight bytes as a number, which decides nearly every comparison; `None` for a key with escapes
    /// or beyond ASCII, whose order is another.
    prefix: Option<u64>,
}

impl Writer {
    /// Buffers larger than this are given back after use, so that one huge call does not pin memory for ever.
    pub(crate) const KEEP: usize = 256 * 1024;

    /// The canonical form that was written last.
    pub(crate) fn written(&self) -> &[u8] {
        &self.out
    }

    /// Whether [`Keep::Deeds`] may keep less of what was written last than [`Keep::All`].
    pub(crate) const fn has_remarks(&self) -> bool {
        self.has_remarks
    }

    /// Gives back buffers that one huge text has blown up.
    pub(crate) fn shrink(&mut self) {
        if self.out.capacity() + self.sorting.capacity() > Self::KEEP {
            self.out = Vec::new();
            self.sorting = Vec::new();
        }
        if self.members.capacity() > Self::KEEP / size_of::<Member>() {
            self.members = Vec::new();
            self.open = Vec::new();
        }
    }

    /// Writes the canonical form of `text`, as much of it as is to be kept.
    pub(crate) fn write(&mut self, text: &str, keep: Keep<'_>) -> Result<(), NotJson> {
        self.out.clear();
        self.has_remarks = false;
        self.open.clear();
        self.members.clear();
        let mut input = Input { bytes: text.as_bytes(), at: 0 };
        loop {
            // A value starts here.
            input.skip_space();
            match input.next()? {
                b'{' => {
                    self.out.push(b'{');
                    self.open.push(Open::Object(self.members.len()));
                    input.skip_space();
                    if input.peek() != Some(b'}') {
                        self.key(&mut input)?;
                        continue;
                    }
                }
                b'[' => {
                    self.out.push(b'[');
                    self.open.push(Open::Array);
                    input.skip_space();
                    if input.peek() != Some(b']') {
                        continue;
                    }
                }
                b'"' => {
                    input.string(&mut self.out)?;
                }
                b't' => input.literal(b"true", &mut self.out)?,
                b'f' => input.literal(b"false", &mut self.out)?,
                b'n' => input.literal(b"null", &mut self.out)?,
                b'-' | b'0'..=b'9' => input.number(&mut self.out)?,
                _ => return Err(NotJson),
            }
            if self.close_ended(&mut input, keep)? {
                return Ok(());
            }
        }
    }

    /// After a value: closes what ends here and gets to the next value. `true` when the text is at its end.
    fn close_ended(&mut self, input: &mut Input<'_>, keep: Keep<'_>) -> Result<bool, NotJson> {
        loop {
            input.skip_space();
            let Some(innermost) = self.open.last().copied() else {
                return if input.peek().is_none() { Ok(true) } else { Err(NotJson) };
            };
            match (innermost, input.next()?) {
                (Open::Array, b',') => {
                    self.out.push(b',');
                    return Ok(false);
                }
                (Open::Array, b']') => self.out.push(b']'),
                (Open::Object(_), b',') => {
                    self.end_member();
                    input.skip_space();
                    self.key(input)?;
                    return Ok(false);
                }
                (Open::Object(first), b'}') => {
                    if self.members.len() > first {
                        self.end_member();
                    }
                    self.sort_members(first, self.open.len() == 1, keep);
                    self.out.push(b'}');
                }
                _ => return Err(NotJson),
            }
            self.open.pop();
        }
    }

    fn key(&mut self, input: &mut Input<'_>) -> Result<(), NotJson> {
        let start = self.out.len();
        if input.next()? != b'"' {
            return Err(NotJson);
        }
        let written_at = input.at;
        let escaped = input.string(&mut self.out)?;
        let key_end = self.out.len();
        let prefix = if escaped { None } else { input.prefix(written_at, key_end - start - 2) };
        self.members.push(Member { start, key_end, end: 0, prefix });
        input.skip_space();
        if input.next()? != b':' {
            return Err(NotJson);
        }
        self.out.push(b':');
        Ok(())
    }

    fn end_member(&mut self) {
        self.out.push(b',');
        let end = self.out.len();
        if let Some(member) = self.members.last_mut() {
            member.end = end;
        }
    }

    /// Puts the members from `first` on into order, drops all but the last of equal keys and, of the outermost object,
    /// what is not kept, and takes the last comma off.
    fn sort_members(&mut self, first: usize, outermost: bool, keep: Keep<'_>) {
        let parts = if outermost { self.parts(first) } else { Parts::default() };
        self.has_remarks |= parts.have_remarks();
        let members = &mut self.members[first..];
        if let Some(start) = members.first().map(|member| member.start) {
            let key = |member: &Member| &self.out[member.start + 1..member.key_end - 1];
            let compare = |a: &Member, b: &Member| match (a.prefix, b.prefix) {
                (Some(first), Some(second)) => first.cmp(&second).then_with(|| key(a).cmp(key(b))),
                _ => Units::of(key(a)).cmp(Units::of(key(b))),
            };
            let in_order = members.windows(2).all(|pair| compare(&pair[0], &pair[1]) == Ordering::Less);
            let is_kept = |member: &Member| match keep {
                Keep::Only(names) if outermost => names.iter().any(|name| is_escaped_form(key(member), name)),
                Keep::Deeds if parts.have_remarks() => !parts.leave_out(Part::of(key(member))),
                _ => true,
            };
            if !in_order || !members.iter().all(is_kept) {
                // Unstable with the position as tie-break: the stable sort of the standard library allocates.
                members.sort_unstable_by(|a, b| compare(a, b).then(a.start.cmp(&b.start)));
                self.sorting.clear();
                for (index, member) in members.iter().enumerate() {
                    let repeated_later = members.get(index + 1).is_some_and(|next| key(next) == key(member));
                    if !repeated_later && is_kept(member) {
                        self.sorting.extend_from_slice(&self.out[member.start..member.end]);
                    }
                }
                self.out.truncate(start);
                self.out.extend_from_slice(&self.sorting);
            }
            if self.out.last() == Some(&b',') {
                self.out.pop();
            }
        }
        self.members.truncate(first);
    }
}

impl Writer {
    /// Which parts the members from `first` on are, should they be the arguments of a call.
    fn parts(&self, first: usize) -> Parts {
        let mut parts = Parts::default();
        for member in &self.members[first..] {
            parts.add(Part::of(&self.out[member.start + 1..member.key_end - 1]));
        }
        parts
    }
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Input<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8, NotJson> {
        let byte = self.peek().ok_or(NotJson)?;
        self.at += 1;
        Ok(byte)
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn literal(&mut self, word: &[u8], out: &mut Vec<u8>) -> Result<(), NotJson> {
        let start = self.at - 1;
        if self.bytes.get(start..start + word.len()) != Some(word) {
            return Err(NotJson);
        }
        self.at = start + word.len();
        out.extend_from_slice(word);
        Ok(())
    }

    fn number(&mut self, out: &mut Vec<u8>) -> Result<(), NotJson> {
        let start = self.at - 1;
        while matches!(self.peek(), Some(b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
            self.at += 1;
        }
        write_number(&self.bytes[start..self.at], out)
    }

    /// The first bytes of a key of `len` bytes without escapes, the missing ones as zeros; `None` when the order of its
    /// bytes is not the order of its UTF-16 code units.
    fn prefix(&self, at: usize, len: usize) -> Option<u64> {
        let first = u64::from_be_bytes(*self.bytes[at..].first_chunk()?);
        let prefix = if len < 8 { first & !(u64::MAX >> (8 * len)) } else { first };
        let ascii =
            prefix & 0x8080_8080_8080_8080 == 0 && (len <= 8 || self.bytes[at + 8..at + len].is_ascii());
        ascii.then_some(prefix)
    }

    /// Copies a string whose opening quote has been read, in its canonical escapes; says whether it has any.
    #[inline]
    fn string(&mut self, out: &mut Vec<u8>) -> Result<bool, NotJson> {
        let quoted = &self.bytes[self.at - 1..];
        match string_stop(&quoted[1..]) {
            Some(stop) if quoted[stop + 1] == b'"' => {
                self.at += stop + 1;
                copy(&quoted[..stop + 2], quoted, out);
                Ok(false)
            }
            _ => self.escaped_string(out),
        }
    }

    /// The same where there are escapes.
    #[inline(never)]
    fn escaped_string(&mut self, out: &mut Vec<u8>) -> Result<bool, NotJson> {
        let mut escaped = false;
        out.push(b'"');
        // What is written as it should be is copied all at once: most escapes have one form only.
        let mut rest = &self.bytes[self.at..];
        let mut kept = 0;
        loop {
            let stop = kept + string_stop(&rest[kept..]).ok_or(NotJson)?;
            match (rest[stop], rest.get(stop + 1)) {
                (b'"', _) => {
                    self.at += stop + 1;
                    copy(&rest[..=stop], rest, out);
                    return Ok(escaped);
                }
                (b'\\', Some(b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't')) => kept = stop + 2,
                (b'\\', _) => {
                    out.extend_from_slice(&rest[..stop]);
                    self.at += stop + 1;
                    self.escape(out)?;
                    (rest, kept) = (&self.bytes[self.at..], 0);
                }
                // JSON forbids raw control characters, and a writer that let them pass would give one value two forms.
                _ => return Err(NotJson),
            }
            escaped = true;
        }
    }

    /// Writes what an escape stands for that has other forms, and whose backslash has been read.
    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), NotJson> {
        match self.next()? {
            b'/' => out.push(b'/'),
            b'u' => {
                let unit = self.hex4()?;
                let low = match unit {
                    0xD800..=0xDBFF if self.bytes[self.at..].starts_with(b"\\u") => {
                        let back = self.at;
                        self.at += 2;
                        let low = self.hex4()?;
                        if !(0xDC00..=0xDFFF).contains(&low) {
                            self.at = back;
                        }
                        Some(low).filter(|low| (0xDC00..=0xDFFF).contains(low))
                    }
                    _ => None,
                };
                let code = low.map_or(unit, |low| 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
                write_char(code, out);
            }
            _ => return Err(NotJson),
        }
        Ok(())
    }

    fn hex4(&mut self) -> Result<u32, NotJson> {
        let digits = self.bytes.get(self.at..self.at + 4).ok_or(NotJson)?;
        self.at += 4;
        digits.iter().try_fold(0, |value, byte| Ok(value * 16 + (*byte as char).to_digit(16).ok_or(NotJson)?))
    }
}

/// Appends `part`, with which `rest` starts. A copy of fixed length is a few instructions, of any other one a call.
fn copy(part: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    match rest.first_chunk::<16>() {
        Some(sixteen) if part.len() <= 16 => {
            let len = out.len() + part.len();
            out.extend_from_slice(sixteen);
            out.truncate(len);
        }
        _ => out.extend_from_slice(part),
    }
}

/// Writes a decoded character in its canonical form. A lone surrogate is no character: it keeps its escape.
fn write_char(code: u32, out: &mut Vec<u8>) {
    match char::from_u32(code) {
        Some('"') => out.extend_from_slice(b"\\\""),
        Some('\\') => out.extend_from_slice(b"\\\\"),
        Some('\u{8}') => out.extend_from_slice(b"\\b"),
        Some('\t') => out.extend_from_slice(b"\\t"),
        Some('\n') => out.extend_from_slice(b"\\n"),
        Some('\u{c}') => out.extend_from_slice(b"\\f"),
        Some('\r') => out.extend_from_slice(b"\\r"),
        Some(char) if char >= ' ' => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        _ => {
            out.extend_from_slice(b"\\u");
            for shift in [12, 8, 4, 0] {
                out.push(b"0123456789abcdef"[(code >> shift & 0xF) as usize]);
            }
        }
    }
}

/// The UTF-16 code units of a key in canonical form, which is what RFC 8785 sorts by.
struct Units<'a> {
    rest: std::str::Chars<'a>,
    low: Option<u16>,
}

impl<'a> Units<'a> {
    fn of(key: &'a [u8]) -> Self {
        Self { rest: std::str::from_utf8(key).unwrap_or_default().chars(), low: None }
    }
}

impl Iterator for Units<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        if let Some(low) = self.low.take() {
            return Some(low);
        }
        let char = match self.rest.next()? {
            '\\' => match self.rest.next()? {
                'b' => '\u{8}',
                't' => '\t',
                'n' => '\n',
                'f' => '\u{c}',
                'r' => '\r',
                'u' => {
                    let digits = self.rest.by_ref().take(4);
                    return Some(
                        digits.fold(0, |unit, digit| unit << 4 | digit.to_digit(16).unwrap_or(0) as u16),
                    );
                }
                char => char,
            },
            char => char,
        };
        let mut units = [0; 2];
        let encoded = char.encode_utf16(&mut units);
        self.low = encoded.get(1).copied();
        Some(encoded[0])
    }
}

/// Whether a key in canonical form stands for this name.
fn is_escaped_form(key: &[u8], name: &str) -> bool {
    if key.contains(&b'\\') { Units::of(key).eq(name.encode_utf16()) } else { key == name.as_bytes() }
}

#[cfg(test)]
mod tests;
