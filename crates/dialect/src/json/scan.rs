//! Where white space and strings end. Most strings are a word or two, and there eight bytes at a time are faster than a
//! vectorised search, which has hardly begun when it is done.

/// The next place at which there is no white space.
#[inline]
pub(super) fn behind_space(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(byte) if *byte <= b' ' => behind_all_space(bytes, at),
        _ => at,
    }
}

/// The same where some may come. Whoever writes each member on a line of its own indents it with many spaces, so eight of
/// them are looked at together.
#[inline(never)]
fn behind_all_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
        while bytes.get(at) == Some(&b' ')
            && let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>)
        {
            let others = u64::from_le_bytes(*eight) ^ u64::from_le_bytes([b' '; 8]);
            at += (others.trailing_zeros() / 8) as usize;
        }
    }
    at
}

/// The place behind the string, number or word that begins at `start`; `None` when none does.
#[inline]
pub(super) fn scalar_end(bytes: &[u8], start: usize) -> Option<usize> {
    let word = |word: &[u8]| bytes.get(start..)?.starts_with(word).then_some(start + word.len());
    match bytes.get(start)? {
        b'"' => string_end(bytes, start),
        b't' => word(b"true"),
        b'f' => word(b"false"),
        b'n' => word(b"null"),
        b'-' | b'0'..=b'9' => {
            let mut end = start + 1;
            while let Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E') = bytes.get(end) {
                end += 1;
            }
            Some(end)
        }
        _ => None,
    }
}

/// The place behind the string that begins at `start`, where it is a word or two without an escape; `None` says nothing.
#[inline]
pub(super) fn plain_end(bytes: &[u8], start: usize) -> Option<usize> {
    let inside = bytes.get(start..)?.strip_prefix(b"\"")?;
    for (index, eight) in inside.as_chunks().0.iter().take(FAR / 8).enumerate() {
        let stops = stops(*eight);
        if stops != 0 {
            let at = index * 8 + (stops.trailing_zeros() / 8) as usize;
            return (inside.get(at) == Some(&b'"')).then_some(start + at + 2);
        }
    }
    None
}

/// The place behind any string that begins at `start`: behind the first quote that has no odd number of backslashes before
/// it. `None` when none begins there, or none ends.
#[inline(never)]
pub(super) fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    if bytes.get(start) != Some(&b'"') {
        return None;
    }
    let mut at = start + 1;
    while at < start + FAR
        && let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk)
    {
        let stops = stops(*eight);
        at += (stops.trailing_zeros() / 8) as usize;
        match bytes.get(at) {
            _ if stops == 0 => {}
            Some(b'"') => return Some(at + 1),
            _ => at += 2,
        }
    }
    let rest = bytes.get(at..)?;
    let is_end = |at: &usize| {
        let escapes = rest.get(..*at).unwrap_or_default().iter().rev();
        escapes.take_while(|byte| **byte == b'\\').count() % 2 == 0
    };
    memchr::memchr_iter(b'"', rest).find(is_end).map(|end| at + end + 1)
}

/// The top bit of each of eight bytes that is a quote or a backslash, true of the lowest such bit.
#[inline]
const fn stops(eight: [u8; 8]) -> u64 {
    let eight = u64::from_le_bytes(eight);
    bytes_equal(eight, b'"') | bytes_equal(eight, b'\\')
}

/// The top bit of each byte that is this one. Borrows may set bits above the lowest one, never below it.
const fn bytes_equal(eight: u64, byte: u8) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let difference = eight ^ (ONES * byte as u64);
    difference.wrapping_sub(ONES) & !difference & TOPS
}

/// The first backslash from `from` on.
pub(super) fn backslash(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let (eights, last) = rest.as_chunks();
    for (index, eight) in eights.iter().take(FAR / 8).enumerate() {
        let found = bytes_equal(u64::from_le_bytes(*eight), b'\\');
        if found != 0 {
            return Some(from + index * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    match rest.get(FAR..) {
        Some(text) => memchr::memchr(b'\\', text).map(|at| from + FAR + at),
        None => last.iter().position(|byte| *byte == b'\\').map(|at| from + eights.len() * 8 + at),
    }
}

/// A string that is longer is a text.
const FAR: usize = 48;

#[cfg(test)]
mod tests {
    use super::{FAR, backslash, plain_end, string_end};

    proptest::proptest! {
        #[test]
        fn a_string_ends_at_its_first_quote_that_is_not_escaped(
            pieces in proptest::collection::vec(proptest::sample::select(&["a", "\\\\", "\\\"", "\\n", "bcdefgh", "é", ",", ":"][..]), 0..24),
            behind in "[\"\\\\a]{0,12}",
        ) {
            let inside = pieces.concat();
            let text = format!("{{\"{inside}\"{behind}");
            let (plain, any) = (plain_end(text.as_bytes(), 1), string_end(text.as_bytes(), 1));
            proptest::prop_assert_eq!(any, Some(inside.len() + 3));
            proptest::prop_assert!(plain.is_none() || (plain == any && !inside.contains('\\')));
        }

        #[test]
        fn the_first_backslash_is_found_wherever_it_stands(text in "[a\\\\]{0,3}a{0,70}[a\\\\]{0,3}a{0,20}", from in 0..FAR) {
            let plainly = (from..text.len()).find(|at| text.as_bytes()[*at] == b'\\');
            proptest::prop_assert_eq!(backslash(text.as_bytes(), from), plainly);
        }
    }
}
