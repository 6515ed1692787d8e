//! Budgets: requests, tokens and money, reserved before a request and settled after it.
//!
//! | part | does |
//! |---|---|
//! | [`Ledger`] | counts what every key has used against limits in sliding windows, for any number of threads |
//! | [`Stages`] | warns once per key and window before a limit is reached |
//! | [`rate_limit`], [`rate_limit_policy`] | the headers that tell a client how it stands |
//! | [`Prices`] | what the tokens of a request cost, from a dated list and overrides |
//! | [`estimate_tokens`] | how many tokens a request will probably use |
//! | [`Breaker`] | keeps requests away from an upstream that fails |
//!
//! Everything is pure: time comes in as [`Timestamp`](loopbreaker::Timestamp), nothing is read or sent, and money is
//! counted in whole micro-dollars.
//!
//! ```
//! use loopbreaker::Timestamp;
//! use loopbreaker_budget::{Actual, Charge, Family, Ledger, Limit, Prices, Quantity, Tokens, Window, estimate_tokens};
//!
//! let (ledger, prices, now) = (Ledger::new(100_000), Prices::builtin(), Timestamp::from_secs(0));
//! let five_dollars = Limit { quantity: Quantity::Money, amount: 5_000_000, window: Window::Session };
//! let model = Some("claude-sonnet-4-5-20250929");
//!
//! // Before the request: reserve what it may cost.
//! let estimate = prices.cost(Family::Anthropic, model, &estimate_tokens(8_000, Some(4_096), 1));
//! let charge = Charge { key: 0x5e55_1011, limit: five_dollars, estimate: estimate.micros };
//! let reservation = ledger.reserve(&[charge], now)?;
//!
//! // After the answer: settle what it did cost.
//! let used = Tokens { input: 1_900, output: 350, ..Tokens::default() };
//! let cost = prices.cost(Family::Anthropic, model, &used);
//! ledger.settle(reservation, &Actual { tokens: used.total(), money_micros: cost.micros }, now);
//! assert_eq!(ledger.standings(&[charge], now)[0].used, 10_950);
//! # Ok::<(), loopbreaker_budget::Exceeded>(())
//! ```

mod breaker;
mod ledger;
mod limit;
mod prices;
mod rate_limit;
mod reservation;
mod stages;
mod tokens;

pub use breaker::{Breaker, Open, Permit};
pub use ledger::Ledger;
pub use limit::{Charge, Exceeded, Limit, MICROS_PER_USD, Quantity, Standing, Window};
pub use prices::{Cost, Family, Price, Prices, PricesError, Rate, RateError, Rates};
pub use rate_limit::{RuleStanding, rate_limit, rate_limit_policy};
pub use reservation::{Actual, Reservation};
pub use stages::{Stage, Stages, StagesError};
pub use tokens::{Tokens, estimate_tokens};
