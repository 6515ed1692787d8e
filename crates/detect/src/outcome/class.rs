//! What kind of error it is: the hash of what is left of its line without what names the particular case.

use crate::outcome::SCANNED;
use crate::outcome::report::counts_failures;
use crate::words::{EMPTY, fnv1a, hash_bytes};

/// The hash of an error's line in which everything that names the particular case is folded: numbers, quoted names,
/// paths, whatever stands in brackets. Some errors are one class however they are told.
pub(super) fn error_class(line: &[u8], asked: &[u8]) -> u64 {
    if let Some(phrase) =
        ONE_CLASS.iter().find(|phrase| memchr::memmem::find(line, phrase.as_bytes()).is_some())
    {
        return hash_bytes(phrase.as_bytes());
    }
    let mut hash = EMPTY;
    let mut rest = line;
    let mut last = 0;
    let mut folded = 0;
    let mut part_starts = true;
    while let Some((byte, behind)) = rest.split_first().filter(|_| folded < SCANNED) {
        folded += 1;
        let closing = match byte {
            // An apostrophe inside of a word opens no quotation.
            b'\'' if !(last as char).is_ascii_alphanumeric() => Some(b'\''),
            b'"' => Some(b'"'),
            b'`' => Some(b'`'),
            b'{' => Some(b'}'),
            b'[' => Some(b']'),
            b'(' => Some(b')'),
            _ => None,
        };
        let mut fold = *byte;
        let mut used = 1;
        let named = if part_starts { name_out_of(asked, rest) } else { 0 };
        if named > 0 {
            (fold, used) = (b'_', named);
        } else if let Some(end) = closing.and_then(|closing| end_of_group(*byte, closing, behind)) {
            used = end + 2;
        } else if byte.is_ascii_digit() {
            used = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
            if counts_failures(&rest[used..]) {
                // Five failures are not four.
                hash = rest[..used].iter().fold(hash, |hash, digit| fnv1a(hash, *digit));
            }
            fold = b'0';
        } else if *byte == b'/' || *byte == b'~' {
            fold = b'/';
            used = rest
                .iter()
                .take_while(|byte| !matches!(byte, b' ' | b':' | b',' | b';' | b'\'' | b'"' | b')'))
                .count();
        } else if byte.is_ascii_whitespace() {
            fold = b' ';
            used = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        }
        hash = fnv1a(hash, fold.to_ascii_lowercase());
        part_starts = last == b':' && *byte == b' ';
        last = rest[used - 1];
        rest = &rest[used..];
    }
    hash
}

/// The length of the single word that stands here between colons, when it comes out of the call: `no such column: x`
/// is about the `x` that was asked for, and no other kind of error than `no such column: y`.
fn name_out_of(asked: &[u8], line: &[u8]) -> usize {
    let part = memchr::memmem::find(line, b": ").map_or(line, |end| &line[..end]);
    let name = part.trim_ascii_end();
    let is_word = name.len() > 1 && !name.iter().any(u8::is_ascii_whitespace);
    if is_word && memchr::memmem::find(asked, name).is_some() { name.len() } else { 0 }
}

/// Where a quotation or bracket ends; brackets may hold others of their kind.
fn end_of_group(opening: u8, closing: u8, behind: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    memchr::memchr2_iter(opening, closing, behind).find(|at| {
        let closes = behind[*at] == closing;
        let outermost = closes && depth == 0;
        depth = if closes { depth.saturating_sub(1) } else { depth + 1 };
        outermost
    })
}

/// Complaints that are one class whoever makes them, and whatever stands around them: what was typed, the port, the
/// program that passes on what the system told it.
const ONE_CLASS: &[&str] =
    &["command not found", "No such container", "authentication failed", "Name or service not known"];
