//! The frames of HTTP/2 as they come in, piece by piece: which bytes are headers.

use super::fields::Fields;

/// Where a connection stands.
#[derive(Debug, Default)]
pub(super) struct Frames {
    expect: Expect,
    fields: Fields,
}

#[derive(Debug, Clone, Copy)]
enum Expect {
    /// Bytes that nobody here reads, then the head of a frame.
    Skip(usize),
    /// The head of a frame, as much as is there.
    Head { head: [u8; HEAD], at: usize },
    /// How much padding ends the payload of a frame with headers, which has `left` bytes after this one.
    Padding { left: usize, priority: usize },
    /// The priority, the headers, the padding.
    Headers { priority: usize, block: usize, padding: usize },
}

/// What a client says before its first frame, `PRI * HTTP/2.0` and so on.
const PREFACE: usize = 24;
const HEAD: usize = 9;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const IS_PADDED: u8 = 0x08;
const HAS_PRIORITY: u8 = 0x20;
const PRIORITY: usize = 5;

impl Default for Expect {
    fn default() -> Self {
        Self::Skip(PREFACE)
    }
}

impl Frames {
    /// The next bytes of the client. What is none of HTTP/2 is not understood here and refused by the server.
    pub(super) fn pass(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let taken = self.take(bytes);
            bytes = &mut bytes[taken..];
        }
    }

    /// As much as belongs together, at least one byte; says how much.
    fn take(&mut self, bytes: &mut [u8]) -> usize {
        let upto = |most: usize| most.min(bytes.len());
        let (expect, taken) = match self.expect {
            Expect::Skip(left) => {
                let taken = upto(left);
                (skip(left - taken), taken)
            }
            Expect::Head { mut head, at } => {
                head[at] = bytes[0];
                (if at + 1 == HEAD { self.begin(head) } else { Expect::Head { head, at: at + 1 } }, 1)
            }
            Expect::Padding { left, priority } => (headers(left, priority, usize::from(bytes[0])), 1),
            Expect::Headers { priority, block, padding } if priority > 0 => {
                let taken = upto(priority);
                (Expect::Headers { priority: priority - taken, block, padding }, taken)
            }
            Expect::Headers { block, padding, .. } => {
                let taken = upto(block);
                self.fields.pass(&mut bytes[..taken]);
                let block = block - taken;
                (
                    if block == 0 { skip(padding) } else { Expect::Headers { priority: 0, block, padding } },
                    taken,
                )
            }
        };
        self.expect = expect;
        taken
    }

    fn begin(&mut self, head: [u8; HEAD]) -> Expect {
        let [high, middle, low, kind, flags, ..] = head;
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        match kind {
            HEADERS => {
                self.fields = Fields::default();
                let priority = if flags & HAS_PRIORITY == 0 { 0 } else { PRIORITY };
                match length.checked_sub(1) {
                    Some(left) if flags & IS_PADDED != 0 => Expect::Padding { left, priority },
                    _ => headers(length, priority, 0),
                }
            }
            CONTINUATION => headers(length, 0, 0),
            _ => skip(length),
        }
    }
}

fn skip(length: usize) -> Expect {
    if length == 0 { Expect::Head { head: [0; HEAD], at: 0 } } else { Expect::Skip(length) }
}

/// What is left of a payload that has headers in it. Lengths that cannot be are skipped; the server refuses them.
fn headers(length: usize, priority: usize, padding: usize) -> Expect {
    match length.checked_sub(priority + padding) {
        Some(block) if block > 0 => Expect::Headers { priority, block, padding },
        _ => skip(length),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{CONTINUATION, Frames, HAS_PRIORITY, HEADERS, IS_PADDED};

    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
    }

    fn field(name: &str, value: &str) -> Vec<u8> {
        [&[0x40, name.len() as u8], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
    }

    /// What a client might say, and what the server should hear of it.
    fn talk() -> (Vec<u8>, Vec<u8>) {
        let said = |authority: &str| {
            let path = field(":path", "/a%2Fb");
            let block = [&path[..], &field(":authority", authority), &field("x", "%")].concat();
            let padded = [&[3][..], &[0; 5], &block, b"%%%"].concat();
            let (first, rest) = block.split_at(path.len() + 14);
            [
                PREFACE,
                &frame(4, 0, &[]),
                &frame(HEADERS, 4, &block),
                &frame(0, 1, &field(":authority", "a%b")),
                &frame(HEADERS, 4 | IS_PADDED | HAS_PRIORITY, &padded),
                &frame(HEADERS, 0, first),
                &frame(CONTINUATION, 0, &[]),
                &frame(CONTINUATION, 4, rest),
            ]
            .concat()
        };
        (said("tmp%2Fx:y.sock"), said("tmp-2Fx-y.sock"))
    }

    #[test]
    fn only_what_is_said_as_the_authority_changes() {
        let (mut said, heard) = talk();
        Frames::default().pass(&mut said);
        assert_eq!(said, heard);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_in_which_pieces_it_comes(pieces in prop::collection::vec(1..40_usize, 0..60)) {
            let (mut said, heard) = talk();
            let (mut frames, mut rest) = (Frames::default(), &mut said[..]);
            for piece in pieces {
                let (now, later) = rest.split_at_mut(piece.min(rest.len()));
                frames.pass(now);
                rest = later;
            }
            frames.pass(rest);
            prop_assert_eq!(said, heard);
        }

        #[test]
        fn any_bytes_are_passed_on_without_a_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut said = [PREFACE, &frame(HEADERS, 0, &bytes), &bytes].concat();
            Frames::default().pass(&mut said);
            Frames::default().pass(&mut bytes);
        }
    }
}
