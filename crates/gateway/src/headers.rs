//! Headers on their way through: end-to-end ones with value and order, hop-by-hop ones and our own left out.

use hyper::header::{
    CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};

/// Headers of a request as the provider gets them.
pub(crate) fn to_upstream(headers: &HeaderMap, host: &HeaderValue, edited: bool) -> HeaderMap {
    let mut out = HeaderMap::with_capacity(headers.len() + 1);
    out.append(HOST, host.clone());
    copy(headers, &mut out, |name| {
        name == HOST
            || name.as_str().starts_with("x-loopbreaker-")
            || (edited
                && matches!(name.as_str(), "content-length" | "content-encoding" | "content-md5" | "digest"))
    });
    out
}

/// Headers of an answer as the client gets them.
pub(crate) fn to_client(headers: &HeaderMap) -> HeaderMap {
    let mut out = HeaderMap::with_capacity(headers.len() + 6);
    copy(headers, &mut out, |name| name.as_str().starts_with("x-loopbreaker-"));
    out
}

/// Whether a request asks for another protocol on this connection.
pub(crate) fn wants_upgrade(headers: &HeaderMap) -> bool {
    headers.contains_key(UPGRADE)
        && names_in_connection(headers).any(|name| name.eq_ignore_ascii_case("upgrade"))
}

/// Copies what is meant for the other end. Copying keeps the order, which removing would not.
fn copy(from: &HeaderMap, to: &mut HeaderMap, leave_out: impl Fn(&HeaderName) -> bool) {
    let has_named = from.contains_key(CONNECTION);
    for (name, value) in from {
        let named = has_named && names_in_connection(from).any(|hop| hop.eq_ignore_ascii_case(name.as_str()));
        if !is_hop_by_hop(name) && !named && !leave_out(name) {
            to.append(name.clone(), value.clone());
        }
    }
}

fn names_in_connection(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',').map(str::trim))
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE].contains(name)
        || matches!(
            name.as_str(),
            "keep-alive" | "proxy-connection" | "proxy-authenticate" | "proxy-authorization"
        )
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderMap, HeaderName, HeaderValue};

    use super::{to_client, to_upstream, wants_upgrade};

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
    fn an_edited_body_has_no_length_and_no_encoding_of_the_old_one() {
        let came = map(&[("content-length", "5"), ("content-encoding", "gzip"), ("content-type", "a/b")]);
        let host = HeaderValue::from_static("h");
        assert_eq!(names(&to_upstream(&came, &host, true)), ["host=h", "content-type=a/b"]);
        assert_eq!(to_upstream(&came, &host, false).len(), 4);
    }

    #[test]
    fn a_provider_cannot_speak_in_our_name() {
        let answer = to_client(&map(&[("x-loopbreaker-verdict", "allow"), ("x-request-id", "1")]));
        assert_eq!(names(&answer), ["x-request-id=1"]);
    }

    #[test]
    fn an_upgrade_is_asked_for_in_two_headers() {
        assert!(wants_upgrade(&map(&[("connection", "Upgrade"), ("upgrade", "websocket")])));
        assert!(!wants_upgrade(&map(&[("upgrade", "h2c")])));
    }
}
