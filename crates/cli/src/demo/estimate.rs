//! What was saved by stopping an agent. Here it can be said, since the script tells what would have come.

use loopbreaker_budget::{Family, MICROS_PER_USD, Prices, Tokens};
use loopbreaker_dialect::{Dialect, Usage};

use super::script::Voice;

/// What an agent did not use any more: an estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Saved {
    pub(super) steps: usize,
    pub(super) tokens: u64,
    pub(super) cost_usd: f64,
}

impl Saved {
    /// The steps that the script still held, at what the last one used. It is too little rather than too much: every
    /// step carries all that came before it.
    pub(super) fn by_stopping(steps: usize, last: &Usage, voice: Voice, prices: &Prices) -> Self {
        let used = Tokens {
            input: last.input,
            cache_read: last.cache_read,
            cache_write: last.cache_write,
            output: last.output,
            reasoning: last.reasoning,
            ..Tokens::default()
        };
        let one = Self::of(0, &used, voice, prices);
        Self { steps, tokens: one.tokens * steps as u64, cost_usd: one.cost_usd * steps as f64 }
    }

    /// The words that the model would still have said.
    pub(super) fn by_cutting(missing_bytes: u64, voice: Voice, prices: &Prices) -> Self {
        let output = missing_bytes.div_ceil(Tokens::BYTES_PER_TOKEN);
        Self::of(0, &Tokens { output, ..Tokens::default() }, voice, prices)
    }

    fn of(steps: usize, tokens: &Tokens, voice: Voice, prices: &Prices) -> Self {
        let cost = prices.cost(family(voice.dialect), Some(voice.model), tokens);
        Self { steps, tokens: tokens.total(), cost_usd: cost.micros as f64 / MICROS_PER_USD as f64 }
    }
}

const fn family(dialect: Dialect) -> Family {
    match dialect {
        Dialect::Chat | Dialect::Responses => Family::OpenAi,
        Dialect::Anthropic => Family::Anthropic,
        Dialect::Gemini => Family::Gemini,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::agents;

    #[test]
    fn every_agent_has_a_model_with_a_known_price() {
        let prices = Prices::builtin();
        for agent in agents::all() {
            let Voice { dialect, model, .. } = agent.voice;
            let cost = prices.cost(family(dialect), Some(model), &Tokens::default());
            assert!(cost.known, "{}: {model}", agent.name);
        }
    }

    #[test]
    fn spared_steps_are_counted_at_the_price_of_the_last_one() {
        let voice = Voice { dialect: Dialect::Chat, model: "gpt-6-sol", streams: false };
        let used = Usage { input: 900, output: 100, ..Usage::default() };
        let saved = Saved::by_stopping(3, &used, voice, &Prices::builtin());
        assert_eq!((saved.steps, saved.tokens), (3, 3_000));
        assert!((saved.cost_usd - 3.0 * (900.0 * 2.0 + 100.0 * 10.0) / 1e6).abs() < 1e-9);
    }
}
