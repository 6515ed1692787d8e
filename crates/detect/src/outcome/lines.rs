//! A result as lines, and what they are compared by whatever their order.

use crate::words::hash_bytes;

/// The sum of the hashes of all lines; 0 for a single line, whose order cannot change.
pub(crate) fn hash_of_lines(text: &[u8]) -> u64 {
    let mut start = 0;
    let mut sum = 0_u64;
    for end in memchr::memchr_iter(b'\n', text) {
        sum = sum.wrapping_add(hash_of_a_line(hash_bytes(&text[start..end])));
        start = end + 1;
    }
    if start == 0 { 0 } else { sum.wrapping_add(hash_of_a_line(hash_bytes(&text[start..]))) }
}

/// What a line adds to that sum: its own hash, mixed so that the sum of several is as good as each.
pub(crate) const fn hash_of_a_line(hash: u64) -> u64 {
    let mixed = (hash ^ hash >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ mixed >> 32
}

/// Lines of a text; the two characters `\n` inside of JSON strings end a line too.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut from = 0;
        loop {
            let Some(at) = memchr::memchr2(b'\n', b'\\', &text[from..]).map(|at| from + at) else {
                rest = None;
                return Some(text);
            };
            if text[at] == b'\n' {
                rest = Some(&text[at + 1..]);
                return Some(&text[..at]);
            }
            if text.get(at + 1) == Some(&b'n') {
                rest = Some(&text[at + 2..]);
                return Some(&text[..at]);
            }
            from = (at + 2).min(text.len());
        }
    })
}

pub(super) fn last_line(text: &[u8]) -> &[u8] {
    lines(text).filter(|line| !line.trim_ascii().is_empty()).last().unwrap_or_default()
}
