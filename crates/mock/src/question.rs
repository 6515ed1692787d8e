//! What is read of a request: as little as the answer needs, and anything else may stand beside it.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::GzDecoder;
use hyper::HeaderMap;
use hyper::header::CONTENT_ENCODING;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::provider::Dialect;

/// A question to the model, in any dialect.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Question<'a> {
    pub(crate) model: String,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    contents: Option<&'a RawValue>,
    pub(crate) previous_response_id: Option<String>,
    // The rest is what a Responses answer repeats of its request.
    #[serde(borrow)]
    pub(crate) instructions: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) max_output_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) parallel_tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) prompt_cache_key: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) store: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) temperature: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) tool_choice: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) tools: Option<&'a RawValue>,
}

/// What a chat client wants of its stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: Option<bool>,
    include_obfuscation: Option<bool>,
}

/// How an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// In one piece.
    Whole,
    /// As server-sent events.
    Events,
    /// As a JSON array whose elements come one by one: Gemini without `alt=sse`.
    Array,
}

impl<'a> Question<'a> {
    /// Reads a request's body; the error is a sentence for the client.
    pub(crate) fn read(dialect: Dialect, path: &str, body: &'a [u8]) -> Result<Self, String> {
        let mut question: Self = serde_json::from_slice(body)
            .map_err(|error| format!("We could not parse the JSON body of your request: {error}"))?;
        let (name, transcript) = match dialect {
            Dialect::Chat | Dialect::Anthropic => ("messages", question.messages),
            Dialect::Responses => ("input", question.input),
            Dialect::Gemini { .. } => ("contents", question.contents),
        };
        if transcript.is_none() {
            return Err(format!("Missing required parameter: '{name}'."));
        }
        if let Dialect::Gemini { .. } = dialect {
            model_in(path).clone_into(&mut question.model);
        }
        if question.model.is_empty() {
            return Err("Missing required parameter: 'model'.".to_owned());
        }
        Ok(question)
    }

    /// How the client wants its answer.
    pub(crate) fn delivery(&self, dialect: Dialect, query: Option<&str>) -> Delivery {
        match dialect {
            Dialect::Gemini { streamed: false } => Delivery::Whole,
            Dialect::Gemini { streamed: true } => {
                let is_sse = query.is_some_and(|query| query.split('&').any(|pair| pair == "alt=sse"));
                if is_sse { Delivery::Events } else { Delivery::Array }
            }
            _ if self.stream == Some(true) => Delivery::Events,
            _ => Delivery::Whole,
        }
    }

    /// Whether a chat client asked for the usage at the end of its stream.
    pub(crate) fn wants_usage(&self) -> bool {
        self.stream_options.as_ref().is_some_and(|options| options.include_usage == Some(true))
    }

    /// Whether the chunks of a chat stream are padded, which is so unless the client asked for none of it.
    pub(crate) fn wants_padding(&self) -> bool {
        self.stream_options.as_ref().is_none_or(|options| options.include_obfuscation != Some(false))
    }
}

/// `gemini-x` of `/v1beta/models/gemini-x:generateContent`.
fn model_in(path: &str) -> &str {
    let name = path.rsplit_once("/models/").map_or("", |(_, name)| name);
    name.split_once(':').map_or(name, |(model, _)| model)
}

/// The body as it was before it was packed; what cannot be unpacked stays as it is.
pub(crate) fn unpacked<'b>(headers: &HeaderMap, body: &'b [u8]) -> Cow<'b, [u8]> {
    if headers.get(CONTENT_ENCODING).is_none_or(|encoding| encoding != "gzip") {
        return Cow::Borrowed(body);
    }
    let mut plain = Vec::new();
    match GzDecoder::new(body).take(MAX_UNPACKED_BYTES).read_to_end(&mut plain) {
        Ok(_) => Cow::Owned(plain),
        Err(_) => Cow::Borrowed(body),
    }
}

/// More than this is not unpacked of one body.
const MAX_UNPACKED_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::{Delivery, Question};
    use crate::provider::Dialect;

    #[test]
    fn fields_that_nobody_knows_are_accepted() {
        let body = br#"{"model":"m","brand_new":{"x":[1]},"messages":[],"stream":null}"#;
        let question = Question::read(Dialect::Chat, "/v1/chat/completions", body).unwrap();
        assert_eq!(question.delivery(Dialect::Chat, None), Delivery::Whole);
        assert!(!question.wants_usage() && question.wants_padding());
    }

    #[test]
    fn a_question_without_its_transcript_or_model_is_refused_by_name() {
        let problem = |body: &str| Question::read(Dialect::Responses, "", body.as_bytes()).unwrap_err();
        assert_eq!(problem(r#"{"model":"m"}"#), "Missing required parameter: 'input'.");
        assert_eq!(problem(r#"{"input":"x"}"#), "Missing required parameter: 'model'.");
        assert!(problem("{").starts_with("We could not parse"));
    }

    #[test]
    fn gemini_says_model_and_delivery_in_the_url() {
        let dialect = Dialect::Gemini { streamed: true };
        let path = "/v1beta/models/gemini-2.5-flash:streamGenerateContent";
        let question = Question::read(dialect, path, br#"{"contents":[]}"#).unwrap();
        assert_eq!(question.model, "gemini-2.5-flash");
        assert_eq!(question.delivery(dialect, Some("a=b&alt=sse")), Delivery::Events);
        assert_eq!(question.delivery(dialect, None), Delivery::Array);
    }
}
