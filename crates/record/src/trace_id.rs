//! Names of steps.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// The name of a step: a UUID of version 4.
///
/// ```
/// use loopbreaker_record::TraceId;
///
/// let id = TraceId::parse("3F2A9C1E-7B54-4E0D-9A61-0C5D8E2F7A10").expect("version 4");
/// assert_eq!(id.to_string(), "3f2a9c1e-7b54-4e0d-9a61-0c5d8e2f7a10");
/// assert_eq!(TraceId::parse("3f2a9c1e-7b54-1e0d-9a61-0c5d8e2f7a10"), None, "version 1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId([u8; 16]);

impl TraceId {
    pub(crate) const PATTERN: &str =
        "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$";
    const LENGTH: usize = 36;
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    const DIGITS: &[u8; 16] = b"0123456789abcdef";

    /// The id that is written so; `None` when it is no UUID of version 4.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.len() != Self::LENGTH || Self::HYPHENS.iter().any(|at| text[*at] != b'-') {
            return None;
        }
        let mut bytes = [0; 16];
        let mut digits = (0..Self::LENGTH).filter(|at| !Self::HYPHENS.contains(at)).map(|at| text[at]);
        for byte in &mut bytes {
            let mut digit = || char::from(digits.next()?).to_digit(16);
            *byte = (digit()? << 4 | digit()?) as u8;
        }
        let is_version_4 = bytes[6] >> 4 == 4 && bytes[8] >> 6 == 0b10;
        is_version_4.then_some(Self(bytes))
    }

    /// An id of these bytes, with the bits of the version set. Random bytes make it a new one.
    pub const fn from_random_bytes(mut bytes: [u8; 16]) -> Self {
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Self(bytes)
    }

    /// The id that follows from these parts: the same parts always give the same one.
    ///
    /// ```
    /// use loopbreaker_record::TraceId;
    /// assert_eq!(TraceId::derived(&[b"run-17", b"3"]), TraceId::derived(&[b"run-17", b"3"]));
    /// assert_ne!(TraceId::derived(&[b"run-1", b"73"]), TraceId::derived(&[b"run-17", b"3"]));
    /// ```
    pub fn derived(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let hash: [u8; 32] = hash.finalize().into();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        Self::from_random_bytes(bytes)
    }

    /// The id as it is written. A name is written several times for each step, so it is done in one piece.
    fn written(self) -> [u8; Self::LENGTH] {
        let mut text = [b'-'; Self::LENGTH];
        let mut at = 0;
        for byte in self.0 {
            if Self::HYPHENS.contains(&at) {
                at += 1;
            }
            text[at] = Self::DIGITS[usize::from(byte >> 4)];
            text[at + 1] = Self::DIGITS[usize::from(byte & 15)];
            at += 2;
        }
        text
    }

    /// The id's bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(as_text(&self.written()))
    }
}

impl Serialize for TraceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(as_text(&self.written()))
    }
}

/// Digits and hyphens are text.
fn as_text(written: &[u8; TraceId::LENGTH]) -> &str {
    std::str::from_utf8(written).unwrap_or_default()
}

impl<'de> Deserialize<'de> for TraceId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("must be a UUID of version 4"))
    }
}

impl JsonSchema for TraceId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TraceId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "uuid", "pattern": Self::PATTERN })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::TraceId;

    #[test]
    fn what_is_not_a_uuid_of_version_4_is_refused() {
        for text in [
            "",
            "3f2a9c1e7b544e0d9a610c5d8e2f7a10",
            "3f2a9c1e-7b54-4e0d-9a61-0c5d8e2f7a1",
            "3f2a9c1e-7b54-4e0d-9a61-0c5d8e2f7a100",
            "3f2a9c1e-7b54-5e0d-9a61-0c5d8e2f7a10",
            "3f2a9c1e-7b54-4e0d-ca61-0c5d8e2f7a10",
            "3f2a9c1e-7b54-4e0d-9a61-0c5d8e2f7a1g",
            "3f2a9c1e-7b54-4e0d-9a61-0c5d8e2f7aé",
            "+f2a9c1e-7b54-4e0d-9a61-0c5d8e2f7a10",
        ] {
            assert_eq!(TraceId::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_id_is_read_as_it_was_written(bytes: [u8; 16]) {
            let id = TraceId::from_random_bytes(bytes);
            prop_assert_eq!(TraceId::parse(&id.to_string()), Some(id));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}") {
            TraceId::parse(&text);
        }
    }
}
