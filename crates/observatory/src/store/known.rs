//! What the writer need not ask its database for again: names that have ids, and the steps that were touched last.
//!
//! It is true as long as nobody else writes, as what is in memory of live sessions is: it is forgotten with the first
//! event of another process, and with every transaction that fails. Connections that only read know nothing.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use loopbreaker_record::TraceId;
use lru::LruCache;

use super::KnownStep;

pub(super) struct Known {
    /// They never change, and are never removed.
    tenants: HashMap<String, i64>,
    sessions: LruCache<(i64, String), i64>,
    steps: LruCache<(i64, TraceId), KnownStep>,
}

const MAX_TENANTS: usize = 4_096;
const MAX_SESSIONS: NonZeroUsize = NonZeroUsize::new(16_384).unwrap();
/// With logs of at most 8 kB these are 16 MB; longer ones are read again.
const MAX_STEPS: NonZeroUsize = NonZeroUsize::new(2_048).unwrap();
const MAX_LOG: usize = 8 << 10;

impl Default for Known {
    fn default() -> Self {
        Self {
            tenants: HashMap::new(),
            sessions: LruCache::new(MAX_SESSIONS),
            steps: LruCache::new(MAX_STEPS),
        }
    }
}

impl Known {
    pub(super) fn tenant(&self, name: &str) -> Option<i64> {
        self.tenants.get(name).copied()
    }

    pub(super) fn add_tenant(&mut self, name: &str, id: i64) {
        if self.tenants.len() >= MAX_TENANTS {
            self.tenants.clear();
        }
        self.tenants.insert(name.to_owned(), id);
    }

    pub(super) fn session(&mut self, tenant: i64, name: &str) -> Option<i64> {
        self.sessions.get(&(tenant, name.to_owned())).copied()
    }

    pub(super) fn add_session(&mut self, tenant: i64, name: &str, id: i64) {
        self.sessions.put((tenant, name.to_owned()), id);
    }

    pub(super) fn step(&mut self, tenant: i64, trace: TraceId) -> Option<&KnownStep> {
        self.steps.get(&(tenant, trace))
    }

    /// A step is new, or another one than before.
    pub(super) fn add_step(&mut self, step: KnownStep) {
        let key = (step.tenant, step.trace);
        if step.log.len() <= MAX_LOG {
            self.steps.put(key, step);
        } else {
            self.steps.pop(&key);
        }
    }

    /// Sessions have other names, are gone, or are parts of others.
    pub(super) fn forget_places(&mut self) {
        self.sessions.clear();
        self.steps.clear();
    }
}
