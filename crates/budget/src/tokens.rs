//! Tokens of one request by kind, and how many it will probably be.

/// The tokens of one request, every token in one field only.
///
/// ```
/// use loopbreaker_budget::Tokens;
/// let tokens = Tokens { input: 10, cache_read: 90, output: 5, reasoning: 15, ..Tokens::default() };
/// assert_eq!((tokens.prompt(), tokens.total()), (100, 120));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tokens {
    /// Of the prompt, neither read from nor written to a cache.
    pub input: u64,
    /// Of the prompt, read from a cache.
    pub cache_read: u64,
    /// Of the prompt, written to a cache that lives for the usual time: five minutes at Anthropic.
    pub cache_write: u64,
    /// Of the prompt, written to a cache that lives longer: one hour at Anthropic. A caller that cannot tell counts
    /// all writes as `cache_write`.
    pub cache_write_long: u64,
    /// Of the answer.
    pub output: u64,
    /// Thought before the answer.
    pub reasoning: u64,
}

impl Tokens {
    /// What an answer is taken to be long where the request sets no limit to it.
    pub const DEFAULT_OUTPUT: u64 = 1_024;
    /// Bytes of a request for one token: right for English prose, too many tokens for images, which is the safe side.
    pub const BYTES_PER_TOKEN: u64 = 4;

    /// All tokens of the prompt, cached ones too.
    pub const fn prompt(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
            .saturating_add(self.cache_write_long)
    }

    /// All tokens.
    pub const fn total(&self) -> u64 {
        self.prompt().saturating_add(self.output).saturating_add(self.reasoning)
    }
}

/// What a request will probably use: a quarter of its bytes as input, and for every choice the longest answer that it
/// allows, or [`Tokens::DEFAULT_OUTPUT`].
///
/// ```
/// use loopbreaker_budget::estimate_tokens;
/// assert_eq!(estimate_tokens(4_001, None, 1).total(), 1_001 + 1_024);
/// assert_eq!(estimate_tokens(400, Some(50), 3).output, 150);
/// ```
pub const fn estimate_tokens(body_bytes: u64, max_output_tokens: Option<u64>, choices: u64) -> Tokens {
    let answer = match max_output_tokens {
        Some(tokens) => tokens,
        None => Tokens::DEFAULT_OUTPUT,
    };
    let choices = if choices == 0 { 1 } else { choices };
    Tokens {
        input: body_bytes.div_ceil(Tokens::BYTES_PER_TOKEN),
        cache_read: 0,
        cache_write: 0,
        cache_write_long: 0,
        output: answer.saturating_mul(choices),
        reasoning: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::{Tokens, estimate_tokens};

    #[test]
    fn an_estimate_never_overflows() {
        let tokens = estimate_tokens(u64::MAX, Some(u64::MAX), u64::MAX);
        assert_eq!(tokens.total(), u64::MAX);
    }

    #[test]
    fn a_request_has_at_least_one_choice() {
        assert_eq!(estimate_tokens(0, None, 0).total(), Tokens::DEFAULT_OUTPUT);
    }
}
