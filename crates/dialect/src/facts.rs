//! What a request says beside its messages.

use memchr::memmem;
use serde::Deserialize;

use crate::Dialect;
use crate::digest::BILLING_HEADER;
use crate::json::{Cursor, Json, string, whole_number};

/// What a request says beside its messages, in the words of all dialects.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own that a request has or has not")]
pub struct Facts {
    /// The model; Gemini names it in the path.
    pub model: Option<Box<str>>,
    /// Whether the answer is to be streamed; Gemini says so in the path.
    pub stream: bool,
    /// Whether the client asks for a usage chunk (`stream_options.include_usage` of chat completions).
    pub include_usage: bool,
    /// The most tokens that an answer may have.
    pub max_output_tokens: Option<u64>,
    /// How many answers are asked for.
    pub choices: u64,
    /// The session that the client names in the body.
    pub session: Option<Box<str>>,
    /// The conversation that the provider keeps (Responses); it names the session too.
    pub conversation: Option<Box<str>>,
    /// The response that this request goes on from.
    pub previous_response_id: Option<Box<str>>,
    /// The cohort of the provider's prompt cache.
    pub prompt_cache_key: Option<Box<str>>,
    /// Whom the client works for; never a session.
    pub user: Option<Box<str>>,
    /// Whether tools are offered.
    pub has_tools: bool,
    /// Whether Gemini is to go on from content that it has cached.
    pub cached_content: bool,
    /// Whether a system text has the line with which Claude Code signs a body: such a body must not be edited.
    pub signed: bool,
    /// The sampling temperature.
    pub temperature: Option<f64>,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            model: None,
            stream: false,
            include_usage: false,
            max_output_tokens: None,
            choices: 1,
            session: None,
            conversation: None,
            previous_response_id: None,
            prompt_cache_key: None,
            user: None,
            has_tools: false,
            cached_content: false,
            signed: false,
            temperature: None,
        }
    }
}

impl Facts {
    /// Takes in one member of the body. Of two members of the same name the last one counts.
    pub(crate) fn learn(&mut self, dialect: Dialect, key: &str, value: Json<'_>) {
        match key {
            "model" => self.model = text(value),
            "stream" => self.stream = is_true(value),
            "stream_options" => self.include_usage = asks_for_usage(value),
            "max_tokens" | "max_completion_tokens" | "max_output_tokens" => {
                // Where it stands under two names, the larger one may be what holds.
                self.max_output_tokens = self.max_output_tokens.max(whole_number(value));
            }
            "n" => self.choices = whole_number(value).unwrap_or(1),
            "temperature" => self.temperature = value.get().parse().ok(),
            "generationConfig" | "generation_config" => self.learn_generation(value),
            "metadata" => self.learn_metadata(dialect, value),
            "conversation" => {
                self.conversation = conversation(value);
                self.session = self.conversation.clone().or_else(|| self.session.take());
            }
            "previous_response_id" => self.previous_response_id = id(value),
            "prompt_cache_key" => self.prompt_cache_key = id(value),
            "user" => self.user = id(value),
            "safety_identifier" => self.user = self.user.take().or_else(|| id(value)),
            "tools" | "functions" => self.has_tools = self.has_tools || has_elements(value),
            "cachedContent" | "cached_content" => self.cached_content = id(value).is_some(),
            "system" | "instructions" | "systemInstruction" | "system_instruction" => {
                self.signed = self.signed || is_signed(value.get());
            }
            _ => {}
        }
    }

    /// Whether the provider keeps what was said before, so that it does not stand in the body.
    ///
    /// ```
    /// use loopbreaker_dialect::{Dialect, read_request};
    /// let body = br#"{"previous_response_id":"resp_1","input":"go on"}"#;
    /// let read = read_request(Dialect::Responses, body, None, &mut |_| {}).unwrap();
    /// assert!(read.facts.is_kept_by_provider());
    /// ```
    pub const fn is_kept_by_provider(&self) -> bool {
        self.previous_response_id.is_some() || self.conversation.is_some()
    }

    fn learn_generation(&mut self, value: Json<'_>) {
        (self.max_output_tokens, self.choices, self.temperature) = (None, 1, None);
        let learnt = Cursor::new(value.get()).members(|name, value| match name {
            "maxOutputTokens" | "max_output_tokens" => {
                self.max_output_tokens = self.max_output_tokens.max(whole_number(value));
            }
            "candidateCount" | "candidate_count" => self.choices = whole_number(value).unwrap_or(1),
            "temperature" => self.temperature = value.get().parse().ok(),
            _ => {}
        });
        // What is no object says nothing.
        learnt.unwrap_or_default();
    }

    fn learn_metadata(&mut self, dialect: Dialect, value: Json<'_>) {
        let metadata: Metadata<'_> = serde_json::from_str(value.get()).unwrap_or_default();
        let user = metadata.user_id.and_then(string);
        let named = metadata.session_id.and_then(id).or_else(|| metadata.conversation_id.and_then(id));
        let named = named.or_else(|| user.as_deref().and_then(session_of_user));
        self.session = named.or_else(|| self.session.take());
        if dialect == Dialect::Anthropic {
            self.user = metadata.user_id.and_then(id);
        }
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        [&self.model, &self.session, &self.previous_response_id, &self.prompt_cache_key, &self.user]
            .into_iter()
            .flatten()
            .map(|text| text.len())
            .sum()
    }
}

/// Whether a system text, as it is written, has Claude Code's billing header with its hash of the body.
pub(crate) fn is_signed(written: &str) -> bool {
    let bytes = written.as_bytes();
    memmem::find_iter(bytes, BILLING_HEADER.as_bytes()).any(|at| {
        let line = bytes.get(at..bytes.len().min(at + MAX_HEADER)).unwrap_or_default();
        let end = line.iter().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(line.len());
        memmem::find(line.get(..end).unwrap_or_default(), b"cch=").is_some()
    })
}

/// The header is a short line. Looking further behind each of many would take as long as they are many.
const MAX_HEADER: usize = 1_024;

#[derive(Default, Deserialize)]
#[expect(clippy::struct_field_names, reason = "these are the providers' names")]
struct Metadata<'a> {
    #[serde(borrow)]
    session_id: Option<Json<'a>>,
    #[serde(borrow)]
    conversation_id: Option<Json<'a>>,
    #[serde(borrow)]
    user_id: Option<Json<'a>>,
}

#[derive(Default, Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    id: Option<Json<'a>>,
    #[serde(borrow)]
    session_id: Option<Json<'a>>,
}

fn asks_for_usage(options: Json<'_>) -> bool {
    #[derive(Default, Deserialize)]
    struct Options<'a> {
        #[serde(borrow)]
        include_usage: Option<Json<'a>>,
    }
    let options: Options<'_> = serde_json::from_str(options.get()).unwrap_or_default();
    options.include_usage.is_some_and(is_true)
}

/// `conversation` of the Responses API: an id, or an object that has one.
fn conversation(value: Json<'_>) -> Option<Box<str>> {
    id(value).or_else(|| {
        let named: Named<'_> = serde_json::from_str(value.get()).ok()?;
        named.id.and_then(id)
    })
}

/// The session in Anthropic's `metadata.user_id`, which is one only in the two forms that Claude Code writes: a person
/// has many sessions, and would otherwise have one.
fn session_of_user(user: &str) -> Option<Box<str>> {
    if user.starts_with('{') {
        let named: Named<'_> = serde_json::from_str(user).ok()?;
        return named.session_id.and_then(id);
    }
    let (_, session) = user.rsplit_once("_session_")?;
    let is_uuid = session.len() == 36
        && session.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    is_uuid.then(|| session.into())
}

/// A word that can name something: an empty one would throw all who send it into one bucket, and nobody needs ids
/// that are as long as a text.
fn id(value: Json<'_>) -> Option<Box<str>> {
    text(value).filter(|id| !id.trim().is_empty() && id.len() <= MAX_ID)
}

const MAX_ID: usize = 512;

fn text(value: Json<'_>) -> Option<Box<str>> {
    string(value).map(|text| text.into_owned().into_boxed_str())
}

fn is_true(value: Json<'_>) -> bool {
    value.get() == "true"
}

fn has_elements(value: Json<'_>) -> bool {
    value.get().strip_prefix('[').is_some_and(|rest| !rest.trim_ascii_start().starts_with(']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(dialect: Dialect, key: &str, value: &str) -> Option<String> {
        let mut facts = Facts::default();
        facts.learn(dialect, key, serde_json::from_str(value).unwrap());
        facts.session.map(String::from)
    }

    #[test]
    fn a_user_id_is_a_session_only_in_the_forms_of_claude_code() {
        let of_user = |user: &str| {
            let metadata = serde_json::json!({ "user_id": user }).to_string();
            session(Dialect::Anthropic, "metadata", &metadata)
        };
        let uuid = "0b5c1f6e-1111-2222-3333-444455556666";
        assert_eq!(of_user(&format!("user_ab12_account__session_{uuid}")).as_deref(), Some(uuid));
        assert_eq!(of_user(r#"{"device_id":"d","session_id":"s-1"}"#).as_deref(), Some("s-1"));
        for user in ["user-17", "user_session_", "x_session_0b5c1f6e", r#"{"device_id":"d"}"#, "{", ""] {
            assert_eq!(of_user(user), None, "{user}");
        }
    }

    #[test]
    fn the_most_that_an_answer_may_use_is_known_however_it_is_written() {
        let of = |dialect, members: &[(&str, &str)]| {
            let mut facts = Facts::default();
            for (key, value) in members {
                facts.learn(dialect, key, serde_json::from_str(value).unwrap());
            }
            facts.max_output_tokens
        };
        for value in ["100000", "1e5", "100000.0", "\"100000\""] {
            assert_eq!(of(Dialect::Chat, &[("max_tokens", value)]), Some(100_000), "{value}");
        }
        assert_eq!(of(Dialect::Chat, &[("max_tokens", "1E40")]), Some(u64::MAX));
        assert_eq!(of(Dialect::Chat, &[("max_tokens", "-5")]), None);
        let two = [("max_completion_tokens", "100000"), ("max_tokens", "5")];
        assert_eq!(of(Dialect::Chat, &two), Some(100_000));
        let gemini =
            r#"{"maxOutputTokens":1,"maxOutputTokens":500000,"max_output_tokens":2,"candidateCount":3}"#;
        assert_eq!(of(Dialect::Gemini, &[("generationConfig", gemini)]), Some(500_000));
    }

    #[test]
    fn a_conversation_is_a_string_or_an_object_with_an_id() {
        let of = |value| session(Dialect::Responses, "conversation", value);
        assert_eq!(of(r#""conv_1""#).as_deref(), Some("conv_1"));
        assert_eq!(of(r#"{"id":"conv_2"}"#).as_deref(), Some("conv_2"));
        assert_eq!((of("null"), of("{}"), of(r#""  ""#)), (None, None, None));
    }

    #[test]
    fn only_the_line_of_the_billing_header_signs_a_body() {
        assert!(is_signed(
            r#"[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1; cch=0a1b2;"}]"#
        ));
        assert!(!is_signed(r#""x-anthropic-billing-header: cc_version=2.1;\nthe cch=1 of another line""#));
        assert!(!is_signed(r#""what is cch=?""#));
    }

    #[test]
    fn many_headers_take_no_longer_than_their_length() {
        let headers = "x-anthropic-billing-header: ".repeat(200_000);
        assert!(!is_signed(&headers));
    }

    #[test]
    fn an_id_that_nobody_could_mean_is_none() {
        let long = format!("{{\"session_id\":\"{}\"}}", "x".repeat(MAX_ID + 1));
        assert_eq!(session(Dialect::Chat, "metadata", &long), None);
        assert_eq!(session(Dialect::Chat, "metadata", r#"{"session_id":""}"#), None);
    }
}
