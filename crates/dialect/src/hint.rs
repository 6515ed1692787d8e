//! The hint: a text that tells the model that it goes round in circles, put into a request.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use std::ops::Range;

use crate::splice::{List, Object, Splice};
use crate::{Dialect, Event, Message, Speaker, read_request};

/// Where a hint goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Placement {
    /// A system text of its own before all others.
    Prepend,
    /// Into the first system text, where there is one.
    Extend,
    /// Behind everything else, which keeps the provider's prompt cache.
    Append,
}

/// A text for the model, and where it goes.
#[derive(Debug, Clone, Copy)]
pub struct Hint<'t> {
    /// The text.
    pub text: &'t str,
    /// Where it goes.
    pub placement: Placement,
    /// The role of a message that is appended to a chat or to input items: `system` where the provider takes one there,
    /// else `user`.
    pub append_role: &'t str,
}

/// The body with the hint. All other bytes stay as they are.
///
/// `None` when the hint may not stand there: the body cannot be read or is signed, its messages are missing, a call has
/// no result yet (append), or the system text is cached at the provider (Gemini, prepend and extend).
///
/// ```
/// use loopbreaker_dialect::{Dialect, Hint, Placement, with_hint};
/// let hint = Hint { text: "Try something else.", placement: Placement::Prepend, append_role: "user" };
/// let body = br#"{"system":"Be brief.","messages":[{"role":"user","content":"hi"}]}"#;
/// let edited = with_hint(Dialect::Anthropic, body, &hint).expect("a system text can be extended");
/// assert!(edited.starts_with(br#"{"system":"Try something else.\n\nBe brief.","#));
/// ```
pub fn with_hint(dialect: Dialect, body: &[u8], hint: &Hint<'_>) -> Option<Vec<u8>> {
    let request = Request::read(dialect, body)?;
    if hint.placement == Placement::Append && request.has_open_calls {
        return None;
    }
    let changes = match dialect {
        Dialect::Chat => chat::changes(&request, hint),
        Dialect::Responses => responses::changes(&request, hint),
        Dialect::Anthropic => anthropic::changes(&request, hint),
        Dialect::Gemini => gemini::changes(&request, hint),
    }?;
    Splice::apply(&changes, request.body)
}

/// A request that may be edited.
struct Request<'a> {
    body: &'a str,
    /// Who speaks in each message, and where it stands.
    messages: Vec<(Speaker, Range<usize>)>,
    has_open_calls: bool,
    cached_content: bool,
}

impl<'a> Request<'a> {
    fn read(dialect: Dialect, body: &'a [u8]) -> Option<Self> {
        let mut messages = Vec::new();
        let mut open = OpenCalls::default();
        let reading = read_request(dialect, body, None, &mut |message| {
            open.pass(&message);
            messages.push((message.speaker, message.span));
        });
        let facts = reading.ok()?.facts;
        let request = Self {
            body: str::from_utf8(body).ok()?,
            messages,
            has_open_calls: open.any(),
            cached_content: facts.cached_content,
        };
        (!facts.signed).then_some(request)
    }

    fn top(&self, names: &[&str]) -> Option<Object<'a>> {
        Object::at(self.body, 0..self.body.len(), names)
    }

    fn object(&self, place: &Range<usize>, names: &[&str]) -> Option<Object<'a>> {
        Object::at(self.body, place.clone(), names)
    }

    fn list(&self, place: &Range<usize>) -> Option<List> {
        List::at(self.body, place.clone())
    }

    fn text(&self, place: &Range<usize>) -> &'a str {
        self.body.get(place.clone()).unwrap_or_default()
    }

    fn is_string(&self, place: &Range<usize>) -> bool {
        self.text(place).starts_with('"')
    }

    /// The string that the member of this object is, if it is one.
    fn string_in(&self, object: &Range<usize>, name: &str) -> Option<Range<usize>> {
        self.object(object, &[name])?.get(name).filter(|place| self.is_string(place))
    }
}

/// The calls whose results are still to come.
#[derive(Default)]
struct OpenCalls {
    /// Their ids and tools.
    calls: Vec<(String, String)>,
    /// Whether there were more than can be told apart.
    too_many: bool,
}

const MAX_OPEN_CALLS: usize = 256;

impl OpenCalls {
    fn pass(&mut self, message: &Message<'_>) {
        message.events(&mut |event| match event {
            // Whatever was open before a new answer will not be answered any more.
            Event::Answer(_) => *self = Self::default(),
            Event::Called { waits_for: Some(_), .. } if self.calls.len() == MAX_OPEN_CALLS => {
                self.too_many = true;
            }
            Event::Called { waits_for: Some(id), step } => {
                self.calls.push((id.into_owned(), step.tool.unwrap_or_default().into_owned()));
            }
            Event::Returned { call, .. } => {
                let answered = self.calls.iter().position(|(id, tool)| match (&call.id, &call.tool) {
                    (Some(own), _) => own == id,
                    (None, Some(own)) => own == tool,
                    (None, None) => true,
                });
                answered.map(|at| self.calls.remove(at));
            }
            _ => {}
        });
    }

    fn any(&self) -> bool {
        self.too_many || !self.calls.is_empty()
    }
}
