//! What an answer consumed.

use memchr::memmem;
use serde_json::value::RawValue;

use crate::Dialect;
use crate::json::{Cursor, Json, whole_number};

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

    /// What stands at the end of an answer of which only the end is known: one with pictures in it is too long to be read.
    ///
    /// ```
    /// use loopbreaker_dialect::{Dialect, Usage};
    /// let end = br#"AAAA"}}]}}], "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 1290}}"#;
    /// let usage = Usage::at_end(Dialect::Gemini, end).expect("it says so");
    /// assert_eq!((usage.input, usage.output), (10, 1_290));
    /// ```
    pub fn at_end(dialect: Dialect, end: &[u8]) -> Option<Self> {
        let name: &[u8] = if dialect == Dialect::Gemini { b"\"usageMetadata\"" } else { b"\"usage\"" };
        let at = memmem::rfind(end, name)?;
        let value = end.get(at + name.len()..)?.trim_ascii_start().strip_prefix(b":")?;
        let reported: &RawValue = serde_json::Deserializer::from_slice(value).into_iter().next()?.ok()?;
        match dialect {
            Dialect::Chat | Dialect::Responses => Self::openai(reported.into()),
            Dialect::Anthropic => Self::anthropic(None, reported.into()),
            Dialect::Gemini => Self::gemini(reported.into()),
        }
    }

    /// What chat completions and the Responses API report: the prompt's count has the cached tokens in it, the
    /// answer's count those of thinking. Some relays report under the names of both, one of them with zeros.
    pub(crate) fn openai(reported: Json<'_>) -> Option<Self> {
        let counts = Counts::of(reported)?;
        let prompt = counts.larger("prompt_tokens", "input_tokens")?;
        let details = counts.inside("prompt_tokens_details", "input_tokens_details");
        let cached = details.get("cached_tokens").or_else(|| counts.get("prompt_cache_hit_tokens"));
        let cached = cached.unwrap_or_default().min(prompt);
        let answer = counts.larger("completion_tokens", "output_tokens").unwrap_or_default();
        let details = counts.inside("completion_tokens_details", "output_tokens_details");
        let reasoning = details.get("reasoning_tokens").unwrap_or_default().min(answer);
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
        let counts = Counts::of(reported)?;
        let known = before.unwrap_or_default();
        Some(Self {
            input: counts.get("input_tokens").unwrap_or(known.input),
            cache_read: counts.get("cache_read_input_tokens").unwrap_or(known.cache_read),
            cache_write: counts.get("cache_creation_input_tokens").unwrap_or(known.cache_write),
            output: counts.get("output_tokens").unwrap_or(known.output),
            reasoning: 0,
        })
    }

    /// What Gemini reports: the prompt's count has the cached tokens in it, thoughts stand beside the answer, and so do
    /// the results of tools that run at the provider beside the prompt.
    pub(crate) fn gemini(reported: Json<'_>) -> Option<Self> {
        let counts = Counts::of(reported)?;
        let count = |name| counts.get(name).unwrap_or_default();
        let prompt = counts.get("promptTokenCount")?;
        let cached = count("cachedContentTokenCount").min(prompt);
        Some(Self {
            input: (prompt - cached).saturating_add(count("toolUsePromptTokenCount")),
            cache_read: cached,
            cache_write: 0,
            output: count("candidatesTokenCount"),
            reasoning: count("thoughtsTokenCount"),
        })
    }
}

/// What is known of reports, by the names that providers use.
const NAMES: [&str; 18] = [
    "prompt_tokens",
    "input_tokens",
    "completion_tokens",
    "output_tokens",
    "prompt_tokens_details",
    "input_tokens_details",
    "completion_tokens_details",
    "output_tokens_details",
    "cached_tokens",
    "reasoning_tokens",
    // DeepSeek's name for the cached tokens.
    "prompt_cache_hit_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "promptTokenCount",
    "cachedContentTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "toolUsePromptTokenCount",
];

/// The members of a report. One that makes no sense says nothing about the others.
#[derive(Default)]
struct Counts<'a>(Vec<(&'static str, Json<'a>)>);

impl<'a> Counts<'a> {
    fn of(reported: Json<'a>) -> Option<Self> {
        let mut members = Vec::new();
        let mut cursor = Cursor::new(reported.get());
        let read = cursor.members(|name, value| {
            if let Some(known) = NAMES.into_iter().find(|known| *known == name) {
                members.push((known, value));
            }
        });
        read.ok().map(|()| Self(members))
    }

    /// The last member of that name, where it is a count.
    fn get(&self, name: &str) -> Option<u64> {
        self.0.iter().rev().find(|(other, _)| *other == name).and_then(|(_, value)| whole_number(*value))
    }

    /// The same thing under two names.
    fn larger(&self, name: &str, other: &str) -> Option<u64> {
        self.get(name).max(self.get(other))
    }

    /// What stands inside of one of two members.
    fn inside(&self, name: &str, other: &str) -> Self {
        let mut all = Self::default();
        for (_, value) in self.0.iter().filter(|(member, _)| *member == name || *member == other) {
            all.0.extend(Self::of(*value).unwrap_or_default().0);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Json<'_> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn what_makes_no_sense_in_a_report_does_not_take_the_rest_with_it() {
        for reported in [
            r#"{"prompt_tokens":1000,"completion_tokens":500,"input_tokens":0,"output_tokens":0,"input_tokens_details":null}"#,
            r#"{"prompt_tokens":1000.0,"completion_tokens":5e2,"prompt_tokens_details":[],"total_tokens":-1}"#,
            r#"{"prompt_tokens":7,"prompt_tokens":1000,"completion_tokens":500,"prompt_tokens_details":{"cached_tokens":-1}}"#,
        ] {
            assert_eq!(Usage::openai(raw(reported)).map(|usage| usage.total()), Some(1500), "{reported}");
        }
        let usage = Usage::openai(raw(r#"{"prompt_tokens":18446744073709551615,"completion_tokens":1e300}"#));
        assert_eq!(usage.unwrap().total(), u64::MAX);
        assert_eq!(Usage::openai(raw("[]")), None);
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
