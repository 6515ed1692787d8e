//! What is limited, and how a key stands against its limit.

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quantity {
    /// Requests.
    Requests,
    /// Tokens of every kind.
    Tokens,
    /// Money in micro-dollars, so that sums are exact.
    Money,
}

/// Micro-dollars in one US dollar: the unit of [`Quantity::Money`].
pub const MICROS_PER_USD: u64 = 1_000_000;

/// For how long an amount counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Window {
    /// This many seconds, sliding; at least one.
    Seconds(u32),
    /// As long as the session lives.
    Session,
}

impl Window {
    /// Its length, `None` where it has no end.
    pub(crate) const fn millis(self) -> Option<u64> {
        match self {
            Self::Seconds(0) => Some(1_000),
            Self::Seconds(seconds) => Some(seconds as u64 * 1_000),
            Self::Session => None,
        }
    }
}

/// At most `amount` of `quantity` in any `window`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limit {
    /// What is counted.
    pub quantity: Quantity,
    /// How much of it is allowed: requests, tokens or micro-dollars.
    pub amount: u64,
    /// In which time.
    pub window: Window,
}

impl Limit {
    /// The same count with no limit: what a rule that only warns, or a policy in shadow, reserves under.
    ///
    /// The amount is not part of the count, so both share one.
    ///
    /// ```
    /// use loopbreaker::Timestamp;
    /// use loopbreaker_budget::{Charge, Ledger, Limit, Quantity, Window};
    ///
    /// let ledger = Ledger::new(1_000);
    /// let limit = Limit { quantity: Quantity::Requests, amount: 1, window: Window::Seconds(60) };
    /// let charge = Charge { key: 7, limit, estimate: 1 };
    /// let now = Timestamp::from_secs(1);
    /// for _ in 0..3 {
    ///     let reservation = ledger.reserve(&[Charge { limit: limit.uncapped(), ..charge }], now);
    ///     assert!(reservation.is_ok());
    /// }
    /// assert_eq!(ledger.check(&[charge], now).unwrap_err().standing.used, 3);
    /// ```
    #[must_use]
    pub const fn uncapped(self) -> Self {
        Self { amount: u64::MAX, ..self }
    }
}

/// One amount to count for one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Charge {
    /// A hash of policy, rule and key value, made by the caller. Limits that differ in quantity or window are counted
    /// apart under one key.
    pub key: u128,
    /// The limit that it counts against.
    pub limit: Limit,
    /// How much it will probably be: one for requests, an estimate for tokens and money.
    pub estimate: u64,
}

/// How a key stands against its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Standing {
    /// What is counted now, reserved amounts included. It may be more than `amount`.
    pub used: u64,
    /// What is allowed.
    pub amount: u64,
    /// What is left.
    pub remaining: u64,
    /// Seconds until the charge fits, where it does not fit now: one whole window, where it never will. Else seconds
    /// until the oldest counted amount leaves. Zero where nothing is counted, and where the window never ends.
    pub reset_seconds: u64,
}

impl Standing {
    /// Whether a charge of this size is refused.
    ///
    /// A limit that is used up refuses everything, a charge of zero too.
    ///
    /// ```
    /// use loopbreaker_budget::Standing;
    /// let standing = Standing { used: 90, amount: 100, remaining: 10, reset_seconds: 5 };
    /// assert!(!standing.refuses(10));
    /// assert!(standing.refuses(11));
    /// ```
    pub const fn refuses(&self, estimate: u64) -> bool {
        self.used >= self.amount || estimate > self.remaining
    }
}

/// A limit that a charge does not fit into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} of {} are used; {}", standing.used, standing.amount, advice(standing))]
pub struct Exceeded {
    /// Which of the charges it was; the first, where several do not fit.
    pub index: usize,
    /// How its key stands.
    pub standing: Standing,
}

fn advice(standing: &Standing) -> String {
    match standing.reset_seconds {
        0 => "raise the limit, or ask for less".to_owned(),
        seconds => format!("wait {seconds} s, or raise the limit"),
    }
}
