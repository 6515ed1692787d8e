//! What happens, told live: a bounded ring that any number of listeners read at their own pace.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::watch;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// A session entered or left a loop by its entropy.
    EntropyAlerts,
    /// A detector found something.
    Findings,
    /// A session changed.
    Sessions,
    /// The causal graph grew.
    Graph,
    /// An operator gave an order.
    Hitl,
    /// A log was refused.
    Violations,
    /// A part of the observatory failed or works again.
    Health,
}

impl Topic {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::EntropyAlerts,
        Self::Findings,
        Self::Sessions,
        Self::Graph,
        Self::Hitl,
        Self::Violations,
        Self::Health,
    ];

    /// The topic's name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EntropyAlerts => "gateway:entropy_alerts",
            Self::Findings => "findings",
            Self::Sessions => "sessions",
            Self::Graph => "graph",
            Self::Hitl => "hitl",
            Self::Violations => "violations",
            Self::Health => "health",
        }
    }

    /// The topic of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.as_str() == name)
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its place in the order of commits.
    pub seq: u64,
    /// What it is about.
    pub topic: Topic,
    /// `entropy_alert`, `finding` and so on.
    pub kind: &'static str,
    /// Whose it is; `None` for what concerns everybody.
    pub tenant: Option<Arc<str>>,
    /// What there is to say.
    pub body: Value,
}

impl Event {
    /// The event as one message of a stream of server-sent events.
    pub fn to_sse(&self) -> String {
        let data = json!({ "topic": self.topic.as_str(), "event": self.body });
        format!("id: {}\nevent: {}\ndata: {data}\n\n", self.seq, self.kind)
    }
}

/// An event that has no place in the order yet.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) topic: Topic,
    pub(crate) kind: &'static str,
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) body: Value,
}

/// The ring.
#[derive(Debug)]
pub(crate) struct Events {
    ring: Mutex<Ring>,
    last: watch::Sender<u64>,
}

#[derive(Debug)]
struct Ring {
    kept: VecDeque<Arc<Event>>,
    /// The number of the next event.
    next: u64,
    capacity: usize,
}

impl Events {
    /// A ring that keeps the last `capacity` events and goes on counting behind `last`.
    pub(crate) fn new(capacity: usize, last: u64) -> Self {
        let ring = Ring { kept: VecDeque::new(), next: last + 1, capacity: capacity.max(1) };
        Self { ring: Mutex::new(ring), last: watch::Sender::new(last) }
    }

    /// Tells what was committed; only the writer calls this, so numbers follow the order of commits.
    pub(crate) fn publish(&self, drafts: impl IntoIterator<Item = Draft>) {
        let mut ring = self.lock();
        for Draft { topic, kind, tenant, body } in drafts {
            let seq = ring.next;
            ring.next += 1;
            if ring.kept.len() >= ring.capacity {
                ring.kept.pop_front();
            }
            ring.kept.push_back(Arc::new(Event { seq, topic, kind, tenant, body }));
        }
        let last = ring.next - 1;
        drop(ring);
        self.last.send_replace(last);
    }

    /// The number of the last event.
    pub(crate) fn last(&self) -> u64 {
        *self.last.borrow()
    }

    /// Listens from now on, or behind an event that was seen before.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        topics: Vec<Topic>,
        tenant: Option<Arc<str>>,
        last_seen: Option<u64>,
    ) -> Subscription {
        let seen = last_seen.unwrap_or_else(|| self.last());
        Subscription { seen, topics, tenant, last: self.last.subscribe(), events: Arc::clone(self) }
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A listener. However slow it is, it costs nothing but its own place in the ring.
#[derive(Debug)]
pub struct Subscription {
    seen: u64,
    topics: Vec<Topic>,
    tenant: Option<Arc<str>>,
    last: watch::Receiver<u64>,
    events: Arc<Events>,
}

impl Subscription {
    /// The next event, as soon as there is one; one `gap` when some are not kept any more.
    pub async fn next(&mut self) -> Arc<Event> {
        loop {
            self.last.borrow_and_update();
            if let Some(event) = self.poll() {
                return event;
            }
            if self.last.changed().await.is_err() {
                // The observatory is gone; so is everything that could happen.
                std::future::pending::<()>().await;
            }
        }
    }

    /// The next event, if there is one already.
    pub fn poll(&mut self) -> Option<Arc<Event>> {
        let ring = self.events.lock();
        let first = ring.kept.front().map_or(ring.next, |event| event.seq);
        let ahead = self.seen >= ring.next;
        if self.seen + 1 < first || ahead {
            // A listener from before a restart, or one that was too slow, or one of another store.
            let missed_to = if ahead { ring.next - 1 } else { first - 1 };
            let body = json!({ "event_type": "gap", "last_seen": self.seen, "missed_to": missed_to });
            self.seen = missed_to;
            let gap = Event { seq: missed_to, topic: Topic::Health, kind: "gap", tenant: None, body };
            return Some(Arc::new(gap));
        }
        let skip = (self.seen + 1 - first) as usize;
        for event in ring.kept.iter().skip(skip) {
            self.seen = event.seq;
            let is_theirs = self.tenant.is_none() || event.tenant.is_none() || event.tenant == self.tenant;
            if is_theirs && self.topics.contains(&event.topic) {
                return Some(Arc::clone(event));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::json;

    use super::{Draft, Events, Topic};

    fn draft(topic: Topic) -> Draft {
        Draft { topic, kind: "finding", tenant: None, body: json!({}) }
    }

    fn ring(capacity: usize) -> Arc<Events> {
        Arc::new(Events::new(capacity, 0))
    }

    fn kinds_and_ids(events: &Arc<Events>, seen: u64) -> Vec<(&'static str, u64)> {
        let mut listener = events.subscribe(Topic::ALL.to_vec(), None, Some(seen));
        std::iter::from_fn(|| listener.poll()).map(|event| (event.kind, event.seq)).collect()
    }

    #[test]
    fn every_topic_is_known_by_its_name() {
        assert!(Topic::ALL.iter().all(|topic| Topic::parse(topic.as_str()) == Some(*topic)));
    }

    #[test]
    fn a_listener_that_comes_back_misses_nothing_that_is_kept() {
        let events = ring(4);
        events.publish([draft(Topic::Graph), draft(Topic::Hitl), draft(Topic::Graph)]);
        assert_eq!(kinds_and_ids(&events, 1), [("finding", 2), ("finding", 3)]);
        assert_eq!(kinds_and_ids(&events, 3), []);
    }

    #[test]
    fn a_listener_from_before_the_ring_gets_one_gap() {
        let events = ring(2);
        events.publish((0..5).map(|_| draft(Topic::Graph)));
        assert_eq!(kinds_and_ids(&events, 1), [("gap", 3), ("finding", 4), ("finding", 5)]);
    }

    #[test]
    fn a_listener_of_another_store_gets_one_gap() {
        assert_eq!(kinds_and_ids(&ring(2), 700), [("gap", 0)]);
    }

    #[tokio::test]
    async fn only_the_topics_that_were_asked_for_are_told() {
        let events = ring(8);
        let mut listener = events.subscribe(vec![Topic::Hitl], None, None);
        events.publish([draft(Topic::Graph), draft(Topic::Hitl)]);
        assert_eq!(listener.next().await.seq, 2);
    }

    #[test]
    fn a_tenant_hears_only_what_is_its_own_or_everybodys() {
        let events = ring(8);
        let of = |tenant: Option<&str>| Draft { tenant: tenant.map(Arc::from), ..draft(Topic::Graph) };
        events.publish([of(Some("a")), of(Some("b")), of(None)]);
        let mut listener = events.subscribe(Topic::ALL.to_vec(), Some("a".into()), Some(0));
        let heard: Vec<u64> = std::iter::from_fn(|| listener.poll()).map(|event| event.seq).collect();
        assert_eq!(heard, [1, 3]);
    }

    proptest! {
        #[test]
        fn numbers_never_go_back_and_a_gap_comes_at_most_once(
            capacity in 1_usize..20, batches in prop::collection::vec(0_usize..15, 0..10), seen in 0_u64..200
        ) {
            let events = ring(capacity);
            for batch in &batches {
                events.publish((0..*batch).map(|_| draft(Topic::Graph)));
            }
            let heard = kinds_and_ids(&events, seen);
            prop_assert!(heard.windows(2).all(|pair| pair[0].1 < pair[1].1));
            prop_assert!(heard.iter().filter(|(kind, _)| *kind == "gap").count() <= 1);
            let total: usize = batches.iter().sum();
            if seen < total as u64 {
                prop_assert_eq!(heard.last().map(|(_, seq)| *seq), Some(total as u64));
            }
        }
    }
}
