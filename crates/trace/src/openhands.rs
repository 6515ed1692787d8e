//! `openhands`: lists of events, in which observations name the action that caused them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use loopbreaker::{Status, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chat::whole_run;
use crate::output::Output;
use crate::record::Record;
use crate::runs::Runs;
use crate::{Problem, Reader, time};
use loopbreaker_dialect::conversation::{Answer, CallName, Event, Held, Outcome};
use loopbreaker_dialect::json::{Text, string, words};

/// Reads `[…]` and `{"history": […]}`, each of which is a run, and single events, which are all parts of one run.
pub(crate) struct OpenHands {
    single: Runs<()>,
}

impl OpenHands {
    pub(crate) fn new() -> Self {
        Self { single: Runs::new() }
    }
}

impl Reader for OpenHands {
    fn record(&mut self, record: Record<'_>, out: &mut Output<'_>) -> Result<(), Problem> {
        if record.is_array() {
            let id = out.id_of(record);
            return whole_run(&id, out, |take| list(record, record.text, take));
        }
        let document: Document<'_> = record.parse()?;
        if let Some(history) = document.history {
            let id = document.instance_id.map_or_else(|| Cow::Owned(out.id_of(record)), words);
            return whole_run(&id, out, |take| list(record, history.get(), take));
        }
        let happening: Happening<'_> = record.parse()?;
        self.single.walk(out.name(), out, |take| happening.events(record, take))
    }

    fn finish(&mut self, out: &mut Output<'_>) {
        self.single.end_all(out);
    }
}

fn list<'a>(record: Record<'a>, part: &'a str, take: &mut dyn FnMut(Event<'a>)) -> Result<(), Problem> {
    record.each(part, |element: &'a RawValue| {
        // Old recordings keep an action and its observation as a pair.
        if element.get().starts_with('[') {
            return record.each(element.get(), |one: Happening<'a>| one.events(record, take));
        }
        record.parse_part::<Happening<'a>>(element)?.events(record, take)
    })
}

#[derive(Deserialize)]
#[serde(expecting = "an event, or a document with a `history`")]
struct Document<'a> {
    #[serde(borrow)]
    instance_id: Option<&'a RawValue>,
    #[serde(borrow)]
    history: Option<&'a RawValue>,
}

/// What `OpenHands` calls an event: an action, or the observation that it caused.
#[derive(Deserialize)]
#[serde(expecting = "an event")]
struct Happening<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    source: Option<Text<'a>>,
    #[serde(borrow)]
    action: Option<Text<'a>>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    observation: Option<Text<'a>>,
    #[serde(borrow)]
    cause: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    extras: Option<Extras<'a>>,
    #[serde(borrow)]
    tool_call_metadata: Option<CallOrigin<'a>>,
}

impl<'a> Happening<'a> {
    fn events(&self, record: Record<'a>, take: &mut dyn FnMut(Event<'a>)) -> Result<(), Problem> {
        if let Some(action) = &self.action {
            return self.acted(record, &action.0, take);
        }
        if let (Some(observation), Some(cause)) = (&self.observation, self.cause) {
            let result = Some(self.content.map(words).unwrap_or_default());
            let outcome = Outcome { result, status: self.status(&observation.0), ..Outcome::default() };
            take(Event::Returned { call: CallName { id: Some(words(cause)), tool: None }, outcome });
        }
        Ok(())
    }

    fn acted(
        &self,
        record: Record<'a>,
        action: &str,
        take: &mut dyn FnMut(Event<'a>),
    ) -> Result<(), Problem> {
        let is_agent = self.source.as_ref().is_none_or(|source| source.0 == "agent");
        let time = self.timestamp.as_ref().and_then(|text| time::parse(&text.0));
        let args: Args<'a> = self.args.map(|args| record.parse_part(args)).transpose()?.unwrap_or_default();
        match action {
            "condensation" => take(Event::Compacted { time }),
            // These steer the program; neither the agent nor anybody outside says or does anything with them.
            "system"
            | "null"
            | "change_agent_state"
            | "condensation_request"
            | "pause"
            | "resume"
            | "stop"
            | "start" => {}
            "message" if is_agent => {
                take(Event::Answer(self.answer(time)));
                take(Event::Said(args.content.map(words).unwrap_or_default()));
            }
            "message" => {
                if let Some(text) = args.content.map(words).filter(|text| !text.is_empty()) {
                    take(Event::Heard { text, time });
                }
            }
            // What the environment looks up or runs by itself is no deed of the agent.
            _ if !is_agent => {}
            _ => {
                take(Event::Answer(self.answer(time)));
                let waits_for = self.id.map(words);
                take(Event::Called { waits_for, step: self.call(record, action, &args)? });
            }
        }
        Ok(())
    }

    fn answer(&self, time: Option<Timestamp>) -> Answer<'a> {
        let response = self.tool_call_metadata.as_ref().and_then(|origin| origin.model_response.as_ref());
        Answer {
            id: response.and_then(|response| response.id.as_ref()).map(|id| id.0.clone()),
            time,
            ..Answer::default()
        }
    }

    fn call(&self, record: Record<'a>, action: &str, args: &Args<'a>) -> Result<Held<'a>, Problem> {
        if let ("call_tool_mcp" | "mcp", Some(name)) = (action, &args.name) {
            let thought = args.thought;
            return Ok(Held {
                tool: Some(name.0.clone()),
                args: args.arguments.map(|arguments| Cow::Borrowed(arguments.get())),
                thought: thought.and_then(string).filter(|text| !text.is_empty()),
                ..Held::default()
            });
        }
        let tool = Some(Cow::Owned(action.to_owned()));
        // The thought is all that this tool gets.
        if action == "think" {
            return Ok(Held {
                tool,
                args: self.args.map(|args| Cow::Borrowed(args.get())),
                ..Held::default()
            });
        }
        let thought = args.thought.and_then(string).filter(|text| !text.is_empty());
        let args = self.args.map(|args| without_thought(record, args)).transpose()?;
        Ok(Held { thought, tool, args, ..Held::default() })
    }

    fn status(&self, observation: &str) -> Option<Status> {
        let extras = self.extras.as_ref();
        match (observation, extras.and_then(Extras::exit_code)) {
            ("error", _) => Some(Status::Failure),
            ("user_rejected", _) => Some(Status::Skipped),
            (_, Some(0)) => Some(Status::Success),
            // The command is still running.
            (_, Some(-1)) => Some(Status::Pending),
            (_, Some(_)) => Some(Status::Failure),
            _ if extras.and_then(|extras| extras.error).is_some_and(|error| error.get() == "true") => {
                Some(Status::Failure)
            }
            _ => None,
        }
    }
}

#[derive(Default, Deserialize)]
struct Args<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    thought: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// What matters of the extras. Other observations use the same names for other things, so nothing here has a type.
#[derive(Default, Deserialize)]
struct Extras<'a> {
    #[serde(borrow)]
    exit_code: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Extras<'_> {
    fn exit_code(&self) -> Option<i64> {
        let within =
            self.metadata.and_then(|metadata| serde_json::from_str::<Extras<'_>>(metadata.get()).ok());
        let code = within.and_then(|within| within.exit_code).or(self.exit_code);
        code.and_then(|code| code.get().parse().ok())
    }
}

#[derive(Deserialize)]
struct CallOrigin<'a> {
    #[serde(borrow)]
    model_response: Option<ModelResponse<'a>>,
}

#[derive(Deserialize)]
struct ModelResponse<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
}

/// The arguments without what is no argument: words that change while the deed stays the same.
fn without_thought<'a>(record: Record<'a>, args: &'a RawValue) -> Result<Cow<'a, str>, Problem> {
    let fields: BTreeMap<Text<'a>, &'a RawValue> = record.parse_part(args)?;
    let mut text = String::with_capacity(args.get().len());
    for (name, value) in fields {
        if BESIDE_ARGUMENTS.contains(&&*name.0) {
            continue;
        }
        text.push(if text.is_empty() { '{' } else { ',' });
        text.push_str(&serde_json::Value::from(&*name.0).to_string());
        text.push(':');
        text.push_str(value.get());
    }
    text.push_str(if text.is_empty() { "{}" } else { "}" });
    Ok(Cow::Owned(text))
}

const BESIDE_ARGUMENTS: [&str; 6] =
    ["thought", "confirmation_state", "is_confirmed", "security_risk", "hidden", "blocking"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thought_is_no_argument() {
        let text = r#"{"thought":"let me see","command":"ls \"x\"","is_input":false}"#;
        let record = Record { line: 1, text, only: true };
        let args = without_thought(record, record.parse().unwrap()).unwrap();
        assert_eq!(args, r#"{"command":"ls \"x\"","is_input":false}"#);
    }

    #[test]
    fn an_action_without_arguments_has_an_empty_object() {
        let record = Record { line: 1, text: r#"{"thought":"x"}"#, only: true };
        assert_eq!(without_thought(record, record.parse().unwrap()).unwrap(), "{}");
    }
}
