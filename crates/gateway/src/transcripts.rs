//! Transcripts that were read before: a request that begins with the bytes of an earlier one is read from there on.
//!
//! It is a cache with a limit in bytes. A transcript that was evicted is read again from its body and loses nothing
//! but time.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use loopbreaker::Fingerprint;
use loopbreaker_dialect::Mark;
use lru::LruCache;
use xxhash_rust::xxh3::Xxh3;

use crate::inspect::Recent;
use crate::loops::LoopState;

/// What is known of a transcript after a request.
#[derive(Debug)]
pub(crate) struct Transcript {
    /// Its hash chain so far, which is keyed by the tenant: no two tenants share one.
    pub(crate) tip: u128,
    /// The chain's first link.
    pub(crate) anchor: Option<u128>,
    /// Hash over the canonical form of its messages.
    pub(crate) canonical: u128,
    /// Its last messages.
    pub(crate) recent: Recent,
    pub(crate) loops: LoopState,
    /// Where it ended in the bytes of the request; `None` when that cannot be taken up.
    pub(crate) place: Option<Place>,
}

/// The end of a transcript in the bytes of a request.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) mark: Mark,
    /// Hash of the bytes before the mark.
    pub(crate) prefix: u128,
    /// Where the first message began.
    pub(crate) first: usize,
    /// What the rest of the body said, with the hash of its bytes behind the mark.
    pub(crate) rest: Option<(u64, Fingerprint)>,
}

/// A body's bytes, hashed up to some place. Going on costs only the bytes behind it.
pub(crate) struct PrefixHash {
    hasher: Xxh3,
    at: usize,
    /// The hash at each power of two that was passed, from [`Transcripts::SHORTEST`] on.
    boundaries: [u64; PrefixHash::BOUNDARIES],
}

impl PrefixHash {
    /// Enough for the longest body that is read.
    const BOUNDARIES: usize = 24;

    fn new(tenant: u128) -> Self {
        let mut hasher = Xxh3::new();
        hasher.update(&tenant.to_le_bytes());
        Self { hasher, at: 0, boundaries: [0; Self::BOUNDARIES] }
    }

    /// The hash of the leading bytes up to the last power of two before `end`.
    fn boundary_before(&self, end: usize) -> Option<u64> {
        let index = (end / Transcripts::SHORTEST).checked_ilog2()? as usize;
        self.boundaries.get(index).copied()
    }

    fn go_on_to(&mut self, body: &[u8], at: usize) -> u128 {
        self.hasher.update(&body[self.at..at]);
        self.at = at;
        self.hasher.digest128()
    }

    /// The hash of `body[..at]`; from the start when it has been passed already.
    pub(crate) fn of(&mut self, tenant: u128, body: &[u8], at: usize) -> u128 {
        if at < self.at { Self::new(tenant).go_on_to(body, at) } else { self.go_on_to(body, at) }
    }
}

/// The cache.
#[derive(Debug)]
pub(crate) struct Transcripts {
    shards: Box<[Mutex<Shard>]>,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct Shard {
    by_tip: Option<Table>,
    /// Tips of transcripts by the hash of their leading bytes, up to the last power of two.
    by_prefix: HashMap<u64, Vec<u128>, BuildHasherDefault<Hashed>>,
    bytes: usize,
}

type Table = LruCache<u128, Box<Transcript>, BuildHasherDefault<Hashed>>;

impl Transcripts {
    /// Requests shorter than this are read whole: that is as fast.
    const SHORTEST: usize = 256;
    /// So many transcripts with the same leading bytes are told apart.
    const MAX_ALIKE: usize = 8;
    const SHARDS: usize = 64;

    /// A cache that holds at most about `max_bytes`.
    pub(crate) fn new(max_bytes: usize) -> Self {
        let shard = || Mutex::new(Shard::default());
        Self { shards: (0..Self::SHARDS).map(|_| shard()).collect(), max_bytes: max_bytes / Self::SHARDS }
    }

    /// Takes out the transcript whose bytes this body begins with, the longest if there are several.
    ///
    /// It is taken and not copied: the request that goes on with it puts it back, longer.
    pub(crate) fn take_by_prefix(&self, tenant: u128, body: &[u8]) -> (Option<Box<Transcript>>, PrefixHash) {
        let mut hash = PrefixHash::new(tenant);
        let mut best = None;
        for index in 0..PrefixHash::BOUNDARIES {
            let boundary = Self::SHORTEST << index;
            if boundary > body.len() {
                break;
            }
            let key = hash.go_on_to(body, boundary) as u64;
            hash.boundaries[index] = key;
            let mut alike = self.ends_behind(key, boundary..(2 * boundary).min(body.len() + 1));
            alike.sort_unstable_by_key(|(end, ..)| *end);
            for (end, prefix, tip) in alike {
                if hash.go_on_to(body, end) == prefix {
                    best = Some((tip, prefix));
                }
            }
        }
        (best.and_then(|(tip, prefix)| self.take_with(tip, prefix)), hash)
    }

    /// Takes out a transcript that was found by its leading bytes, unless another request has moved it to its own
    /// bytes since.
    fn take_with(&self, tip: u128, prefix: u128) -> Option<Box<Transcript>> {
        let mut shard = self.shard(tip);
        let place = shard.by_tip.as_ref()?.peek(&tip)?.place.as_ref()?;
        if place.prefix == prefix { shard.take(tip) } else { None }
    }

    /// Takes out the transcript that ends with this link of its chain.
    pub(crate) fn take(&self, tip: u128) -> Option<Box<Transcript>> {
        self.shard(tip).take(tip)
    }

    /// A copy of the transcript that ends with this link, for a client that may go on from it more than once.
    pub(crate) fn copy(&self, tip: u128) -> Option<Transcript> {
        let mut shard = self.shard(tip);
        let kept = shard.by_tip.as_mut()?.get(&tip)?;
        Some(kept.without_place())
    }

    /// Keeps a transcript; `hash` is that of the body in which its place is.
    pub(crate) fn put(&self, hash: &PrefixHash, transcript: Box<Transcript>) {
        let tip = transcript.tip;
        if let Some(place) = &transcript.place
            && let Some(key) = hash.boundary_before(place.mark.offset())
        {
            let mut shard = self.shard(u128::from(key));
            let alike = shard.by_prefix.entry(key).or_default();
            if !alike.contains(&tip) {
                if alike.len() == Self::MAX_ALIKE {
                    alike.remove(0);
                }
                alike.push(tip);
            }
        }
        self.put_by_tip(transcript);
    }

    /// Keeps a transcript that is found by its last link only.
    pub(crate) fn put_by_tip(&self, transcript: Box<Transcript>) {
        self.shard(transcript.tip).put(transcript, self.max_bytes);
    }

    /// Forgets everything, since the detectors have other settings now.
    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            *shard.lock().unwrap_or_else(PoisonError::into_inner) = Shard::default();
        }
    }

    /// Ends, hashes and tips of the transcripts that share the leading bytes and end within `range`.
    fn ends_behind(&self, key: u64, range: Range<usize>) -> Vec<(usize, u128, u128)> {
        let tips = match self.shard(u128::from(key)).by_prefix.get(&key) {
            Some(tips) => tips.clone(),
            None => return Vec::new(),
        };
        let mut ends = Vec::with_capacity(tips.len());
        let mut gone = Vec::new();
        for tip in tips {
            let shard = self.shard(tip);
            match shard
                .by_tip
                .as_ref()
                .and_then(|table| table.peek(&tip))
                .and_then(|kept| kept.place.as_ref())
            {
                // The same transcript may have come with other bytes since, and ends elsewhere then.
                Some(place) if range.contains(&place.mark.offset()) => {
                    ends.push((place.mark.offset(), place.prefix, tip));
                }
                Some(_) => {}
                None => gone.push(tip),
            }
        }
        if !gone.is_empty() {
            let mut shard = self.shard(u128::from(key));
            if let Some(alike) = shard.by_prefix.get_mut(&key) {
                alike.retain(|tip| !gone.contains(tip));
                if alike.is_empty() {
                    shard.by_prefix.remove(&key);
                }
            }
        }
        ends
    }

    fn shard(&self, key: u128) -> std::sync::MutexGuard<'_, Shard> {
        let index = (key as usize) % Self::SHARDS;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    /// An index of more leading bytes than this has outlived its transcripts.
    const MAX_PREFIXES: usize = 65_536;

    fn take(&mut self, tip: u128) -> Option<Box<Transcript>> {
        let taken = self.by_tip.as_mut()?.pop(&tip)?;
        self.bytes = self.bytes.saturating_sub(taken.bytes());
        Some(taken)
    }

    fn put(&mut self, transcript: Box<Transcript>, max_bytes: usize) {
        if self.by_prefix.len() > Self::MAX_PREFIXES {
            self.by_prefix.clear();
        }
        self.bytes += transcript.bytes();
        let table =
            self.by_tip.get_or_insert_with(|| Table::unbounded_with_hasher(BuildHasherDefault::default()));
        if let Some(before) = table.put(transcript.tip, transcript) {
            self.bytes = self.bytes.saturating_sub(before.bytes());
        }
        while self.bytes > max_bytes {
            let Some((_, oldest)) = table.pop_lru() else { break };
            self.bytes = self.bytes.saturating_sub(oldest.bytes());
        }
    }
}

impl Transcript {
    /// A copy that is not tied to the bytes of a request.
    pub(crate) fn without_place(&self) -> Self {
        let Self { tip, anchor, canonical, recent, .. } = *self;
        Self { tip, anchor, canonical, recent, loops: self.loops.clone(), place: None }
    }

    fn bytes(&self) -> usize {
        let place = self.place.as_ref().map_or(0, |place| place.mark.bytes());
        size_of::<Self>() + self.loops.bytes() + place + 64
    }
}

/// A hasher for keys that are hashes already.
#[derive(Debug, Default)]
pub(crate) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = self.0.rotate_left(5) ^ u64::from_le_bytes(word);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }

    fn write_u128(&mut self, value: u128) {
        self.0 = (value >> 64) as u64 ^ value as u64;
    }
}

#[cfg(test)]
mod tests {
    use loopbreaker::{RedundancyConfig, RedundancyRules};

    use super::{Transcript, Transcripts};
    use crate::inspect::Recent;
    use crate::loops::LoopState;

    fn transcript(tip: u128) -> Box<Transcript> {
        let rules = RedundancyRules::compile(&RedundancyConfig::default());
        let loops = LoopState::new(&rules);
        Box::new(Transcript {
            tip,
            anchor: None,
            canonical: 0,
            recent: Recent::default(),
            loops,
            place: None,
        })
    }

    #[test]
    fn the_cache_keeps_to_its_bytes_and_forgets_the_oldest_first() {
        let transcripts = Transcripts::new(64 * 4_000);
        for tip in 0..64_000 {
            transcripts.put_by_tip(transcript(tip));
        }
        let kept = (0..64_000).filter(|tip| transcripts.copy(*tip).is_some()).count();
        assert!(kept > 64 && kept * size_of::<Transcript>() <= 64 * 4_000, "{kept} are kept");
        assert!(transcripts.copy(63_999).is_some() && transcripts.copy(0).is_none());
    }

    #[test]
    fn taking_leaves_nothing_and_copying_leaves_it() {
        let transcripts = Transcripts::new(1 << 20);
        transcripts.put_by_tip(transcript(7));
        assert!(transcripts.copy(7).is_some());
        assert!(transcripts.take(7).is_some());
        assert!(transcripts.take(7).is_none());
    }
}
