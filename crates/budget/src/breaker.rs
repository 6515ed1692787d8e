//! The circuit breaker of one upstream.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loopbreaker::Timestamp;

/// Keeps requests away from an upstream that fails, and finds out when it works again.
///
/// It opens after a number of *consecutive* failures: answers of 5xx, failed connections, time-outs. After `open_for`
/// one request at a time is let through as a probe; its success closes the breaker, its failure opens it again. A
/// probe that is lost, for its permit was dropped, makes room for the next one after `open_for`. An answer of 429 is
/// neither: the upstream works, but says nothing about whether it would have failed.
///
/// An outcome counts only while the breaker is as it was when the permit was given: a slow failure from before does
/// not open it again. The handle is cheap to clone, and all clones are one breaker.
///
/// ```
/// use std::time::Duration;
/// use loopbreaker::Timestamp;
/// use loopbreaker_budget::{Breaker, Open};
///
/// let breaker = Breaker::new(2, Duration::from_secs(30));
/// let at = Timestamp::from_secs;
/// for second in 0..2 {
///     breaker.failure(breaker.allow(at(second))?, at(second));
/// }
/// assert_eq!(breaker.allow(at(11)).unwrap_err(), Open { retry_after_secs: 20 });
///
/// let probe = breaker.allow(at(31))?;
/// assert!(probe.is_probe() && breaker.allow(at(31)).is_err());
/// breaker.success(probe, at(32));
/// assert!(!breaker.allow(at(32))?.is_probe());
/// # Ok::<(), Open>(())
/// ```
#[derive(Debug, Clone)]
pub struct Breaker {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    failures: NonZeroU32,
    open_for: u64,
    circuit: Mutex<Circuit>,
}

#[derive(Debug)]
struct Circuit {
    state: State,
    /// Goes up with every change of state and with every probe, so that outcomes from before are known as such.
    era: u64,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Closed {
        failures: u32,
    },
    /// No request passes until this time; then one may, as a probe.
    Open {
        until: u64,
        probing: bool,
    },
}

/// The right to send one request. Report its outcome with it.
#[must_use = "send the request and report its outcome"]
#[derive(Debug)]
pub struct Permit {
    era: u64,
    is_probe: bool,
}

impl Permit {
    /// Whether it is the one request that finds out if the upstream works again.
    pub const fn is_probe(&self) -> bool {
        self.is_probe
    }
}

/// The breaker is open: the request must not be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the upstream has failed too often; try again in {retry_after_secs} s")]
pub struct Open {
    /// Seconds after which it is worth to try again, at least one.
    pub retry_after_secs: u64,
}

impl Breaker {
    /// A breaker that opens after this many consecutive failures, at least one, for this long.
    pub fn new(failures: u32, open_for: Duration) -> Self {
        let failures = NonZeroU32::new(failures).unwrap_or(NonZeroU32::MIN);
        let open_for = u64::try_from(open_for.as_millis()).unwrap_or(u64::MAX);
        let circuit = Mutex::new(Circuit { state: State::Closed { failures: 0 }, era: 0 });
        Self { shared: Arc::new(Shared { failures, open_for, circuit }) }
    }

    /// Asks before a request is sent.
    pub fn allow(&self, now: Timestamp) -> Result<Permit, Open> {
        let mut circuit = self.circuit();
        let State::Open { until, probing } = circuit.state else {
            return Ok(Permit { era: circuit.era, is_probe: false });
        };
        let now = now.as_millis();
        // A clock that jumped back must not keep the breaker open until it has caught up.
        let until = until.min(now.saturating_add(self.shared.open_for));
        if now >= until {
            circuit.enter(State::Open { until: now.saturating_add(self.shared.open_for), probing: true });
            return Ok(Permit { era: circuit.era, is_probe: true });
        }
        circuit.state = State::Open { until, probing };
        // A probe that is on its way may be back at any moment.
        Err(Open { retry_after_secs: if probing { 1 } else { (until - now).div_ceil(1_000) } })
    }

    /// The upstream answered, and not with 5xx or 429.
    pub fn success(&self, permit: Permit, _now: Timestamp) {
        let Some(mut circuit) = self.redeem(permit) else { return };
        match &mut circuit.state {
            State::Closed { failures } => *failures = 0,
            State::Open { .. } => circuit.enter(State::Closed { failures: 0 }),
        }
    }

    /// The upstream answered with 5xx, could not be reached, or took too long.
    pub fn failure(&self, permit: Permit, now: Timestamp) {
        let Some(mut circuit) = self.redeem(permit) else { return };
        if let State::Closed { failures } = &mut circuit.state {
            *failures += 1;
            if *failures < self.shared.failures.get() {
                return;
            }
        }
        let until = now.as_millis().saturating_add(self.shared.open_for);
        circuit.enter(State::Open { until, probing: false });
    }

    /// Nothing can be said: the upstream answered with 429, or the client went away first. The next request may probe
    /// at once, where this one was a probe.
    pub fn release(&self, permit: Permit, now: Timestamp) {
        let Some(mut circuit) = self.redeem(permit) else { return };
        if let State::Open { .. } = circuit.state {
            circuit.enter(State::Open { until: now.as_millis(), probing: false });
        }
    }

    /// Whether requests pass freely.
    pub fn is_closed(&self) -> bool {
        matches!(self.circuit().state, State::Closed { .. })
    }

    /// The circuit, where it is still as it was when the permit was given.
    #[expect(clippy::needless_pass_by_value, reason = "a permit is for one outcome")]
    fn redeem(&self, permit: Permit) -> Option<MutexGuard<'_, Circuit>> {
        let circuit = self.circuit();
        (circuit.era == permit.era).then_some(circuit)
    }

    fn circuit(&self) -> MutexGuard<'_, Circuit> {
        self.shared.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Circuit {
    fn enter(&mut self, state: State) {
        self.state = state;
        self.era += 1;
    }
}

#[cfg(test)]
mod tests;
