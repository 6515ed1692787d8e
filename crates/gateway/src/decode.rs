//! Compressed bodies, decoded for reading only: what is forwarded stays as it came.

use std::io::{self, Read, Write};

use hyper::header::{CONTENT_ENCODING, HeaderMap};

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// What the `Content-Encoding` header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// The bytes are the body.
    Plain,
    /// The body is compressed once.
    Coded(Coding),
    /// Compressed in a way, or in several, that we do not read.
    Unknown,
}

impl Encoding {
    /// The encoding of a message with these headers.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(CONTENT_ENCODING).iter();
        let Some(value) = values.next() else { return Self::Plain };
        if values.next().is_some() {
            return Self::Unknown;
        }
        match value.to_str().map(|value| value.trim().to_ascii_lowercase()).as_deref() {
            Ok("" | "identity") => Self::Plain,
            Ok("gzip" | "x-gzip") => Self::Coded(Coding::Gzip),
            Ok("deflate") => Self::Coded(Coding::Deflate),
            Ok("br") => Self::Coded(Coding::Brotli),
            Ok("zstd") => Self::Coded(Coding::Zstd),
            _ => Self::Unknown,
        }
    }
}

/// Decodes a whole body; `None` when it is broken or longer than `limit`, as a decompression bomb is.
pub(crate) fn decode(coding: Coding, body: &[u8], limit: usize) -> Option<Vec<u8>> {
    let mut decoded = Vec::new();
    let mut reader: Box<dyn Read + '_> = match coding {
        Coding::Gzip => Box::new(flate2::read::MultiGzDecoder::new(body)),
        Coding::Deflate if is_zlib(body) => Box::new(flate2::read::ZlibDecoder::new(body)),
        Coding::Deflate => Box::new(flate2::read::DeflateDecoder::new(body)),
        Coding::Brotli => Box::new(brotli_decompressor::Decompressor::new(body, 16 * 1024)),
        Coding::Zstd => Box::new(zstd::stream::read::Decoder::new(body).ok()?),
    };
    reader.by_ref().take(limit as u64 + 1).read_to_end(&mut decoded).ok()?;
    (decoded.len() <= limit).then_some(decoded)
}

/// Decodes a stream piece by piece.
pub(crate) struct StreamDecoder(Inner);

enum Inner {
    Gzip(flate2::write::MultiGzDecoder<Decoded>),
    /// Which of the two meanings of `deflate` it is shows in its first byte.
    Deflate,
    Zlib(flate2::write::ZlibDecoder<Decoded>),
    Raw(flate2::write::DeflateDecoder<Decoded>),
    Brotli(Box<brotli_decompressor::DecompressorWriter<Decoded>>),
    Zstd(zstd::stream::write::Decoder<'static, Decoded>),
    Broken,
}

/// What one piece has decoded to so far: a few bytes may stand for gigabytes, and those are not read.
#[derive(Default)]
struct Decoded(Vec<u8>);

impl Decoded {
    const MAX: usize = 8 << 20;
}

impl Write for Decoded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > Self::MAX {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl StreamDecoder {
    /// A decoder for a stream that begins now.
    pub(crate) fn new(coding: Coding) -> Self {
        Self(match coding {
            Coding::Gzip => Inner::Gzip(flate2::write::MultiGzDecoder::new(Decoded::default())),
            Coding::Deflate => Inner::Deflate,
            Coding::Brotli => Inner::Brotli(Box::new(brotli_decompressor::DecompressorWriter::new(
                Decoded::default(),
                16 * 1024,
            ))),
            Coding::Zstd => {
                zstd::stream::write::Decoder::new(Decoded::default()).map_or(Inner::Broken, Inner::Zstd)
            }
        })
    }

    /// What the next piece decodes to; nothing any more once the stream is broken.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Vec<u8> {
        if matches!(self.0, Inner::Deflate) && !piece.is_empty() {
            self.0 = if is_zlib(piece) {
                Inner::Zlib(flate2::write::ZlibDecoder::new(Decoded::default()))
            } else {
                Inner::Raw(flate2::write::DeflateDecoder::new(Decoded::default()))
            };
        }
        let decoded = match &mut self.0 {
            Inner::Gzip(decoder) => {
                written(decoder, piece).map(|()| std::mem::take(&mut decoder.get_mut().0))
            }
            Inner::Zlib(decoder) => {
                written(decoder, piece).map(|()| std::mem::take(&mut decoder.get_mut().0))
            }
            Inner::Raw(decoder) => written(decoder, piece).map(|()| std::mem::take(&mut decoder.get_mut().0)),
            Inner::Brotli(decoder) => {
                written(decoder, piece).map(|()| std::mem::take(&mut decoder.get_mut().0))
            }
            Inner::Zstd(decoder) => {
                written(decoder, piece).map(|()| std::mem::take(&mut decoder.get_mut().0))
            }
            Inner::Deflate | Inner::Broken => Ok(Vec::new()),
        };
        decoded.unwrap_or_else(|_| {
            self.0 = Inner::Broken;
            Vec::new()
        })
    }
}

fn written(decoder: &mut impl Write, piece: &[u8]) -> io::Result<()> {
    decoder.write_all(piece)?;
    decoder.flush()
}

/// Whether a `deflate` body has the zlib header that the standard asks for, and many senders leave out.
fn is_zlib(body: &[u8]) -> bool {
    body.first().is_some_and(|first| first & 0x0f == 8)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use hyper::header::{CONTENT_ENCODING, HeaderMap, HeaderValue};

    use super::{Coding, Encoding, StreamDecoder, decode};

    const TEXT: &[u8] = b"{\"model\":\"m\",\"messages\":[]} and once more {\"model\":\"m\",\"messages\":[]}";

    fn gzip() -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(TEXT).unwrap();
        encoder.finish().unwrap()
    }

    fn samples() -> Vec<(Coding, Vec<u8>)> {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        zlib.write_all(TEXT).unwrap();
        let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        raw.write_all(TEXT).unwrap();
        // Brotli of an uncompressed meta-block: window 16, one block of the text's length, then the empty last one.
        let mut brotli = vec![];
        let bits: u64 = ((TEXT.len() as u64 - 1) << 4) | (1 << 20);
        brotli.extend(&bits.to_le_bytes()[..3]);
        brotli.extend(TEXT);
        brotli.push(3);
        vec![
            (Coding::Gzip, gzip()),
            (Coding::Deflate, zlib.finish().unwrap()),
            (Coding::Deflate, raw.finish().unwrap()),
            (Coding::Zstd, zstd::encode_all(TEXT, 3).unwrap()),
            (Coding::Brotli, brotli),
        ]
    }

    #[test]
    fn every_coding_is_read_whole_and_piece_by_piece() {
        for (coding, body) in samples() {
            assert_eq!(decode(coding, &body, 1_000).as_deref(), Some(TEXT), "{coding:?}");
            for size in [1, 3, 1_000] {
                let mut decoder = StreamDecoder::new(coding);
                let read: Vec<u8> = body.chunks(size).flat_map(|piece| decoder.feed(piece)).collect();
                assert_eq!(read, TEXT, "{coding:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn a_bomb_is_not_read() {
        let zeros = vec![0; 10 << 20];
        let bomb = zstd::encode_all(&zeros[..], 3).unwrap();
        assert!(bomb.len() < 10_000);
        assert_eq!(decode(Coding::Zstd, &bomb, 1 << 20), None);
    }

    #[test]
    fn a_bomb_in_a_stream_is_not_read_either() {
        let zeros = vec![0; 40 << 20];
        let bomb = zstd::encode_all(&zeros[..], 3).unwrap();
        let mut decoder = StreamDecoder::new(Coding::Zstd);
        assert_eq!(decoder.feed(&bomb), b"");
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&zeros).unwrap();
        assert_eq!(StreamDecoder::new(Coding::Gzip).feed(&gzip.finish().unwrap()), b"");
    }

    #[test]
    fn a_broken_body_is_no_body() {
        let mut broken = gzip();
        broken[15] ^= 0xff;
        assert_eq!(decode(Coding::Gzip, &broken, 1_000), None);
        assert_eq!(decode(Coding::Brotli, b"\xff\xff\xff\xff", 1_000), None);
        let mut decoder = StreamDecoder::new(Coding::Gzip);
        assert_eq!(decoder.feed(b"this is no gzip"), b"");
        assert_eq!(decoder.feed(&gzip()), b"", "it stays broken");
    }

    #[test]
    fn headers_name_the_encoding() {
        let of = |value| {
            Encoding::of(&HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static(value))]))
        };
        assert_eq!(Encoding::of(&HeaderMap::new()), Encoding::Plain);
        assert_eq!(of("GZip"), Encoding::Coded(Coding::Gzip));
        assert_eq!(of("gzip, br"), Encoding::Unknown);
        assert_eq!(of("identity"), Encoding::Plain);
    }
}
