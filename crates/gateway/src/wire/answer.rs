//! The head of an answer: its status, its headers, and how its body ends.

use std::cell::RefCell;
use std::mem::MaybeUninit;

use bytes::{Buf as _, BytesMut};
use hyper::ext::ReasonPhrase;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};
use hyper::{Response, StatusCode};

use super::known::Heads;
use super::request::length;
use super::written::Written;
use crate::broken::BrokenOff;

/// An answer without its body.
#[derive(Debug)]
pub(crate) struct AnswerHead {
    pub(crate) response: Response<()>,
    pub(crate) framing: Framing,
    /// Whether the connection can carry another request afterwards.
    pub(crate) keeps_alive: bool,
}

/// Where a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// After so many bytes.
    Length(u64),
    /// With its last chunk.
    Chunked,
    /// With the connection.
    Close,
}

/// Most answers have fewer headers; for those that have more there is room for `MAX_HEADERS`.
const FEW_HEADERS: usize = 48;

/// As many headers an answer may have. Behind a few gateways of others it may be more than a hundred, and what a
/// provider answers is no reason to think that it is away.
pub(crate) const MAX_HEADERS: usize = 1_000;

/// The head of an answer is at most so long.
const MAX_HEAD: usize = 512 << 10;

thread_local! {
    /// With the status of each.
    static KNOWN: RefCell<Heads<StatusCode>> = const { RefCell::new(Heads::new()) };
}

/// Takes the head of an answer off what has come; `None` until all of it is there. What is said before the answer
/// (100, 103) is passed over.
pub(crate) fn read_answer_head(
    came: &mut BytesMut,
    of_head_request: bool,
) -> Result<Option<AnswerHead>, BrokenOff> {
    loop {
        let Some((response, is_1_1)) = read_one(came)? else { return Ok(None) };
        let status = response.status();
        if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
            let framing = framing(&response, of_head_request)?;
            let keeps_alive = is_1_1 && framing != Framing::Close && !closes(response.headers());
            return Ok(Some(AnswerHead { response, framing, keeps_alive }));
        }
    }
}

/// A head, and whether it is one of HTTP/1.1.
fn read_one(came: &mut BytesMut) -> Result<Option<(Response<()>, bool)>, BrokenOff> {
    if let Some((response, end)) = again(came) {
        came.advance(end);
        return Ok(Some((response, true)));
    }
    let mut few = [const { MaybeUninit::uninit() }; FEW_HEADERS];
    let parsed = match parse(came, &mut few) {
        Err(httparse::Error::TooManyHeaders) => {
            parse(came, &mut vec![const { MaybeUninit::uninit() }; MAX_HEADERS])
        }
        parsed => parsed,
    };
    match parsed {
        Ok(Some((end, Some(response), is_1_1))) => {
            came.advance(end);
            Ok(Some((response, is_1_1)))
        }
        Ok(Some((_, None, _))) => Err(BrokenOff::Framing("the head of the answer is invalid")),
        Ok(None) if came.len() < MAX_HEAD => Ok(None),
        Ok(None) => Err(BrokenOff::Framing("the head of the answer is too long")),
        Err(_) => Err(BrokenOff::Framing("what was answered is not HTTP/1.1")),
    }
}

/// The end of a head, the answer where that is valid, and whether it is one of HTTP/1.1.
type Parsed = (usize, Option<Response<()>>, bool);

fn parse<'b>(
    came: &'b [u8],
    slots: &mut [MaybeUninit<httparse::Header<'b>>],
) -> Result<Option<Parsed>, httparse::Error> {
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    match config.parse_response_with_uninit_headers(&mut parsed, came, slots)? {
        httparse::Status::Partial => Ok(None),
        httparse::Status::Complete(end) => {
            Ok(Some((end, response(&parsed, came, end), parsed.version == Some(1))))
        }
    }
}

fn response(parsed: &httparse::Response<'_, '_>, came: &[u8], end: usize) -> Option<Response<()>> {
    let status = StatusCode::from_u16(parsed.code?).ok()?;
    let written = Written::copy(came.get(..end)?);
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = written.headers(came, parsed.headers)?;
    let reason = parsed.reason.filter(|reason| status.canonical_reason() != Some(*reason));
    if let Some(reason) = reason {
        // A status of the provider's own has no other words.
        if let Ok(reason) = ReasonPhrase::try_from(reason.as_bytes()) {
            response.extensions_mut().insert(reason);
        }
    } else if parsed.version == Some(1)
        && let Some(known) = written.known(came, parsed.headers, response.headers(), is_fixed)
    {
        KNOWN.with_borrow_mut(|heads| heads.keep(known, status));
    }
    Some(response)
}

/// A head like one before, with other values.
fn again(came: &[u8]) -> Option<(Response<()>, usize)> {
    KNOWN.with_borrow_mut(|known| {
        let (status, headers, end) = known.again(came)?;
        let mut response = Response::new(());
        *response.status_mut() = *status;
        *response.headers_mut() = headers;
        Some((response, end))
    })
}

/// How an answer is framed is read anew from its headers, whatever they say.
const fn is_fixed(_: &str) -> bool {
    false
}

/// Where the body of an answer ends (RFC 9112 §6.3).
fn framing(response: &Response<()>, of_head_request: bool) -> Result<Framing, BrokenOff> {
    let (status, headers) = (response.status(), response.headers());
    let has_no_body = of_head_request
        || status.is_informational()
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if has_no_body {
        return Ok(Framing::Length(0));
    }
    let codings = headers.get_all(TRANSFER_ENCODING);
    if let Some(last) = codings.iter().next_back() {
        let last = last.as_bytes().rsplit(|byte| *byte == b',').next().unwrap_or_default().trim_ascii();
        let is_chunked = last.eq_ignore_ascii_case(b"chunked");
        return Ok(if is_chunked { Framing::Chunked } else { Framing::Close });
    }
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let Some(first) = lengths.next() else { return Ok(Framing::Close) };
    if lengths.any(|other| other != first) {
        return Err(BrokenOff::Framing("the answer has two lengths"));
    }
    let length = length(first.as_bytes()).ok_or(BrokenOff::Framing("the length of the answer is invalid"))?;
    Ok(Framing::Length(length))
}

fn closes(headers: &HeaderMap) -> bool {
    let said = headers.get_all(CONNECTION).iter();
    said.flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use hyper::ext::ReasonPhrase;
    use proptest::prelude::*;

    use super::{Framing, KNOWN, MAX_HEADERS, read_answer_head};
    use crate::wire::known::Heads;

    fn framing(head: &str) -> Result<(u16, Framing, bool), String> {
        let mut came = BytesMut::from(&*format!("{head}\r\n\r\nrest"));
        let head = read_answer_head(&mut came, false).map_err(|error| error.to_string())?.unwrap();
        assert_eq!(came, "rest");
        Ok((head.response.status().as_u16(), head.framing, head.keeps_alive))
    }

    #[test]
    fn the_end_of_a_body_follows_from_the_head() {
        for (head, expected) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 7", (200, Framing::Length(7), true)),
            ("HTTP/1.1 200 OK\r\ncontent-length: 7\r\ncontent-length: 7", (200, Framing::Length(7), true)),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked", (200, Framing::Chunked, true)),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 7\r\ntransfer-encoding: gzip, chunked",
                (200, Framing::Chunked, true),
            ),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip", (200, Framing::Close, false)),
            ("HTTP/1.1 200 OK", (200, Framing::Close, false)),
            ("HTTP/1.1 204 No Content", (204, Framing::Length(0), true)),
            ("HTTP/1.1 304 Not Modified\r\ncontent-length: 9", (304, Framing::Length(0), true)),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 7\r\nconnection: x, Close",
                (200, Framing::Length(7), false),
            ),
            ("HTTP/1.0 200 OK\r\ncontent-length: 7", (200, Framing::Length(7), false)),
            (
                "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1",
                (200, Framing::Length(1), true),
            ),
            ("HTTP/1.1 101 Switching Protocols\r\nupgrade: x", (101, Framing::Length(0), true)),
        ] {
            assert_eq!(framing(head), Ok(expected), "{head}");
        }
    }

    #[test]
    fn what_contradicts_itself_is_no_answer() {
        for head in [
            "HTTP/1.1 200 OK\r\ncontent-length: 7\r\ncontent-length: 8",
            "HTTP/1.1 200 OK\r\ncontent-length: +7",
            "HTTP/1.1 200 OK\r\ncontent-length: 7, 7",
            "HTTP/1.1 200 OK\r\nno colon",
            "SSH-2.0-OpenSSH",
        ] {
            assert!(framing(head).is_err(), "{head}");
        }
    }

    #[test]
    fn an_answer_may_have_many_headers_but_not_any_number() {
        let with = |count: usize| {
            let headers = (0..count).map(|n| format!("\r\nx-{n}: {n}")).collect::<Vec<_>>().concat();
            framing(&format!("HTTP/1.1 200 OK{headers}"))
        };
        assert!(with(MAX_HEADERS).is_ok());
        assert!(with(MAX_HEADERS + 1).is_err());
    }

    #[test]
    fn words_of_the_providers_own_are_kept() {
        let mut came = BytesMut::from("HTTP/1.1 529 Site is overloaded\r\ncontent-length: 0\r\n\r\n");
        let head = read_answer_head(&mut came, false).unwrap().unwrap();
        let reason = head.response.extensions().get::<ReasonPhrase>().unwrap();
        assert_eq!(reason.as_bytes(), b"Site is overloaded");
    }

    #[test]
    fn an_answer_like_the_one_before_is_read_as_if_it_were_the_first() {
        let head = |edit: (&str, &str)| {
            let plain = "HTTP/1.1 200 OK\r\ndate: today\r\ncontent-length: 4\r\nserver: s\r\n\r\nbody";
            BytesMut::from(&*plain.replacen(edit.0, edit.1, 1))
        };
        let read = |mut came: BytesMut| {
            let head = read_answer_head(&mut came, false).map_err(|error| error.to_string());
            head.map(|head| {
                head.map(|head| (format!("{:?}", head.response), head.framing, head.keeps_alive, came))
            })
        };
        let alone = |came: BytesMut| {
            KNOWN.set(Heads::new());
            read(came)
        };
        for edit in [
            ("", ""),
            ("today", "tomorrow"),
            ("content-length: 4", "content-length: 2"),
            ("content-length: 4", "content-length: x"),
            ("content-length: 4", "transfer-encoding: chunked"),
            ("content-length: 4\r\n", ""),
            ("server: s", "connection: close"),
            ("server: s", "server: s\r\nx: y"),
            ("server: s\r\n\r\nbody", "server: s\r\n"),
            ("200 OK", "200 Fine"),
            ("200 OK", "529 Overloaded"),
            ("200 OK", "103 Early Hints"),
            ("HTTP/1.1", "HTTP/1.0"),
        ] {
            let first = alone(head(("", "")));
            let behind_it = read(head(edit));
            assert_eq!(read(head(("", ""))), first, "after {edit:?}");
            assert_eq!(behind_it, alone(head(edit)), "{edit:?}");
        }
    }

    proptest! {
        #[test]
        fn a_head_that_comes_in_parts_is_waited_for(
            values in proptest::collection::vec("[!-~]{1,20}", 0..60),
            cut in any::<proptest::sample::Index>(),
        ) {
            let headers = values.iter().enumerate().map(|(n, value)| format!("x-{n}: {value}\r\n"));
            let headers = headers.collect::<Vec<_>>().concat();
            let text = format!("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n{headers}\r\n");
            let cut = cut.index(text.len());
            let mut came = BytesMut::from(&text[..cut]);
            prop_assert!(read_answer_head(&mut came, false).unwrap().is_none());
            came.extend_from_slice(&text.as_bytes()[cut..]);
            came.extend_from_slice(b"abc");
            let head = read_answer_head(&mut came, false).unwrap().unwrap();
            prop_assert_eq!(head.response.headers().len(), 1 + values.len());
            prop_assert_eq!(&*came, b"abc");
        }

        #[test]
        fn whatever_comes_is_an_answer_or_an_error_or_waited_for(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            drop(read_answer_head(&mut BytesMut::from(&*bytes), false));
        }
    }
}
