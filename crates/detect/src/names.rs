//! What a text names: by that two texts are told apart which an embedding takes for one.

use crate::words::hash_bytes;

/// Whether two texts name the same things: numbers, paths, ids, quoted and proper names, and whether they say yes or
/// no. Only then may one be answered in place of the other; an embedding alone takes Paris for London, and on for off.
///
/// ```
/// use loopbreaker::name_the_same;
/// assert!(name_the_same("Please list the open tickets.", "list open tickets, please"));
/// assert!(!name_the_same("What is the weather in Paris?", "What is the weather in London?"));
/// assert!(!name_the_same("turn the light on", "turn the light off"));
/// assert!(!name_the_same("open page 3", "open page 4"));
/// ```
pub fn name_the_same(a: &str, b: &str) -> bool {
    Names::of(a) == Names::of(b) && Wording::of(a).asks_the_same(&Wording::of(b))
}

/// The numbers, paths, ids and quoted names of a text, kept without it.
///
/// ```
/// use loopbreaker::Names;
/// assert_eq!(Names::of("open page 3"), Names::of("please open the page 3"));
/// assert_ne!(Names::of("open page 3"), Names::of("open page 4"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names(Box<[u64]>);

impl Names {
    /// Those of a text.
    pub fn of(text: &str) -> Self {
        let mut names = Vec::new();
        let mut quoted = None;
        for (at, char) in text.char_indices() {
            match (quoted, char) {
                (None, '"' | '`') => quoted = Some((at, char)),
                (Some((start, open)), close) if open == close => {
                    names.push(hash_bytes(&text.as_bytes()[start..at]));
                    quoted = None;
                }
                _ => {}
            }
        }
        let breaks = |char: char| {
            char.is_whitespace() || matches!(char, ',' | ';' | '(' | ')' | '"' | '\'' | '`' | '!' | '?')
        };
        for word in text.split(breaks).map(|word| word.trim_matches(['.', ':'])) {
            let telling = word.contains(|char: char| char.is_ascii_digit())
                || word.contains(['/', '_', '#', '@', '\\']);
            if telling {
                names.push(hash_bytes(word.as_bytes()));
            }
        }
        Self(sorted(names))
    }

    /// Whether another text names everything that this one does, and perhaps more.
    ///
    /// ```
    /// use loopbreaker::Names;
    /// assert!(Names::of("read a/b").are_all_in(&Names::of("read line 3 of a/b")));
    /// assert!(!Names::of("read line 3 of a/b").are_all_in(&Names::of("read a/b")));
    /// ```
    pub fn are_all_in(&self, other: &Self) -> bool {
        self.0.iter().all(|name| other.0.binary_search(name).is_ok())
    }
}

/// The words of a text, and which of them must not be missing where the same is asked: proper names, and words that
/// turn a sentence round. Kept without the text.
///
/// ```
/// use loopbreaker::Wording;
/// let asked = Wording::of("Please open the menu of Palma and look for vegan dishes.");
/// assert!(asked.asks_the_same(&Wording::of("Open the menu of Palma, please; look for dishes that are vegan.")));
/// assert!(!asked.asks_the_same(&Wording::of("Please open the menu of Verde and look for vegan dishes.")));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wording {
    words: Box<[u64]>,
    telling: Box<[u64]>,
}

impl Wording {
    /// That of a text.
    pub fn of(text: &str) -> Self {
        let mut telling = Vec::new();
        let mut starts = true;
        for written in text.split_whitespace() {
            let word = written.trim_matches(|char: char| !char.is_alphanumeric());
            let lower = word.to_lowercase();
            // The first word of a sentence is written large whatever it is.
            let is_proper = !starts && word.chars().next().is_some_and(char::is_uppercase) && lower != "i";
            starts = written.ends_with(['.', '!', '?', ':']);
            if is_proper || turns_round(&lower) {
                telling.extend(words_of(word));
            }
        }
        Self { words: sorted(words_of(text).collect()), telling: sorted(telling) }
    }

    /// Whether no word that tells is in one of them only.
    pub fn asks_the_same(&self, other: &Self) -> bool {
        let has_all =
            |one: &Self, other: &Self| one.telling.iter().all(|word| other.words.binary_search(word).is_ok());
        has_all(self, other) && has_all(other, self)
    }

    /// The bytes that it takes.
    pub fn size(&self) -> usize {
        size_of_val(&*self.words) + size_of_val(&*self.telling)
    }
}

fn words_of(text: &str) -> impl Iterator<Item = u64> {
    let words =
        text.split(|char: char| !char.is_alphanumeric() && char != '\'').map(|word| word.trim_matches('\''));
    words.filter(|word| !word.is_empty()).map(|word| hash_bytes(word.to_lowercase().as_bytes()))
}

/// Words that make another question of the same sentence.
fn turns_round(word: &str) -> bool {
    const TURNS: [&str; 44] = [
        "not", "no", "never", "none", "without", "except", "unless", "only", "all", "any", "on", "off", "in",
        "out", "up", "down", "before", "after", "above", "below", "more", "less", "most", "least", "first",
        "last", "next", "previous", "min", "max", "add", "remove", "delete", "create", "start", "stop",
        "enable", "disable", "open", "close", "yes", "increase", "decrease", "undo",
    ];
    word.ends_with("n't") || TURNS.contains(&word)
}

/// Each once.
fn sorted(mut hashes: Vec<u64>) -> Box<[u64]> {
    hashes.sort_unstable();
    hashes.dedup();
    hashes.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Names, Wording, name_the_same};

    #[test]
    fn texts_that_name_other_things_are_told_apart() {
        let same = "Which tickets of Anna are open in the Berlin office since May?";
        assert!(name_the_same(
            same,
            "Since May, which of the tickets in the Berlin office of Anna are open?"
        ));
        for other in [
            "Which tickets of Otto are open in the Berlin office since May?",
            "Which tickets of Anna are open in the Bonn office since May?",
            "Which tickets of Anna are not open in the Berlin office since May?",
            "Which tickets of Anna are open in the Berlin office since May 3?",
        ] {
            assert!(!name_the_same(same, other), "{other}");
        }
        assert!(!name_the_same("show the log of web-1", "show the log of web-2"));
        assert!(!name_the_same("I don't want it", "I do want it"));
    }

    #[test]
    fn the_first_word_of_a_sentence_is_no_name() {
        assert!(name_the_same("Show the tickets. Count them.", "List the tickets. Sum them."));
        assert!(!name_the_same("Ask Anna for it", "Ask Otto for it"));
    }

    proptest! {
        #[test]
        fn every_text_names_and_asks_what_it_does(text in ".{0,80}") {
            prop_assert!(name_the_same(&text, &text));
        }

        #[test]
        fn it_is_the_same_from_both_sides(a in "[ a-cA-C.3]{0,12}", b in "[ a-cA-C.3]{0,12}") {
            prop_assert_eq!(name_the_same(&a, &b), name_the_same(&b, &a));
            prop_assert_eq!(Names::of(&a) == Names::of(&b), Names::of(&b) == Names::of(&a));
            prop_assert_eq!(
                Wording::of(&a).asks_the_same(&Wording::of(&b)),
                Wording::of(&b).asks_the_same(&Wording::of(&a))
            );
        }
    }
}
