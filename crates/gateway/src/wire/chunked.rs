//! A body that comes in chunks.

use bytes::{Buf as _, Bytes, BytesMut};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use crate::broken::BrokenOff;

/// Where in the body we are.
#[derive(Debug, Default)]
pub(crate) struct Chunked {
    place: Place,
}

#[derive(Debug, Default, Clone, Copy)]
enum Place {
    /// Before the size of a chunk.
    #[default]
    Size,
    /// In a chunk of which so much is still to come.
    Data(u64),
    /// Behind a chunk, before the end of its line.
    EndOfData,
    /// Behind the last chunk.
    Trailers,
    Over,
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
    /// The body is over.
    End,
    /// Nothing until more has come.
    More,
}

/// A line with the size of a chunk, and what may stand behind it.
const MAX_SIZE_LINE: usize = 4 << 10;
/// All trailers together.
const MAX_TRAILERS: usize = 64 << 10;
/// As many of them as are read.
const MAX_TRAILER_FIELDS: usize = 100;

impl Chunked {
    /// Takes the next piece off what has come.
    pub(crate) fn next(&mut self, came: &mut BytesMut) -> Result<Piece, BrokenOff> {
        loop {
            match self.place {
                Place::Size => match httparse::parse_chunk_size(came) {
                    Ok(httparse::Status::Complete((taken, size))) => {
                        came.advance(taken);
                        self.place = if size == 0 { Place::Trailers } else { Place::Data(size) };
                    }
                    Ok(httparse::Status::Partial) if came.len() < MAX_SIZE_LINE => return Ok(Piece::More),
                    _ => return Err(BrokenOff::Framing("invalid chunk size")),
                },
                Place::Data(_) if came.is_empty() => return Ok(Piece::More),
                Place::Data(left) => {
                    let most = usize::try_from(left).unwrap_or(usize::MAX).min(came.len());
                    let left = left - most as u64;
                    self.place = if left == 0 { Place::EndOfData } else { Place::Data(left) };
                    return Ok(Piece::Data(came.split_to(most).freeze()));
                }
                Place::EndOfData => match came.get(..2) {
                    None if came.first().is_none_or(|first| *first == b'\r') => return Ok(Piece::More),
                    Some(b"\r\n") => {
                        came.advance(2);
                        self.place = Place::Size;
                    }
                    _ => return Err(BrokenOff::Framing("a chunk does not end where it said")),
                },
                Place::Trailers => return self.trailers(came),
                Place::Over => return Ok(Piece::End),
            }
        }
    }

    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.place, Place::Over)
    }

    fn trailers(&mut self, came: &mut BytesMut) -> Result<Piece, BrokenOff> {
        const INVALID: BrokenOff = BrokenOff::Framing("invalid trailers");
        if came.starts_with(b"\r\n") {
            came.advance(2);
            self.place = Place::Over;
            return Ok(Piece::End);
        }
        let mut slots = [httparse::EMPTY_HEADER; MAX_TRAILER_FIELDS];
        let (taken, trailers) = match httparse::parse_headers(came, &mut slots) {
            Ok(httparse::Status::Complete((taken, fields))) => {
                let mut trailers = HeaderMap::with_capacity(fields.len());
                for field in fields {
                    let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| INVALID)?;
                    let value = HeaderValue::from_bytes(field.value).map_err(|_| INVALID)?;
                    trailers.append(name, value);
                }
                (taken, trailers)
            }
            Ok(httparse::Status::Partial) if came.len() < MAX_TRAILERS => return Ok(Piece::More),
            _ => return Err(INVALID),
        };
        came.advance(taken);
        self.place = Place::Over;
        Ok(Piece::Trailers(trailers))
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use proptest::prelude::*;

    use super::{Chunked, Piece};

    /// Everything that a body says when it comes in pieces of this size: its bytes, and its trailers.
    fn read(text: &[u8], step: usize) -> Result<(Vec<u8>, Vec<String>, usize), String> {
        let (mut chunked, mut came) = (Chunked::default(), BytesMut::new());
        let (mut body, mut trailers) = (Vec::new(), Vec::new());
        let mut pieces = text.chunks(step);
        loop {
            match chunked.next(&mut came).map_err(|error| error.to_string())? {
                Piece::Data(data) => body.extend_from_slice(&data),
                Piece::Trailers(map) => {
                    trailers.extend(
                        map.iter().map(|(name, value)| format!("{name}={}", value.to_str().unwrap())),
                    );
                }
                Piece::More => match pieces.next() {
                    Some(piece) => came.extend_from_slice(piece),
                    None => return Err("more is waited for".to_owned()),
                },
                Piece::End => {
                    assert!(chunked.is_over());
                    return Ok((body, trailers, came.len() + pieces.map(<[u8]>::len).sum::<usize>()));
                }
            }
        }
    }

    #[test]
    fn chunks_extensions_and_trailers_are_read_and_what_follows_stays() {
        let text = b"4;a=b\r\nbody\r\nA\r\n of a page\r\n0\r\nx-sum: 7\r\ny: z\r\n\r\nHTTP/1.1";
        for step in 1..=text.len() {
            let (body, trailers, rest) = read(text, step).unwrap();
            assert_eq!((&*body, rest), (&b"body of a page"[..], 8), "{step}");
            assert_eq!(trailers, ["x-sum=7", "y=z"], "{step}");
        }
    }

    #[test]
    fn what_is_no_chunk_is_an_error_and_what_ends_early_is_waited_for() {
        for text in ["x\r\nbody", "4\r\nbody0\r\n", "-1\r\n", "ffffffffffffffffff\r\n", "0\r\na b: c\r\n\r\n"]
        {
            let error = read(text.as_bytes(), 100).unwrap_err();
            assert_ne!(error, "more is waited for", "{text}");
        }
        for text in ["", "4", "4\r\nbo", "4\r\nbody", "4\r\nbody\r", "0\r\n", "0\r\nx: y\r\n"] {
            assert_eq!(read(text.as_bytes(), 100).unwrap_err(), "more is waited for", "{text}");
        }
        assert!(read("1".repeat(5_000).as_bytes(), 100).is_err(), "a size has an end");
    }

    proptest! {
        #[test]
        fn however_it_is_cut_a_body_is_the_same(
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..300), 0..8),
            step in 1_usize..200,
        ) {
            let mut text = Vec::new();
            for chunk in &chunks {
                text.extend(format!("{:x}\r\n", chunk.len()).bytes());
                text.extend(chunk);
                text.extend(b"\r\n");
            }
            text.extend(b"0\r\n\r\n");
            let (body, trailers, rest) = read(&text, step).unwrap();
            prop_assert_eq!(body, chunks.concat());
            prop_assert!(trailers.is_empty());
            prop_assert_eq!(rest, 0);
        }

        #[test]
        fn whatever_comes_it_ends(bytes in proptest::collection::vec(any::<u8>(), 0..300), step in 1_usize..50) {
            drop(read(&bytes, step));
        }
    }
}
