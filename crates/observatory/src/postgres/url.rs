//! Where the server is.

use std::path::PathBuf;

use tokio_postgres::Config;

use super::tls::Encryption;
use crate::error::{StoreError, Stored};

/// What a URL says.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    encrypted: bool,
    /// Certificates to trust instead of the system's.
    roots: Option<PathBuf>,
}

impl Address {
    /// Reads a URL. `sslmode=require` encrypts and checks the certificate, as `verify-full` does; `sslrootcert` is a
    /// PEM file to trust.
    pub(super) fn parse(url: &str) -> Stored<Self> {
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut encrypted, mut roots, mut kept) = (false, None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", mode)) => {
                    encrypted = match mode {
                        "require" | "verify-ca" | "verify-full" => true,
                        "disable" | "allow" | "prefer" => false,
                        _ => return Err(wrong("sslmode is disable or require")),
                    };
                }
                Some(("sslrootcert", path)) => roots = Some(PathBuf::from(path.replace("%2F", "/"))),
                _ => kept.push(pair),
            }
        }
        // A password must not stand in a message, so the reason is not repeated.
        let url = if kept.is_empty() { place.to_owned() } else { format!("{place}?{}", kept.join("&")) };
        let mut config: Config = url.parse().map_err(|_| wrong("postgres://user:password@host/database"))?;
        let mode = if encrypted {
            tokio_postgres::config::SslMode::Require
        } else {
            tokio_postgres::config::SslMode::Disable
        };
        config.ssl_mode(mode);
        Ok(Self { config, encrypted, roots })
    }

    /// How to encrypt, where that is asked for.
    pub(super) fn tls(&self) -> Stored<Option<Encryption>> {
        self.encrypted.then(|| Encryption::trusting(self.roots.as_deref())).transpose()
    }
}

fn wrong(expected: &str) -> StoreError {
    StoreError::Other(format!("the url of the store cannot be read; expected {expected}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Address;

    #[test]
    fn a_url_says_who_where_and_whether_to_encrypt() {
        let plain = Address::parse("postgres://ann:pw@db.example:6432/loops").unwrap();
        assert_eq!((plain.config.get_user(), plain.config.get_dbname()), (Some("ann"), Some("loops")));
        assert!(!plain.encrypted);
        let url = "postgres://ann@db/loops?sslmode=verify-full&connect_timeout=3&sslrootcert=%2Fca.pem";
        let safe = Address::parse(url).unwrap();
        assert!(safe.encrypted);
        assert_eq!(safe.roots.unwrap().to_str(), Some("/ca.pem"));
    }

    #[test]
    fn what_is_wrong_is_refused_without_repeating_a_password() {
        for url in ["postgres://ann:secret@:x", "postgres://ann:secret@db/l?sslmode=maybe"] {
            let refused = Address::parse(url).unwrap_err().to_string();
            assert!(!refused.contains("secret"), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn no_url_makes_it_panic(url in "postgres://.{0,60}") {
            drop(Address::parse(&url));
        }
    }
}
