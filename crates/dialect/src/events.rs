//! What happens in a message, as events of a conversation.

use std::borrow::Cow;

use loopbreaker::{Status, Timestamp};

use crate::content::{self, Block, Shown};
use crate::conversation::{Answer, CallName, Event, Held, Outcome};
use crate::json::{Json, string, words};
use crate::written::{Args, Form, Malformed, Part, Written, each_part_of_block};

/// The events of one message.
pub fn events<'a>(written: &Written<'a>, take: &mut dyn FnMut(Event<'a>)) -> Result<(), Malformed<'a>> {
    let form = written.form();
    let mut listener = Listener::of(written, form, take);
    written.each_part(form, &mut |part| listener.hear(part, take))?;
    listener.finish(None, take);
    Ok(())
}

/// The events of what a user message holds: results first, then the words beside them.
pub fn heard<'a>(
    content: impl Into<Json<'a>>,
    time: Option<Timestamp>,
    take: &mut dyn FnMut(Event<'a>),
) -> Result<(), Malformed<'a>> {
    let mut listener = Listener { form: Form::Outside, said: Vec::new() };
    content::each(content, &mut |block| {
        each_part_of_block(block, &mut |part| listener.hear(part, take));
    })?;
    listener.finish(time, take);
    Ok(())
}

/// The events of one block of an answer.
pub fn answer_block<'a>(block: Block<'a>, take: &mut dyn FnMut(Event<'a>)) {
    let mut listener = Listener { form: Form::AnswerPart, said: Vec::new() };
    each_part_of_block(block, &mut |part| listener.hear(part, take));
}

/// Turns the parts of one message into events.
pub(crate) struct Listener<'a> {
    form: Form,
    /// The words from outside so far.
    said: Vec<Cow<'a, str>>,
}

impl<'a> Listener<'a> {
    /// Listens to a message. A message is all of an answer, items of the Responses API are parts of one.
    pub(crate) fn of(written: &Written<'a>, form: Form, take: &mut dyn FnMut(Event<'a>)) -> Self {
        if form == Form::Answer {
            let agent = written.name().or_else(|| written.role().filter(|role| !is_own_role(role)));
            take(Event::Answer(Answer { agent, ..Answer::default() }));
        }
        Self { form, said: Vec::new() }
    }

    pub(crate) fn hear(&mut self, part: Part<'a>, take: &mut dyn FnMut(Event<'a>)) {
        match part {
            // Instructions are no part of what happens.
            _ if self.form == Form::System => {}
            Part::Said(text) if self.form == Form::Outside => self.said.extend(string(text)),
            Part::Shown(shown) if self.form == Form::Outside => self.said.push(Cow::Owned(shown.words())),
            Part::Shown(_) => {}
            Part::Said(text) => {
                if let Some(text) = string(text) {
                    take(Event::Said(text));
                }
            }
            Part::Thought(thought) => take(Event::Reasoned(content::text(thought))),
            Part::Called(call) => {
                let step = Held {
                    tool: Some(call.tool),
                    args: call.args.map(Args::into_words),
                    result: call.result.map(words),
                    status: call.failed.then_some(Status::Failure),
                    ..Held::default()
                };
                take(Event::Called { waits_for: call.waits_for, step });
            }
            Part::Returned(returned) => {
                let read = |result| if returned.is_data { words(result) } else { content::text(result) };
                let mut result = returned.result.map(read).unwrap_or_default();
                if let Some(shown) = returned.shown {
                    let written = Cow::Borrowed(shown.get());
                    let shown = Shown { kind: Cow::Borrowed("parts"), written };
                    result = content::joined(vec![result, Cow::Owned(shown.words())]);
                }
                let result = Some(result);
                let status = returned.failed.then_some(Status::Failure);
                take(Event::Returned {
                    call: CallName { id: returned.id.map(words), tool: returned.tool.and_then(string) },
                    outcome: Outcome { result, status, ..Outcome::default() },
                });
            }
            Part::Compacted => take(Event::Compacted { time: None }),
        }
    }

    /// What was said from outside comes behind the results.
    pub(crate) fn finish(self, time: Option<Timestamp>, take: &mut dyn FnMut(Event<'a>)) {
        let text = content::joined(self.said);
        if !text.trim_ascii().is_empty() {
            take(Event::Heard { text, time });
        }
    }
}

/// Any role that is none of the APIs' own is the name of an agent.
fn is_own_role(role: &str) -> bool {
    matches!(role, "assistant" | "model" | "ai")
}
