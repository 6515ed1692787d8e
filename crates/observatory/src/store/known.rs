//! What the writer need not ask its database for again: names that have ids, and the steps that were touched last.
//!
//! It is true as long as nobody else writes, as what is in memory of live sessions is: it is forgotten with the first
//! event of another process, and with every transaction that fails. Connections that only read know nothing.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::sync::Arc;

use loopbreaker_record::TraceId;
use lru::LruCache;

use super::KnownStep;

pub(super) struct Known {
    /// They never change, and are never removed.
    tenants: HashMap<String, i64>,
    sessions: LruCache<Box<str>, i64>,
    steps: LruCache<(i64, TraceId), Arc<KnownStep>>,
    awaited: Awaited,
    /// Names that the last steps had: nearly all have the same.
    names: [Arc<str>; 4],
    /// Where the name of a session is put together with its tenant, to be looked for.
    key: String,
}

/// Steps that others wait for as their parents.
#[derive(Debug, Default)]
enum Awaited {
    /// Nobody has asked yet.
    #[default]
    Unknown,
    /// Tenants and names of all of them, and perhaps of some that have come.
    These(HashSet<(i64, TraceId)>),
    /// The database is asked each time.
    TooMany,
}

const MAX_TENANTS: usize = 4_096;
const MAX_SESSIONS: NonZeroUsize = NonZeroUsize::new(16_384).unwrap();
/// These are about 4 MB.
const MAX_STEPS: NonZeroUsize = NonZeroUsize::new(16_384).unwrap();
/// Steps that others wait for. Where there are more, the database is asked each time.
pub(super) const MAX_AWAITED: usize = 16_384;

impl Default for Known {
    fn default() -> Self {
        Self {
            tenants: HashMap::new(),
            sessions: LruCache::new(MAX_SESSIONS),
            steps: LruCache::new(MAX_STEPS),
            awaited: Awaited::Unknown,
            names: std::array::from_fn(|_| Arc::default()),
            key: String::new(),
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
        self.find(tenant, name);
        self.sessions.get(self.key.as_str()).copied()
    }

    pub(super) fn add_session(&mut self, tenant: i64, name: &str, id: i64) {
        self.find(tenant, name);
        self.sessions.put(self.key.as_str().into(), id);
    }

    fn find(&mut self, tenant: i64, name: &str) {
        self.key.clear();
        // Writing into a `String` never fails.
        write!(self.key, "{tenant} {name}").unwrap_or_default();
    }

    /// A name that many steps have, without a copy for each of them.
    pub(super) fn shared_name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.iter().find(|known| ***known == *name) {
            return Arc::clone(known);
        }
        self.names.rotate_right(1);
        self.names[0] = name.into();
        Arc::clone(&self.names[0])
    }

    pub(super) fn step(&mut self, tenant: i64, trace: TraceId) -> Option<Arc<KnownStep>> {
        self.steps.get(&(tenant, trace)).map(Arc::clone)
    }

    /// A step is new, or another one than before.
    pub(super) fn add_step(&mut self, step: Arc<KnownStep>) {
        self.steps.put((step.tenant, step.trace), step);
    }

    /// Whether steps may wait for this one; `None` before anybody has asked.
    pub(super) fn may_be_awaited(&self, tenant: i64, trace: TraceId) -> Option<bool> {
        match &self.awaited {
            Awaited::Unknown => None,
            Awaited::These(all) => Some(all.contains(&(tenant, trace))),
            Awaited::TooMany => Some(true),
        }
    }

    /// These are all steps that others wait for.
    pub(super) fn await_only(&mut self, all: HashSet<(i64, TraceId)>) {
        self.awaited = if all.len() <= MAX_AWAITED { Awaited::These(all) } else { Awaited::TooMany };
    }

    /// One more step waits for this one.
    pub(super) fn add_awaited(&mut self, tenant: i64, trace: TraceId) {
        if let Awaited::These(all) = &mut self.awaited {
            all.insert((tenant, trace));
            if all.len() > MAX_AWAITED {
                self.awaited = Awaited::TooMany;
            }
        }
    }

    /// Sessions have other names, are gone, or are parts of others.
    pub(super) fn forget_places(&mut self) {
        self.sessions.clear();
        self.steps.clear();
        self.awaited = Awaited::Unknown;
    }
}
