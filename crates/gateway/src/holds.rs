//! How many calls wait at once: throttled and paused ones share one bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loopbreaker_telemetry::Metrics;

/// Counts the calls that are held.
#[derive(Debug)]
pub(crate) struct Holds {
    held: AtomicUsize,
    metrics: Arc<Metrics>,
}

/// One held call; it leaves when it is dropped, also when its client has gone.
#[derive(Debug)]
pub(crate) struct Held {
    holds: Arc<Holds>,
    _shown: loopbreaker_telemetry::Held,
}

impl Holds {
    /// Nothing is held yet.
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        Self { held: AtomicUsize::new(0), metrics }
    }

    /// A place for one more; `None` when `max` are held already.
    pub(crate) fn enter(self: &Arc<Self>, max: u32) -> Option<Held> {
        let one_more = |held| (held < max as usize).then_some(held + 1);
        self.held.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        Some(Held { holds: Arc::clone(self), _shown: self.metrics.hold() })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.holds.held.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use loopbreaker_telemetry::Metrics;

    use super::Holds;

    #[test]
    fn no_more_than_the_limit_are_held_and_a_place_is_freed_by_leaving() {
        let metrics = Arc::new(Metrics::default());
        let holds = Arc::new(Holds::new(Arc::clone(&metrics)));
        let first = holds.enter(2).unwrap();
        let _second = holds.enter(2).unwrap();
        assert!(holds.enter(2).is_none());
        assert_eq!(metrics.held(), 2);
        drop(first);
        assert!(holds.enter(2).is_some());
    }
}
