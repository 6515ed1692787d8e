//! Whether two texts may say the same, before anything is embedded.

use twox_hash::XxHash3_64;

/// Which words a text has, in 128 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words([u64; 16]);

/// Of 1,000 pairs of texts that the model finds alike on recorded runs, 5 share less of their words than this.
const LEAST_SHARED: f64 = 0.2;

/// Letters by which a word is known: `reading`, `reader` and `reads` are nearly one.
const STEM: usize = 6;

impl Words {
    /// Those of an excerpt.
    pub(crate) fn of(text: &str) -> Self {
        let mut bits = [0; 16];
        for word in
            text.split(|char: char| !char.is_alphanumeric() && char != '_').filter(|word| !word.is_empty())
        {
            let stem: String = word.chars().take(STEM).flat_map(char::to_lowercase).collect();
            let bit = XxHash3_64::oneshot(stem.as_bytes()) % 1_024;
            bits[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        Self(bits)
    }

    /// Whether enough of the words of both are in both.
    pub(crate) fn may_say(&self, other: &Self) -> bool {
        let pairs = || self.0.iter().zip(&other.0);
        let both: u32 = pairs().map(|(a, b)| (a & b).count_ones()).sum();
        let any: u32 = pairs().map(|(a, b)| (a | b).count_ones()).sum();
        // Texts without words, such as pictures or signs, cannot be told apart here.
        any == 0 || f64::from(both) >= LEAST_SHARED * f64::from(any)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Words;

    fn may_say(a: &str, b: &str) -> bool {
        Words::of(a).may_say(&Words::of(b))
    }

    #[test]
    fn other_words_for_the_same_may_say_the_same() {
        assert!(may_say("Let me read the logs again", "I should read those logs"));
        assert!(may_say("reading the logs", "he reads a log, then reads the logs"));
    }

    #[test]
    fn wholly_other_words_do_not() {
        assert!(!may_say("Let me read the logs again", "All tests pass, shipping version two now"));
    }

    proptest! {
        #[test]
        fn every_text_may_say_what_it_says(a in ".{0,80}", b in ".{0,80}") {
            prop_assert!(may_say(&a, &a));
            prop_assert_eq!(may_say(&a, &b), may_say(&b, &a));
        }
    }
}
