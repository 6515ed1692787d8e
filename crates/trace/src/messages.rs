//! Messages of the `OpenAI` and Anthropic APIs, and the events that they are.
//!
//! Recordings mix the dialects (proxies translate, frameworks keep the blocks of one inside the messages of the
//! other), so one reader understands all of them.

use std::borrow::Cow;

use loopbreaker::{Role, Status, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Problem;
use crate::content::{self, Block};
use crate::conversation::{Answer, CallName, Event, Held, Outcome};
use crate::record::Record;
use crate::text::{Text, words};

/// One message, or one item of the Responses API.
#[derive(Deserialize)]
#[serde(expecting = "a message")]
pub(crate) struct Message<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) role: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    function_call: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call_id: Option<Text<'a>>,
    #[serde(borrow)]
    call_id: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    action: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    summary: Option<&'a RawValue>,
}

/// The events of one message.
pub(crate) fn events<'a>(
    record: Record<'a>,
    message: Message<'a>,
    take: &mut dyn FnMut(Event<'a>),
) -> Result<(), Problem> {
    let kind = message.kind.as_ref().map(|kind| &*kind.0);
    match (kind, message.role.as_ref().map(|role| &*role.0)) {
        (Some("reasoning"), _) => {
            let text = [message.summary, message.content].into_iter().flatten();
            for text in text.map(|content| content::text(record, content)) {
                take(Event::Reasoned(text?));
            }
        }
        (Some("compaction" | "compaction_summary"), _) => take(Event::Compacted { time: None }),
        (Some(kind), None) if kind.ends_with("_call_output") => {
            let result = message.output.map(|output| content::text(record, output)).transpose()?;
            take(returned(message.call_id, None, result));
        }
        (Some(kind), None) if kind.ends_with("_call") => take(item_call(&message)),
        // Instructions are no part of what happens, and items without a role that are none of the above say nothing.
        (_, Some("system" | "developer")) | (Some(_), None) => {}
        (_, Some("tool" | "function")) => {
            let result = message.content.map(|content| content::text(record, content)).transpose()?;
            take(returned(message.tool_call_id, message.name, result));
        }
        (_, Some(role)) if Role::named(role) == Role::Outside => {
            if let Some(content) = message.content {
                heard(record, content, None, take)?;
            }
        }
        (kind, Some(role)) => {
            // Items of the Responses API are parts of an answer, a message is all of one.
            if kind != Some("message") {
                let agent = message.name.as_ref().map(|name| name.0.clone());
                let agent = agent.or_else(|| other_agent(role, message.role.as_ref()));
                take(Event::Answer(Answer { agent, ..Answer::default() }));
            }
            answered(record, &message, take)?;
        }
        (None, None) => return Err(record.unusable("a message has neither a role nor a type; add the role")),
    }
    Ok(())
}

/// The events of what a user message holds: results first, then the words beside them.
pub(crate) fn heard<'a>(
    record: Record<'a>,
    content: &'a RawValue,
    time: Option<Timestamp>,
    take: &mut dyn FnMut(Event<'a>),
) -> Result<(), Problem> {
    let mut said: Vec<Cow<'a, str>> = Vec::new();
    content::each(record, content, |block| {
        if block.is("tool_result") {
            let result = block.content.map(|content| content::text(record, content)).transpose()?;
            let status = (block.is_error == Some(true)).then_some(Status::Failure);
            let call = CallName { id: block.tool_use_id.map(|id| id.0), tool: None };
            let outcome = Outcome { result: Some(result.unwrap_or_default()), status, ..Outcome::default() };
            take(Event::Returned { call, outcome });
        } else if let Some(text) = block.words() {
            said.push(text);
        }
        Ok(())
    })?;
    let text = content::joined(said);
    if !text.trim_ascii().is_empty() {
        take(Event::Heard { text, time });
    }
    Ok(())
}

/// The events of the blocks of an answer.
pub(crate) fn answer_block<'a>(block: Block<'a>, take: &mut dyn FnMut(Event<'a>)) {
    if block.is("tool_use") || block.is("server_tool_use") || block.is("mcp_tool_use") {
        let tool = block.name.map_or(Cow::Borrowed("unknown"), |name| name.0);
        take(called(block.id, tool, block.input.map(|input| Cow::Borrowed(input.get()))));
    } else if block.is("thinking") {
        if let Some(text) = block.thinking {
            take(Event::Reasoned(text.0));
        }
    } else if block.kind_ends_with("tool_result") {
        // Tools that run at the provider return within the answer itself.
        let result = block.content.map(words);
        take(returned(block.tool_use_id, None, result));
    } else if let Some(text) = block.text.or(block.refusal) {
        take(Event::Said(text.0));
    }
}

fn answered<'a>(
    record: Record<'a>,
    message: &Message<'a>,
    take: &mut dyn FnMut(Event<'a>),
) -> Result<(), Problem> {
    if let Some(reasoning) = message.reasoning_content {
        take(Event::Reasoned(content::text(record, reasoning)?));
    }
    if let Some(content) = message.content {
        content::each(record, content, |block| {
            answer_block(block, take);
            Ok(())
        })?;
    }
    if let Some(calls) = message.tool_calls {
        record.each(calls.get(), |call: ToolCall<'a>| {
            let function = call.function.or(call.custom).unwrap_or_default();
            let tool = function.name.map_or(Cow::Borrowed("unknown"), |name| name.0);
            let args = function.arguments.or(function.input);
            take(called(call.id, tool, args.map(words)));
            Ok(())
        })?;
    }
    if let Some(function) = message.function_call {
        let function: Function<'a> = record.parse_part(function)?;
        let tool = function.name.map_or(Cow::Borrowed("unknown"), |name| name.0);
        take(called(None, tool, function.arguments.map(words)));
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(expecting = "a tool call")]
struct ToolCall<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
    #[serde(borrow)]
    custom: Option<Function<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(expecting = "a function with name and arguments")]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// A call that is an item of the Responses API. Tools that run at the provider bring their output along or have none.
fn item_call<'a>(message: &Message<'a>) -> Event<'a> {
    let kind = message.kind.as_ref().map_or("", |kind| &*kind.0);
    let own_name = kind.strip_suffix("_call").unwrap_or(kind).to_owned();
    let tool = message.name.as_ref().map_or(Cow::Owned(own_name), |name| name.0.clone());
    let args = message.arguments.or(message.input).or(message.action).map(words);
    let result = message.output.map(words);
    let waits_for = message.call_id.as_ref().filter(|_| result.is_none()).map(|id| id.0.clone());
    Event::Called { waits_for, step: Held { tool: Some(tool), args, result, ..Held::default() } }
}

fn called<'a>(id: Option<Text<'a>>, tool: Cow<'a, str>, args: Option<Cow<'a, str>>) -> Event<'a> {
    let waits_for = Some(id.map_or(Cow::Borrowed(""), |id| id.0));
    Event::Called { waits_for, step: Held { tool: Some(tool), args, ..Held::default() } }
}

fn returned<'a>(id: Option<Text<'a>>, tool: Option<Text<'a>>, result: Option<Cow<'a, str>>) -> Event<'a> {
    let call = CallName { id: id.map(|id| id.0), tool: tool.map(|tool| tool.0) };
    Event::Returned {
        call,
        outcome: Outcome { result: Some(result.unwrap_or_default()), ..Outcome::default() },
    }
}

/// Any role that is none of the API's own is the name of an agent.
fn other_agent<'a>(role: &str, name: Option<&Text<'a>>) -> Option<Cow<'a, str>> {
    if matches!(role, "assistant" | "model" | "ai") { None } else { name.map(|name| name.0.clone()) }
}
