//! What a result repeats of its own question. A search that finds nothing says for what, and one that finds the same again
//! puts the new words above it: who compares two answers to two questions has to leave the questions out.

use crate::words::{EMPTY, end_of_string, hash_bytes};

/// As many are looked for as queries and forms have.
const MAX: usize = 4;
/// So far into a text its question is looked for.
const HEAD: usize = 256;

/// The values of a call's arguments that stand in its result.
#[derive(Debug, Default)]
pub(super) struct Echo<'a> {
    values: [&'a [u8]; MAX],
    len: usize,
}

impl<'a> Echo<'a> {
    /// Shorter ones stand anywhere by chance.
    const SHORTEST: usize = 4;
    /// Longer ones are contents, which nobody repeats.
    const LONGEST: usize = 200;

    /// Those of the first values of `asked` that stand in the head of `text`: who repeats a question does so before the answer.
    pub(super) fn of(asked: &'a [u8], text: &[u8]) -> Self {
        let mut echo = Self::default();
        let text = &text[..text.len().min(HEAD)];
        let mut left = MAX;
        let mut rest = asked;
        if !matches!(asked.first(), Some(b'{' | b'[' | b'"')) {
            echo.add(asked.trim_ascii(), text);
            return echo;
        }
        while let Some(open) = memchr::memchr(b'"', rest).filter(|_| left > 0) {
            let inside = &rest[open + 1..];
            let close = end_of_string(inside);
            rest = inside.get(close + 1..).unwrap_or_default();
            if rest.trim_ascii_start().first() != Some(&b':') {
                echo.add(&inside[..close], text);
                left -= 1;
            }
        }
        echo
    }

    /// Without those that are one plain word: an error may well use it in a sense of its own, as git does that fails to push.
    pub(super) fn names(mut self) -> Self {
        let is_word = |value: &&[u8]| value.iter().all(u8::is_ascii_lowercase);
        for value in self.values[..self.len].iter_mut().filter(|value| is_word(value)) {
            *value = &[];
        }
        self
    }

    fn add(&mut self, value: &'a [u8], text: &[u8]) {
        let fits = (Self::SHORTEST..=Self::LONGEST).contains(&value.len());
        if fits && memchr::memmem::find(text, value).is_some() {
            self.values[self.len] = value;
            self.len += 1;
        }
    }

    /// The length of the one that `text` begins with; 0 when it begins with none.
    pub(super) fn at(&self, text: &[u8]) -> usize {
        let found = self.values[..self.len].iter().filter(|value| text.starts_with(value));
        found.map(|value| value.len()).max().unwrap_or(0)
    }

    /// The hash of what the text says besides; 0 when it repeats nothing.
    pub(super) fn hash_without(&self, text: &[u8]) -> u64 {
        if self.len == 0 {
            return 0;
        }
        let mut hash = EMPTY;
        let mut rest = without_the_cut(text);
        loop {
            let next = |value: &&[u8]| memchr::memmem::find(rest, value).map(|at| (at, value.len()));
            let found = self.values[..self.len].iter().filter_map(next);
            // Of two at one place the longer one counts.
            let first = found.min_by_key(|(at, len)| (*at, usize::MAX - len));
            let (at, len) = first.unwrap_or((rest.len(), 0));
            hash = hash.rotate_left(7) ^ hash_bytes(&rest[..at]);
            rest = &rest[at + len..];
            if first.is_none() {
                break;
            }
        }
        hash | 1
    }
}

/// Without the line in which a text was cut short: a longer question leaves room for less of it.
fn without_the_cut(text: &[u8]) -> &[u8] {
    let tail = &text[text.len().saturating_sub(MARK)..];
    let is_cut = memchr::memmem::find(tail, b"truncated").is_some();
    let line = memchr::memrchr(b'\n', text).filter(|_| is_cut);
    line.map_or(text, |end| &text[..end])
}

/// Within so many bytes of its end a text says that it was cut.
const MARK: usize = 40;

#[cfg(test)]
mod tests {
    use super::Echo;

    fn without(asked: &str, text: &str) -> u64 {
        Echo::of(asked.as_bytes(), text.as_bytes()).hash_without(text.as_bytes())
    }

    #[test]
    fn what_is_repeated_of_the_question_is_left_out() {
        let one = without(r#"{"query":"tall trees"}"#, "results for 'tall trees':\n1. Redwood");
        assert_ne!(one, 0);
        assert_eq!(one, without(r#"{"query":"high trees"}"#, "results for 'high trees':\n1. Redwood"));
        assert_ne!(one, without(r#"{"query":"high trees"}"#, "results for 'high trees':\n1. Sequoia"));
        assert_eq!(without("tall trees", "no tall trees"), without("high trees", "no high trees"));
    }

    #[test]
    fn names_of_fields_and_short_values_are_no_question() {
        assert_eq!(without(r#"{"query":"one"}"#, "query: one"), 0);
        assert_eq!(without(r#"{"query":"oak"}"#, "query"), 0);
        assert_eq!(without("", "anything"), 0);
    }
}
