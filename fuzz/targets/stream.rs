//! Streams in every dialect: the same answer, and the same end, however they are cut into frames.
//!
//! The byte behind the one that names the dialect says how long the frames are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopbreaker_dialect::{Answer, Dialect, StreamReader, UsageFilter};
use loopbreaker_fuzz::spoken;

fuzz_target!(|data: &[u8]| {
    let Some((dialect, [size, stream @ ..])) = spoken(data) else { return };
    let size = usize::from(*size).max(1);
    for watches in [false, true] {
        let at_once = read(dialect, watches, std::iter::once(stream));
        assert_eq!(at_once, read(dialect, watches, stream.chunks(size)), "frames of {size} bytes");
    }
    assert_eq!(filtered(std::iter::once(stream)), filtered(stream.chunks(size)), "frames of {size} bytes");
});

/// Everything that a reader can say about a stream.
#[derive(Debug, PartialEq)]
struct Heard {
    answer: Answer,
    complete: bool,
    skipped: u64,
    /// How many bytes go on to the client, and what is put behind them.
    cut: Option<(usize, Vec<u8>)>,
}

fn read<'a>(dialect: Dialect, watches: bool, frames: impl Iterator<Item = &'a [u8]>) -> Heard {
    let mut reader = StreamReader::new(dialect, watches);
    let (mut passed, mut cut) = (0, None);
    for frame in frames {
        if let Some(found) = reader.feed(frame) {
            cut = Some((passed + found.keep, reader.closing()));
            break;
        }
        passed += frame.len();
    }
    let (complete, skipped) = (reader.complete(), reader.skipped());
    Heard { answer: reader.finish(), complete, skipped, cut }
}

fn filtered<'a>(frames: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let (mut filter, mut out) = (UsageFilter::default(), Vec::new());
    for frame in frames {
        filter.feed(frame, &mut out);
    }
    filter.finish(&mut out);
    out
}
