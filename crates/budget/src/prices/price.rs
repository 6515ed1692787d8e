//! What a token costs.

use serde::Deserialize;

use crate::tokens::Tokens;

/// The price of one token, in millionths of a micro-dollar.
///
/// ```
/// use loopbreaker_budget::Rate;
/// assert!(Rate::usd_per_million(0.075).is_some());
/// assert!(Rate::usd_per_million(-1.0).is_none());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize)]
#[serde(try_from = "f64")]
pub struct Rate(u64);

/// A number that is no price.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a price is given in US dollars for a million tokens, from 0 to {max}, but this one is {0}", max = Rate::MAX_USD)]
pub struct RateError(f64);

impl Rate {
    /// No token costs a dollar.
    const MAX_USD: f64 = 1_000_000.0;

    /// So many US dollars for a million tokens; `None` for a number that is no price.
    ///
    /// It is kept to the sixth digit after the point.
    #[expect(clippy::cast_sign_loss, reason = "negative numbers are refused here")]
    pub fn usd_per_million(usd: f64) -> Option<Self> {
        (0.0..=Self::MAX_USD).contains(&usd).then(|| Self((usd * 1_000_000.0).round() as u64))
    }

    const fn of(self, tokens: u64) -> u128 {
        self.0 as u128 * tokens as u128
    }
}

impl TryFrom<f64> for Rate {
    type Error = RateError;

    fn try_from(usd: f64) -> Result<Self, RateError> {
        Self::usd_per_million(usd).ok_or(RateError(usd))
    }
}

/// The prices of the kinds of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rates {
    /// Of the prompt.
    pub input: Rate,
    /// Of the prompt, read from a cache.
    pub cache_read: Rate,
    /// Of the prompt, written to a cache.
    pub cache_write: Rate,
    /// Of the prompt, written to a cache that lives longer.
    pub cache_write_long: Rate,
    /// Of the answer.
    pub output: Rate,
    /// Of the thought before it.
    pub reasoning: Rate,
}

impl Rates {
    /// Prices without a discount for cached tokens, and with thought at the price of the answer.
    pub const fn new(input: Rate, output: Rate) -> Self {
        Self {
            input,
            cache_read: input,
            cache_write: input,
            cache_write_long: input,
            output,
            reasoning: output,
        }
    }

    /// The price of a request in micro-dollars: exact, and rounded up once at the end.
    fn cost(&self, tokens: &Tokens) -> u64 {
        let sum = self.input.of(tokens.input)
            + self.cache_read.of(tokens.cache_read)
            + self.cache_write.of(tokens.cache_write)
            + self.cache_write_long.of(tokens.cache_write_long)
            + self.output.of(tokens.output)
            + self.reasoning.of(tokens.reasoning);
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// What a model costs.
///
/// ```
/// use loopbreaker_budget::{Price, Rate, Rates, Tokens};
///
/// let usd = |usd| Rate::usd_per_million(usd).unwrap_or_default();
/// let short = Rates { cache_read: usd(0.125), ..Rates::new(usd(1.25), usd(10.0)) };
/// let price = Price::flat(short).above(200_000, Rates::new(usd(2.5), usd(15.0)));
/// assert_eq!(price.cost(&Tokens { input: 1_000, output: 100, ..Tokens::default() }), 2_250);
/// assert_eq!(price.cost(&Tokens { input: 200_001, ..Tokens::default() }), 500_003);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Price {
    rates: Rates,
    /// The prices of a request whose prompt has more tokens than this.
    long_prompt: Option<(u64, Rates)>,
}

impl Price {
    /// One price for prompts of every length.
    pub const fn flat(rates: Rates) -> Self {
        Self { rates, long_prompt: None }
    }

    /// The same with other prices for a whole request whose prompt has more than `tokens`.
    #[must_use]
    pub const fn above(self, tokens: u64, rates: Rates) -> Self {
        Self { long_prompt: Some((tokens, rates)), ..self }
    }

    /// The price of a request in micro-dollars, rounded up.
    pub fn cost(&self, tokens: &Tokens) -> u64 {
        match &self.long_prompt {
            Some((above, rates)) if tokens.prompt() > *above => rates.cost(tokens),
            _ => self.rates.cost(tokens),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Price, Rate, Rates};
    use crate::Tokens;

    fn usd(usd: f64) -> Rate {
        Rate::usd_per_million(usd).unwrap()
    }

    #[test]
    fn every_kind_of_token_has_its_own_price() {
        let rates = Rates {
            input: usd(1.0),
            cache_read: usd(2.0),
            cache_write: usd(3.0),
            cache_write_long: usd(4.0),
            output: usd(5.0),
            reasoning: usd(6.0),
        };
        let tokens = Tokens {
            input: 1,
            cache_read: 10,
            cache_write: 100,
            cache_write_long: 1_000,
            output: 10_000,
            reasoning: 100_000,
        };
        assert_eq!(Price::flat(rates).cost(&tokens), 654_321);
    }

    #[test]
    fn money_is_rounded_up_once_a_request() {
        let price = Price::flat(Rates::new(usd(0.1), usd(0.4)));
        let cost = |input, output| price.cost(&Tokens { input, output, ..Tokens::default() });
        assert_eq!(cost(0, 0), 0);
        assert_eq!(cost(1, 0), 1);
        assert_eq!(cost(6, 1), 1, "0.6 and 0.4 are one micro-dollar, not two");
        assert_eq!(cost(6, 2), 2);
    }

    #[test]
    fn a_long_prompt_is_dearer_as_a_whole_and_cached_tokens_make_it_long() {
        let price = Price::flat(Rates::new(usd(1.0), usd(1.0))).above(100, Rates::new(usd(2.0), usd(3.0)));
        let cost =
            |input, cache_read| price.cost(&Tokens { input, cache_read, output: 10, ..Tokens::default() });
        assert_eq!(cost(100, 0), 110);
        assert_eq!(cost(1, 100), 232);
    }

    #[test]
    fn only_numbers_from_nothing_to_a_dollar_a_token_are_prices() {
        for usd in [-0.1, f64::NAN, f64::INFINITY, 1_000_000.1] {
            assert_eq!(Rate::usd_per_million(usd), None, "{usd}");
        }
        assert_eq!(Rate::usd_per_million(0.0), Some(Rate(0)));
        assert_eq!(Rate::usd_per_million(18.75), Some(Rate(18_750_000)));
    }

    #[test]
    fn no_number_of_tokens_overflows() {
        let price = Price::flat(Rates::new(usd(1_000_000.0), usd(1_000_000.0)));
        let tokens = Tokens { input: u64::MAX, output: u64::MAX, ..Tokens::default() };
        assert_eq!(price.cost(&tokens), u64::MAX);
    }

    proptest! {
        #[test]
        fn a_request_costs_never_less_than_its_parts_together_round_down_to(
            input in 0_u64..1_000_000, output in 0_u64..1_000_000, rate in 0_u32..100_000_000,
        ) {
            let rate = usd(f64::from(rate) / 1_000_000.0);
            let cost = |input, output| {
                Price::flat(Rates::new(rate, rate)).cost(&Tokens { input, output, ..Tokens::default() })
            };
            let (apart, together) = (cost(input, 0) + cost(0, output), cost(input, output));
            prop_assert!(together <= apart && apart <= together + 1);
            prop_assert_eq!(together, (u128::from(rate.0) * u128::from(input + output)).div_ceil(1_000_000) as u64);
        }
    }
}
