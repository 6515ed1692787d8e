//! Word sets: how alike two texts are, in a fixed 128 bytes.

/// A set of words as a 1,024-bit sketch: one bit per hashed word.
///
/// Two sketches give the Jaccard similarity of the sets with a handful of machine instructions, so that a window of
/// 64 steps is compared in well under a microsecond. Sets beyond a few hundred words look somewhat more alike than
/// they are, which thresholds of 0.5 and more tolerate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WordSet([u64; 16]);

impl WordSet {
    /// The words of a plain text.
    pub(crate) fn of_text(text: &str) -> Self {
        let mut set = Self::default();
        set.add_text(text.as_bytes(), false);
        set
    }

    /// The words of canonical arguments: of JSON the values, without the names of the fields.
    pub(crate) fn of_args(canonical: &[u8]) -> Self {
        let mut set = Self::default();
        if !matches!(canonical.first(), Some(b'{' | b'[' | b'"')) {
            set.add_text(canonical, false);
            return set;
        }
        let mut rest = canonical;
        while let Some(open) = rest.iter().position(|byte| *byte == b'"') {
            // Numbers and literals stand between the strings.
            set.add_text(&rest[..open], false);
            let inside = &rest[open + 1..];
            let close = end_of_string(inside);
            let behind = inside.get(close + 1..).unwrap_or_default();
            if behind.first() != Some(&b':') {
                set.add_text(&inside[..close], true);
            }
            rest = behind;
        }
        set.add_text(rest, false);
        set
    }

    /// How many words it has (a little fewer where two fell on one bit).
    pub(crate) fn len(&self) -> u32 {
        self.0.iter().map(|bits| bits.count_ones()).sum()
    }

    /// Shared words as a part of all words: 1 for equal sets, 0 for disjoint ones. Two empty sets are equal.
    pub(crate) fn jaccard(&self, other: &Self) -> f32 {
        let (mut shared, mut all) = (0, 0);
        for (a, b) in self.0.iter().zip(&other.0) {
            shared += (a & b).count_ones();
            all += (a | b).count_ones();
        }
        if all == 0 { 1.0 } else { shared as f32 / all as f32 }
    }

    /// Adds the words of `bytes`; where they are `escaped`, the letter behind a backslash belongs to no word.
    fn add_text(&mut self, bytes: &[u8], escaped: bool) {
        let mut hash = EMPTY;
        let mut skip = false;
        for byte in bytes {
            let in_word = !skip && (byte.is_ascii_alphanumeric() || *byte >= 0x80 || *byte == b'_');
            skip = escaped && !skip && *byte == b'\\';
            if in_word {
                hash = fnv1a(hash, byte.to_ascii_lowercase());
            } else {
                self.add(hash);
                hash = EMPTY;
            }
        }
        self.add(hash);
    }

    fn add(&mut self, hash: u64) {
        if hash != EMPTY {
            // FNV leaves the differences of one-letter words in its low bits; a multiplication spreads them.
            let bit = (hash ^ hash >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
            self.0[(bit >> 6) as usize] |= 1 << (bit & 0x3F);
        }
    }
}

/// Where the closing quote stands in canonical text behind an opening one.
fn end_of_string(inside: &[u8]) -> usize {
    let mut at = 0;
    while let Some(step) = memchr::memchr2(b'"', b'\\', &inside[at..]) {
        at += step;
        if inside[at] == b'"' {
            return at;
        }
        at = (at + 2).min(inside.len());
    }
    inside.len()
}

/// The start of every FNV-1a hash.
pub(crate) const EMPTY: u64 = 0xCBF2_9CE4_8422_2325;

/// One step of FNV-1a: a tiny hash for tiny inputs where nobody attacks.
pub(crate) const fn fnv1a(hash: u64, byte: u8) -> u64 {
    (hash ^ byte as u64).wrapping_mul(0x0100_0000_01B3)
}

/// FNV-1a of a whole.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().fold(EMPTY, |hash, byte| fnv1a(hash, *byte))
}

/// FNV-1a with every run of digits folded to one, so that `page 3` and `page 14` fall together.
pub(crate) fn hash_without_digits(bytes: &[u8]) -> u64 {
    let mut in_digits = false;
    bytes.iter().fold(EMPTY, |hash, byte| {
        let digit = byte.is_ascii_digit();
        let folded = digit && std::mem::replace(&mut in_digits, digit);
        in_digits = digit;
        if folded { hash } else { fnv1a(hash, if digit { b'0' } else { *byte }) }
    })
}

#[cfg(test)]
mod tests {
    use super::{WordSet, hash_without_digits};

    #[test]
    fn words_count_and_not_their_order_or_case() {
        let a = WordSet::of_text("Read the FILE, then run tests");
        assert!((a.jaccard(&WordSet::of_text("then run tests: read the file")) - 1.0).abs() < f32::EPSILON);
    }

    #[test]
    fn texts_without_a_common_word_are_disjoint() {
        assert!(WordSet::of_text("alpha beta").jaccard(&WordSet::of_text("gamma delta")) < 0.01);
    }

    #[test]
    fn field_names_are_no_words_of_the_arguments() {
        let a = WordSet::of_args(br#"{"path":"x.rs","text":"a \"quoted\" word"}"#);
        assert_eq!(a, WordSet::of_args(br#"{"other":"x.rs","name":"a \"quoted\" word"}"#));
        assert_eq!(a.len(), 5);
    }

    #[test]
    fn an_escaped_newline_is_no_letter() {
        assert_eq!(WordSet::of_args(br#""one\ntwo""#), WordSet::of_text("one two"));
    }

    #[test]
    fn numbers_outside_strings_count() {
        assert_ne!(WordSet::of_args(br#"{"page":3}"#), WordSet::of_args(br#"{"page":4}"#));
    }

    #[test]
    fn runs_of_digits_fall_together() {
        assert_eq!(hash_without_digits(b"page 3 of 10"), hash_without_digits(b"page 14 of 7"));
        assert_ne!(hash_without_digits(b"page 3"), hash_without_digits(b"page x"));
    }
}
