//! What an answer consumed.

use crate::json::Json;
use serde::Deserialize;

/// Tokens of one request and its answer. No token is counted in two of the fields.
///
/// ```
/// use loopbreaker_dialect::{Dialect, read_answer};
/// let body = br#"{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,
///     "prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":15}}}"#;
/// let usage = read_answer(Dialect::Chat, body).and_then(|answer| answer.usage).expect("it says so");
/// assert_eq!((usage.input, usage.cache_read, usage.output, usage.reasoning), (40, 60, 5, 15));
/// assert_eq!(usage.total(), 120);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Prompt tokens that were read afresh.
    pub input: u64,
    /// Prompt tokens that came from the provider's cache.
    pub cache_read: u64,
    /// Prompt tokens that were written to the cache.
    pub cache_write: u64,
    /// Tokens of the answer itself.
    pub output: u64,
    /// Tokens that the model spent on thinking, where the provider tells them apart.
    pub reasoning: u64,
}

impl Usage {
    /// All of them.
    pub fn total(&self) -> u64 {
        [self.cache_read, self.cache_write, self.output, self.reasoning]
            .into_iter()
            .fold(self.input, u64::saturating_add)
    }

    /// What chat completions and the Responses API report: the prompt's count has the cached tokens in it, the
    /// answer's count those of thinking.
    pub(crate) fn openai(reported: Json<'_>) -> Option<Self> {
        let usage: OpenAi = serde_json::from_str(reported.get()).ok()?;
        let prompt = usage.prompt_tokens?;
        let details = usage.prompt_tokens_details.unwrap_or_default();
        let cached = details.cached_tokens.or(usage.prompt_cache_hit_tokens).unwrap_or_default().min(prompt);
        let answer = usage.completion_tokens.unwrap_or_default();
        let details = usage.completion_tokens_details.unwrap_or_default();
        let reasoning = details.reasoning_tokens.unwrap_or_default().min(answer);
        Some(Self {
            input: prompt - cached,
            cache_read: cached,
            cache_write: 0,
            output: answer - reasoning,
            reasoning,
        })
    }

    /// What Anthropic reports: every count on its own. In a stream each report replaces what it repeats of the one
    /// before.
    pub(crate) fn anthropic(before: Option<Self>, reported: Json<'_>) -> Option<Self> {
        let usage: Anthropic = serde_json::from_str(reported.get()).ok()?;
        let known = before.unwrap_or_default();
        Some(Self {
            input: usage.input_tokens.unwrap_or(known.input),
            cache_read: usage.cache_read_input_tokens.unwrap_or(known.cache_read),
            cache_write: usage.cache_creation_input_tokens.unwrap_or(known.cache_write),
            output: usage.output_tokens.unwrap_or(known.output),
            reasoning: 0,
        })
    }

    /// What Gemini reports: the prompt's count has the cached tokens in it, thoughts stand beside the answer, and so do
    /// the results of tools that run at the provider beside the prompt.
    pub(crate) fn gemini(reported: Json<'_>) -> Option<Self> {
        let usage: Gemini = serde_json::from_str(reported.get()).ok()?;
        let prompt = usage.prompt_token_count?;
        let cached = usage.cached_content_token_count.unwrap_or_default().min(prompt);
        Some(Self {
            input: (prompt - cached).saturating_add(usage.tool_use_prompt_token_count.unwrap_or_default()),
            cache_read: cached,
            cache_write: 0,
            output: usage.candidates_token_count.unwrap_or_default(),
            reasoning: usage.thoughts_token_count.unwrap_or_default(),
        })
    }
}

#[derive(Deserialize)]
struct OpenAi {
    #[serde(alias = "input_tokens")]
    prompt_tokens: Option<u64>,
    #[serde(alias = "output_tokens")]
    completion_tokens: Option<u64>,
    #[serde(alias = "input_tokens_details")]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(alias = "output_tokens_details")]
    completion_tokens_details: Option<AnswerDetails>,
    /// `DeepSeek`'s name for the cached tokens.
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
struct AnswerDetails {
    reasoning_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "these are the provider's names")]
struct Anthropic {
    input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "these are the provider's names")]
struct Gemini {
    prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Json<'_> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn cached_tokens_are_inside_of_the_prompt_but_for_anthropic() {
        let openai = r#"{"input_tokens":100,"input_tokens_details":{"cached_tokens":60},"output_tokens":1}"#;
        let openai = Usage::openai(raw(openai)).unwrap();
        assert_eq!((openai.input, openai.cache_read), (40, 60));
        let gemini = r#"{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":1}"#;
        let gemini = Usage::gemini(raw(gemini)).unwrap();
        assert_eq!((gemini.input, gemini.cache_read), (40, 60));
        let anthropic =
            r#"{"input_tokens":100,"cache_read_input_tokens":60,"cache_creation_input_tokens":7}"#;
        let anthropic = Usage::anthropic(None, raw(anthropic)).unwrap();
        assert_eq!((anthropic.input, anthropic.cache_read, anthropic.cache_write), (100, 60, 7));
    }

    #[test]
    fn thoughts_are_inside_of_the_answer_at_openai_and_beside_it_at_gemini() {
        let openai = r#"{"prompt_tokens":1,"completion_tokens":50,"completion_tokens_details":{"reasoning_tokens":30}}"#;
        let openai = Usage::openai(raw(openai)).unwrap();
        assert_eq!((openai.output, openai.reasoning), (20, 30));
        let gemini = r#"{"promptTokenCount":1,"candidatesTokenCount":50,"thoughtsTokenCount":30}"#;
        let gemini = Usage::gemini(raw(gemini)).unwrap();
        assert_eq!((gemini.output, gemini.reasoning), (50, 30));
    }

    #[test]
    fn a_later_report_of_anthropic_replaces_what_it_repeats() {
        let start = Usage::anthropic(
            None,
            raw(r#"{"input_tokens":9,"cache_read_input_tokens":5,"output_tokens":1}"#),
        );
        let last = Usage::anthropic(start, raw(r#"{"output_tokens":80}"#)).unwrap();
        assert_eq!((last.input, last.cache_read, last.output), (9, 5, 80));
    }

    #[test]
    fn counts_that_cannot_be_are_none() {
        assert_eq!(Usage::openai(raw(r#"{"prompt_tokens":-1}"#)), None);
        assert_eq!(Usage::openai(raw("{}")), None);
        assert_eq!(Usage::gemini(raw(r#"{"promptTokenCount":"x"}"#)), None);
        let more = r#"{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":9},"completion_tokens":1}"#;
        assert_eq!(Usage::openai(raw(more)).map(|usage| usage.total()), Some(6));
    }
}
