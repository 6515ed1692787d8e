//! What a model was given and gave out, as its span tells it: `[{"role", "parts": [{"type", …}]}]`.
//!
//! Where tools have no spans of their own, their calls are told only here: asked for in one answer, and answered in what
//! the model is given next.

use std::borrow::Cow;
use std::collections::HashMap;

use loopbreaker_dialect::content;
use loopbreaker_dialect::conversation::{CallName, Event, Held, Outcome};
use loopbreaker_dialect::json::{Text, hash, string, words};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The parts of messages that are read.
#[derive(Debug, Default)]
pub(super) struct Messages {
    texts: Vec<String>,
    calls: Vec<Call>,
    /// What calls were answered with.
    responses: Vec<Response>,
    /// How many responses stand before the last thing that the model said itself: these are of earlier rounds.
    of_before: usize,
}

#[derive(Debug)]
struct Call {
    id: Option<String>,
    tool: String,
    args: Option<String>,
}

#[derive(Debug)]
struct Response {
    id: Option<String>,
    result: Option<String>,
}

impl Messages {
    /// Messages that cannot be read say nothing: a span stands for itself.
    pub(super) fn read(text: Option<&str>) -> Self {
        #[derive(Deserialize)]
        struct Message<'a> {
            #[serde(default, borrow)]
            role: Option<Text<'a>>,
            #[serde(borrow)]
            parts: Vec<Part<'a>>,
        }
        #[derive(Deserialize)]
        struct Part<'a> {
            #[serde(rename = "type", borrow)]
            kind: Option<Text<'a>>,
            #[serde(borrow)]
            id: Option<&'a RawValue>,
            #[serde(borrow)]
            name: Option<Text<'a>>,
            #[serde(borrow)]
            content: Option<&'a RawValue>,
            #[serde(borrow)]
            arguments: Option<&'a RawValue>,
            #[serde(alias = "result", borrow)]
            response: Option<&'a RawValue>,
        }
        let mut read = Self::default();
        let messages = text.and_then(|text| serde_json::from_str::<Vec<Message<'_>>>(text).ok());
        for message in messages.into_iter().flatten() {
            if message.role.is_some_and(|role| role.0 == "assistant") {
                read.of_before = read.responses.len();
            }
            for part in message.parts {
                let id = part.id.map(words).filter(|id| id != "null").map(Cow::into_owned);
                match part.kind.as_ref().map(|kind| &*kind.0) {
                    Some("text") => read.texts.extend(part.content.and_then(string).map(Cow::into_owned)),
                    Some("tool_call") => {
                        let tool = part.name.map_or_else(|| "unknown".to_owned(), |name| name.0.into_owned());
                        let args = part.arguments.map(|args| words(args).into_owned());
                        read.calls.push(Call { id, tool, args });
                    }
                    Some("tool_call_response") => {
                        let result = part.response.map(|result| words(result).into_owned());
                        read.responses.push(Response { id, result });
                    }
                    _ => {}
                }
            }
        }
        read
    }
}

/// Calls of one run that have spans of their own within one export.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// The tools of those that are named by an id.
    named: HashMap<u64, u64>,
    /// How many of each tool are not.
    unnamed: HashMap<u64, usize>,
}

impl Shown {
    pub(super) fn add(&mut self, id: Option<&str>, tool: &str) {
        let tool = hash(tool.as_bytes());
        match id {
            Some(id) => drop(self.named.insert(hash(id.as_bytes()), tool)),
            None => *self.unnamed.entry(tool).or_default() += 1,
        }
    }

    /// Whether a call has a span; each span is of one call.
    fn take(&mut self, call: &Call) -> bool {
        let tool = hash(call.tool.as_bytes());
        let of_tool = || self.named.iter().find(|(_, of)| **of == tool).map(|(id, _)| *id);
        let id = call.id.as_ref().map(|id| hash(id.as_bytes())).or_else(of_tool);
        let named = id.is_some_and(|id| self.named.remove(&id).is_some());
        named || self.unnamed.get_mut(&tool).filter(|left| **left > 0).map(|left| *left -= 1).is_some()
    }
}

/// What the last answer of a run asked for and has not got yet.
#[derive(Debug, Default)]
pub(super) struct Asked {
    open: Vec<Open>,
    /// When the span of that answer ended.
    until: u64,
    /// Names calls, since models name theirs alike again and again.
    next: u64,
}

#[derive(Debug)]
struct Open {
    name: String,
    id: Option<String>,
    tool: String,
}

impl Asked {
    /// More calls of one answer than this are not asked for by anybody.
    const MAX: usize = 64;

    /// Whether an answer is told by a second span, that of the framework around that of the library or the other way
    /// round; the first of them counts.
    pub(super) fn is_told_twice(&mut self, said: &Messages, (start, end): (u64, u64)) -> bool {
        let is_open = |call: &Call| call.id.is_some() && self.open.iter().any(|open| open.id == call.id);
        let again = start < self.until && !said.calls.is_empty() && said.calls.iter().all(is_open);
        self.until = if again { self.until.max(end) } else { end };
        again
    }

    /// What came back, as the model is given it for its next answer.
    pub(super) fn returned(&mut self, heard: &Messages) -> Vec<Event<'static>> {
        // The history is told again and again, so a response is of the newest call of its name.
        let by_id =
            |id: &String| heard.responses.iter().rev().find(|response| response.id.as_ref() == Some(id));
        let mut unnamed = heard.responses[heard.of_before..].iter().filter(|response| response.id.is_none());
        let mut events = Vec::new();
        for open in self.open.drain(..) {
            let response = match &open.id {
                Some(id) => by_id(id),
                None => unnamed.next(),
            };
            let Some(response) = response else { continue };
            let call = CallName { id: Some(Cow::Owned(open.name)), tool: None };
            let result = response.result.clone().map(Cow::Owned);
            events.push(Event::Returned { call, outcome: Outcome { result, ..Outcome::default() } });
        }
        events
    }

    /// A call that the answer asked for, and that now has a span of its own.
    pub(super) fn take(&mut self, id: Option<&str>, tool: &str) -> Option<String> {
        let is_it = |open: &Open| match (id, &open.id) {
            (Some(id), Some(of)) => id == of,
            _ => open.tool == tool,
        };
        let at = self.open.iter().position(is_it)?;
        Some(self.open.remove(at).name)
    }

    /// What an answer says and asks for, but for calls that have spans of their own.
    pub(super) fn events(&mut self, said: Messages, shown: &mut Shown) -> Vec<Event<'static>> {
        let mut events = Vec::new();
        if !said.texts.is_empty() {
            let texts: Vec<Cow<'_, str>> = said.texts.into_iter().map(Cow::Owned).collect();
            events.push(Event::Said(Cow::Owned(content::joined(texts).into_owned())));
        }
        for call in said.calls.into_iter().take(Self::MAX) {
            if shown.take(&call) {
                continue;
            }
            let name = self.next.to_string();
            self.next += 1;
            let (tool, args) = (Some(Cow::Owned(call.tool.clone())), call.args.map(Cow::Owned));
            let step = Held { tool, args, ..Held::default() };
            events.push(Event::Called { waits_for: Some(Cow::Owned(name.clone())), step });
            self.open.push(Open { name, id: call.id, tool: call.tool });
        }
        events
    }
}
