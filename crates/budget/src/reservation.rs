//! What was reserved for one request, until it is settled or refunded.

use crate::ledger::CounterKey;
use crate::limit::{Quantity, Window};

/// Amounts that are held for one request.
///
/// It goes back to the ledger once, by [`settle`](crate::Ledger::settle) or [`refund`](crate::Ledger::refund), which
/// consume it. It is a plain value: one that is dropped stays counted at its estimate, as if it had been settled with
/// exactly that. That is the safe side, for a request whose outcome nobody saw may well have cost money; in a window
/// that slides the estimate leaves with the window.
#[must_use = "settle or refund it, else the estimate stays counted"]
#[derive(Debug)]
pub struct Reservation {
    /// The first ones.
    few: [Held; Self::INLINE],
    len: usize,
    /// Those for which there is no room there.
    more: Vec<Held>,
}

/// One reserved amount.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) key: CounterKey,
    pub(crate) quantity: Quantity,
    pub(crate) window: Window,
    pub(crate) estimate: u64,
    /// The time for which it was counted.
    pub(crate) at: u64,
    /// Which counter of the key it is in.
    pub(crate) generation: u16,
}

/// What a request really used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Actual {
    /// Tokens of every kind.
    pub tokens: u64,
    /// Money in micro-dollars.
    pub money_micros: u64,
}

impl Reservation {
    /// So many amounts need no allocation.
    const INLINE: usize = 4;

    pub(crate) fn with_room_for(count: usize) -> Self {
        let nothing = Held {
            key: [0, 0],
            quantity: Quantity::Requests,
            window: Window::Session,
            estimate: 0,
            at: 0,
            generation: 0,
        };
        let more = Vec::with_capacity(count.saturating_sub(Self::INLINE));
        Self { few: [nothing; Self::INLINE], len: 0, more }
    }

    pub(crate) fn push(&mut self, held: Held) {
        if let Some(free) = self.few.get_mut(self.len) {
            *free = held;
            self.len += 1;
        } else {
            self.more.push(held);
        }
    }

    pub(crate) fn into_held(self) -> impl Iterator<Item = Held> {
        self.few.into_iter().take(self.len).chain(self.more)
    }
}

impl Held {
    /// What the request used of this quantity. A request stays one request.
    pub(crate) const fn actual(&self, actual: &Actual) -> u64 {
        match self.quantity {
            Quantity::Requests => self.estimate,
            Quantity::Tokens => actual.tokens,
            Quantity::Money => actual.money_micros,
        }
    }
}
