//! The address of a store, which may hold a password.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::units::duration;

/// The URL of a Redis or a Postgres. Whoever connects takes it whole by [`StoreUrl::as_str`]; everything that is
/// printed leaves the user name and the password out.
///
/// ```
/// use loopbreaker_config::{Config, State};
/// let config = Config::parse("state: redis://me:secret@cache:6379/1").unwrap();
/// let State::Redis(url) = &config.state else { panic!() };
/// assert_eq!(url.as_str(), "redis://me:secret@cache:6379/1");
/// assert_eq!(url.to_string(), "redis://***@cache:6379/1");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct StoreUrl(Box<str>);

impl StoreUrl {
    /// A URL with one of these schemes and a host; `None` for any other text.
    pub(crate) fn parse(text: &str, schemes: &[&str]) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        let host = authority.rsplit('@').next()?;
        let sound = schemes.contains(&scheme)
            && !host.is_empty()
            && !host.starts_with(':')
            && !text.contains(|c: char| c.is_whitespace() || c.is_control());
        sound.then(|| Self(text.into()))
    }

    /// The whole URL, with the password if it has one.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The address of a Redis without `sslrootcert=…`, and the PEM file that it names: what is trusted instead of the
/// system's certificates.
///
/// ```
/// use loopbreaker_config::without_roots;
/// let (url, roots) = without_roots("rediss://cache:6380/1?sslrootcert=%2Fetc%2Fca.pem&protocol=resp3");
/// assert_eq!((&*url, roots.unwrap().to_str()), ("rediss://cache:6380/1?protocol=resp3", Some("/etc/ca.pem")));
/// ```
pub fn without_roots(url: &str) -> (String, Option<PathBuf>) {
    let (address, path) = without(url, "sslrootcert");
    (address, path.map(|path| PathBuf::from(path.replace("%2F", "/").replace("%2f", "/"))))
}

/// The address of a Redis without `timeout=…`, and that limit.
///
/// ```
/// use std::time::Duration;
/// use loopbreaker_config::without_timeout;
/// let (url, limit) = without_timeout("redis://cache/2?timeout=20ms");
/// assert_eq!((&*url, limit), ("redis://cache/2", Some(Duration::from_millis(20))));
/// ```
pub fn without_timeout(url: &str) -> (String, Option<Duration>) {
    let (address, limit) = without(url, "timeout");
    (address, limit.and_then(|limit| duration(limit).ok()))
}

/// An address without a parameter, and the last value of that.
fn without<'u>(url: &'u str, name: &str) -> (String, Option<&'u str>) {
    let Some((address, query)) = url.split_once('?') else { return (url.to_owned(), None) };
    let mut value = None;
    let kept = query.split('&').filter(|pair| match pair.split_once('=') {
        Some((key, given)) if key == name => {
            value = Some(given);
            false
        }
        _ => true,
    });
    let kept: Vec<&str> = kept.collect();
    let address = if kept.is_empty() { address.to_owned() } else { format!("{address}?{}", kept.join("&")) };
    (address, value)
}

/// Why an encrypted connection to a Redis failed, with what to do about it.
///
/// ```
/// use loopbreaker_config::with_tls_advice;
/// assert!(with_tls_advice("invalid peer certificate: UnknownIssuer").contains("sslrootcert"));
/// assert_eq!(with_tls_advice("connection refused"), "connection refused");
/// ```
pub fn with_tls_advice(problem: &str) -> String {
    let advice = TLS_ADVICE.iter().find(|(sign, _)| problem.contains(sign));
    advice.map_or_else(|| problem.to_owned(), |(_, advice)| format!("{problem}; {advice}"))
}

/// What rustls says, and what helps. The first that fits is told.
const TLS_ADVICE: [(&str, &str); 6] = [
    ("NotValidForName", NAME_ADVICE),
    ("not valid for name", NAME_ADVICE),
    ("Expired", "its certificate has run out: renew it"),
    ("expired", "its certificate has run out: renew it"),
    (
        "invalid peer certificate",
        "its certificate is not trusted: name the PEM file of its CA with `?sslrootcert=/path/ca.pem` in the address, \
         or add it to the system's certificates",
    ),
    (
        "InvalidContentType",
        "no TLS is spoken at that port: write `redis://`, or the port of the server's `tls-port`",
    ),
];
const NAME_ADVICE: &str = "its certificate is for another name: write one that stands in it";

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((scheme, rest)) = self.0.split_once("://") else { return f.write_str("***") };
        // A password may hold a `/` or a `?` that nobody escaped, so everything up to the last `@` is left out. What
        // follows a `?` can be a password too.
        let (hidden, place) = rest.rsplit_once('@').map_or(("", rest), |(_, place)| ("***@", place));
        write!(f, "{scheme}://{hidden}{}", place.split('?').next().unwrap_or_default())
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{StoreUrl, without_roots};

    #[test]
    fn only_what_names_certificates_is_taken_out_of_an_address() {
        for (url, kept, roots) in [
            ("rediss://a:1", "rediss://a:1", None),
            ("rediss://a:1?sslrootcert=/ca.pem", "rediss://a:1", Some("/ca.pem")),
            ("rediss://a:1?timeout=9ms&sslrootcert=ca.pem", "rediss://a:1?timeout=9ms", Some("ca.pem")),
            ("rediss://a:1?vector=hnsw", "rediss://a:1?vector=hnsw", None),
        ] {
            assert_eq!(without_roots(url), (kept.to_owned(), roots.map(Into::into)), "{url}");
        }
    }

    #[test]
    fn what_is_printed_has_no_password() {
        for (text, shown) in [
            ("redis://cache", "redis://cache"),
            ("redis://:secret@cache:6379", "redis://***@cache:6379"),
            ("redis://me:se/cret@cache/0", "redis://***@cache/0"),
            ("redis://cache/0?password=secret", "redis://cache/0"),
            ("redis://me:se?cret@cache", "redis://***@cache"),
        ] {
            let url = StoreUrl(text.into());
            assert_eq!(url.to_string(), shown, "{text}");
            assert_eq!(format!("{url:?}"), format!("StoreUrl({shown})"));
        }
    }

    #[test]
    fn a_url_has_a_known_scheme_and_a_host() {
        for text in ["cache", "http://cache", "redis://", "redis://:6379", "redis://me@/0", "redis://a b"] {
            assert_eq!(StoreUrl::parse(text, &["redis"]), None, "{text}");
        }
        assert!(StoreUrl::parse("redis://cache", &["redis"]).is_some());
    }

    proptest! {
        #[test]
        fn no_password_is_ever_printed(password in "[A-Z]{6}[!-~]{0,8}", place in "[a-z]{1,9}(:[0-9]{1,4})?(/[0-9])?") {
            let url = StoreUrl(format!("redis://me:{password}@{place}").into());
            prop_assert!(!url.to_string().contains(&password[..6]), "{url}");
        }
    }
}
