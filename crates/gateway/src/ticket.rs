//! What a request has taken until its answer is over: attempts that count, and amounts that are reserved.

use std::sync::Arc;

use loopbreaker::Timestamp;
use loopbreaker_budget::{Actual, Ledger, Quantity, Reservation};
use loopbreaker_fleet::{Aftermath, ChargeOver, Link};

use crate::few::Few;
use crate::identical::Attempt;

/// Everything that has to be given back or accounted for.
#[derive(Debug, Default)]
pub(crate) struct Ticket {
    /// Attempts that are on their way until now.
    pub(crate) attempts: Few<Attempt>,
    /// What this process itself has reserved.
    pub(crate) own: Option<Reservation>,
    /// What other processes have to know; in a box, since a lone process carries nothing of it.
    pub(crate) common: Option<Box<Common>>,
}

/// What is told to the other processes when the request is over.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) link: Arc<Link>,
    pub(crate) over: Aftermath,
    /// What is counted of each charge.
    pub(crate) quantities: Vec<Quantity>,
    /// Whether the charges are reserved there; else they are only told what was used.
    pub(crate) is_reserved: bool,
}

impl Ticket {
    /// Replaces estimates by what was really used.
    pub(crate) fn settle(&mut self, ledger: &Ledger, actual: &Actual, now: Timestamp) {
        if let Some(own) = self.own.take() {
            ledger.settle(own, actual, now);
        }
        if let Some(common) = &mut self.common {
            common.settle(|quantity, estimate| match quantity {
                Quantity::Requests => estimate,
                Quantity::Tokens => actual.tokens,
                Quantity::Money => actual.money_micros,
            });
        }
    }

    /// Takes everything back that was reserved: the provider was never reached, or failed.
    pub(crate) fn refund(&mut self, ledger: &Ledger, now: Timestamp) {
        if let Some(own) = self.own.take() {
            ledger.refund(own, now);
        }
        if let Some(common) = &mut self.common {
            common.settle(|_, _| 0);
        }
    }

    /// What was reserved counts as it was estimated: somebody else sends the request, and nobody tells what it uses.
    pub(crate) fn keep(&mut self) {
        self.own = None;
        if let Some(common) = &mut self.common {
            common.settle(|_, estimate| estimate);
            // The others know of what was reserved there.
            common.over.charges.retain(|charge| charge.actual > charge.estimate);
        }
    }

    /// The provider answered 429 or 5xx, or not at all: retries of an outage are no loop.
    pub(crate) fn take_back(&mut self) {
        self.attempts.iter_mut().for_each(Attempt::take_back);
        if let Some(common) = &mut self.common {
            common.over.attempts.iter_mut().for_each(|attempt| attempt.taken_back = true);
            common.over.missed.clear();
        }
    }

    /// Attempts of this request, counted by this process. Where the others could not be asked, they are told of those that
    /// count.
    pub(crate) fn attempted(&mut self, attempts: Few<Attempt>) {
        if let Some(common) = &mut self.common {
            let mut counted = attempts.iter().map(Attempt::counts);
            common.over.missed.retain(|_| counted.next().unwrap_or(true));
        }
        self.attempts = attempts;
    }

    /// Takes out that the transcript was refused: the others must know before its client comes back.
    pub(crate) fn take_refusal(&mut self) -> Option<Aftermath> {
        let over = self.over()?;
        let refused = Some(over.refused.take()?);
        Some(Aftermath { tenant: over.tenant, refused, ..Aftermath::default() })
    }

    /// What has to be told to the others, where there are any.
    pub(crate) fn over(&mut self) -> Option<&mut Aftermath> {
        self.common.as_mut().map(|common| &mut common.over)
    }
}

impl Common {
    /// A ticket of a process that shares its state.
    pub(crate) fn new(link: Arc<Link>, tenant: u64, is_reserved: bool) -> Self {
        let over = Aftermath { tenant, ..Aftermath::default() };
        Self { link, over, quantities: Vec::new(), is_reserved }
    }

    /// A charge that was reserved there, or would have been.
    pub(crate) fn charged(&mut self, quantity: Quantity, charge: ChargeOver) {
        self.quantities.push(quantity);
        self.over.charges.push(charge);
    }

    fn settle(&mut self, actual: impl Fn(Quantity, u64) -> u64) {
        for (charge, quantity) in self.over.charges.iter_mut().zip(self.quantities.drain(..)) {
            charge.actual = actual(quantity, charge.estimate);
            if !self.is_reserved {
                charge.estimate = 0;
            }
        }
    }
}

impl Drop for Common {
    fn drop(&mut self) {
        if !self.quantities.is_empty() {
            // Nobody has settled it, so it was never sent: its client went away while it was held.
            self.settle(|_, _| 0);
            self.over.charges.retain(|charge| charge.estimate > charge.actual);
        }
        self.link.leave(std::mem::take(&mut self.over));
    }
}
