//! Word sets: how alike two texts are, in a fixed 128 bytes.

use crate::saved::{Saved, saved};
use crate::scan::{first_digit, string_stop};

/// A set of words as a 1,024-bit sketch: one bit per hashed word.
///
/// Two sketches give the Jaccard similarity of the sets with a handful of machine instructions, so that a window of
/// 64 steps is compared in well under a microsecond. Sets beyond a few hundred words look somewhat more alike than
/// they are, which thresholds of 0.5 and more tolerate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WordSet([u64; 16]);

impl WordSet {
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

    /// How many words both have.
    pub(crate) fn shared(&self, other: &Self) -> u32 {
        self.0.iter().zip(&other.0).map(|(a, b)| (a & b).count_ones()).sum()
    }

    /// Adds the words of another set.
    pub(crate) fn add_all(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine |= theirs;
        }
    }

    /// The words as numbers below 1,024, in order.
    pub(crate) fn members(&self) -> impl Iterator<Item = u16> {
        self.0.iter().zip(0_u16..).flat_map(|(bits, lane)| {
            let mut left = *bits;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as u16)?;
                left &= left - 1;
                Some(lane << 6 | bit)
            })
        })
    }

    /// Whether it has this word.
    pub(crate) fn has(&self, word: u16) -> bool {
        self.0[usize::from(word >> 6) % 16] >> (word & 0x3F) & 1 != 0
    }

    /// Adds a word by its number.
    pub(crate) fn insert(&mut self, word: u16) {
        self.0[usize::from(word >> 6) % 16] |= 1 << (word & 0x3F);
    }

    fn add(&mut self, hash: u64) {
        // FNV leaves the differences of one-letter words in its low bits; a multiplication spreads them.
        self.insert(((hash ^ hash >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54) as u16);
    }
}

/// The words of a text, and those among them that name something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Words {
    /// Every word, without regard to case.
    pub(crate) all: WordSet,
    /// Words with a digit, quoted ones, and capitalised ones inside of a sentence: what tells "page 3" from "page 4" and
    /// one person from another.
    pub(crate) names: WordSet,
}

saved!(Words { all, names });

impl Saved for WordSet {
    fn save(&self, out: &mut Vec<u8>) {
        self.0.save(out);
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        Saved::load(from).map(Self)
    }
}

impl Words {
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

    /// How much of what either text names stands in both: a name that the other text has as a plain word, written in
    /// another case or at the start of a sentence, is no new name.
    pub(crate) fn likeness_of_names(&self, other: &Self) -> f32 {
        let (mut shared, mut all) = (0, 0);
        let names = self.names.0.iter().zip(&other.names.0);
        let words = self.all.0.iter().zip(&other.all.0);
        for ((a, b), (mine, yours)) in names.zip(words) {
            shared += ((a | b) & mine & yours).count_ones();
            all += (a | b).count_ones();
        }
        if all == 0 { 1.0 } else { shared as f32 / all as f32 }
    }

    /// Adds the words of `bytes`; where they are `escaped`, the letter behind a backslash belongs to no word.
    fn add_text(&mut self, bytes: &[u8], escaped: bool) {
        let mut word = Word::default();
        let mut skip = false;
        let mut sentence_starts = true;
        let mut quote = None;
        let mut signs = Signs::default();
        let mut rest = bytes;
        while let [byte, behind @ ..] = rest {
            if *byte >= 0xE3
                && let Some((sign, behind)) = first_sign(rest)
            {
                self.add(std::mem::take(&mut word));
                self.add_sign(sign, &mut signs);
                rest = behind;
                continue;
            }
            rest = behind;
            if signs.last.is_some() {
                self.end_of_signs(&mut signs);
            }
            let letter = LETTERS[usize::from(*byte)];
            if letter != 0 && !skip {
                word.digits |= byte.is_ascii_digit();
                word.quoted |= quote.is_some();
                word.capital |= byte.is_ascii_uppercase() && !sentence_starts;
                word.letters += 1;
                // A name is one name in whatever convention it is written: `RetryPolicy`, `retry_policy`.
                if letter != b'_' {
                    word.hash = fnv1a(word.hash, letter);
                }
                continue;
            }
            skip = escaped && !skip && *byte == b'\\';
            quote = match (quote, byte) {
                (Some(open), byte) if open == *byte || *byte == b'\n' => None,
                // An apostrophe inside of a word opens no quotation.
                (None, b'\'' | b'"' | b'`') if word.is_empty() => Some(*byte),
                _ => quote,
            };
            sentence_starts = match byte {
                b'.' | b'!' | b'?' | b':' | b'\n' | b'\\' => true,
                _ => sentence_starts && word.is_empty(),
            };
            self.add(std::mem::take(&mut word));
        }
        self.add(word);
        self.end_of_signs(&mut signs);
    }

    /// Adds a sign of a script that puts no space between words: each two in a row are one.
    fn add_sign(&mut self, sign: [u8; 3], signs: &mut Signs) {
        if is_mark(sign) {
            self.end_of_signs(signs);
            return;
        }
        if let Some([a, b, c]) = signs.last.replace(sign) {
            let [d, e, f] = sign;
            self.all.add(hash_bytes(&[a, b, c, d, e, f]));
            signs.are_added = true;
        }
    }

    /// One sign that stands alone is a word.
    fn end_of_signs(&mut self, signs: &mut Signs) {
        if let Some(last) = signs.last.take()
            && !std::mem::take(&mut signs.are_added)
        {
            self.all.add(hash_bytes(&last));
        }
    }

    fn add(&mut self, word: Word) {
        if !word.is_empty() {
            self.all.add(word.hash);
            // "I" is nobody in particular.
            if word.digits || word.quoted || (word.capital && word.letters > 1) {
                self.names.add(word.hash);
            }
        }
    }
}

/// Signs in a row.
#[derive(Default)]
struct Signs {
    last: Option<[u8; 3]>,
    are_added: bool,
}

/// The sign that a text begins with, if it is one of Chinese or Japanese, or a mark beside them, and what stands behind it.
/// Korean puts spaces between words.
fn first_sign(text: &[u8]) -> Option<([u8; 3], &[u8])> {
    match text {
        [first @ (0xE3..=0xE9 | 0xEF), second, third, behind @ ..]
            if *second & 0xC0 == 0x80 && *third & 0xC0 == 0x80 =>
        {
            Some(([*first, *second, *third], behind))
        }
        _ => None,
    }
}

/// Whether it is one of the marks between sentences, and no sign: `。`, `，`.
const fn is_mark(sign: [u8; 3]) -> bool {
    matches!(sign, [0xE3, 0x80, _] | [0xEF, ..])
}

/// A word while it is read.
#[derive(Clone, Copy)]
struct Word {
    hash: u64,
    letters: usize,
    digits: bool,
    capital: bool,
    quoted: bool,
}

impl Word {
    const fn is_empty(&self) -> bool {
        self.hash == EMPTY
    }
}

impl Default for Word {
    fn default() -> Self {
        Self { hash: EMPTY, letters: 0, digits: false, capital: false, quoted: false }
    }
}

/// For each byte its lower case when it belongs to words, else 0.
const LETTERS: [u8; 256] = {
    let mut letters = [0; 256];
    let mut at = 0;
    while at < letters.len() {
        let byte = at as u8;
        if byte.is_ascii_alphanumeric() || byte >= 0x80 || byte == b'_' {
            letters[at] = byte.to_ascii_lowercase();
        }
        at += 1;
    }
    letters
};

/// Where the closing quote stands in canonical text behind an opening one.
pub(crate) fn end_of_string(inside: &[u8]) -> usize {
    let mut at = 0;
    while let Some(step) = string_stop(&inside[at..]) {
        at += step;
        match inside[at] {
            b'"' => return at,
            b'\\' => at = (at + 2).min(inside.len()),
            _ => at += 1,
        }
    }
    inside.len()
}

/// The start of every FNV-1a hash.
pub(crate) const EMPTY: u64 = 0xCBF2_9CE4_8422_2325;

/// One step of FNV-1a: a tiny hash for tiny inputs where nobody attacks.
pub(crate) const fn fnv1a(hash: u64, byte: u8) -> u64 {
    (hash ^ byte as u64).wrapping_mul(0x0100_0000_01B3)
}

/// The hash of a whole.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    hash_on(EMPTY, bytes)
}

/// Goes on with a hash, eight bytes at a time: contents of files come through here.
fn hash_on(hash: u64, bytes: &[u8]) -> u64 {
    let (eights, rest) = bytes.as_chunks::<8>();
    let hash = eights.iter().fold(hash, |hash, eight| {
        let mixed = (hash ^ u64::from_le_bytes(*eight)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ mixed >> 32
    });
    rest.iter().fold(hash, |hash, byte| fnv1a(hash, *byte))
}

/// The hash with every run of digits folded to one, so that `page 3` and `page 14` fall together.
pub(crate) fn hash_without_digits(bytes: &[u8]) -> u64 {
    let mut hash = EMPTY;
    let mut rest = bytes;
    while let Some(digits) = first_digit(rest) {
        hash = fnv1a(hash_on(hash, &rest[..digits]), b'0');
        rest = &rest[digits..];
        rest = &rest[rest.iter().take_while(|byte| byte.is_ascii_digit()).count()..];
    }
    hash_on(hash, rest)
}

#[cfg(test)]
mod tests {
    use super::{Words, hash_without_digits};

    fn alike(a: &str, b: &str) -> f32 {
        Words::of_text(a).all.jaccard(&Words::of_text(b).all)
    }

    #[test]
    fn words_count_and_not_their_order_or_case() {
        assert!(
            (alike("Read the FILE, then run tests", "then run tests: read the file") - 1.0).abs()
                < f32::EPSILON
        );
    }

    #[test]
    fn texts_without_a_common_word_are_disjoint() {
        assert!(alike("alpha beta", "gamma delta") < 0.01);
    }

    #[test]
    fn field_names_are_no_words_of_the_arguments() {
        let a = Words::of_args(br#"{"path":"x.rs","text":"a \"quoted\" word"}"#);
        assert_eq!(a, Words::of_args(br#"{"other":"x.rs","name":"a \"quoted\" word"}"#));
        assert_eq!(a.all.len(), 5);
    }

    #[test]
    fn scripts_without_spaces_have_words_too() {
        let ask = "请帮我查一下订单的物流状态，谢谢。";
        assert!(alike(ask, "请再帮我查一下订单的物流状态，谢谢！") > 0.6);
        assert!(alike(ask, "我们下周三去公园散步吧。") < 0.1);
        assert!(alike("第三页", "第四页") < 0.9);
        assert_eq!(Words::of_text("好，好。").all.len(), 1, "a sign alone is a word");
        assert!(Words::of_text("ファイルはありません").all.len() > 5, "and no single one");
        assert_eq!(Words::of_text("read 文件 a.txt").all.len(), 4);
    }

    #[test]
    fn an_escaped_newline_is_no_letter() {
        assert_eq!(Words::of_args(br#""one\ntwo""#).all, Words::of_text("one two").all);
    }

    #[test]
    fn numbers_outside_strings_count() {
        assert_ne!(Words::of_args(br#"{"page":3}"#), Words::of_args(br#"{"page":4}"#));
    }

    #[test]
    fn numbers_and_capitalised_words_inside_of_a_sentence_are_names() {
        let names = |text| Words::of_text(text).names;
        assert_eq!(names("Please look up the movie Skyfall again"), names("now look at Skyfall"));
        assert_ne!(names("look up page 3"), names("look up page 4"));
        assert_eq!(names("Please go. Then stop").len(), 0);
    }

    #[test]
    fn a_name_is_one_name_in_every_convention_of_writing() {
        let words = |text| Words::of_text(text).all;
        assert_eq!(words("class RetryPolicy"), words("class retry_policy"));
        assert_ne!(words("retry_policy"), words("retry_police"));
    }

    #[test]
    fn what_is_quoted_is_a_name() {
        let open = Words::of_text("select total from orders where state = 'open'");
        let paid = Words::of_text("select total from orders where state = 'paid'");
        assert!(open.likeness_of_names(&paid) < 0.1);
        assert_eq!(Words::of_text("don't stop, it's fine").names.len(), 0, "an apostrophe quotes nothing");
    }

    #[test]
    fn a_name_in_another_case_is_no_new_name() {
        let likeness = |a, b| Words::of_text(a).likeness_of_names(&Words::of_text(b));
        assert!(likeness("look for Dora there", "look for dora there") > 0.9);
        assert!(likeness("look for Dora there", "look for Cleo there") < 0.1);
        assert!(likeness("look there", "look here") > 0.9, "neither names anything");
    }

    #[test]
    fn runs_of_digits_fall_together() {
        assert_eq!(hash_without_digits(b"page 3 of 10"), hash_without_digits(b"page 14 of 7"));
        assert_ne!(hash_without_digits(b"page 3"), hash_without_digits(b"page x"));
    }
}
