//! Where an answer ends: just enough of HTTP/1.1 for a load generator that must cost little.

use std::io;

/// How the body of an answer is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// So many bytes are still to come.
    Length(usize),
    /// In pieces, each with its size before it.
    Chunks(Chunks),
}

/// What comes next in a body that is sent in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chunks {
    /// A digit of a size, or the end of its line.
    Size(usize),
    /// So many bytes of a piece.
    Data(usize),
    /// The end of line behind a piece.
    End,
    /// Lines behind the last piece; whether the present one is empty so far.
    Trailer(bool),
}

/// An answer as it comes in. Bytes may be split anywhere.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    head: Vec<u8>,
    framing: Option<Framing>,
    body: usize,
}

impl Answer {
    /// Takes bytes in; `true` when the answer is complete.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> io::Result<bool> {
        if let Some(framing) = self.framing {
            return self.take_body(framing, bytes);
        }
        // The end of the head may be split over two reads.
        let from = self.head.len().saturating_sub(3);
        self.head.extend_from_slice(bytes);
        let Some(at) = self.head[from..].windows(4).position(|four| four == b"\r\n\r\n") else {
            return if self.head.len() > MAX_HEAD { Err(wrong("a head without end")) } else { Ok(false) };
        };
        let body = self.head.split_off(from + at + 4);
        let framing = read_head(&self.head)?;
        self.take_body(framing, &body)
    }

    /// Bytes of the body, without its framing.
    pub(crate) const fn body_len(&self) -> usize {
        self.body
    }

    fn take_body(&mut self, framing: Framing, mut bytes: &[u8]) -> io::Result<bool> {
        let mut chunks = match framing {
            Framing::Length(left) => {
                self.body += bytes.len();
                let left =
                    left.checked_sub(bytes.len()).ok_or_else(|| wrong("more bytes than were announced"))?;
                self.framing = Some(Framing::Length(left));
                return Ok(left == 0);
            }
            Framing::Chunks(chunks) => chunks,
        };
        while let Some((&byte, rest)) = bytes.split_first() {
            chunks = match chunks {
                Chunks::Size(size) => {
                    bytes = rest;
                    match (byte as char).to_digit(16) {
                        Some(digit) => Chunks::Size(size * 16 + digit as usize),
                        None if byte == b'\r' => Chunks::Size(size),
                        None if byte == b'\n' && size == 0 => Chunks::Trailer(true),
                        None if byte == b'\n' => Chunks::Data(size),
                        None => return Err(wrong("a piece without a size")),
                    }
                }
                Chunks::Data(left) => {
                    let taken = left.min(bytes.len());
                    (self.body, bytes) = (self.body + taken, &bytes[taken..]);
                    if taken == left { Chunks::End } else { Chunks::Data(left - taken) }
                }
                Chunks::End => {
                    bytes = rest;
                    if byte == b'\n' { Chunks::Size(0) } else { Chunks::End }
                }
                Chunks::Trailer(empty) => {
                    bytes = rest;
                    match byte {
                        b'\n' if empty => return Ok(true),
                        b'\n' => Chunks::Trailer(true),
                        b'\r' => Chunks::Trailer(empty),
                        _ => Chunks::Trailer(false),
                    }
                }
            };
        }
        self.framing = Some(Framing::Chunks(chunks));
        Ok(false)
    }
}

/// How the body is framed; an error when the answer is not what it has to be.
fn read_head(head: &[u8]) -> io::Result<Framing> {
    let head = String::from_utf8_lossy(head);
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default();
    if !status.starts_with("HTTP/1.1 200") {
        return Err(wrong(status));
    }
    let mut framing = None;
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            framing = Some(Framing::Length(value.parse().map_err(|_| wrong("a length that is no number"))?));
        } else if name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked") {
            framing = Some(Framing::Chunks(Chunks::Size(0)));
        } else if name.eq_ignore_ascii_case("x-loopbreaker-warning") {
            // These transcripts are healthy: a warning would be a mistake, of ours or of the benchmark.
            return Err(wrong(&head));
        }
    }
    framing.ok_or_else(|| wrong("neither a length nor pieces"))
}

fn wrong(what: &str) -> io::Error {
    io::Error::other(format!("unexpected answer: {what}"))
}

const MAX_HEAD: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::Answer;

    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1a\r\n\
        abcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n";
    const WHOLE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc";

    #[test]
    fn an_answer_ends_where_it_ends_however_it_is_split() {
        for (answer, body) in [(CHUNKED, 29), (WHOLE, 3)] {
            for split in 0..answer.len() {
                let mut reading = Answer::default();
                assert!(!reading.take(&answer[..split]).unwrap(), "{split}");
                assert!(reading.take(&answer[split..]).unwrap(), "{split}");
                assert_eq!(reading.body_len(), body);
            }
        }
    }

    #[test]
    fn whatever_is_not_a_plain_200_is_an_error() {
        for answer in [
            "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Loopbreaker-Warning: loop_warn\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
            "HTTP/1.1 200 OK\r\n\r\n",
        ] {
            assert!(Answer::default().take(answer.as_bytes()).is_err(), "{answer}");
        }
    }
}
