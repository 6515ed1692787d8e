//! The head of a request, where it is a plain one.

use std::cell::RefCell;
use std::mem::MaybeUninit;

use bytes::{Buf as _, BytesMut};
use hyper::header::CONTENT_LENGTH;
use hyper::{Method, Request, Uri};

use super::known::Heads;
use super::written::Written;
use crate::control;

/// What has come of a request.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly always it is the large one, and it is moved out at once"
)]
pub(crate) enum Seen {
    /// Not all of its head.
    Part,
    /// A request that is served here.
    Plain(RequestHead),
    /// One that hyper serves, or refuses.
    Other,
}

/// A request without its body.
pub(crate) struct RequestHead {
    pub(crate) request: Request<()>,
    /// How long its body is.
    pub(crate) length: u64,
    /// Whether its client wants no other answer on this connection.
    pub(crate) closes: bool,
}

/// How long a request may be that is served here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    pub(crate) head: usize,
    pub(crate) body: u64,
}

/// What is known of a plain head beside its headers.
#[derive(Debug)]
struct About {
    method: Method,
    uri: Uri,
    closes: bool,
}

thread_local! {
    static KNOWN: RefCell<Heads<About>> = const { RefCell::new(Heads::new()) };
}

/// As many headers as hyper allows, too.
const MAX_HEADERS: usize = 100;

/// A length has at most so many digits: a body that is longer than ten terabytes is none of ours.
const MAX_DIGITS: usize = 13;

/// Takes the head of a request off what has come, when all of it is there and it is plain: nothing in it is about how it
/// is carried, but its length.
pub(crate) fn read_request_head(came: &mut BytesMut, most: Most) -> Seen {
    if let Some((head, end)) = again(came).filter(|(head, _)| head.length <= most.body) {
        came.advance(end);
        return Seen::Plain(head);
    }
    let mut slots = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut []);
    let end = match parsed.parse_with_uninit_headers(came, &mut slots) {
        Ok(httparse::Status::Complete(end)) if end <= most.head => end,
        Ok(httparse::Status::Partial) if came.len() < most.head => return Seen::Part,
        _ => return Seen::Other,
    };
    // Nothing is taken before it is known to be plain, so hyper can read the others from their start.
    let plain = plain(&parsed, came, end);
    let Some(head) = plain.filter(|head| head.length <= most.body) else { return Seen::Other };
    came.advance(end);
    Seen::Plain(head)
}

/// A head like one before, with another length, or other values of what is only about the message.
fn again(came: &[u8]) -> Option<(RequestHead, usize)> {
    KNOWN.with_borrow_mut(|known| {
        let (about, headers, end) = known.again(came)?;
        let length = headers.get(CONTENT_LENGTH).map_or(Some(0), |value| length(value.as_bytes()))?;
        let mut request = Request::new(());
        *request.method_mut() = about.method.clone();
        *request.uri_mut() = about.uri.clone();
        *request.headers_mut() = headers;
        Some((RequestHead { request, length, closes: about.closes }, end))
    })
}

/// `None` where something in the head is not for us to serve.
fn plain(parsed: &httparse::Request<'_, '_>, came: &[u8], end: usize) -> Option<RequestHead> {
    let target = parsed.path.filter(|target| target.starts_with('/'))?;
    let path = target.split('?').next().unwrap_or(target);
    if parsed.version != Some(1) || control::is_own(path) {
        return None;
    }
    let mut head = RequestHead { request: Request::new(()), length: 0, closes: false };
    let (mut hosts, mut lengths) = (0, 0);
    for header in &*parsed.headers {
        match concern(header.name) {
            Concern::Message => {}
            Concern::Host => hosts += 1,
            Concern::Length => {
                lengths += 1;
                head.length = length(header.value)?;
            }
            Concern::Connection if header.value.eq_ignore_ascii_case(b"keep-alive") => {}
            Concern::Connection if header.value.eq_ignore_ascii_case(b"close") => head.closes = true,
            Concern::Connection | Concern::Transfer => return None,
        }
    }
    if hosts != 1 || lengths > 1 {
        return None;
    }
    let written = Written::copy(came.get(..end)?);
    *head.request.method_mut() = plain_method(parsed.method?)?;
    *head.request.uri_mut() = Uri::from_maybe_shared(written.part(came, target.as_bytes())?).ok()?;
    *head.request.headers_mut() = written.headers(came, parsed.headers)?;
    // What agents send again and again are calls of a model.
    if head.request.method() == Method::POST
        && let Some(known) = written.known(came, parsed.headers, head.request.headers(), is_fixed)
    {
        let (method, uri) = (head.request.method().clone(), head.request.uri().clone());
        let about = About { method, uri, closes: head.closes };
        KNOWN.with_borrow_mut(|heads| heads.keep(known, about));
    }
    Some(head)
}

fn is_fixed(name: &str) -> bool {
    !matches!(concern(name), Concern::Message | Concern::Length)
}

/// What a header is about.
enum Concern {
    /// The message.
    Message,
    Host,
    Length,
    Connection,
    /// How it is carried, in a way that is left to hyper.
    Transfer,
}

fn concern(name: &str) -> Concern {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    match name.len() {
        2 if is("te") => Concern::Transfer,
        4 if is("host") => Concern::Host,
        6 if is("expect") => Concern::Transfer,
        7 if is("upgrade") || is("trailer") => Concern::Transfer,
        10 if is("connection") => Concern::Connection,
        14 if is("content-length") => Concern::Length,
        17 if is("transfer-encoding") => Concern::Transfer,
        _ => Concern::Message,
    }
}

fn plain_method(method: &str) -> Option<Method> {
    Some(match method {
        "POST" => Method::POST,
        "GET" => Method::GET,
        "PUT" => Method::PUT,
        "PATCH" => Method::PATCH,
        "DELETE" => Method::DELETE,
        _ => return None,
    })
}

/// A length in digits and nothing else.
pub(super) fn length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > MAX_DIGITS {
        return None;
    }
    value
        .iter()
        .try_fold(0, |length, digit| digit.is_ascii_digit().then(|| 10 * length + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use proptest::prelude::*;

    use super::{KNOWN, Most, Seen, read_request_head};
    use crate::wire::known::Heads;

    const MOST: Most = Most { head: 1_000, body: 10_000_000 };
    const LONGER: Most = Most { head: 4_000, ..MOST };

    fn seen(text: &str) -> (Seen, BytesMut) {
        let mut came = BytesMut::from(text);
        (read_request_head(&mut came, MOST), came)
    }

    #[test]
    fn a_plain_request_is_taken_off_and_its_body_stays() {
        let text = "POST /v1/messages?beta=true HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nX-Two:  a b \r\n\
                    x-two: c\r\nconnection: Keep-Alive\r\n\r\nbodyGET /";
        let (Seen::Plain(head), rest) = seen(text) else { panic!() };
        assert_eq!(rest, "bodyGET /");
        assert_eq!((head.length, head.closes), (4, false));
        assert_eq!(head.request.uri(), "/v1/messages?beta=true");
        let headers: Vec<_> =
            head.request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let expected: [(&str, &[u8]); 5] = [
            ("host", b"h"),
            ("content-length", b"4"),
            ("x-two", b"a b"),
            ("x-two", b"c"),
            ("connection", b"Keep-Alive"),
        ];
        assert_eq!(headers, expected);
    }

    #[test]
    fn a_client_says_that_it_closes() {
        let (Seen::Plain(head), _) = seen("GET /v1/models HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
        else {
            panic!()
        };
        assert!(head.closes);
        assert_eq!(head.length, 0);
    }

    #[test]
    fn what_is_out_of_the_ordinary_is_left_to_hyper_with_all_of_its_bytes() {
        let long = format!("GET / HTTP/1.1\r\nhost: h\r\nx: {}\r\n\r\n", "y".repeat(MOST.head));
        let endless = "x".repeat(MOST.head);
        let many = format!("GET / HTTP/1.1\r\nhost: h\r\n{}\r\n", "a: b\r\n".repeat(101));
        for text in [
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "GET /a HTTP/1.0\r\nhost: h\r\n\r\n",
            "GET /a HTTP/1.1\r\n\r\n",
            "GET /a HTTP/1.1\r\nhost: h\r\nhost: i\r\n\r\n",
            "GET http://h/a HTTP/1.1\r\nhost: h\r\n\r\n",
            "GET /a b HTTP/1.1\r\nhost: h\r\n\r\n",
            "HEAD /a HTTP/1.1\r\nhost: h\r\n\r\n",
            "CONNECT h:1 HTTP/1.1\r\nhost: h\r\n\r\n",
            "POST /a HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n",
            "POST /a HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n",
            "POST /a HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\ncontent-length: 3\r\n\r\nabc",
            "POST /a HTTP/1.1\r\nhost: h\r\ncontent-length: +3\r\n\r\nabc",
            "POST /a HTTP/1.1\r\nhost: h\r\ncontent-length: 3, 3\r\n\r\nabc",
            "POST /a HTTP/1.1\r\nhost: h\r\ncontent-length:\r\n\r\n",
            "POST /a HTTP/1.1\r\nhost: h\r\ncontent-length: 99999999999999\r\n\r\n",
            "POST /a HTTP/1.1\r\nhost: h\r\ncontent-length: 10000001\r\n\r\n",
            "POST /a HTTP/1.1\r\nhost: h\r\ncontent-length : 3\r\n\r\nabc",
            "GET /a HTTP/1.1\r\nhost: h\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
            "GET /a HTTP/1.1\r\nhost: h\r\nconnection: x-hop\r\nx-hop: 1\r\n\r\n",
            "GET /a HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\n\r\n",
            "GET /a HTTP/1.1\r\nhost: h\r\nte: trailers\r\n\r\n",
            "GET /a HTTP/1.1\r\nhost: h\r\n folded: x\r\n\r\n",
            "GET /livez HTTP/1.1\r\nhost: h\r\n\r\n",
            "GET /api/v1/sessions?x HTTP/1.1\r\nhost: h\r\n\r\n",
            "nonsense\r\n\r\n",
            &long,
            &endless,
            &many,
        ] {
            let (seen, rest) = seen(text);
            assert!(matches!(seen, Seen::Other), "{text}");
            assert_eq!(rest, text, "{text}");
        }
    }

    /// What is read of a head when no other is known.
    fn alone(text: &str) -> Option<(Vec<String>, u64, bool)> {
        KNOWN.set(Heads::new());
        in_turn(text)
    }

    /// What is read of a head behind others, by the names and values that it amounts to.
    fn in_turn(text: &str) -> Option<(Vec<String>, u64, bool)> {
        let mut came = BytesMut::from(text);
        let Seen::Plain(head) = read_request_head(&mut came, MOST) else {
            assert_eq!(came, text);
            return None;
        };
        assert!(came.is_empty());
        let request = &head.request;
        let first = format!("{} {}", request.method(), request.uri());
        let headers = request.headers().iter().map(|(name, value)| format!("{name}={value:?}"));
        Some((std::iter::once(first).chain(headers).collect(), head.length, head.closes))
    }

    #[test]
    fn a_head_like_the_one_before_is_read_as_if_it_were_the_first() {
        let head = |edit: (&str, &str)| {
            let plain = "POST /v1/x?a=b HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer sk\r\nContent-Length: 4\r\nx: 1\r\n\
                         two: a\r\ntwo: b\r\nConnection: close\r\n\r\n";
            plain.replacen(edit.0, edit.1, 1)
        };
        let first = alone(&head(("", ""))).unwrap();
        for edit in [
            ("", ""),
            ("Length: 4", "Length: 1234567"),
            ("Length: 4", "Length:   5 "),
            ("Length: 4", "Length: 10000001"),
            ("Length: 4", "Length: +4"),
            ("Length: 4", "Length: "),
            ("Length: 4", "Length: 4\r\ncontent-length: 4"),
            ("Length: 4", "Length: 4\r\n folded"),
            ("Length: 4", "Length: 4\nx-bare: 1"),
            ("Content-Length: 4\r\n", ""),
            ("Content-Length: 4", "Transfer-Encoding: chunked"),
            ("Content-Length", "Content-length"),
            ("Content-Length:", "Content-Length :"),
            ("sk", "other"),
            ("sk", "o\u{7f}ther"),
            ("x: 1", "x: "),
            ("x: 1", "x:1"),
            ("x: 1", "x: \t2\t "),
            ("x: 1", "x: 2\r"),
            ("x: 1", "x: 2\u{e9}"),
            ("x: 1", "y: 1"),
            ("x: 1", "x: 1\r\nexpect: 100-continue"),
            ("two: b", "two: c"),
            ("Host: h", "Host: i"),
            ("Host: h", "Host: h\r\nhost: i"),
            ("Connection: close", "Connection: keep-alive"),
            ("Connection: close", "Connection: upgrade"),
            ("close\r\n\r\n", "close\r\n"),
            ("/v1/x", "/v1/y"),
            ("/v1/x", "/livez"),
            ("POST", "PUT"),
            ("HTTP/1.1", "HTTP/1.0"),
        ] {
            let text = head(edit);
            assert_eq!(alone(&head(("", ""))), Some(first.clone()));
            let behind_it = in_turn(&text);
            assert_eq!(in_turn(&head(("", ""))), Some(first.clone()), "after {edit:?}");
            assert_eq!(behind_it, alone(&text), "{edit:?}");
        }
    }

    proptest! {
        #[test]
        fn heads_that_follow_each_other_are_read_as_each_alone(
            lines in proptest::collection::vec("(x|y|host|content-length|connection|te|X-Key): ?[0-9a-z -]{0,6}", 0..8),
            changed in proptest::collection::vec((0_usize..8, "(x|y|host|content-length|connection|te|X-Key): ?[0-9a-z -]{0,6}"), 0..3),
        ) {
            let head = |lines: &[String]| {
                let lines = [lines, &[String::new()]].concat().join("\r\n");
                format!("POST /a HTTP/1.1\r\nhost: h\r\n{lines}\r\n")
            };
            let mut others = lines.clone();
            for (at, line) in changed {
                if let Some(old) = others.get_mut(at) {
                    *old = line;
                }
            }
            let texts = [&lines, &others, &lines, &others].map(|lines| head(lines));
            KNOWN.set(Heads::new());
            let read = texts.each_ref().map(|text| in_turn(text));
            let expected = texts.each_ref().map(|text| alone(text));
            prop_assert_eq!(read, expected);
        }

        #[test]
        fn a_head_that_comes_in_two_parts_is_the_same_head(
            names in proptest::collection::vec("[a-zA-Z-]{1,12}x", 0..12),
            values in proptest::collection::vec("[ -~]{0,20}", 12),
            body in "[ -~]{0,30}",
            cut in any::<proptest::sample::Index>(),
        ) {
            let mut text = format!("POST /v1/x HTTP/1.1\r\nhost: h\r\ncontent-length: {}\r\n", body.len());
            for (name, value) in names.iter().zip(&values) {
                text.extend([name, ": ", value, "\r\n"]);
            }
            text.push_str("\r\n");
            let head = text.len();
            text.push_str(&body);
            let cut = cut.index(text.len());
            let mut came = BytesMut::from(&text[..cut]);
            if cut < head {
                prop_assert!(matches!(read_request_head(&mut came, LONGER), Seen::Part));
                came.extend_from_slice(&text.as_bytes()[cut..]);
            }
            let Seen::Plain(taken) = read_request_head(&mut came, LONGER) else { panic!("{text}") };
            prop_assert_eq!(taken.length, body.len() as u64);
            prop_assert_eq!(taken.request.headers().len(), 2 + names.len());
            for (name, value) in names.iter().zip(&values) {
                let same = taken.request.headers().get_all(name.as_str());
                prop_assert!(same.iter().any(|kept| kept.as_bytes() == value.trim_matches([' ', '\t']).as_bytes()));
            }
        }

        #[test]
        fn whatever_comes_is_taken_whole_or_not_at_all(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut came = BytesMut::from(&*bytes);
            if !matches!(read_request_head(&mut came, MOST), Seen::Plain(_)) {
                prop_assert_eq!(&*came, &*bytes);
            }
        }
    }
}
