//! A head as it was written, for the parts of it that are kept.

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::known::Known;

/// The bytes of a head, copied once: its values are parts of them.
pub(super) struct Written {
    bytes: Bytes,
}

impl Written {
    pub(super) fn copy(head: &[u8]) -> Self {
        Self { bytes: Bytes::copy_from_slice(head) }
    }

    /// The copy of a part of what was copied, which is known by where it stands there.
    pub(super) fn part(&self, original: &[u8], part: &[u8]) -> Option<Bytes> {
        let start = part.as_ptr().addr().checked_sub(original.as_ptr().addr())?;
        let end = start.checked_add(part.len()).filter(|end| *end <= self.bytes.len())?;
        Some(self.bytes.slice(start..end))
    }

    /// The headers that were parsed in what was copied.
    pub(super) fn headers(&self, original: &[u8], parsed: &[httparse::Header<'_>]) -> Option<HeaderMap> {
        // Ours come on top.
        let mut headers = HeaderMap::with_capacity(parsed.len() + 4);
        for header in parsed {
            let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
            let value = HeaderValue::from_maybe_shared(self.part(original, header.value)?).ok()?;
            headers.try_append(name, value).ok()?;
        }
        Some(headers)
    }

    /// What is known of the next head, when it is much like this one.
    pub(super) fn known(
        &self,
        original: &[u8],
        parsed: &[httparse::Header<'_>],
        headers: &HeaderMap,
        is_fixed: impl Fn(&str) -> bool,
    ) -> Option<Known> {
        Known::new(&self.bytes, original, parsed, headers, is_fixed)
    }
}
