//! What an answer consumed.

use memchr::memmem;
use serde_json::value::RawValue;

use crate::Dialect;
use crate::json::{Broken, Cursor, Json, whole_number};

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
    /// Prompt tokens that were written to a cache that lives longer, where the provider tells them apart: one hour at
    /// Anthropic.
    pub cache_write_long: u64,
    /// Tokens of the answer itself.
    pub output: u64,
    /// Tokens that the model spent on thinking, where the provider tells them apart.
    pub reasoning: u64,
}

impl Usage {
    /// All of them.
    pub fn total(&self) -> u64 {
        [self.cache_read, self.cache_write, self.cache_write_long, self.output, self.reasoning]
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

    /// What chat completions and the Responses API report: the prompt's count has in it what was read from the cache and
    /// what was written to it, the answer's count has the thinking in it. Some relays report under the names of both, one of them with zeros.
    pub(crate) fn openai(reported: Json<'_>) -> Option<Self> {
        Self::of_openai(&Report::of(reported)?)
    }

    /// [`openai`](Self::openai), read from the report that comes here on the way over it.
    pub(crate) fn openai_here<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Self>, Broken<'a>> {
        if cursor.peek() == Some(b'{') {
            return Ok(Self::of_openai(&Report::read(cursor)?));
        }
        cursor.skip().map(|_| None)
    }

    fn of_openai(report: &Report<'_>) -> Option<Self> {
        let prompt = larger(report.prompt_tokens, report.input_tokens)?;
        let cached = report.cached_tokens.or_else(|| count(report.prompt_cache_hit_tokens));
        let cached = cached.unwrap_or_default().min(prompt);
        let written = report.cache_write_tokens.unwrap_or_default().min(prompt - cached);
        let answer = larger(report.completion_tokens, report.output_tokens).unwrap_or_default();
        let reasoning = report.reasoning_tokens.unwrap_or_default().min(answer);
        Some(Self {
            input: prompt - cached - written,
            cache_read: cached,
            cache_write: written,
            cache_write_long: 0,
            output: answer - reasoning,
            reasoning,
        })
    }

    /// What Anthropic reports: every count of the prompt on its own, thinking inside of the answer. In a stream each
    /// report replaces what it repeats of the one before.
    pub(crate) fn anthropic(before: Option<Self>, reported: Json<'_>) -> Option<Self> {
        let report = Report::of(reported)?;
        let known = before.unwrap_or_default();
        let both = |one: u64, other: u64| one.saturating_add(other);
        let written = count(report.cache_creation_input_tokens)
            .unwrap_or_else(|| both(known.cache_write, known.cache_write_long));
        let written_long = report.cache_write_long.unwrap_or(known.cache_write_long).min(written);
        let answer = count(report.output_tokens).unwrap_or_else(|| both(known.output, known.reasoning));
        let reasoning = report.reasoning_tokens.unwrap_or(known.reasoning).min(answer);
        Some(Self {
            input: count(report.input_tokens).unwrap_or(known.input),
            cache_read: count(report.cache_read_input_tokens).unwrap_or(known.cache_read),
            cache_write: written - written_long,
            cache_write_long: written_long,
            output: answer - reasoning,
            reasoning,
        })
    }

    /// What Gemini reports: the prompt's count has the cached tokens in it, thoughts stand beside the answer, and so do
    /// the results of tools that run at the provider beside the prompt.
    pub(crate) fn gemini(reported: Json<'_>) -> Option<Self> {
        let report = Report::of(reported)?;
        let prompt = count(report.gemini_prompt)?;
        let or_none = |member| count(member).unwrap_or_default();
        let cached = or_none(report.gemini_cached).min(prompt);
        Some(Self {
            input: (prompt - cached).saturating_add(or_none(report.gemini_tool_use)),
            cache_read: cached,
            cache_write: 0,
            cache_write_long: 0,
            output: or_none(report.gemini_candidates),
            reasoning: or_none(report.gemini_thoughts),
        })
    }
}

/// The members of a report under the names that providers use. One that makes no sense says nothing about the others;
/// of two with the same name the last one counts.
#[derive(Default)]
struct Report<'a> {
    prompt_tokens: Option<Json<'a>>,
    input_tokens: Option<Json<'a>>,
    completion_tokens: Option<Json<'a>>,
    output_tokens: Option<Json<'a>>,
    /// The larger one of those that stand in the details of the prompt.
    cached_tokens: Option<u64>,
    /// What was written to the cache, from the same place.
    cache_write_tokens: Option<u64>,
    /// What was written to Anthropic's cache for an hour.
    cache_write_long: Option<u64>,
    /// The larger one of those that stand in the details of the answer.
    reasoning_tokens: Option<u64>,
    /// The cached tokens as `DeepSeek` names them.
    prompt_cache_hit_tokens: Option<Json<'a>>,
    cache_read_input_tokens: Option<Json<'a>>,
    cache_creation_input_tokens: Option<Json<'a>>,
    gemini_prompt: Option<Json<'a>>,
    gemini_cached: Option<Json<'a>>,
    gemini_candidates: Option<Json<'a>>,
    gemini_thoughts: Option<Json<'a>>,
    gemini_tool_use: Option<Json<'a>>,
}

impl<'a> Report<'a> {
    fn of(reported: Json<'a>) -> Option<Self> {
        Self::read(&mut Cursor::new(reported.get())).ok()
    }

    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Broken<'a>> {
        let mut report = Self::default();
        cursor.walk(|name, cursor| {
            let member = match name {
                "prompt_tokens" => &mut report.prompt_tokens,
                "input_tokens" => &mut report.input_tokens,
                "completion_tokens" => &mut report.completion_tokens,
                "output_tokens" => &mut report.output_tokens,
                "prompt_tokens_details" | "input_tokens_details" => {
                    let [cached, written] = details(["cached_tokens", "cache_write_tokens"], cursor)?;
                    report.cached_tokens = report.cached_tokens.max(cached);
                    report.cache_write_tokens = report.cache_write_tokens.max(written);
                    return Ok(());
                }
                "cache_creation" => {
                    let [written] = details(["ephemeral_1h_input_tokens"], cursor)?;
                    report.cache_write_long = report.cache_write_long.max(written);
                    return Ok(());
                }
                "completion_tokens_details" | "output_tokens_details" => {
                    let [reasoning, thinking] = details(["reasoning_tokens", "thinking_tokens"], cursor)?;
                    report.reasoning_tokens = report.reasoning_tokens.max(reasoning).max(thinking);
                    return Ok(());
                }
                "prompt_cache_hit_tokens" => &mut report.prompt_cache_hit_tokens,
                "cache_read_input_tokens" => &mut report.cache_read_input_tokens,
                "cache_creation_input_tokens" => &mut report.cache_creation_input_tokens,
                "promptTokenCount" => &mut report.gemini_prompt,
                "cachedContentTokenCount" => &mut report.gemini_cached,
                "candidatesTokenCount" => &mut report.gemini_candidates,
                "thoughtsTokenCount" => &mut report.gemini_thoughts,
                "toolUsePromptTokenCount" => &mut report.gemini_tool_use,
                _ => return cursor.skip().map(drop),
            };
            if let Some(value) = cursor.skip_unless_null()? {
                *member = Some(value);
            }
            Ok(())
        })?;
        Ok(report)
    }
}

/// The counts of these names in the details that come here, if that is what comes.
fn details<'a, const N: usize>(
    wanted: [&str; N],
    cursor: &mut Cursor<'a>,
) -> Result<[Option<u64>; N], Broken<'a>> {
    let mut found = [None; N];
    if cursor.peek() == Some(b'{') {
        cursor.members(|name, value| {
            for (wanted, found) in wanted.iter().zip(&mut found) {
                if name == *wanted {
                    *found = Some(value);
                }
            }
        })?;
    } else {
        cursor.skip()?;
    }
    Ok(found.map(count))
}

fn count(member: Option<Json<'_>>) -> Option<u64> {
    member.and_then(whole_number)
}

/// The same thing under two names.
fn larger(member: Option<Json<'_>>, other: Option<Json<'_>>) -> Option<u64> {
    count(member).max(count(other))
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
