//! What happens, told live: a bounded ring that any number of listeners read at their own pace.

mod said;

pub(crate) use said::Said;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

use crate::hitl::OrderGiven;

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
    /// What there is to say, as JSON.
    pub(crate) body: Said,
}

impl Event {
    /// What there is to say.
    pub fn body(&self) -> Value {
        serde_json::from_str(&self.body.text()).unwrap_or_default()
    }

    /// The event as one message of a stream of server-sent events.
    pub fn to_sse(&self) -> String {
        let Self { seq, kind, .. } = self;
        let body = self.body.text();
        let tenant = Value::from(self.tenant.as_deref());
        let topic = self.topic.as_str();
        format!(
            "id: {seq}\nevent: {kind}\ndata: {{\"event\":{body},\"tenant\":{tenant},\"topic\":\"{topic}\"}}\n\n"
        )
    }
}

/// An event that has no place in the order yet.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) topic: Topic,
    pub(crate) kind: &'static str,
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) body: Said,
    /// The order that it tells of.
    pub(crate) order: Option<OrderGiven>,
}

/// A kind of event by its name.
pub(crate) fn known_kind(name: &str) -> &'static str {
    const KINDS: [&str; 9] = [
        "entropy_alert",
        "entropy_recovered",
        "entropy_discrepancy",
        "finding",
        "session",
        "graph",
        "hitl",
        "violation",
        "health",
    ];
    KINDS.into_iter().find(|kind| *kind == name).unwrap_or("health")
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
    /// How many have been dropped from the front: the position of the first that is kept.
    dropped: u64,
    /// The number of the next event.
    next: u64,
    capacity: usize,
}

impl Ring {
    fn push(&mut self, event: Event) {
        if self.kept.len() >= self.capacity {
            self.kept.pop_front();
            self.dropped += 1;
        }
        self.kept.push_back(Arc::new(event));
    }

    /// The position behind the last one.
    fn end(&self) -> u64 {
        self.dropped + self.kept.len() as u64
    }

    fn first_number(&self) -> u64 {
        self.kept.front().map_or(self.next, |event| event.seq)
    }
}

impl Events {
    /// A ring that keeps the last `capacity` events and goes on counting behind `last`.
    pub(crate) fn new(capacity: usize, last: u64) -> Self {
        let ring = Ring { kept: VecDeque::new(), dropped: 0, next: last + 1, capacity: capacity.max(1) };
        Self { ring: Mutex::new(ring), last: watch::Sender::new(last) }
    }

    /// Tells what was committed; only the writer calls this, so numbers follow the order of commits.
    pub(crate) fn publish(&self, drafts: impl IntoIterator<Item = Draft>) {
        let mut ring = self.lock();
        for Draft { topic, kind, tenant, body, .. } in drafts {
            let seq = ring.next;
            ring.next += 1;
            ring.push(Event { seq, topic, kind, tenant, body });
        }
        self.wake(ring);
    }

    /// Tells an event that has its number from the store.
    pub(crate) fn publish_numbered(&self, event: Event) {
        let mut ring = self.lock();
        if event.seq < ring.next {
            return;
        }
        if event.seq > ring.next {
            // The store has forgotten some: whoever listens misses them too, and is told so.
            ring.dropped = ring.end() + 1;
            ring.kept.clear();
        }
        ring.next = event.seq + 1;
        ring.push(event);
        self.wake(ring);
    }

    /// Tells what only this process knows, where numbers come from a store that may be out of reach.
    pub(crate) fn publish_unnumbered(&self, draft: Draft) {
        let mut ring = self.lock();
        let Draft { topic, kind, tenant, body, .. } = draft;
        let seq = ring.next - 1;
        ring.push(Event { seq, topic, kind, tenant, body });
        self.wake(ring);
    }

    fn wake(&self, ring: MutexGuard<'_, Ring>) {
        let last = ring.next - 1;
        drop(ring);
        self.last.send_replace(last);
    }

    /// The number of the last event.
    pub(crate) fn last(&self) -> u64 {
        *self.last.borrow()
    }

    /// How many events are kept at most.
    pub(crate) fn capacity(&self) -> u64 {
        self.lock().capacity as u64
    }

    /// Listens from now on, or behind an event that was seen before.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        topics: Vec<Topic>,
        tenant: Option<Arc<str>>,
        last_seen: Option<u64>,
    ) -> Subscription {
        let place = last_seen.map_or_else(|| Place::At(self.lock().end()), Place::Behind);
        Subscription { place, topics, tenant, last: self.last.subscribe(), events: Arc::clone(self) }
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a listener is.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// Behind the event of this number, which it has seen.
    Behind(u64),
    /// At this position of the ring.
    At(u64),
}

/// A listener. However slow it is, it costs nothing but its own place in the ring.
#[derive(Debug)]
pub struct Subscription {
    place: Place,
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
        let missed = match self.place {
            Place::At(position) if position >= ring.dropped => None,
            // It was too slow.
            Place::At(_) => Some((ring.first_number() - 1, ring.first_number() - 1, ring.dropped)),
            // A listener of another store, or of one that was set up anew.
            Place::Behind(seen) if seen >= ring.next => Some((seen, ring.next - 1, ring.end())),
            // A listener from before a restart, or one that was away for too long.
            Place::Behind(seen) if seen + 1 < ring.first_number() => {
                Some((seen, ring.first_number() - 1, ring.dropped))
            }
            Place::Behind(seen) => {
                let known = ring.kept.partition_point(|event| event.seq <= seen);
                self.place = Place::At(ring.dropped + known as u64);
                None
            }
        };
        if let Some((last_seen, missed_to, position)) = missed {
            self.place = Place::At(position);
            let body =
                format!(r#"{{"event_type":"gap","last_seen":{last_seen},"missed_to":{missed_to}}}"#).into();
            let gap = Event { seq: missed_to, topic: Topic::Health, kind: "gap", tenant: None, body };
            return Some(Arc::new(gap));
        }
        let Place::At(position) = self.place else { return None };
        let skip = (position - ring.dropped) as usize;
        for (index, event) in ring.kept.iter().enumerate().skip(skip) {
            self.place = Place::At(ring.dropped + index as u64 + 1);
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

    use super::{Draft, Events, Topic};

    fn draft(topic: Topic) -> Draft {
        Draft { topic, kind: "finding", tenant: None, body: "{}".to_owned().into(), order: None }
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

    #[test]
    fn numbers_of_a_store_are_told_as_they_are_and_a_hole_in_them_is_a_gap() {
        let events = ring(8);
        let numbered = |seq| {
            let Draft { topic, kind, tenant, body, .. } = draft(Topic::Graph);
            super::Event { seq, topic, kind, tenant, body }
        };
        let mut listener = events.subscribe(Topic::ALL.to_vec(), None, None);
        events.publish_numbered(numbered(1));
        events.publish_numbered(numbered(1));
        events.publish_unnumbered(draft(Topic::Health));
        let mut heard = || std::iter::from_fn(|| listener.poll()).map(|event| event.seq).collect::<Vec<_>>();
        assert_eq!(heard(), [1, 1]);
        events.publish_numbered(numbered(7));
        assert_eq!(heard(), [6, 7], "the gap, and what comes behind it");
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
