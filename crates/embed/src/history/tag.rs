//! Names of tenants and sessions that are safe in keys and in queries.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// Names that begin so are hashes.
const HASHED: &str = "sha256_";

/// The name itself where every part of a server takes it for what it is, else its hash: nothing in a name is ever
/// read as a separator, a wildcard or a part of a query, and no two names are one.
pub(super) fn tag(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=64).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with(HASHED) {
        return name.to_owned();
    }
    let mut hashed = HASHED.to_owned();
    for byte in Sha256::digest(name.as_bytes()) {
        write!(hashed, "{byte:02x}").unwrap_or_default();
    }
    hashed
}

/// A tag as queries write it.
pub(super) fn quoted(tag: &str) -> String {
    tag.replace('-', "\\-")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{quoted, tag};

    #[test]
    fn plain_names_stay_readable() {
        assert_eq!(tag("acme-2_B"), "acme-2_B");
        assert_eq!(quoted("acme-2"), "acme\\-2");
    }

    #[test]
    fn a_hash_cannot_be_taken_for_a_name() {
        let hashed = tag("a:b");
        assert!(hashed.starts_with("sha256_"));
        assert_ne!(tag(&hashed), hashed);
    }

    proptest! {
        #[test]
        fn different_names_have_different_tags_of_safe_characters(a in ".{0,12}", b in ".{0,12}") {
            prop_assert_eq!(tag(&a) == tag(&b), a == b);
            prop_assert!(tag(&a).bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
            prop_assert!(!tag(&a).is_empty());
        }
    }
}
