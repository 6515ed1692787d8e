//! Streams in frames of every kind.

use loopbreaker_dialect::{Answer, Cut, Dialect, StreamReader, UsageFilter};
use proptest::prelude::*;

use crate::chants::chant_stream;
use crate::golden;

/// What comes of a stream: the answer, whether it is complete, and where it was cut, in bytes of the whole.
fn outcome(dialect: Dialect, stream: &[u8], ends: &[usize]) -> (Answer, bool, Option<(usize, Cut)>, Vec<u8>) {
    let mut reader = StreamReader::new(dialect, true);
    let mut from = 0;
    let mut cut = None;
    for end in ends.iter().copied().chain([stream.len()]) {
        let end = end.max(from);
        if let Some(found) = reader.feed(&stream[from..end]) {
            cut = Some((from + found.keep, Cut { keep: 0, ..found }));
        }
        from = end;
    }
    let (complete, closing) = (reader.complete(), reader.closing());
    (reader.finish(), complete, cut, closing)
}

fn streams() -> Vec<(Dialect, Vec<u8>)> {
    let recorded =
        |dialect| golden::inputs(dialect, "stream").into_iter().map(move |(_, stream)| (dialect, stream));
    let mut all: Vec<_> = Dialect::ALL.into_iter().flat_map(recorded).collect();
    all.extend(Dialect::ALL.map(|dialect| (dialect, chant_stream(dialect).into_bytes())));
    all
}

fn filtered(stream: &[u8], ends: &[usize]) -> Vec<u8> {
    let mut filter = UsageFilter::default();
    let mut out = Vec::new();
    let mut from = 0;
    for end in ends.iter().copied().chain([stream.len()]) {
        let end = end.max(from);
        filter.feed(&stream[from..end], &mut out);
        from = end;
    }
    filter.finish(&mut out);
    out
}

#[test]
fn a_stream_says_the_same_byte_by_byte() {
    for (dialect, stream) in streams() {
        let ends: Vec<_> = (0..stream.len()).collect();
        assert_eq!(outcome(dialect, &stream, &ends), outcome(dialect, &stream, &[]), "{dialect}");
        assert_eq!(filtered(&stream, &ends), filtered(&stream, &[]), "{dialect}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_stream_says_the_same_in_every_splitting(
        (dialect, stream) in prop::sample::select(streams()),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut ends: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        ends.sort_unstable();
        prop_assert_eq!(outcome(dialect, &stream, &ends), outcome(dialect, &stream, &[]));
        prop_assert_eq!(filtered(&stream, &ends), filtered(&stream, &[]));
    }

    #[test]
    fn a_stream_without_a_usage_chunk_passes_as_it_is(
        (dialect, stream) in prop::sample::select(streams()),
        noise in prop::collection::vec(any::<u8>(), 0..200),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let stream = [&stream[..], &noise[..]].concat();
        let mut ends: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        ends.sort_unstable();
        let has_usage_chunk = dialect == Dialect::Chat && String::from_utf8_lossy(&stream).contains("\"choices\":[],");
        prop_assert_eq!(filtered(&stream, &ends) == stream, !has_usage_chunk);
    }

    #[test]
    fn no_damage_to_a_stream_makes_a_reader_panic(
        (dialect, mut stream) in prop::sample::select(streams()),
        wounds in prop::collection::vec((any::<prop::sample::Index>(), 0..60_usize, prop::collection::vec(any::<u8>(), 0..4)), 1..5),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        for (at, length, put) in wounds {
            let at = at.index(stream.len() + 1);
            let end = (at + length).min(stream.len());
            stream.splice(at..end, put);
        }
        let mut ends: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        ends.sort_unstable();
        prop_assert_eq!(outcome(dialect, &stream, &ends), outcome(dialect, &stream, &[]));
        prop_assert_eq!(filtered(&stream, &ends), filtered(&stream, &[]));
    }
}
