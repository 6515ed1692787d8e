//! `identical_request` for all policies: attempts in a sliding window, counted apart for each policy and mode.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loopbreaker::{Fingerprint, IdenticalRequest, IdenticalRequestConfig, RequestCount, Timestamp};
use loopbreaker_config::LimitKey;
use twox_hash::XxHash3_128;

use crate::fleet::AttemptKind;
use crate::framed::Framed;
use crate::limits::Keys;
use crate::settings::Applied;
use crate::transcripts::Hashed;

/// A request as it is compared with others.
#[derive(Clone, Copy)]
pub(crate) struct Sent<'r> {
    pub(crate) method: &'r str,
    pub(crate) path: &'r str,
    pub(crate) query: &'r str,
    pub(crate) keys: Keys<'r>,
    pub(crate) document: Document<'r>,
}

/// The body of a request as it is compared with others.
#[derive(Clone, Copy)]
pub(crate) enum Document<'r> {
    /// What two bodies have in common that say the same.
    Read(&'r [u8; 48]),
    /// A body that speaks no dialect.
    Written(&'r [u8]),
    /// The bytes of a body that nobody could decode.
    Came(&'r [u8]),
    /// A body that is not known to its end. What is not known may differ, so it is equal to none.
    Unknown,
}

impl Sent<'_> {
    /// What makes another request the same under a policy; `None` where nobody can tell.
    ///
    /// The tenant's key is a keyed hash and among what is hashed, so nobody can make a request that counts for somebody
    /// else's. Who makes two of their own that count as one harms nobody else: a quick hash will do.
    pub(crate) fn fingerprint(&self, applied: &Applied<'_>) -> Option<Fingerprint> {
        let mut fields = Framed::of(self.keys.tenant);
        for key in &applied.policy.policy.limit_keys {
            fields.add(&self.keys.value(key));
        }
        // A policy in shadow counts for itself.
        for name in [applied.mode().as_str(), &applied.policy.id, self.method, self.path] {
            fields.add(name.as_bytes());
        }
        match self.document {
            Document::Read(document) => fields.add(document),
            Document::Written(body) => fields.add(Fingerprint::of_document(body).as_bytes()),
            Document::Came(bytes) => fields.add(&XxHash3_128::oneshot(bytes).to_le_bytes()),
            Document::Unknown => return None,
        }
        if !self.query.is_empty() {
            let pairs = self.query.split('&').filter(|pair| !pair.is_empty());
            let mut pairs: Vec<(&str, &str)> =
                pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
            pairs.sort_unstable();
            for (name, value) in pairs {
                fields.add(name.as_bytes());
                fields.add(value.as_bytes());
            }
        }
        Some(Fingerprint::known_as(fields.hash()))
    }

    /// The windows in which it counts, as other processes are asked about them: nobody knows its session yet.
    pub(crate) fn windows(&self, policies: &[Applied<'_>]) -> Vec<(u128, AttemptKind)> {
        let mut windows = Vec::new();
        for applied in policies {
            if let Some(config) = &applied.policy.policy.loop_detection
                && let Some(fingerprint) = self.fingerprint(applied)
            {
                let kind = AttemptKind {
                    by_session: applied.policy.policy.limit_keys.contains(&LimitKey::Session),
                    window_millis: u64::from(config.config.window_seconds()) * 1_000,
                    once_in_flight: config.once_in_flight,
                    most: config.config.most(),
                };
                windows.push((fingerprint.short(), kind));
            }
        }
        windows
    }
}

/// Every request that was seen lately.
#[derive(Debug)]
pub(crate) struct IdenticalRequests {
    shards: Box<[Mutex<Shard>]>,
}

#[derive(Debug)]
struct Shard {
    seen: IdenticalRequest,
    /// How many requests of this fingerprint are on their way.
    in_flight: HashMap<u128, u32, BuildHasherDefault<Hashed>>,
}

/// One counted attempt. It is on its way until it is dropped.
#[derive(Debug)]
pub(crate) struct Attempt {
    all: Arc<IdenticalRequests>,
    fingerprint: Fingerprint,
    at: Timestamp,
    counted: bool,
}

impl IdenticalRequests {
    const SHARDS: usize = 64;
    /// Different requests that are told apart; the one that was seen longest ago is forgotten first.
    const MAX_REQUESTS: usize = 262_144;

    /// Nothing was seen yet.
    pub(crate) fn new() -> Self {
        let shard = || Shard {
            seen: IdenticalRequest::new(Self::MAX_REQUESTS / Self::SHARDS),
            in_flight: HashMap::default(),
        };
        Self { shards: (0..Self::SHARDS).map(|_| Mutex::new(shard())).collect() }
    }

    /// Counts an attempt. With `once_in_flight`, one that comes while an equal one is on its way is not counted, and
    /// fares as that one does: sampling the same prompt several times at once is no loop, and no way around one.
    pub(crate) fn observe(
        self: &Arc<Self>,
        fingerprint: Fingerprint,
        config: IdenticalRequestConfig,
        once_in_flight: bool,
        now: Timestamp,
    ) -> (RequestCount, Attempt) {
        let mut shard = self.shard(&fingerprint);
        let in_flight = shard.in_flight.entry(fingerprint.short()).or_default();
        *in_flight += 1;
        let counted = !once_in_flight || *in_flight == 1;
        let count = if counted {
            shard.seen.observe(&fingerprint, config, now)
        } else {
            shard.seen.counted(&fingerprint, config, now)
        };
        (count, Attempt { all: Arc::clone(self), fingerprint, at: now, counted })
    }

    fn shard(&self, fingerprint: &Fingerprint) -> MutexGuard<'_, Shard> {
        let index = fingerprint.short() as usize % Self::SHARDS;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempt {
    /// Whether it is one more.
    pub(crate) const fn counts(&self) -> bool {
        self.counted
    }

    /// The provider answered 429 or 5xx: retries of an outage are no loop.
    pub(crate) fn take_back(&mut self) {
        if std::mem::take(&mut self.counted) {
            self.all.shard(&self.fingerprint).seen.take_back(&self.fingerprint, self.at);
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let key = self.fingerprint.short();
        let mut shard = self.all.shard(&self.fingerprint);
        if let Entry::Occupied(mut in_flight) = shard.in_flight.entry(key) {
            *in_flight.get_mut() -= 1;
            if *in_flight.get() == 0 {
                in_flight.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use loopbreaker::{Fingerprint, IdenticalRequestConfig, Timestamp};

    use super::IdenticalRequests;

    #[test]
    fn attempts_that_overlap_count_as_one_where_that_is_asked_for() {
        let all = Arc::new(IdenticalRequests::new());
        let config = IdenticalRequestConfig::new(60, 3).unwrap();
        let request = Fingerprint::of_document(b"{}");
        let observe = |once| all.observe(request, config, once, Timestamp::from_secs(0));
        let (first, on_its_way) = observe(true);
        let (second, _) = observe(true);
        assert_eq!((first.count, second.count), (1, 1));
        drop(on_its_way);
        assert_eq!(observe(true).0.count, 2, "the next one comes after it");
        let (third, _still) = observe(false);
        let (fourth, _) = observe(false);
        assert_eq!((third.count, fourth.count), (3, 4), "elsewhere every attempt counts");
    }

    #[test]
    fn whoever_overlaps_one_that_is_too_many_is_too_many() {
        let all = Arc::new(IdenticalRequests::new());
        let config = IdenticalRequestConfig::new(60, 3).unwrap();
        let request = Fingerprint::of_document(b"{}");
        let observe = |at| all.observe(request, config, true, Timestamp::from_secs(at));
        for _ in 0..2 {
            assert!(!observe(0).0.fires);
        }
        let (third, _on_its_way) = observe(1);
        let (beside, _) = observe(2);
        assert!(third.fires && beside.fires);
        assert_eq!((third.count, beside.count), (3, 3));
        assert!(!observe(62).0.fires, "it has left the window");
    }

    #[test]
    fn an_attempt_that_was_taken_back_is_not_counted() {
        let all = Arc::new(IdenticalRequests::new());
        let config = IdenticalRequestConfig::new(60, 3).unwrap();
        let request = Fingerprint::of_document(b"{}");
        for _ in 0..5 {
            let (count, mut attempt) = all.observe(request, config, false, Timestamp::from_secs(1));
            assert_eq!(count.count, 1);
            attempt.take_back();
        }
    }
}
