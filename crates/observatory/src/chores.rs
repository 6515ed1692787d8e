//! What nobody asks for: pauses that ran out, steps that stayed orphans, and what is too old to keep.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use loopbreaker_record::TraceId;
use serde_json::json;

use crate::error::Stored;
use crate::events::{Draft, Event, Said, Topic};
use crate::graph::ORPHAN_AFTER;
use crate::hitl::Order;
use crate::observatory::Shared;
use crate::orders::Origin;
use crate::store::Tidied;
use crate::writer::Scribe;

/// Steps whose parents have not come, the one that waits longest first.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    due: VecDeque<(i64, TraceId)>,
    steps: HashMap<TraceId, (Arc<str>, String)>,
}

impl Orphans {
    /// More than this are not announced one by one; the graph itself shows all of them.
    const MAX: usize = 100_000;

    fn due(&self, now: i64) -> Vec<(TraceId, Arc<str>, String)> {
        let mut waiting = self.lock();
        let mut found = Vec::new();
        while let Some((_, trace)) = waiting.due.front().copied().filter(|(due, _)| *due <= now) {
            waiting.due.pop_front();
            if let Some((tenant, session)) = waiting.steps.remove(&trace) {
                found.push((trace, tenant, session));
            }
        }
        found
    }

    fn has_due(&self, now: i64) -> bool {
        self.lock().due.front().is_some_and(|(due, _)| *due <= now)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// A step waits for its parent from now on.
    pub(crate) fn wait_for_parent(&self, now: i64, tenant: &Arc<str>, session: &str, trace: TraceId) {
        let mut waiting = self.orphans.lock();
        if waiting.due.len() < Orphans::MAX {
            waiting.due.push_back((now + ORPHAN_AFTER, trace));
            waiting.steps.insert(trace, (Arc::clone(tenant), session.to_owned()));
        }
    }

    /// A step has found its parent.
    pub(crate) fn found_parent(&self, trace: TraceId) {
        self.orphans.lock().steps.remove(&trace);
    }

    /// Counts a step that another process has taken in.
    pub(crate) fn count_step_of(&self, event: &Event) {
        if event.topic == Topic::Graph
            && event.body()["node"]["step"].is_u64()
            && let Some(tenant) = &event.tenant
        {
            self.rates.stepped(self.now(), tenant, 0.0);
        }
    }

    /// Whether there is anything to do.
    pub(crate) fn has_chores(&self) -> bool {
        let now = self.now();
        self.orphans.has_due(now)
            || !self.hitl.paused_before(now - self.pause_timeout).is_empty()
            || self.retention_is_due(now)
    }
}

impl Scribe<'_> {
    /// Steps that are forgotten in one transaction: more would keep everybody else waiting.
    const FORGOTTEN_AT_ONCE: u32 = 1_000;

    pub(crate) fn do_chores(&mut self) -> Stored<()> {
        for session in self.shared.hitl.paused_before(self.now - self.shared.pause_timeout) {
            // A pause never becomes an approval by itself.
            let message = "nobody decided in time, so the pause became a rejection".to_owned();
            self.give_order(session, "system", Order::Reject { message }, Origin::Here)?;
        }
        for (trace, tenant, session) in self.shared.orphans.due(self.now) {
            let known = self.store.tenant(&tenant)?;
            if self.store.step(known, trace)?.is_some() {
                let node = json!({ "trace_id": trace, "orphan": true });
                let told = json!({ "event_type": "graph", "session_id": session, "node": node, "edges": [] });
                self.tell(Topic::Graph, "graph", &tenant, &told);
            }
        }
        if self.shared.retention_is_due(self.now) {
            let more = self.forget_some()?.more;
            self.shared.retention_was_done(self.now, !more);
        }
        Ok(())
    }

    /// Tells that settings have changed, so that whoever shows or uses them reads them again.
    pub(crate) fn tell_change(&mut self, part: &str) {
        let said = json!({ "event_type": "health", "part": part, "state": "changed", "reason": null });
        self.drafts.push(Draft {
            topic: Topic::Health,
            kind: "health",
            tenant: None,
            body: Said::now(&said),
            order: None,
        });
    }

    /// Forgets some of what is too old or too much, or makes room for what is left. The audit log stays.
    pub(crate) fn forget_some(&mut self) -> Stored<Tidied> {
        // What this batch has changed so far is written before it is read again.
        self.write_sessions()?;
        let oldest_kept = self.now - self.shared.max_age;
        let tidied = match self.store.forget(oldest_kept, Self::FORGOTTEN_AT_ONCE)? {
            0 => self.store.make_room(self.shared.max_bytes, Self::FORGOTTEN_AT_ONCE)?,
            gone => Tidied { gone, more: true },
        };
        if tidied.gone > 0 {
            // Sessions without steps are gone with them.
            self.live.clear();
            self.watches.clear();
            if self.shared.has_others {
                // They have the sessions in memory, too.
                self.tell_change("sessions");
            }
        }
        Ok(tidied)
    }
}
