//! An agent's side of a conversation, in the dialect of its provider.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use loopbreaker_dialect::{Answer, Dialect};
use serde_json::Value;

use super::script::{Agent, ScriptStep, Voice};

/// What an agent sends with its next request.
#[derive(Debug)]
pub(super) struct Transcript {
    voice: Voice,
    /// All messages so far; with Responses only those that the provider does not have.
    messages: Vec<Value>,
    /// The answer that the next request goes on from, where the provider keeps the history.
    previous: Option<String>,
}

impl Transcript {
    /// A conversation that begins with the task.
    pub(super) fn new(agent: &Agent) -> Self {
        let opening = match agent.voice.dialect {
            Dialect::Chat | Dialect::Anthropic | Dialect::Responses => chat::user(agent.task),
            Dialect::Gemini => gemini::user(agent.task),
        };
        Self { voice: agent.voice, messages: vec![opening], previous: None }
    }

    pub(super) fn path(&self) -> String {
        match self.voice.dialect {
            Dialect::Chat => "/v1/chat/completions".into(),
            Dialect::Responses => "/v1/responses".into(),
            Dialect::Anthropic => "/v1/messages".into(),
            Dialect::Gemini => format!("/v1beta/models/{}:generateContent", self.voice.model),
        }
    }

    pub(super) fn body(&self) -> String {
        let body = match self.voice.dialect {
            Dialect::Chat => chat::body(self.voice, &self.messages),
            Dialect::Responses => responses::body(self.voice.model, &self.messages, self.previous.as_deref()),
            Dialect::Anthropic => anthropic::body(self.voice.model, &self.messages),
            Dialect::Gemini => gemini::body(&self.messages),
        };
        body.to_string()
    }

    /// Takes in what the model said and what its tool gave back.
    pub(super) fn take(&mut self, said: &Answer, ran: &ScriptStep) {
        match self.voice.dialect {
            Dialect::Chat => self.messages.extend(chat::round(said, ran)),
            Dialect::Anthropic => self.messages.extend(anthropic::round(said, ran)),
            Dialect::Gemini => self.messages.extend(gemini::round(said, ran)),
            Dialect::Responses => {
                self.messages = responses::outputs(said, ran);
                self.previous.clone_from(&said.id);
            }
        }
    }
}
