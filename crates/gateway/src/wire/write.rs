//! Heads and frames as they are sent.

use std::cell::RefCell;
use std::time::{Duration, Instant, SystemTime};

use bytes::{BufMut as _, Bytes, BytesMut};
use hyper::ext::ReasonPhrase;
use hyper::header::{CONTENT_LENGTH, DATE, HeaderName, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Method, StatusCode};

/// The first line of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestLine<'r> {
    pub(crate) method: &'r Method,
    /// Path and query.
    pub(crate) target: &'r str,
}

impl RequestLine<'_> {
    /// A head with these headers. Whatever length they name, it is that of the body which is sent.
    pub(crate) fn head<'h>(
        self,
        headers: impl Iterator<Item = (&'h HeaderName, &'h HeaderValue)>,
        length: usize,
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(USUAL_HEAD);
        for part in [self.method.as_str(), " ", self.target, " HTTP/1.1\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        let mut says_length = false;
        for (name, value) in headers {
            if name == CONTENT_LENGTH {
                if !std::mem::replace(&mut says_length, true) {
                    put_length(&mut out, length as u64);
                }
                continue;
            }
            put_header(&mut out, name, value);
        }
        let has_body = length > 0 || [Method::POST, Method::PUT, Method::PATCH].contains(self.method);
        if !says_length && has_body {
            put_length(&mut out, length as u64);
        }
        out.extend_from_slice(b"\r\n");
        out
    }
}

/// Most heads are shorter.
const USUAL_HEAD: usize = 1 << 10;

/// How a body is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// So many bytes are still to come.
    Length(u64),
    Chunked,
    /// An answer that has no body.
    Nothing,
}

/// The head of an answer of which the length may be known.
pub(crate) struct ReplyHead<'r> {
    pub(crate) parts: &'r Parts,
    /// The length of the body, where it is known and no header tells it.
    pub(crate) length: Option<u64>,
    /// Whether the connection ends with this answer.
    pub(crate) closes: bool,
}

impl ReplyHead<'_> {
    /// The bytes of the head, and how its body is to follow.
    pub(crate) fn write(&self) -> (Bytes, Encoding) {
        let Parts { status, headers, extensions, .. } = self.parts;
        let mut out = Vec::with_capacity(USUAL_HEAD);
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(status.as_str().as_bytes());
        out.extend_from_slice(b" ");
        match extensions.get::<ReasonPhrase>() {
            Some(reason) => out.extend_from_slice(reason.as_bytes()),
            None => out.extend_from_slice(status.canonical_reason().unwrap_or("<none>").as_bytes()),
        }
        out.extend_from_slice(b"\r\n");
        let has_no_body =
            status.is_informational() || matches!(*status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        for (name, value) in headers {
            // Where there is never a body its length says nothing, but for what 304 tells of the document.
            if name != CONTENT_LENGTH || !has_no_body || *status == StatusCode::NOT_MODIFIED {
                put_header(&mut out, name, value);
            }
        }
        let told = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let encoding = match (told, self.length) {
            _ if has_no_body => Encoding::Nothing,
            (Some(told), _) => Encoding::Length(told),
            (None, Some(known)) => {
                put_length(&mut out, known);
                Encoding::Length(known)
            }
            (None, None) => {
                out.extend_from_slice(b"transfer-encoding: chunked\r\n");
                Encoding::Chunked
            }
        };
        if self.closes {
            out.extend_from_slice(b"connection: close\r\n");
        }
        if !headers.contains_key(DATE) {
            put_date(&mut out);
        }
        out.extend_from_slice(b"\r\n");
        (out.into(), encoding)
    }
}

/// What stands before the bytes of a chunk.
pub(crate) fn chunk_start(length: usize) -> Bytes {
    let mut out = BytesMut::with_capacity(18);
    let digits = (usize::BITS - length.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        let value = (length >> (4 * digit)) & 0xf;
        out.put_u8(b"0123456789abcdef"[value]);
    }
    out.put_slice(b"\r\n");
    out.freeze()
}

/// What stands behind the bytes of a chunk.
pub(crate) const fn chunk_end() -> Bytes {
    Bytes::from_static(b"\r\n")
}

/// The end of a body in chunks.
pub(crate) const fn last_chunk() -> Bytes {
    Bytes::from_static(b"0\r\n\r\n")
}

fn put_header(out: &mut Vec<u8>, name: &HeaderName, value: &HeaderValue) {
    let (name, value) = (name.as_str().as_bytes(), value.as_bytes());
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

fn put_length(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"content-length: ");
    let mut digits = [0; 20];
    let mut left = length;
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
    out.extend_from_slice(b"\r\n");
}

/// The time of day as HTTP writes it, which is the same for a second.
fn put_date(out: &mut Vec<u8>) {
    thread_local! {
        static DATE: RefCell<Option<(Instant, [u8; 29])>> = const { RefCell::new(None) };
    }
    DATE.with_borrow_mut(|known| {
        let now = Instant::now();
        let is_old = known.is_none_or(|(ends, _)| now >= ends);
        if is_old {
            let time = SystemTime::now();
            let written = httpdate::fmt_http_date(time);
            let into = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
            let ends = now + Duration::from_nanos(u64::from(1_000_000_000_u32.saturating_sub(into)));
            *known = written.as_bytes().try_into().ok().map(|date| (ends, date));
        }
        if let Some((_, date)) = known {
            out.extend_from_slice(b"date: ");
            out.extend_from_slice(date);
            out.extend_from_slice(b"\r\n");
        }
    });
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderMap, HeaderName, HeaderValue};
    use hyper::{Method, Response};

    use super::{Encoding, ReplyHead, RequestLine, chunk_start};

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn request(method: &Method, headers: &[(&'static str, &'static str)], length: usize) -> String {
        let head = RequestLine { method, target: "/a?b" }.head(map(headers).iter(), length);
        String::from_utf8(head).unwrap()
    }

    #[test]
    fn a_request_tells_the_length_of_what_is_sent_in_its_place_and_once() {
        assert_eq!(
            request(&Method::POST, &[("host", "h"), ("content-length", "9"), ("x", "y")], 120),
            "POST /a?b HTTP/1.1\r\nhost: h\r\ncontent-length: 120\r\nx: y\r\n\r\n"
        );
        assert_eq!(
            request(&Method::POST, &[("host", "h")], 0),
            "POST /a?b HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n"
        );
        assert_eq!(request(&Method::GET, &[("host", "h")], 0), "GET /a?b HTTP/1.1\r\nhost: h\r\n\r\n");
    }

    fn reply(
        status: u16,
        headers: &[(&'static str, &'static str)],
        length: Option<u64>,
    ) -> (String, Encoding) {
        let mut response = Response::new(());
        *response.status_mut() = status.try_into().unwrap();
        *response.headers_mut() = map(headers);
        response.headers_mut().insert("date", HeaderValue::from_static("today"));
        let (parts, ()) = response.into_parts();
        let (head, encoding) = ReplyHead { parts: &parts, length, closes: status == 403 }.write();
        (String::from_utf8(head.to_vec()).unwrap(), encoding)
    }

    #[test]
    fn an_answer_is_framed_by_what_is_known_of_it() {
        for (status, headers, length, expected, encoding) in [
            (
                200,
                &[("content-length", "5")][..],
                None,
                "200 OK\r\ncontent-length: 5\r\ndate: today\r\n",
                Encoding::Length(5),
            ),
            (200, &[][..], Some(7), "200 OK\r\ndate: today\r\ncontent-length: 7\r\n", Encoding::Length(7)),
            (
                200,
                &[][..],
                None,
                "200 OK\r\ndate: today\r\ntransfer-encoding: chunked\r\n",
                Encoding::Chunked,
            ),
            (
                204,
                &[("content-length", "0")][..],
                Some(0),
                "204 No Content\r\ndate: today\r\n",
                Encoding::Nothing,
            ),
            (
                304,
                &[("content-length", "5")][..],
                Some(0),
                "304 Not Modified\r\ncontent-length: 5\r\ndate: today\r\n",
                Encoding::Nothing,
            ),
            (
                403,
                &[][..],
                Some(0),
                "403 Forbidden\r\ndate: today\r\ncontent-length: 0\r\nconnection: close\r\n",
                Encoding::Length(0),
            ),
        ] {
            assert_eq!(reply(status, headers, length), (format!("HTTP/1.1 {expected}\r\n"), encoding));
        }
    }

    #[test]
    fn an_answer_without_a_date_gets_the_time_of_day() {
        let (parts, ()) = Response::new(()).into_parts();
        for _ in 0..2 {
            let (head, _) = ReplyHead { parts: &parts, length: Some(0), closes: false }.write();
            let head = String::from_utf8(head.to_vec()).unwrap();
            let date = head.lines().find_map(|line| line.strip_prefix("date: ")).unwrap();
            let told = httpdate::parse_http_date(date).unwrap();
            assert!(told.elapsed().unwrap() < std::time::Duration::from_secs(2), "{date}");
        }
    }

    #[test]
    fn chunks_are_counted_in_hexadecimal() {
        for length in [1, 9, 15, 16, 255, 256, 4_095, 65_536, 1_048_577] {
            assert_eq!(chunk_start(length), format!("{length:x}\r\n"));
        }
    }
}
