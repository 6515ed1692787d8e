//! What one writes in an afternoon: parse to a tree, print it with sorted keys, count in a map.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The last calls in canonical text, and how often each stands there.
#[derive(Debug)]
pub(crate) struct NaiveGuard {
    window: usize,
    threshold: u32,
    recent: VecDeque<String>,
    counts: HashMap<String, u32>,
}

impl NaiveGuard {
    pub(crate) fn new(window: usize, threshold: u32) -> Self {
        Self { window, threshold, recent: VecDeque::new(), counts: HashMap::new() }
    }

    /// Whether the call may be made.
    pub(crate) fn check(&mut self, tool: &str, args: &str) -> bool {
        let key = format!("{tool}:{}", canonical_text(args));
        if self.counts.get(&key).is_some_and(|count| *count >= self.threshold) {
            return false;
        }
        if self.recent.len() == self.window
            && let Some(old) = self.recent.pop_front()
            && let Some(count) = self.counts.get_mut(&old)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&old);
            }
        }
        *self.counts.entry(key.clone()).or_insert(0) += 1;
        self.recent.push_back(key);
        true
    }
}

/// Compact JSON with sorted keys: `serde_json`'s map is a `BTreeMap`. Text that is not JSON stays as it is.
pub(crate) fn canonical_text(args: &str) -> String {
    serde_json::from_str::<Value>(args).map_or_else(|_| args.to_owned(), |value| value.to_string())
}

/// RFC 8785 by the crate that is used for it.
pub(crate) fn jcs_text(args: &str) -> String {
    let value = serde_json::from_str::<Value>(args).unwrap_or_default();
    serde_json_canonicalizer::to_string(&value).unwrap_or_default()
}

/// A hash of 256 bits, as ours is.
pub(crate) fn sha256(tool: &str, text: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(tool.as_bytes());
    hash.update([0]);
    hash.update(text.as_bytes());
    hash.finalize().into()
}

/// The standard library's hash of 64 bits, in hex: a "short hash".
pub(crate) fn short_hash(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
