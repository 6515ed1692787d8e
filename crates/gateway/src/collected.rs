//! A document that is collected on its way, and read at its end.

use bytes::Bytes;
use loopbreaker_dialect::{Answer, Dialect, Usage, read_answer};

/// What there is of a document.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    /// All of it, as long as it is one piece: most answers are, and are not copied.
    piece: Bytes,
    /// All of it, once it is more than one.
    bytes: Vec<u8>,
    /// Whether only its end is kept.
    is_long: bool,
}

impl Collected {
    /// Of a longer document only the end is kept, where its usage stands: most of it is pictures.
    const MAX: usize = 8 << 20;
    /// The end of a long one.
    const END: usize = 16 << 10;

    /// Takes the next piece.
    pub(crate) fn take(&mut self, piece: Bytes) {
        if self.piece.is_empty() && self.bytes.is_empty() && piece.len() <= Self::MAX {
            self.piece = piece;
            return;
        }
        self.bytes.extend_from_slice(&std::mem::take(&mut self.piece));
        self.bytes.extend_from_slice(&piece);
        let most = if self.is_long { 4 * Self::END } else { Self::MAX };
        if self.bytes.len() > most {
            self.is_long = true;
            self.bytes.drain(..self.bytes.len() - Self::END);
            self.bytes.shrink_to(4 * Self::END);
        }
    }

    /// What it says.
    pub(crate) fn read(&self, dialect: Dialect) -> Option<Answer> {
        if !self.is_long {
            return read_answer(dialect, if self.bytes.is_empty() { &self.piece } else { &self.bytes });
        }
        let usage = Some(Usage::at_end(dialect, &self.bytes)?);
        Some(Answer { usage, ..Answer::default() })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use loopbreaker_dialect::Dialect;

    use super::Collected;

    /// An answer with a picture of so many bytes.
    fn picture(bytes: usize) -> String {
        let data = "A".repeat(bytes);
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"inlineData":{{"data":"{data}"}}}}]}}}}],
               "usageMetadata":{{"promptTokenCount":10,"candidatesTokenCount":1290}}}}"#
        )
    }

    #[test]
    fn the_usage_of_a_long_answer_is_read_and_the_rest_of_it_not_kept() {
        for (bytes, frame) in [(100, 7), (Collected::MAX - 100, 65_536), (2 * Collected::MAX, 65_536)] {
            let mut collected = Collected::default();
            for piece in picture(bytes).as_bytes().chunks(frame) {
                collected.take(Bytes::copy_from_slice(piece));
                assert!(collected.bytes.len() <= Collected::MAX);
            }
            let usage = collected.read(Dialect::Gemini).unwrap().usage.unwrap();
            assert_eq!((usage.input, usage.output), (10, 1_290), "{bytes}");
        }
        assert_eq!(Collected::default().read(Dialect::Gemini), None);
    }
}
