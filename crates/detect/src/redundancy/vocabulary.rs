//! The words of a window's steps, kept in as few bytes as they need: most calls have a handful, and a window of them is
//! what a session costs.

use crate::saved::{Saved, saved};
use crate::words::{WordSet, Words};

/// The word sets that have too many words to be kept beside their step.
#[derive(Debug, Clone, Default)]
pub(super) struct Vocabulary {
    long: Vec<Words>,
    /// Places in `long` that nobody uses.
    free: Vec<u16>,
}

/// The words of one step.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kept {
    /// All of them, in place.
    Few { len: u8, words: [u16; Kept::FEW] },
    /// Where they are in the vocabulary.
    Many(u16),
}

impl Kept {
    /// No words.
    pub(super) const NONE: Self = Self::Few { len: 0, words: [0; Self::FEW] };
    /// As many words as commands and paths have.
    const FEW: usize = 22;
    /// Marks a word that names something.
    const NAME: u16 = 1 << 15;
}

saved!(Vocabulary { long, free });

impl Saved for Kept {
    fn save(&self, out: &mut Vec<u8>) {
        match self {
            Self::Few { len, words } => {
                out.push(*len);
                for word in &words[..usize::from(*len)] {
                    word.save(out);
                }
            }
            Self::Many(place) => {
                out.push(u8::MAX);
                place.save(out);
            }
        }
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        let len = u8::load(from)?;
        if len == u8::MAX {
            return u16::load(from).map(Self::Many);
        }
        let mut words = [0; Self::FEW];
        for word in words.get_mut(..usize::from(len))? {
            *word = u16::load(from)?;
        }
        Some(Self::Few { len, words })
    }
}

impl Vocabulary {
    /// Keeps the words of a step until they are released.
    pub(super) fn keep(&mut self, words: &Words) -> Kept {
        if words.all.len() as usize <= Kept::FEW {
            let (mut few, mut len) = ([0; Kept::FEW], 0);
            for (place, word) in few.iter_mut().zip(words.all.members()) {
                *place = if words.names.has(word) { word | Kept::NAME } else { word };
                len += 1;
            }
            return Kept::Few { len, words: few };
        }
        let place = self.free.pop().unwrap_or(self.long.len() as u16);
        match self.long.get_mut(usize::from(place)) {
            Some(free) => *free = *words,
            None => self.long.push(*words),
        }
        Kept::Many(place)
    }

    /// Forgets the words of a step.
    pub(super) fn release(&mut self, kept: &Kept) {
        if let Kept::Many(place) = kept {
            self.free.push(*place);
        }
    }

    /// How alike all words of two steps are.
    pub(super) fn likeness(&self, one: &Kept, other: &Kept) -> f32 {
        let space = &mut [Words::default(); 2];
        let [one, other] = self.read_both([one, other], space);
        one.all.jaccard(&other.all)
    }

    /// How alike two steps are in what they name.
    pub(super) fn likeness_of_names(&self, one: &Kept, other: &Kept) -> f32 {
        let space = &mut [Words::default(); 2];
        let [one, other] = self.read_both([one, other], space);
        one.likeness_of_names(other)
    }

    /// How many words each of two steps has that the other one lacks.
    pub(super) fn exchanged(&self, one: &Kept, other: &Kept) -> [u32; 2] {
        let space = &mut [Words::default(); 2];
        let [one, other] = self.read_both([one, other], space);
        let shared = one.all.shared(&other.all);
        [one.all.len() - shared, other.all.len() - shared]
    }

    /// How many words of a step stand in none of the others.
    pub(super) fn new_words<'a>(&self, one: &Kept, others: impl Iterator<Item = &'a Kept>) -> u32 {
        let mut known = WordSet::default();
        for other in others {
            known.add_all(&self.read(other, &mut Words::default()).all);
        }
        let words = self.read(one, &mut Words::default()).all;
        words.len() - words.shared(&known)
    }

    /// How many different words a step has.
    pub(super) fn count(&self, kept: &Kept) -> u32 {
        match kept {
            Kept::Few { len, .. } => u32::from(*len),
            Kept::Many(_) => self.read(kept, &mut Words::default()).all.len(),
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.long.clear();
        self.free.clear();
    }

    /// How many bytes it takes.
    pub(super) const fn bytes(&self) -> usize {
        self.long.capacity() * size_of::<Words>() + self.free.capacity() * size_of::<u16>()
    }

    fn read_both<'a>(&'a self, kept: [&Kept; 2], space: &'a mut [Words; 2]) -> [&'a Words; 2] {
        let [first, second] = space;
        [self.read(kept[0], first), self.read(kept[1], second)]
    }

    /// The words of a step; `space` is empty, and holds them where they are few.
    fn read<'a>(&'a self, kept: &Kept, space: &'a mut Words) -> &'a Words {
        match kept {
            Kept::Few { len, words } => {
                for word in &words[..usize::from(*len)] {
                    space.all.insert(word & !Kept::NAME);
                    if word & Kept::NAME != 0 {
                        space.names.insert(word & !Kept::NAME);
                    }
                }
                space
            }
            Kept::Many(place) => self.long.get(usize::from(*place)).unwrap_or(space),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Kept, Vocabulary};
    use crate::words::Words;

    proptest! {
        #[test]
        fn what_is_kept_is_what_was_there(texts in proptest::collection::vec("([a-zA-Z]{1,3}[0-9]?[ .]){0,60}", 1..9)) {
            let mut vocabulary = Vocabulary::default();
            let words: Vec<Words> = texts.iter().map(|text| Words::of_text(text)).collect();
            let kept: Vec<Kept> = words.iter().map(|words| vocabulary.keep(words)).collect();
            for (words, kept) in words.iter().zip(&kept) {
                let mut space = Words::default();
                prop_assert_eq!(vocabulary.read(kept, &mut space), words);
                prop_assert_eq!(vocabulary.count(kept), words.all.len());
            }
        }
    }

    #[test]
    fn a_place_that_was_released_is_used_again() {
        let long = (0..40).map(|number| format!("word{number}")).collect::<Vec<_>>().join(" ");
        let mut vocabulary = Vocabulary::default();
        for _ in 0..100 {
            let kept = vocabulary.keep(&Words::of_text(&long));
            vocabulary.release(&kept);
        }
        assert_eq!(vocabulary.long.len(), 1);
    }
}
