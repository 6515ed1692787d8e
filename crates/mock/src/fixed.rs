//! Answers that are made once: what a benchmark needs of a provider is that it costs nothing.

use std::sync::Arc;

use bytes::Bytes;
use memchr::memmem;

use crate::answer::Answer;
use crate::provider::Dialect;
use crate::question::Question;
use crate::turn::Turn;
use crate::{anthropic, chat, gemini, responses};

/// One ready answer per dialect, whole and as a stream of about fifty events.
#[derive(Debug)]
pub(crate) struct Fixed {
    chat: Ready,
    responses: Ready,
    anthropic: Ready,
    gemini: Ready,
}

#[derive(Debug)]
struct Ready {
    whole: Arc<[Bytes]>,
    events: Arc<[Bytes]>,
}

impl Fixed {
    pub(crate) fn new() -> Self {
        // With the first, the last and the closing event, a chat stream of this many words has fifty events.
        let text: Vec<String> = (10..57).map(|number| format!("measured{number}")).collect();
        let answer = Answer::new(&Turn::text(text.join(" ")), 1, "mock-fixed", 2_000);
        let question = Question::default();
        let ready = |whole: Bytes, events: Vec<Bytes>| Ready { whole: [whole].into(), events: events.into() };
        Self {
            chat: ready(chat::whole(&answer), chat::events(&answer, &question)),
            responses: ready(responses::whole(&answer, &question), responses::events(&answer, &question)),
            anthropic: ready(anthropic::whole(&answer), anthropic::events(&answer)),
            gemini: ready(gemini::whole(&answer), gemini::events(&answer)),
        }
    }

    /// The answer to a request, and whether it is a stream. The body is searched, not parsed.
    pub(crate) fn answer(&self, dialect: Dialect, body: &[u8]) -> (Arc<[Bytes]>, bool) {
        let ready = match dialect {
            Dialect::Chat => &self.chat,
            Dialect::Responses => &self.responses,
            Dialect::Anthropic => &self.anthropic,
            Dialect::Gemini { streamed } => {
                let chunks = if streamed { &self.gemini.events } else { &self.gemini.whole };
                return (Arc::clone(chunks), streamed);
            }
        };
        let streamed = ["\"stream\":true", "\"stream\": true"]
            .iter()
            .any(|asked| memmem::find(body, asked.as_bytes()).is_some());
        (Arc::clone(if streamed { &ready.events } else { &ready.whole }), streamed)
    }
}

#[cfg(test)]
mod tests {
    use super::Fixed;
    use crate::provider::Dialect;

    #[test]
    fn a_chat_stream_has_fifty_events_of_a_usual_size() {
        let (chunks, streamed) = Fixed::new().answer(Dialect::Chat, br#"{"stream": true}"#);
        assert!(streamed);
        assert_eq!(chunks.len(), 50);
        let bytes: usize = chunks.iter().map(bytes::Bytes::len).sum();
        assert!((12_000..16_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn a_whole_answer_is_about_a_kilobyte() {
        let (chunks, streamed) = Fixed::new().answer(Dialect::Chat, b"{}");
        assert!(!streamed);
        assert!((1_000..1_600).contains(&chunks[0].len()), "{}", chunks[0].len());
    }
}
