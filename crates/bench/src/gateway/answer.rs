//! Where an answer ends: just enough of HTTP/1.1 for a load generator that must cost little.

use std::io;

use loopbreaker::Action;

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
    heard: Heard,
}

/// What an answer says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) status: u16,
    /// What Loopbreaker did, where it was asked.
    pub(crate) verdict: Option<Action>,
    /// Bytes of the body, without its framing.
    pub(crate) body: usize,
}

impl Heard {
    /// Whether it is the upstream's own answer, with no word about a loop.
    pub(crate) fn is_plain(self) -> bool {
        self.status == 200 && matches!(self.verdict, None | Some(Action::Allow))
    }
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
        let framing = self.read_head()?;
        self.take_body(framing, &body)
    }

    /// What it says, once it is complete.
    pub(crate) const fn heard(&self) -> Heard {
        self.heard
    }

    /// Reads status and verdict; how the body is framed.
    fn read_head(&mut self) -> io::Result<Framing> {
        let head = String::from_utf8_lossy(&self.head);
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap_or_default();
        let code = status.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.split(' ').next()?.parse().ok());
        self.heard.status = code.ok_or_else(|| wrong(status))?;
        let mut framing = None;
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                let length = value.parse().map_err(|_| wrong("a length that is no number"))?;
                framing = Some(Framing::Length(length));
            } else if name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked")
            {
                framing = Some(Framing::Chunks(Chunks::Size(0)));
            } else if name.eq_ignore_ascii_case("x-loopbreaker-verdict") {
                self.heard.verdict = Some(Action::parse(value).ok_or_else(|| wrong(value))?);
            }
        }
        framing.ok_or_else(|| wrong("neither a length nor pieces"))
    }

    fn take_body(&mut self, framing: Framing, mut bytes: &[u8]) -> io::Result<bool> {
        let mut chunks = match framing {
            Framing::Length(left) => {
                self.heard.body += bytes.len();
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
                    (self.heard.body, bytes) = (self.heard.body + taken, &bytes[taken..]);
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

fn wrong(what: &str) -> io::Error {
    io::Error::other(format!("unexpected answer: {what}"))
}

const MAX_HEAD: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use loopbreaker::Action;

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
                assert_eq!(reading.heard().body, body);
                assert!(reading.heard().is_plain());
            }
        }
    }

    #[test]
    fn an_answer_with_a_word_of_ours_is_not_plain() {
        for (answer, status, verdict) in [
            (
                "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nX-Loopbreaker-Verdict: reject\r\n\r\n",
                429,
                Action::Reject,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Loopbreaker-Verdict: warn\r\n\r\n",
                200,
                Action::Warn,
            ),
        ] {
            let mut reading = Answer::default();
            assert!(reading.take(answer.as_bytes()).unwrap());
            let heard = reading.heard();
            assert_eq!((heard.status, heard.verdict), (status, Some(verdict)));
            assert!(!heard.is_plain());
        }
    }

    #[test]
    fn whatever_is_no_answer_is_an_error() {
        for answer in [
            "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Loopbreaker-Verdict: maybe\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
        ] {
            assert!(Answer::default().take(answer.as_bytes()).is_err(), "{answer}");
        }
    }
}
