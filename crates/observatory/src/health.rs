//! How the observatory and what stands around it are doing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::error::StoreError;
use crate::events::{Draft, Said, Topic};
use crate::observatory::{Observatory, Shared};

/// How the store is doing.
#[derive(Debug, Default)]
pub struct Health {
    failure: Mutex<Option<StoreError>>,
    unwritten: AtomicU64,
    dropped: AtomicU64,
    /// Other parts that do not do what they should, and why.
    parts: Mutex<BTreeMap<&'static str, String>>,
}

impl Health {
    /// Why the last batch could not be written; `None` while the store works.
    pub fn failure(&self) -> Option<StoreError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How much could not be written since the start. None of it was answered as if it had been.
    pub fn unwritten(&self) -> u64 {
        self.unwritten.load(Ordering::Relaxed)
    }

    /// How much was noted since the start when there was no room for it.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn count_dropped(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }

    /// Every part that does not do what it should, with the reason.
    pub(crate) fn degraded(&self) -> Vec<Value> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let store = self.failure().map(|problem| json!({ "part": "store", "reason": problem.code() }));
        let others = parts.iter().map(|(part, reason)| json!({ "part": part, "reason": reason }));
        store.into_iter().chain(others).collect()
    }

    fn set(&self, failure: Option<StoreError>) -> bool {
        let mut now = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = now.is_some() != failure.is_some();
        *now = failure;
        changed
    }
}

impl Shared {
    pub(crate) fn store_works(&self) {
        if self.health.set(None) {
            self.tell_health("store", "ok", None);
        }
    }

    pub(crate) fn store_failed(&self, error: StoreError, jobs: u64) {
        self.health.unwritten.fetch_add(jobs, Ordering::Relaxed);
        let code = error.code();
        if self.health.set(Some(error)) {
            self.tell_health("store", "degraded", Some(code));
        }
    }

    fn tell_health(&self, part: &str, state: &str, reason: Option<&str>) {
        let said = json!({
            "event_type": "health", "part": part, "state": state, "reason": reason,
            "unwritten": self.health.unwritten(),
        });
        let draft =
            Draft { topic: Topic::Health, kind: "health", tenant: None, body: Said::now(&said), order: None };
        if self.has_others {
            self.events.publish_unnumbered(draft);
        } else {
            self.events.publish([draft]);
        }
    }
}

impl Observatory {
    /// How the store is doing.
    pub fn health(&self) -> &Health {
        &self.shared.health
    }

    /// Says how another part of the program is doing, to be shown beside the store: a reason when it is degraded.
    pub fn note_health(&self, part: &'static str, reason: Option<String>) {
        let mut parts = self.shared.health.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let (state, told) = if reason.is_some() { ("degraded", reason.clone()) } else { ("ok", None) };
        let was = match reason {
            Some(reason) => parts.insert(part, reason),
            None => parts.remove(part),
        };
        drop(parts);
        if was.is_some() != told.is_some() {
            self.shared.tell_health(part, state, told.as_deref());
        }
    }
}
