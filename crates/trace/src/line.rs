//! Lines of bounded length.

use std::io::{self, BufRead};

/// Reads lines into one buffer that is used again and again; a line above the limit is skipped without being held.
pub(crate) struct Lines<R> {
    input: R,
    max: usize,
    buffer: Vec<u8>,
    number: u64,
    bytes: u64,
}

/// What [`Lines::advance`] came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line, now in [`Lines::text`].
    Whole,
    /// A line above the limit, of which nothing was kept.
    TooLong,
    /// The end of the input.
    End,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R, max: usize) -> Self {
        Self { input, max, buffer: Vec::new(), number: 0, bytes: 0 }
    }

    /// The number of the current line, counted from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes consumed so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The current line without its end.
    pub(crate) fn text(&self) -> &[u8] {
        &self.buffer
    }

    /// Goes on to the next line.
    pub(crate) fn advance(&mut self) -> io::Result<Line> {
        self.buffer.clear();
        // One huge line must not keep its memory for the rest of the input.
        self.buffer.shrink_to(KEPT_CAPACITY);
        let mut seen = 0_u64;
        loop {
            let available = fill(&mut self.input)?;
            if available.is_empty() {
                if seen == 0 {
                    return Ok(Line::End);
                }
                break;
            }
            let newline = memchr::memchr(b'\n', available);
            let part = newline.map_or(available, |at| available.get(..at).unwrap_or_default());
            // The line's end may be two bytes long, and a mark may stand before the first line.
            if seen.saturating_add(part.len() as u64) <= self.max as u64 + 4 {
                keep(&mut self.buffer, part, self.max);
            } else {
                self.buffer.clear();
                self.buffer.shrink_to(KEPT_CAPACITY);
            }
            let consumed = part.len() + usize::from(newline.is_some());
            seen += consumed as u64;
            self.input.consume(consumed);
            self.bytes += consumed as u64;
            if newline.is_some() {
                seen -= 1;
                break;
            }
        }
        self.number += 1;
        if seen > self.max as u64 + 4 {
            return Ok(Line::TooLong);
        }
        if self.buffer.last() == Some(&b'\r') {
            self.buffer.pop();
        }
        if self.number == 1 && self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.buffer.drain(..BYTE_ORDER_MARK.len());
        }
        if self.buffer.len() > self.max {
            return Ok(Line::TooLong);
        }
        Ok(Line::Whole)
    }

    /// Whether nothing but white space is left; consumes that white space.
    pub(crate) fn at_end(&mut self) -> io::Result<bool> {
        loop {
            let available = fill(&mut self.input)?;
            if available.is_empty() {
                return Ok(true);
            }
            let blank = available.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let more = blank < available.len();
            let skipped = available.get(..blank).unwrap_or_default();
            self.number += memchr::memchr_iter(b'\n', skipped).count() as u64;
            self.input.consume(blank);
            self.bytes += blank as u64;
            if more {
                return Ok(false);
            }
        }
    }
}

fn fill<R: BufRead>(input: &mut R) -> io::Result<&[u8]> {
    // Asking twice is free once bytes are there, and the borrow of a returned buffer could not cross the loop.
    while let Err(error) = input.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    input.fill_buf()
}

/// Appends, and never lets the doubling of the buffer's capacity go far above the longest line.
fn keep(buffer: &mut Vec<u8>, part: &[u8], max: usize) {
    let needed = buffer.len() + part.len();
    if needed > buffer.capacity() {
        let capacity = needed.saturating_mul(2).min(max.saturating_add(4)).max(needed);
        buffer.reserve_exact(capacity - buffer.len());
    }
    buffer.extend_from_slice(part);
}

const KEPT_CAPACITY: usize = 1 << 20;
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8], max: usize) -> Vec<(u64, Line, String)> {
        // A tiny buffer cuts every line somewhere.
        let mut lines = Lines::new(io::BufReader::with_capacity(3, input), max);
        let mut found = Vec::new();
        loop {
            match lines.advance().unwrap() {
                Line::End => return found,
                line => {
                    found.push((lines.number(), line, String::from_utf8_lossy(lines.text()).into_owned()));
                }
            }
        }
    }

    #[test]
    fn line_ends_of_both_kinds_and_a_byte_order_mark_are_no_part_of_a_line() {
        let found = all("\u{feff}ab\r\n\nlast".as_bytes(), 10);
        let texts: Vec<_> = found.iter().map(|(number, _, text)| (*number, text.as_str())).collect();
        assert_eq!(texts, [(1, "ab"), (2, ""), (3, "last")]);
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_whole_and_one_more_byte_is_too_long() {
        let found = all(b"12345\n123456\r\n12345\r\n1234567890123\nend", 5);
        let kinds: Vec<_> = found.iter().map(|(_, line, _)| *line).collect();
        assert_eq!(kinds, [Line::Whole, Line::TooLong, Line::Whole, Line::TooLong, Line::Whole]);
    }

    #[test]
    fn the_buffer_shrinks_after_a_huge_line() {
        let mut input = vec![b'x'; 9 << 20];
        input.extend_from_slice(b"\nsmall\n");
        let mut lines = Lines::new(input.as_slice(), 10 << 20);
        assert_eq!(lines.advance().unwrap(), Line::Whole);
        assert!(lines.buffer.capacity() <= (10 << 20) + 4);
        lines.advance().unwrap();
        assert_eq!((lines.text(), lines.buffer.capacity() <= KEPT_CAPACITY), (&b"small"[..], true));
    }

    #[test]
    fn the_end_is_seen_behind_blank_lines_and_line_numbers_stay_right() {
        let mut lines = Lines::new(&b"a\n \n\nb\n\n"[..], 10);
        lines.advance().unwrap();
        assert!(!lines.at_end().unwrap());
        lines.advance().unwrap();
        assert_eq!((lines.number(), lines.text()), (4, &b"b"[..]));
        assert!(lines.at_end().unwrap());
    }
}
