//! How fast things go right now: steps and money per second, over all and per tenant.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::overview::PROBE;

/// Counters of the last minute.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    minutes: Mutex<Minutes>,
}

#[derive(Debug, Default)]
struct Minutes {
    all: Minute,
    tenants: HashMap<Arc<str>, Minute>,
}

/// One counter per second; each knows which second it is about.
#[derive(Debug, Clone)]
struct Minute([Second; 60]);

#[derive(Debug, Clone, Copy, Default)]
struct Second {
    at: i64,
    steps: u64,
    cost: f64,
}

impl Default for Minute {
    fn default() -> Self {
        Self([Second::default(); 60])
    }
}

impl Minute {
    fn second(&mut self, now: i64) -> &mut Second {
        let at = now / 1_000;
        let second = &mut self.0[at.rem_euclid(60) as usize];
        if second.at != at {
            *second = Second { at, ..Second::default() };
        }
        second
    }

    fn sum(&self, now: i64, seconds: i64) -> (u64, f64) {
        let last = now / 1_000;
        let fits = |second: &&Second| second.at > last - seconds && second.at <= last;
        let add = |(steps, cost), second: &Second| (steps + second.steps, cost + second.cost);
        self.0.iter().filter(fits).fold((0, 0.0), add)
    }
}

impl Rates {
    /// Tenants that are counted apart from all.
    const MAX_TENANTS: usize = 1_024;

    /// A step has come.
    pub(crate) fn stepped(&self, now: i64, tenant: &Arc<str>, cost: f64) {
        self.add(now, tenant, 1, cost);
    }

    /// Money has gone.
    pub(crate) fn spent(&self, now: i64, tenant: &Arc<str>, cost: f64) {
        self.add(now, tenant, 0, cost);
    }

    /// Steps per second over the last ten seconds, and dollars over the last minute.
    pub(crate) fn now(&self, now: i64, tenant: Option<&str>) -> (f64, f64) {
        let minutes = self.minutes.lock().unwrap_or_else(PoisonError::into_inner);
        let none = Minute::default();
        let minute = match tenant {
            Some(tenant) => minutes.tenants.get(tenant).unwrap_or(&none),
            None => &minutes.all,
        };
        (minute.sum(now, 10).0 as f64 / 10.0, minute.sum(now, 60).1)
    }

    fn add(&self, now: i64, tenant: &Arc<str>, steps: u64, cost: f64) {
        let mut minutes = self.minutes.lock().unwrap_or_else(PoisonError::into_inner);
        let add = |second: &mut Second| {
            second.steps += steps;
            second.cost += cost;
        };
        if **tenant != *PROBE {
            add(minutes.all.second(now));
        }
        if minutes.tenants.len() < Self::MAX_TENANTS || minutes.tenants.contains_key(tenant) {
            add(minutes.tenants.entry(Arc::clone(tenant)).or_default().second(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Rates;

    #[test]
    fn only_the_last_seconds_count() {
        let rates = Rates::default();
        for second in 0..100 {
            rates.stepped(second * 1_000, &"a".into(), 0.5);
        }
        rates.stepped(99_000, &"b".into(), 0.5);
        assert_eq!(rates.now(99_999, None), (1.1, 30.5));
        assert_eq!(rates.now(99_999, Some("b")), (0.1, 0.5));
        assert_eq!(rates.now(200_000, None), (0.0, 0.0));
        assert_eq!(rates.now(99_999, Some("nobody")), (0.0, 0.0));
    }
}
