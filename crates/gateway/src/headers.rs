//! Headers on their way through: end-to-end ones with value and order, hop-by-hop ones and our own left out.

use hyper::Request;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, Entry, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};

use crate::access::LOGIN;
use crate::wire::RequestLine;

/// Names that are looked for in every request: one that is a text would be read anew each time.
pub(crate) const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(crate) const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
pub(crate) const X_GOOG_API_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");

/// Headers of a request as the provider gets them.
pub(crate) fn to_upstream(headers: &HeaderMap, host: &HeaderValue, edited: bool) -> HeaderMap {
    if !edited && all_may_go_on(headers) {
        // Nearly every request: a map that is cloned need not be hashed anew.
        let mut out = headers.clone();
        out.insert(HOST, host.clone());
        leave_login_out(&mut out);
        return out;
    }
    let mut out = HeaderMap::with_capacity(headers.len() + 1);
    out.append(HOST, host.clone());
    copy(headers, &mut out, |name| name == HOST || is_ours(name) || (edited && is_of_the_body(name)));
    leave_login_out(&mut out);
    out
}

/// The head of a request as the provider gets it, with the length of the body that is sent.
pub(crate) fn head_to_upstream(
    line: RequestLine<'_>,
    headers: &HeaderMap,
    host: &HeaderValue,
    edited: bool,
    without: &[HeaderName],
    length: usize,
) -> Vec<u8> {
    if !edited && without.is_empty() && all_may_go_on(headers) && !headers.contains_key(COOKIE) {
        // Nearly every request: what goes on as it came is written as it stands.
        return line.head(
            headers.iter().map(|(name, value)| (name, if name == HOST { host } else { value })),
            length,
        );
    }
    let mut out = to_upstream(headers, host, edited);
    leave_out(&mut out, without);
    line.head(out.iter(), length)
}

/// An operator's login is for nobody but us: a browser sends it along to every path.
fn leave_login_out(headers: &mut HeaderMap) {
    let Entry::Occupied(mut cookies) = headers.entry(COOKIE) else { return };
    let is_login = |pair: &&[u8]| {
        pair.trim_ascii().strip_prefix(LOGIN.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
    };
    let holds_it =
        |value: &HeaderValue| value.as_bytes().split(|byte| *byte == b';').any(|pair| is_login(&pair));
    if !cookies.iter().any(holds_it) {
        return;
    }
    let others: Vec<HeaderValue> = cookies
        .iter()
        .filter_map(|value| {
            let pairs = value.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
            let kept: Vec<&[u8]> = pairs.filter(|pair| !is_login(pair)).collect();
            HeaderValue::from_bytes(&kept.join(&b"; "[..])).ok().filter(|value| !value.is_empty())
        })
        .collect();
    let mut others = others.into_iter();
    match others.next() {
        None => leave_out(headers, &[COOKIE]),
        Some(first) => {
            cookies.insert(first);
            others.for_each(|other| cookies.append(other));
        }
    }
}

/// Leaves headers out. To take one out of a map would move the last one into its place, and the order is the sender's.
pub(crate) fn leave_out(headers: &mut HeaderMap, names: &[HeaderName]) {
    if names.iter().any(|name| headers.contains_key(name)) {
        let kept = headers.iter().filter(|(name, _)| !names.contains(name));
        *headers = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    }
}

/// Whether nothing of a request's headers has to stay behind. That a connection is to be kept we would say ourselves.
fn all_may_go_on(headers: &HeaderMap) -> bool {
    headers.iter().all(|(name, value)| {
        if name == CONNECTION {
            return value.as_bytes().eq_ignore_ascii_case(b"keep-alive");
        }
        !is_hop_by_hop(name) && !is_ours(name)
    })
}

/// Trailers of a request as the provider gets them, where there are any left. They are announced in its headers, and
/// nothing says how long its body is: else they would not be sent.
pub(crate) fn trailers_to_upstream(
    trailers: &HeaderMap,
    headers: &mut HeaderMap,
    edited: bool,
) -> Option<HeaderMap> {
    let mut out = HeaderMap::new();
    copy(trailers, &mut out, |name| is_ours(name) || may_not_trail(name) || (edited && is_of_the_body(name)));
    let names: Vec<&str> = out.keys().map(HeaderName::as_str).collect();
    let announced = HeaderValue::from_str(&names.join(", ")).ok().filter(|_| !names.is_empty())?;
    leave_out(headers, &[CONTENT_LENGTH]);
    headers.insert(TRAILER, announced);
    Some(out)
}

/// What says how a message is framed, where it goes, who sends it and what is in it comes before its body or not at all
/// (RFC 9110 §6.5.1).
fn may_not_trail(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "authorization"
            | "content-encoding"
            | "content-length"
            | "content-range"
            | "content-type"
            | "cookie"
            | "expect"
            | "host"
            | "max-forwards"
            | "range"
            | "trailer"
            | "x-api-key"
            | "x-goog-api-key"
    )
}

/// Headers of an answer as the client gets them.
pub(crate) fn to_client(headers: HeaderMap) -> HeaderMap {
    if !headers.keys().any(|name| is_hop_by_hop(name) || is_ours(name)) {
        return headers;
    }
    let mut out = HeaderMap::with_capacity(headers.len() + 6);
    copy(&headers, &mut out, is_ours);
    out
}

/// Whether a request asks for a web socket. Other protocols are only offered, such as HTTP/2 by some clients with
/// every request, and whoever does not take an offer answers as if it had not been made.
pub(crate) fn wants_web_socket(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
        && names_in_connection(headers).any(|name| name.eq_ignore_ascii_case("upgrade"))
}

/// Copies the two headers by which both sides agree on another protocol.
pub(crate) fn copy_upgrade(from: &HeaderMap, to: &mut HeaderMap) {
    for name in [CONNECTION, UPGRADE] {
        if let Some(value) = from.get(&name) {
            to.insert(name, value.clone());
        }
    }
}

/// Whether a request is for no host or for more than one (RFC 9112 §3.2). Before HTTP/1.1 none had to be named, and in
/// HTTP/2 it stands elsewhere.
pub(crate) fn names_no_one_host<B>(request: &Request<B>) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    let is_missing = hosts.next().is_none() && request.version() == hyper::Version::HTTP_11;
    is_missing || hosts.next().is_some()
}

/// Whether a body is coded for this connection in a way that is not taken off here: whoever gets it next would not know
/// (RFC 9112 §6.1).
pub(crate) fn is_coded_for_transfer(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    codings.any(|coding| !coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"))
}

/// Gives a request the headers that it would have in HTTP/1.1: the host that stands in its target, and one header for
/// all cookies, which HTTP/2 may split.
pub(crate) fn as_in_http1<B>(request: &mut Request<B>) {
    if let Some(Ok(host)) = request.uri().authority().map(|host| HeaderValue::from_str(host.as_str())) {
        request.headers_mut().insert(HOST, host);
    }
    let is_http2 = request.version() == hyper::Version::HTTP_2;
    let cookies: Vec<&[u8]> = request.headers().get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if is_http2
        && cookies.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..]))
    {
        request.headers_mut().insert(COOKIE, joined);
    }
}

/// Copies what is meant for the other end. Copying keeps the order, which removing would not.
fn copy(from: &HeaderMap, to: &mut HeaderMap, leave_out: impl Fn(&HeaderName) -> bool) {
    // What is hop-by-hop by its name need not be looked for again, and most clients name nothing else.
    let names_others = names_in_connection(from).any(|name| !is_named_hop_by_hop(name));
    // Of two framings the chunks hold, and a length beside them is wrong for whoever believes it.
    let is_chunked = from.contains_key(TRANSFER_ENCODING);
    for (name, value) in from {
        let named =
            names_others && names_in_connection(from).any(|hop| hop.eq_ignore_ascii_case(name.as_str()));
        let overruled = is_chunked && name == CONTENT_LENGTH;
        if !is_hop_by_hop(name) && !named && !overruled && !leave_out(name) {
            to.append(name.clone(), value.clone());
        }
    }
}

/// Headers that only we write.
fn is_ours(name: &HeaderName) -> bool {
    name.as_str().starts_with("x-loopbreaker-")
}

/// Whether it says what is true of the bytes of a body, and not of an edited one.
fn is_of_the_body(name: &HeaderName) -> bool {
    let name = name.as_str();
    let is_digest = matches!(name, "content-md5" | "digest" | "content-digest" | "repr-digest")
        || name.starts_with("x-amz-checksum-")
        // They announce which of those there is, and that it comes behind the body.
        || matches!(name, "x-amz-sdk-checksum-algorithm" | "x-amz-trailer" | "x-amz-content-sha256");
    is_digest || matches!(name, "content-length" | "content-encoding")
}

fn names_in_connection(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',').map(str::trim))
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    [CONNECTION, TE, TRANSFER_ENCODING, UPGRADE].contains(name) || is_named_hop_by_hop(name.as_str())
}

fn is_named_hop_by_hop(name: &str) -> bool {
    matches!(name, "keep-alive" | "proxy-connection" | "proxy-authenticate" | "proxy-authorization")
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderMap, HeaderName, HeaderValue};

    use super::{as_in_http1, is_coded_for_transfer, to_client, to_upstream, wants_web_socket};

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    fn names(headers: &HeaderMap) -> Vec<String> {
        headers.iter().map(|(name, value)| format!("{name}={}", value.to_str().unwrap())).collect()
    }

    #[test]
    fn a_body_that_is_coded_for_the_connection_is_known() {
        for (coding, is_coded) in [
            ("chunked", false),
            ("Chunked", false),
            ("gzip, chunked", true),
            ("gzip", true),
            ("chunked, ", true),
        ] {
            assert_eq!(is_coded_for_transfer(&map(&[("transfer-encoding", coding)])), is_coded, "{coding}");
        }
        assert!(is_coded_for_transfer(&map(&[
            ("transfer-encoding", "gzip"),
            ("transfer-encoding", "chunked")
        ])));
        assert!(!is_coded_for_transfer(&map(&[("content-encoding", "gzip")])));
    }

    #[test]
    fn end_to_end_headers_keep_value_and_order() {
        let came = map(&[
            ("host", "127.0.0.1:4141"),
            ("zebra", "1"),
            ("connection", "keep-alive, x-hop"),
            ("x-hop", "gone"),
            ("accept", "*/*"),
            ("x-loopbreaker-verdict", "allow"),
            ("cookie", "a"),
            ("cookie", "b"),
            ("te", "trailers"),
        ]);
        let sent = to_upstream(&came, &HeaderValue::from_static("api.openai.com"), false);
        assert_eq!(names(&sent), ["host=api.openai.com", "zebra=1", "accept=*/*", "cookie=a", "cookie=b"]);
    }

    #[test]
    fn a_login_to_the_dashboard_goes_to_no_provider() {
        let sent = |cookies: &[&'static str]| {
            let cookies = cookies.iter().map(|cookie| ("cookie", *cookie));
            let pairs: Vec<_> = std::iter::once(("host", "here")).chain(cookies).collect();
            names(&to_upstream(&map(&pairs), &HeaderValue::from_static("h"), false)).split_off(1)
        };
        assert!(sent(&["loopbreaker=secret"]).is_empty());
        assert_eq!(sent(&["a=1; loopbreaker=secret;b=2"]), ["cookie=a=1; b=2"]);
        assert_eq!(sent(&["loopbreaker=secret", "c=3"]), ["cookie=c=3"]);
        assert_eq!(sent(&["a=loopbreaker=1;loopbreakers=2"]), ["cookie=a=loopbreaker=1;loopbreakers=2"]);
    }

    #[test]
    fn headers_that_are_left_out_do_not_change_the_order_of_the_others() {
        let came =
            map(&[("host", "here"), ("cookie", "loopbreaker=secret"), ("a", "1"), ("b", "2"), ("c", "3")]);
        let mut sent = to_upstream(&came, &HeaderValue::from_static("there"), false);
        assert_eq!(names(&sent), ["host=there", "a=1", "b=2", "c=3"]);
        super::leave_out(&mut sent, &["a", "x"].map(HeaderName::from_static));
        assert_eq!(names(&sent), ["host=there", "b=2", "c=3"]);
    }

    #[test]
    fn equal_names_stand_together_in_their_own_order() {
        let came = map(&[("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"), ("b", "5")]);
        let sent = to_upstream(&came, &HeaderValue::from_static("h"), true);
        assert_eq!(names(&sent), ["host=h", "a=1", "a=3", "b=2", "b=5", "c=4"]);
    }

    #[test]
    fn headers_that_all_may_go_on_keep_their_order_as_well() {
        let came = map(&[("zebra", "1"), ("host", "here"), ("connection", "Keep-Alive"), ("accept", "*/*")]);
        let sent = names(&to_upstream(&came, &HeaderValue::from_static("there"), false));
        assert_eq!(sent, ["zebra=1", "host=there", "connection=Keep-Alive", "accept=*/*"]);
    }

    #[test]
    fn an_edited_body_has_no_length_and_no_encoding_of_the_old_one() {
        let came = map(&[
            ("content-length", "5"),
            ("content-encoding", "gzip"),
            ("content-digest", "sha-256=:x:"),
            ("content-md5", "x"),
            ("x-amz-checksum-crc32", "x"),
            ("x-amz-checksum-sha256", "x"),
            ("x-amz-sdk-checksum-algorithm", "CRC32"),
            ("x-amz-date", "20260101T000000Z"),
            ("content-type", "a/b"),
        ]);
        let host = HeaderValue::from_static("h");
        let sent = to_upstream(&came, &host, true);
        assert_eq!(names(&sent), ["host=h", "x-amz-date=20260101T000000Z", "content-type=a/b"]);
        assert_eq!(to_upstream(&came, &host, false).len(), came.len() + 1);
    }

    #[test]
    fn a_checksum_behind_an_edited_body_stays_behind() {
        let came = map(&[("x-amz-checksum-crc32c", "x"), ("x-note", "kept")]);
        let trailing = |edited| {
            let mut headers = map(&[("content-length", "5")]);
            names(&super::trailers_to_upstream(&came, &mut headers, edited).unwrap())
        };
        assert_eq!(trailing(true), ["x-note=kept"]);
        assert_eq!(trailing(false), ["x-amz-checksum-crc32c=x", "x-note=kept"]);
    }

    #[test]
    fn a_length_beside_chunks_stays_behind() {
        let came = map(&[("content-length", "5"), ("transfer-encoding", "chunked"), ("x", "y")]);
        assert_eq!(names(&to_upstream(&came, &HeaderValue::from_static("h"), false)), ["host=h", "x=y"]);
        assert_eq!(names(&to_client(came)), ["x=y"]);
    }

    #[test]
    fn a_provider_cannot_speak_in_our_name() {
        let answer = to_client(map(&[("x-loopbreaker-verdict", "allow"), ("x-request-id", "1")]));
        assert_eq!(names(&answer), ["x-request-id=1"]);
    }

    #[test]
    fn a_web_socket_is_asked_for_in_two_headers() {
        assert!(wants_web_socket(&map(&[("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket")])));
        assert!(!wants_web_socket(&map(&[("upgrade", "websocket")])));
        assert!(!wants_web_socket(&map(&[("connection", "upgrade"), ("upgrade", "h2c")])));
    }

    #[test]
    fn a_request_of_http2_gets_the_headers_of_http1() {
        let request = hyper::Request::get("http://example.com/x").version(hyper::Version::HTTP_2);
        let mut request =
            request.header("cookie", "a=1").header("x", "y").header("cookie", "b=2").body(()).unwrap();
        as_in_http1(&mut request);
        assert_eq!(names(request.headers()), ["cookie=a=1; b=2", "x=y", "host=example.com"]);
    }
}
