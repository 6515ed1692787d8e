//! Reading an answer.

pub(crate) mod anthropic;
pub(crate) mod chat;
pub(crate) mod gemini;
pub(crate) mod responses;
mod scribe;

pub(crate) use scribe::Scribe;

use std::borrow::Cow;

use loopbreaker::Status;

use crate::typed::typed_call;
use crate::{Dialect, Event, Held, Usage};

/// What an answer says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// What it consumed, when it says so.
    pub usage: Option<Usage>,
    /// The provider's id of it, by which the next request may refer to it.
    pub id: Option<String>,
    /// The model that gave it.
    pub model: Option<String>,
    /// The calls that the client is to run.
    pub calls: Vec<Call>,
    /// The calls of tools that ran at the provider while it answered (Responses).
    pub ran: Vec<Ran>,
    /// How many bytes of words, thoughts and arguments there were in all, for an estimate where no usage came.
    pub text_bytes: u64,
    /// The beginning of what was said, at most 64 KiB of it.
    pub text: String,
    /// Why it ended, in the provider's words.
    pub finish: Option<String>,
}

/// A call that a model asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// The id that its result will name; empty where the provider gives none.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The arguments as JSON text.
    pub args: String,
}

impl Answer {
    /// The call that was typed in its words, where it has no other: what agents without an API for tools live by. Whether it is
    /// run is told by the next request.
    ///
    /// ```
    /// use loopbreaker_dialect::Answer;
    /// let answer = Answer { text: "I look.\n```bash\nls\n```".to_owned(), ..Answer::default() };
    /// assert_eq!(answer.typed().map(|call| call.args).as_deref(), Some(r#"{"command":"ls"}"#));
    /// ```
    pub fn typed(&self) -> Option<Call> {
        let typed = typed_call(&self.text).filter(|_| self.calls.is_empty())?;
        Some(Call { id: String::new(), tool: typed.tool, args: typed.args })
    }
}

impl Call {
    /// The call as an event, for a conversation in which it came with an earlier answer and only its result comes with
    /// the request.
    ///
    /// ```
    /// use loopbreaker_dialect::{Call, Conversation, Dialect, read_request};
    ///
    /// let known = Call { id: "call_1".into(), tool: "ls".into(), args: "{}".into() };
    /// let body = br#"{"previous_response_id":"resp_1","input":[
    ///     {"type":"function_call_output","call_id":"call_1","output":"a.txt"}]}"#;
    /// let mut conversation = Conversation::at_round(3);
    /// let mut steps = Vec::new();
    /// conversation.take(known.event(), &mut |_| ());
    /// read_request(Dialect::Responses, body, None, &mut |message| {
    ///     message.events(&mut |event| {
    ///         conversation.take(event.into_owned(), &mut |step| {
    ///             steps.push(format!("{:?} {:?} {:?}", step.round, step.tool, step.result));
    ///         });
    ///     });
    /// })?;
    /// assert_eq!(steps, [r#"Some(3) Some("ls") Some("a.txt")"#]);
    /// # Ok::<(), loopbreaker_dialect::Unreadable>(())
    /// ```
    pub fn event(&self) -> Event<'_> {
        Event::Called {
            waits_for: Some(Cow::Borrowed(&self.id)),
            step: Held {
                tool: Some(Cow::Borrowed(&self.tool)),
                args: Some(Cow::Borrowed(&self.args)),
                ..Held::default()
            },
        }
    }
}

/// A call of a tool that ran at the provider, and what came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ran {
    /// The tool.
    pub tool: String,
    /// The arguments as JSON text, or what else the tool was given.
    pub args: Option<String>,
    /// What it returned, as far as the answer says so; of a long result the beginning and a hash of the rest.
    pub result: Option<String>,
    /// Whether it is known that it failed.
    pub failed: bool,
}

impl Ran {
    /// The call as an event, as it would be read from a request that brings it along.
    ///
    /// ```
    /// use loopbreaker_dialect::{Conversation, Ran};
    /// let ran = Ran { tool: "fetch".into(), args: Some("{}".into()), result: Some("a page".into()), failed: false };
    /// let mut steps = Vec::new();
    /// Conversation::default().take(ran.event(), &mut |step| steps.push(format!("{:?} {:?}", step.tool, step.result)));
    /// assert_eq!(steps, [r#"Some("fetch") Some("a page")"#]);
    /// ```
    pub fn event(&self) -> Event<'_> {
        Event::Called {
            waits_for: None,
            step: Held {
                tool: Some(Cow::Borrowed(&self.tool)),
                args: self.args.as_deref().map(Cow::Borrowed),
                result: self.result.as_deref().map(Cow::Borrowed),
                status: self.failed.then_some(Status::Failure),
                ..Held::default()
            },
        }
    }
}

/// Reads an answer that came whole; `None` when it is none, but an error or no JSON.
///
/// ```
/// use loopbreaker_dialect::{Dialect, read_answer};
/// let body = br#"{"id":"msg_1","content":[{"type":"tool_use","id":"t1","name":"ls","input":{"path":"."}}],
///     "stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":4}}"#;
/// let answer = read_answer(Dialect::Anthropic, body).expect("an answer");
/// assert_eq!((answer.calls[0].tool.as_str(), answer.calls[0].args.as_str()), ("ls", r#"{"path":"."}"#));
/// ```
pub fn read_answer(dialect: Dialect, body: &[u8]) -> Option<Answer> {
    let body = str::from_utf8(body).ok()?;
    let mut scribe = Scribe::default();
    match dialect {
        Dialect::Chat => chat::read_whole(body, &mut scribe),
        Dialect::Responses => responses::read_whole(body, &mut scribe),
        Dialect::Anthropic => anthropic::read_whole(body, &mut scribe),
        Dialect::Gemini => gemini::read_whole(body, &mut scribe),
    }?;
    Some(scribe.finish())
}
