//! The body of an answer, recorded on its way to the client and replayed in the same pieces.

use std::sync::Arc;

use bytes::Bytes;

use crate::reply::Reply;

/// The body of an answer under way. It gives up beyond its limit.
#[derive(Debug)]
pub(crate) struct Recording {
    bytes: Vec<u8>,
    /// Where each piece ends.
    ends: Vec<u32>,
    limit: usize,
    is_streamed: bool,
    is_lost: bool,
}

/// A whole body.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    bytes: Bytes,
    /// Where each piece of a stream ends; empty for a document, which comes whole.
    ends: Arc<[u32]>,
}

/// A body on its way once more.
#[derive(Debug)]
pub(crate) struct Replay {
    kept: Kept,
    next: usize,
}

impl Recording {
    pub(crate) const fn new(limit: usize, is_streamed: bool) -> Self {
        Self { bytes: Vec::new(), ends: Vec::new(), limit, is_streamed, is_lost: false }
    }

    /// One more piece.
    pub(crate) fn take(&mut self, piece: &[u8]) {
        let length = self.bytes.len() + piece.len();
        let Some(end) = u32::try_from(length).ok().filter(|_| length <= self.limit && !self.is_lost) else {
            self.lose();
            return;
        };
        self.bytes.extend_from_slice(piece);
        if self.is_streamed && !piece.is_empty() {
            self.ends.push(end);
        }
    }

    /// It cannot be replayed as it was.
    pub(crate) fn lose(&mut self) {
        (self.is_lost, self.bytes, self.ends) = (true, Vec::new(), Vec::new());
    }

    /// All of it.
    pub(crate) fn finish(self) -> Option<Kept> {
        (!self.is_lost).then(|| Kept { bytes: self.bytes.into_boxed_slice().into(), ends: self.ends.into() })
    }
}

impl Kept {
    /// The body for one more client: a stream as a stream, a document whole.
    pub(crate) fn body(&self) -> Reply {
        if self.ends.is_empty() {
            return self.bytes.clone().into();
        }
        Reply::Again(Replay { kept: self.clone(), next: 0 })
    }

    /// What it takes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() + size_of_val(&*self.ends)
    }
}

impl Replay {
    /// Whether everything was said.
    pub(crate) fn is_over(&self) -> bool {
        self.next >= self.kept.ends.len()
    }
}

impl Iterator for Replay {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let end = *self.kept.ends.get(self.next)? as usize;
        let start = self.next.checked_sub(1).map_or(0, |before| self.kept.ends[before] as usize);
        self.next += 1;
        Some(self.kept.bytes.slice(start..end))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Recording, Replay};

    fn recorded(pieces: &[Vec<u8>], limit: usize) -> Option<Vec<Vec<u8>>> {
        let mut recording = Recording::new(limit, true);
        for piece in pieces {
            recording.take(piece);
        }
        let replay = Replay { kept: recording.finish()?, next: 0 };
        Some(replay.map(|piece| piece.to_vec()).collect())
    }

    #[test]
    fn what_is_longer_than_its_limit_is_not_kept() {
        assert!(recorded(&[vec![1; 5], vec![2; 5]], 10).is_some());
        assert!(recorded(&[vec![1; 5], vec![2; 6]], 10).is_none());
        assert!(recorded(&[vec![1; 11], vec![2; 1]], 10).is_none(), "nor what comes after");
    }

    proptest! {
        #[test]
        fn a_stream_comes_again_in_the_same_pieces(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20)
        ) {
            let said: Vec<_> = pieces.iter().filter(|piece| !piece.is_empty()).cloned().collect();
            prop_assert_eq!(recorded(&pieces, 10_000), Some(said));
        }
    }
}
