//! The address of a store, which may hold a password.

use std::fmt;

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

    use super::StoreUrl;

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
