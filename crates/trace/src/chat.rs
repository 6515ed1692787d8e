//! `openai` and `anthropic`: lists of messages, and those of Gemini.

use std::borrow::Cow;

use loopbreaker::Step;
use loopbreaker_dialect::Written;
use loopbreaker_dialect::conversation::{Conversation, Event};
use loopbreaker_dialect::json::words;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::output::Output;
use crate::record::Record;
use crate::runs::Runs;
use crate::{Problem, Reader};

/// Reads `[…]` and `{"messages": […]}` (also `input` and `output` of the Responses API, and `contents` of Gemini), each
/// of which is a run, and single messages, which are all parts of one run.
pub(crate) struct Chat {
    single: Runs<()>,
}

impl Chat {
    pub(crate) fn new() -> Self {
        Self { single: Runs::new() }
    }
}

impl Reader for Chat {
    fn record(&mut self, record: Record<'_>, out: &mut Output<'_>) -> Result<(), Problem> {
        if record.is_array() {
            let id = out.id_of(record);
            return whole_run(&id, out, |take| list(record, record.text, take));
        }
        let exchange: Exchange<'_> = record.parse()?;
        if exchange.is_message() {
            return self.single.walk(out.name(), out, |take| message(record, &record.parse()?, take));
        }
        let parts = [exchange.messages, exchange.contents, exchange.input, exchange.output];
        if parts.iter().all(Option::is_none) {
            return Err(
                record.unusable("there are no messages in it; give it a `messages` list, or remove it")
            );
        }
        let id = exchange.session_id.or(exchange.conversation_id).or(exchange.id);
        let id = id.map_or_else(|| Cow::Owned(out.id_of(record)), words);
        whole_run(&id, out, |take| {
            for part in parts.into_iter().flatten() {
                if part.get().starts_with('"') {
                    take(Event::Heard { text: words(part), time: None });
                } else {
                    list(record, part.get(), take)?;
                }
            }
            Ok(())
        })
    }

    fn finish(&mut self, out: &mut Output<'_>) {
        self.single.end_all(out);
    }
}

/// Passes on a run that is all of a record. It is gone through twice, since half a run would be judged as if it were
/// all of it.
pub(crate) fn whole_run<'a>(
    id: &str,
    out: &mut Output<'_>,
    mut walk: impl FnMut(&mut dyn FnMut(Event<'a>)) -> Result<(), Problem>,
) -> Result<(), Problem> {
    walk(&mut |_| ())?;
    let name = out.begin(id);
    let mut conversation = Conversation::default();
    walk(&mut |event| conversation.take(event, &mut |step: &Step<'_>| out.step(&name, step)))?;
    conversation.finish(&mut |step: &Step<'_>| out.step(&name, step));
    out.end(&name);
    Ok(())
}

fn list<'a>(record: Record<'a>, part: &'a str, take: &mut dyn FnMut(Event<'a>)) -> Result<(), Problem> {
    record.each(part, |written: Written<'a>| message(record, &written, take))
}

fn message<'a>(
    record: Record<'a>,
    written: &Written<'a>,
    take: &mut dyn FnMut(Event<'a>),
) -> Result<(), Problem> {
    loopbreaker_dialect::events(written, take).map_err(|malformed| record.malformed(&malformed))
}

#[derive(Deserialize)]
struct Exchange<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow)]
    conversation_id: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    contents: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(rename = "type", borrow)]
    kind: Option<&'a RawValue>,
}

impl Exchange<'_> {
    fn is_message(&self) -> bool {
        self.messages.is_none() && (self.role.is_some() || self.kind.is_some())
    }
}
