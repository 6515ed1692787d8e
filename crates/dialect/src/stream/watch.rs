//! Listens for a chant in what streams by.

use loopbreaker::Chant;

/// Listens to what is said and to what is thought, each on its own.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    said: Tail,
    thought: Tail,
    found: Option<Chant>,
}

impl Watch {
    pub(crate) fn listen(&mut self, text: &str, is_thought: bool) {
        let tail = if is_thought { &mut self.thought } else { &mut self.said };
        let found = tail.push(text);
        self.found = self.found.take().or(found);
    }

    /// What was said and thought so far is over.
    pub(crate) fn begin_anew(&mut self) {
        (self.said, self.thought) = Default::default();
    }

    /// The chant that was heard, if any.
    pub(crate) fn heard(&mut self) -> Option<Chant> {
        self.found.take()
    }
}

/// The end of a text that grows.
#[derive(Debug)]
struct Tail {
    text: String,
    /// The length at which the text is looked at next.
    next_look: usize,
}

/// Looking at every word would cost more than the words.
const STEP: usize = 256;
/// No chant is shorter.
const FIRST_LOOK: usize = 160;
/// As long as this the text may grow, and this much is kept then: more than what the detector looks at.
const MAX: usize = 8 << 10;
const KEEP: usize = 5 << 10;

impl Default for Tail {
    fn default() -> Self {
        Self { text: String::new(), next_look: FIRST_LOOK }
    }
}

impl Tail {
    fn push(&mut self, text: &str) -> Option<Chant> {
        let mut found = None;
        // A large piece is taken in steps, so that the same words are looked at whatever pieces they come in.
        let mut rest = text;
        while !rest.is_empty() {
            let room = self.next_look.saturating_sub(self.text.len()).max(1);
            let (now, later) = rest.split_at(boundary(rest, room));
            rest = later;
            self.text.push_str(now);
            if self.text.len() >= self.next_look {
                found = found.or_else(|| Chant::of(&self.text));
                if self.text.len() + STEP > MAX {
                    self.forget();
                }
                self.next_look = self.text.len() + STEP;
            }
        }
        found
    }

    /// Drops the beginning. What the detector spares inside of a code fence must stay inside of it, so a fence that is
    /// open there is kept.
    fn forget(&mut self) {
        let mut cut = boundary(&self.text, self.text.len().saturating_sub(KEEP));
        // A fence is not torn apart.
        cut += self.text.bytes().skip(cut).take_while(|byte| *byte == b'`').count();
        let dropped = self.text.get(..cut).unwrap_or_default();
        let is_open = memchr::memmem::find_iter(dropped.as_bytes(), FENCE).count() % 2 == 1;
        self.text.replace_range(..cut, if is_open { OPEN_FENCE } else { "" });
    }
}

/// The end of the character that begins before this offset.
fn boundary(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

const FENCE: &str = "```";
const OPEN_FENCE: &str = "```\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn hears(pieces: impl IntoIterator<Item = String>) -> Option<usize> {
        let mut watch = Watch::default();
        let mut length = 0;
        for piece in pieces {
            length += piece.len();
            watch.listen(&piece, false);
            if watch.heard().is_some() {
                return Some(length);
            }
        }
        None
    }

    fn words(text: &str) -> Vec<String> {
        text.split_inclusive(' ').map(str::to_owned).collect()
    }

    fn prose(length: usize) -> String {
        (0..)
            .map(|n| format!("item {n} differs from {}; ", n * 7))
            .flat_map(|s| s.chars().collect::<Vec<_>>())
            .take(length)
            .collect()
    }

    const CHANT: &str = "I will now fix the bug. ";

    #[test]
    fn a_chant_is_heard_soon_after_it_could_be() {
        let heard = hears(words(&CHANT.repeat(100))).unwrap();
        assert!(heard < 600, "{heard}");
        assert!(hears(words(&(prose(40_000) + &CHANT.repeat(100)))).is_some());
    }

    #[test]
    fn a_text_without_a_chant_is_not_cut() {
        assert_eq!(hears(words(&prose(100_000))), None);
    }

    #[test]
    fn code_is_spared_however_far_back_its_fence_was_opened() {
        let code = "    assert foo(bar) == baz and more\n".repeat(2_000);
        assert_eq!(hears(words(&format!("Look:\n```python\n{code}"))), None);
        assert_eq!(hears(words(&format!("```\n{}\n```\nand\n```\n{code}", prose(20_000)))), None);
        let closed = format!("```python\n{code}```\n{}", CHANT.repeat(100));
        assert!(hears(words(&closed)).unwrap() > code.len());
    }

    #[test]
    fn thoughts_and_words_are_not_mixed() {
        let mut watch = Watch::default();
        for _ in 0..4 {
            watch.listen(CHANT, false);
            watch.listen(CHANT, true);
        }
        assert_eq!(watch.heard(), None);
        watch.listen(&CHANT.repeat(20), true);
        assert!(watch.heard().is_some());
    }

    #[test]
    fn it_does_not_matter_in_which_pieces_a_text_comes() {
        let text = prose(9_000) + &CHANT.repeat(40);
        let chant = |pieces: Vec<String>| {
            let mut watch = Watch::default();
            for piece in &pieces {
                watch.listen(piece, false);
            }
            watch.heard()
        };
        let whole = chant(vec![text.clone()]);
        assert!(whole.is_some());
        assert_eq!(chant(words(&text)), whole);
        assert_eq!(chant(text.chars().map(String::from).collect()), whole);
    }

    #[test]
    fn memory_stays_bounded() {
        let mut watch = Watch::default();
        watch.listen(&prose(1_000_000), false);
        assert!(watch.said.text.len() <= MAX && watch.said.text.capacity() <= 2 * MAX);
    }
}
