//! Where an upstream is: scheme, host, port and a path to put in front.

use std::fmt;
use std::net::Ipv6Addr;

/// The address that requests are sent on to: `http` or `https`, a host, perhaps a port, perhaps a path that is put
/// in front of the request's own.
///
/// ```
/// use loopbreaker_config::BaseUrl;
/// let groq = BaseUrl::parse("https://api.groq.com/openai/").unwrap();
/// assert_eq!((groq.is_https(), groq.host(), groq.port()), (true, "api.groq.com", 443));
/// assert_eq!(groq.path(), "/openai");
/// assert_eq!(groq.to_string(), "https://api.groq.com/openai");
/// assert!(BaseUrl::parse("api.groq.com").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BaseUrl {
    https: bool,
    host: Box<str>,
    port: Option<u16>,
    path: Box<str>,
}

/// Why a text is no base URL.
///
/// ```
/// use loopbreaker_config::{BaseUrl, BaseUrlError};
/// assert_eq!(BaseUrl::parse("https://me:secret@host"), Err(BaseUrlError::Credentials));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BaseUrlError {
    /// Another scheme, or none.
    #[error("a base URL begins with `http://` or `https://`")]
    Scheme,
    /// No host, or one with a character that no host has.
    #[error("a base URL names a host, as in `https://api.openai.com`")]
    Host,
    /// A port that is no number from 1 to 65535.
    #[error("the port of a base URL is a number from 1 to 65535")]
    Port,
    /// A user name or a password; these would end up in logs.
    #[error("a base URL has no user name and no password, the client's own key is sent on")]
    Credentials,
    /// A query or a fragment, which the request brings along.
    #[error("a base URL ends before `?` and `#`")]
    Query,
    /// A path with spaces, backslashes, empty or dotted parts.
    #[error("the path of a base URL has plain parts only, as in `https://api.groq.com/openai`")]
    Path,
}

impl BaseUrl {
    /// Reads a base URL. A slash at its end makes no difference.
    pub fn parse(text: &str) -> Result<Self, BaseUrlError> {
        let (scheme, rest) = text.split_once("://").ok_or(BaseUrlError::Scheme)?;
        let https = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(BaseUrlError::Scheme),
        };
        if rest.contains(['?', '#']) {
            return Err(BaseUrlError::Query);
        }
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        if authority.contains('@') {
            return Err(BaseUrlError::Credentials);
        }
        let (host, port) = split_port(authority)?;
        let port = port.map(parse_port).transpose()?;
        Ok(Self { https, host: parse_host(host)?, port, path: parse_path(path)? })
    }

    /// A host that is known to be one, by `https` and without a path.
    pub(crate) fn https(host: &str) -> Self {
        Self { https: true, host: host.into(), port: None, path: "".into() }
    }

    /// Whether TLS is spoken.
    pub const fn is_https(&self) -> bool {
        self.https
    }

    /// The host in lower case: a name, an IPv4 address, or an IPv6 address in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, that of the scheme when none was written.
    pub const fn port(&self) -> u16 {
        match self.port {
            Some(port) => port,
            None if self.https => 443,
            None => 80,
        }
    }

    /// What the `Host` header says: the host, and the port where it is not the scheme's own.
    pub fn authority(&self) -> String {
        let usual = if self.https { 443 } else { 80 };
        match self.port() {
            port if port == usual => self.host.to_string(),
            port => format!("{}:{port}", self.host),
        }
    }

    /// What is put in front of a request's path: empty, or with a slash at its start and none at its end.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<&str>), BaseUrlError> {
    if let Some(address) = authority.strip_prefix('[') {
        let end = address.find(']').ok_or(BaseUrlError::Host)?;
        // The brackets stay with the address: so it is written in a `Host` header too.
        let (host, rest) = authority.split_at(end + 2);
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err(BaseUrlError::Host),
        };
    }
    Ok(authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))))
}

fn parse_port(text: &str) -> Result<u16, BaseUrlError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port > 0).ok_or(BaseUrlError::Port)
}

fn parse_host(text: &str) -> Result<Box<str>, BaseUrlError> {
    let sound = match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => is_host_name(text),
    };
    sound.then(|| text.to_ascii_lowercase().into()).ok_or(BaseUrlError::Host)
}

/// Whether a text can be the name of a host (or an IPv4 address, which looks like one).
pub(crate) fn is_host_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.strip_suffix('.').unwrap_or(text).split('.').all(label)
}

fn parse_path(text: &str) -> Result<Box<str>, BaseUrlError> {
    let path = text.trim_end_matches('/');
    if path.is_empty() || is_plain_path(path) { Ok(path.into()) } else { Err(BaseUrlError::Path) }
}

/// Whether a path begins with a slash and has no part that is empty, dotted or not fit for a URL. A slash at its end
/// does not count.
pub(crate) fn is_plain_path(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:@".contains(&byte);
    let part = |part: &str| !part.is_empty() && part != "." && part != ".." && part.bytes().all(plain);
    match text.strip_prefix('/') {
        Some(rest) => rest.strip_suffix('/').unwrap_or(rest).split('/').all(part),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BaseUrl, BaseUrlError};

    fn parts(text: &str) -> (bool, String, u16, String) {
        let url = BaseUrl::parse(text).unwrap();
        (url.is_https(), url.host().to_owned(), url.port(), url.path().to_owned())
    }

    #[test]
    fn scheme_host_port_and_path_are_told_apart() {
        let expected = |https, host: &str, port, path: &str| (https, host.to_owned(), port, path.to_owned());
        assert_eq!(parts("https://api.openai.com"), expected(true, "api.openai.com", 443, ""));
        assert_eq!(parts("HTTP://LocalHost:11434/"), expected(false, "localhost", 11434, ""));
        assert_eq!(parts("http://127.0.0.1/a/b//"), expected(false, "127.0.0.1", 80, "/a/b"));
        assert_eq!(parts("https://[::1]:8443/v1"), expected(true, "[::1]", 8443, "/v1"));
    }

    #[test]
    fn the_port_of_the_scheme_is_not_written_out() {
        assert_eq!(BaseUrl::parse("https://host:443/x").unwrap().to_string(), "https://host/x");
        assert_eq!(BaseUrl::parse("http://host:443").unwrap().authority(), "host:443");
    }

    #[test]
    fn each_mistake_has_its_own_error() {
        for (text, error) in [
            ("api.openai.com", BaseUrlError::Scheme),
            ("ftp://host", BaseUrlError::Scheme),
            ("https://", BaseUrlError::Host),
            ("https:///path", BaseUrlError::Host),
            ("https://ho st", BaseUrlError::Host),
            ("https://höst", BaseUrlError::Host),
            ("https://-host", BaseUrlError::Host),
            ("https://[::1", BaseUrlError::Host),
            ("https://[::1]x", BaseUrlError::Host),
            ("https://[host]", BaseUrlError::Host),
            ("https://host:", BaseUrlError::Port),
            ("https://host:0", BaseUrlError::Port),
            ("https://host:+80", BaseUrlError::Port),
            ("https://host:65536", BaseUrlError::Port),
            ("https://me@host", BaseUrlError::Credentials),
            ("https://host?a=1", BaseUrlError::Query),
            ("https://host/#a", BaseUrlError::Query),
            ("https://host/a b", BaseUrlError::Path),
            ("https://host/../b", BaseUrlError::Path),
            ("https://host//b", BaseUrlError::Path),
        ] {
            assert_eq!(BaseUrl::parse(text), Err(error), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser_and_what_it_reads_it_can_write(text in "(https?://)?[ -~ü]{0,40}") {
            if let Ok(url) = BaseUrl::parse(&text) {
                prop_assert_eq!(BaseUrl::parse(&url.to_string()).unwrap().to_string(), url.to_string());
            }
        }
    }
}
