//! What canonical arguments name: fields, numbers, paths.

use crate::saved::Saved;
use crate::scan::first_digit;
use crate::words::{end_of_string, hash_bytes};

/// The members of a canonical JSON object: names (as written, without quotes) and values.
pub(crate) fn fields(canonical: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = canonical.strip_prefix(b"{").unwrap_or_default();
    std::iter::from_fn(move || {
        let name_end = 1 + end_of_string(rest.strip_prefix(b"\"")?);
        let value = rest.get(name_end + 2..)?;
        let value_end = value_end(value);
        let field = (&rest[1..name_end], &value[..value_end]);
        rest = value.get(value_end + 1..).unwrap_or_default();
        Some(field)
    })
}

/// Appends the text of a canonical JSON string, its escapes undone, for reading only: other escapes than the common ones
/// become spaces.
pub(crate) fn unescape(value: &[u8], out: &mut Vec<u8>) {
    let Some(inside) = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")) else {
        out.extend_from_slice(value);
        return;
    };
    let mut rest = inside;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let escape = rest.get(at + 1).copied().unwrap_or(b' ');
        out.push(match escape {
            b'n' | b'r' => b'\n',
            b't' | b'b' | b'f' | b'u' => b' ',
            byte => byte,
        });
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
}

/// Up to four numbers of the arguments, in order: enough to see a page or an offset move. Digits inside of a name
/// (`file2`) count nothing.
pub(crate) fn numbers(canonical: &[u8]) -> [i64; 4] {
    let mut found = [0; 4];
    let mut len = 0;
    let mut at = 0;
    while let Some(start) = first_digit(&canonical[at..]).map(|start| at + start) {
        let digits = canonical[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        at = start + digits;
        let named =
            start > 0 && (canonical[start - 1].is_ascii_alphanumeric() || canonical[start - 1] == b'_');
        if named {
            continue;
        }
        if len == found.len() {
            break;
        }
        found[len] = canonical[start..at]
            .iter()
            .fold(0_i64, |number, digit| number.wrapping_mul(10).wrapping_add(i64::from(digit - b'0')));
        len += 1;
    }
    found
}

/// The files and folders that a call names, as hashes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Places {
    hashes: [u32; Self::MAX],
    len: u8,
    /// More were named than are kept: it may be anything.
    overflow: bool,
    /// A folder is named from the root on, in which anything may be that is named from within.
    rooted_folder: bool,
    /// Something is named from where the agent stands.
    from_within: bool,
}

impl Saved for Places {
    fn save(&self, out: &mut Vec<u8>) {
        self.hashes[..self.len.into()].to_vec().save(out);
        self.overflow.save(out);
        self.rooted_folder.save(out);
        self.from_within.save(out);
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        let mut places = Self::default();
        let kept = Vec::<u32>::load(from)?;
        places.hashes.get_mut(..kept.len())?.copy_from_slice(&kept);
        places.len = kept.len() as u8;
        places.overflow = bool::load(from)?;
        places.rooted_folder = bool::load(from)?;
        places.from_within = bool::load(from)?;
        Some(places)
    }
}

impl Places {
    const MAX: usize = 8;

    /// The places that a text names. Of a place that is written to, its folders are touched as well.
    pub(crate) fn of(text: &[u8], written: bool) -> Self {
        let mut places = Self::default();
        let breaks = |byte: &u8| {
            byte.is_ascii_whitespace()
                || matches!(
                    byte,
                    b'"' | b'\''
                        | b'`'
                        | b','
                        | b';'
                        | b'('
                        | b')'
                        | b'|'
                        | b'&'
                        | b'<'
                        | b'>'
                        | b'='
                        | b'{'
                        | b'}'
                        | b'['
                        | b']'
                )
        };
        // A path has a dot or a slash, and most words have neither.
        let mut from = 0;
        while let Some(found) = memchr::memchr2(b'.', b'/', &text[from..]).map(|found| from + found) {
            let start = text[from..found].iter().rposition(breaks).map_or(from, |before| from + before + 1);
            let end = text[found..].iter().position(breaks).map_or(text.len(), |behind| found + behind);
            if is_path(&text[start..end]) {
                places.add_path(&text[start..end], written);
            }
            from = end;
        }
        places
    }

    /// The place that a field names as such: `Makefile` has neither a dot nor a slash.
    pub(crate) fn add_field(&mut self, name: &[u8], value: &[u8], written: bool) {
        let is_place = matches!(
            name,
            b"path" | b"file" | b"file_path" | b"filepath" | b"filename" | b"file_name" | b"target_file"
        );
        if !is_place {
            return;
        }
        let Some(path) = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")) else {
            return;
        };
        if !path.is_empty() && !path.contains(&b' ') && !path.contains(&b'\\') && !is_path(path) {
            self.add_path(path, written);
        }
    }

    fn add_path(&mut self, path: &[u8], written: bool) {
        let path = path.strip_prefix(b"./").unwrap_or(path);
        let path = path.strip_suffix(b"/").unwrap_or(path);
        // `file.py:12` names the file.
        let path = path.split(|byte| *byte == b':').next().unwrap_or(path);
        let is_rooted = path.starts_with(b"/");
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        self.rooted_folder |= is_rooted && !name.contains(&b'.');
        self.from_within |= !is_rooted;
        self.add(path);
        let mut folder = path;
        while let Some(slash) = folder.iter().rposition(|byte| *byte == b'/') {
            if folder.len() == path.len() {
                self.add(&path[slash + 1..]);
            }
            folder = &folder[..slash];
            if !written || folder.is_empty() {
                break;
            }
            self.add(folder);
        }
    }

    fn add(&mut self, name: &[u8]) {
        let hash = hash_bytes(name) as u32;
        if self.hashes[..self.len.into()].contains(&hash) {
            return;
        }
        match self.hashes.get_mut(usize::from(self.len)) {
            Some(free) => {
                *free = hash;
                self.len += 1;
            }
            None => self.overflow = true,
        }
    }

    /// Whether none is named.
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the two surely name different things.
    pub(crate) fn apart_from(&self, other: &Self) -> bool {
        let (mine, theirs) = (&self.hashes[..self.len.into()], &other.hashes[..other.len.into()]);
        let may_hold = |one: &Self, two: &Self| one.rooted_folder && two.from_within;
        !mine.is_empty()
            && !may_hold(self, other)
            && !may_hold(other, self)
            && !theirs.is_empty()
            && !self.overflow
            && !other.overflow
            && !mine.iter().any(|place| theirs.contains(place))
    }
}

fn is_path(word: &[u8]) -> bool {
    let is_address = word.starts_with(b"http") || word.contains(&b'@');
    if word.len() < 2 || word.len() > 300 || word.starts_with(b"-") || is_address {
        return false;
    }
    let name = word.iter().rposition(|byte| *byte == b'/').map_or(word, |slash| &word[slash + 1..]);
    let extension = name.iter().rposition(|byte| *byte == b'.').map(|dot| &name[dot + 1..]);
    let has_extension = extension.is_some_and(|extension| {
        (1..=5).contains(&extension.len())
            && extension.iter().all(u8::is_ascii_alphanumeric)
            && extension.iter().any(u8::is_ascii_alphabetic)
    });
    has_extension || (word.contains(&b'/') && word.iter().any(u8::is_ascii_alphabetic))
}

/// Where the comma or brace behind a value stands.
fn value_end(value: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = value.get(at) {
        match byte {
            b'"' => at += 1 + end_of_string(&value[at + 1..]),
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 0 => depth -= 1,
            b',' | b'}' | b']' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    value.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Places, fields, numbers, unescape};

    #[test]
    fn fields_come_with_their_whole_values() {
        let found: Vec<_> = fields(br#"{"a":{"x":[1,"}"]},"b\"":"q\"}","c":12}"#).collect();
        let expected: [(&[u8], &[u8]); 3] =
            [(b"a", br#"{"x":[1,"}"]}"#), (br#"b\""#, br#""q\"}""#), (b"c", b"12")];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_no_object_has_no_fields() {
        for text in ["", "[1]", "\"x\"", "{}", "ls -la"] {
            assert_eq!(fields(text.as_bytes()).count(), 0, "{text}");
        }
    }

    #[test]
    fn a_string_is_unescaped_for_reading() {
        let mut out = Vec::new();
        unescape(br#""a\nb\"c\\d""#, &mut out);
        assert_eq!(out, b"a\nb\"c\\d");
    }

    #[test]
    fn the_first_four_numbers_are_found() {
        assert_eq!(numbers(br#"{"limit":200,"offset":1400,"path":"f2"}"#), [200, 1400, 0, 0]);
    }

    #[test]
    fn a_folder_holds_the_file_that_was_written_in_it() {
        let read = Places::of(b"grep -r foo src/", false);
        assert!(!read.apart_from(&Places::of(b"src/parser/lexer.rs", true)));
        assert!(read.apart_from(&Places::of(b"docs/readme.md", true)));
    }

    #[test]
    fn a_file_is_the_same_by_its_name_alone() {
        assert!(!Places::of(b"cat a.rs", false).apart_from(&Places::of(b"/work/src/a.rs", true)));
    }

    #[test]
    fn a_line_number_is_no_part_of_a_files_name() {
        assert!(!Places::of(b"open src/a.rs:12", false).apart_from(&Places::of(b"src/a.rs", true)));
    }

    #[test]
    fn an_address_is_no_file() {
        let page = Places::of(b"https://example.com/a.html", false);
        assert!(!page.apart_from(&Places::of(b"notes.md", true)), "what it shows may be anything");
    }

    #[test]
    fn what_names_nothing_may_be_anything() {
        assert!(!Places::of(b"make", false).apart_from(&Places::of(b"a.rs", true)));
        let many = (0..20).map(|i| format!("f{i}.rs")).collect::<Vec<_>>().join(" ");
        assert!(!Places::of(many.as_bytes(), true).apart_from(&Places::of(b"other.rs", false)));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            fields(&bytes).count();
            numbers(&bytes);
            Places::of(&bytes, true);
            unescape(&bytes, &mut Vec::new());
        }

        #[test]
        fn broken_objects_never_panic(text in r#"[\{\}\[\]",:\\a1]{0,30}"#) {
            fields(text.as_bytes()).count();
        }
    }
}
