//! Messages as they are written in the APIs of `OpenAI`, Anthropic and Gemini.
//!
//! Recordings mix the dialects (proxies translate, frameworks keep the blocks of one inside the messages of the
//! other), so one reader understands all of them.

use std::borrow::Cow;

use loopbreaker::Role;
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{Broken, Cursor, string, words};
use crate::{content, gemini};

/// One message, or one item of the Responses API. Nothing in it has a type but the whole, so that a strange value
/// costs no more than what it would have said.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(expecting = "a message")]
pub struct Written<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    parts: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    function_call: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    call_id: Option<&'a RawValue>,
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

/// Why a message cannot be read.
#[derive(Debug)]
pub enum Malformed<'a> {
    /// A part of it is broken, or of the wrong shape.
    Part(Broken<'a>),
    /// It has neither a role nor a type.
    NoRole,
}

impl<'a> From<Broken<'a>> for Malformed<'a> {
    fn from(broken: Broken<'a>) -> Self {
        Self::Part(broken)
    }
}

/// What a message is, by its role and type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// What the model thought.
    Reasoning,
    /// The place where the history was compacted.
    Compaction,
    /// A call as an item of its own.
    Call,
    /// A result as an item of its own.
    CallOutput,
    /// Instructions.
    System,
    /// A result as a message.
    Result,
    /// Someone outside, or the results of Anthropic's and Gemini's tools.
    Outside,
    /// All of an answer.
    Answer,
    /// An item of the Responses API that is a part of an answer.
    AnswerPart,
    /// An item that says nothing.
    Nothing,
    /// Neither a role nor a type.
    Unknown,
}

/// A part of a message.
#[derive(Debug, Clone)]
pub(crate) enum Part<'a> {
    /// Words, as a JSON string.
    Said(&'a RawValue),
    /// What the model thought: a string or blocks.
    Thought(&'a RawValue),
    /// Something that is no words, like a picture.
    Shown(content::Shown<'a>),
    /// A tool is called.
    Called(Called<'a>),
    /// A tool returns.
    Returned(Returned<'a>),
    /// The history was compacted.
    Compacted,
}

/// A call in a message.
#[derive(Debug, Clone)]
pub(crate) struct Called<'a> {
    /// The id of the result that is still to come.
    pub(crate) waits_for: Option<Cow<'a, str>>,
    pub(crate) tool: Cow<'a, str>,
    pub(crate) args: Option<&'a RawValue>,
    /// The output that tools which run at the provider bring along.
    pub(crate) result: Option<&'a RawValue>,
}

/// A result in a message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Returned<'a> {
    pub(crate) id: Option<&'a RawValue>,
    pub(crate) tool: Option<&'a RawValue>,
    pub(crate) result: Option<&'a RawValue>,
    pub(crate) failed: bool,
    /// Whether the result is data even if it looks like blocks.
    pub(crate) is_data: bool,
}

impl<'a> Written<'a> {
    /// A message of which only the content is known.
    pub(crate) fn saying(content: &'a RawValue) -> Self {
        Self { content: Some(content), ..Self::default() }
    }

    pub(crate) fn form(&self) -> Form {
        let kind = self.kind.and_then(string);
        match (kind.as_deref(), self.role().as_deref()) {
            (Some("reasoning"), _) => Form::Reasoning,
            (Some("compaction" | "compaction_summary"), _) => Form::Compaction,
            (Some(kind), None) if kind.ends_with("_call_output") => Form::CallOutput,
            (Some(kind), None) if kind.ends_with("_call") => Form::Call,
            (_, Some("system" | "developer")) => Form::System,
            (Some(_), None) => Form::Nothing,
            (_, Some("tool" | "function")) if self.parts.is_none() => Form::Result,
            (_, Some("tool" | "function")) => Form::Outside,
            (_, Some(role)) if Role::named(role) == Role::Outside => Form::Outside,
            (Some("message"), Some(_)) => Form::AnswerPart,
            (_, Some(_)) => Form::Answer,
            // Gemini lets the role out where there is only one.
            (None, None) if self.parts.is_some() => Form::Outside,
            (None, None) => Form::Unknown,
        }
    }

    pub(crate) fn role(&self) -> Option<Cow<'a, str>> {
        self.role.and_then(string)
    }

    pub(crate) fn name(&self) -> Option<Cow<'a, str>> {
        self.name.and_then(string)
    }

    /// Whether it holds results beside or instead of words from outside.
    pub(crate) fn holds_results(&self) -> bool {
        let blocks = self.content.filter(|content| content.get().starts_with('['));
        blocks.is_some_and(|blocks| has_block_of(blocks.get(), "tool_result"))
            || self.parts.is_some_and(gemini::holds_results)
    }

    /// Visits what the message holds, in order.
    pub(crate) fn each_part(&self, form: Form, visit: &mut dyn FnMut(Part<'a>)) -> Result<(), Malformed<'a>> {
        match form {
            Form::Reasoning => {
                for thought in [self.summary, self.content].into_iter().flatten() {
                    visit(Part::Thought(thought));
                }
            }
            Form::Compaction => visit(Part::Compacted),
            Form::Call => visit(Part::Called(self.item_call())),
            Form::CallOutput => {
                visit(Part::Returned(Returned {
                    id: self.call_id,
                    result: self.output,
                    ..Returned::default()
                }));
            }
            Form::Result => {
                let (id, tool, result) = (self.tool_call_id, self.name, self.content);
                visit(Part::Returned(Returned { id, tool, result, ..Returned::default() }));
            }
            Form::System | Form::Outside => self.each_block(visit)?,
            Form::Answer | Form::AnswerPart => {
                if let Some(reasoning) = self.reasoning_content {
                    visit(Part::Thought(reasoning));
                }
                self.each_block(visit)?;
                self.each_call(visit)?;
            }
            Form::Nothing => {}
            Form::Unknown => return Err(Malformed::NoRole),
        }
        Ok(())
    }

    fn each_block(&self, visit: &mut dyn FnMut(Part<'a>)) -> Result<(), Broken<'a>> {
        if let Some(content) = self.content {
            content::each(content, &mut |block| each_part_of_block(block, visit))?;
        }
        self.parts.map_or(Ok(()), |parts| gemini::each_part(parts, visit))
    }

    fn each_call(&self, visit: &mut dyn FnMut(Part<'a>)) -> Result<(), Broken<'a>> {
        if let Some(calls) = self.tool_calls {
            let mut cursor = Cursor::new(calls.get());
            cursor.open(b'[')?;
            while cursor.has_element(b']')? {
                let call: ToolCall<'a> = cursor.value()?;
                let function = call.function.or(call.custom).unwrap_or_default();
                visit(function.called(call.id));
            }
        }
        if let Some(function) = self.function_call {
            let function: Function<'a> = Cursor::new(function.get()).value()?;
            visit(function.called(None));
        }
        Ok(())
    }

    /// A call that is an item of the Responses API. Tools that run at the provider bring their output along or have
    /// none.
    fn item_call(&self) -> Called<'a> {
        let kind = self.kind.and_then(string).unwrap_or_default();
        let own_name = || Cow::Owned(kind.strip_suffix("_call").unwrap_or(&kind).to_owned());
        Called {
            waits_for: self.call_id.filter(|_| self.output.is_none()).map(words),
            tool: self.name().unwrap_or_else(own_name),
            args: self.arguments.or(self.input).or(self.action),
            result: self.output,
        }
    }
}

/// What a block is.
pub(crate) fn each_part_of_block<'a>(block: content::Block<'a>, visit: &mut dyn FnMut(Part<'a>)) {
    let kind = block.kind();
    match &*kind {
        "tool_use" | "server_tool_use" | "mcp_tool_use" => visit(called(block.id, block.name, block.input)),
        "thinking" => {
            if let Some(thinking) = block.thinking {
                visit(Part::Thought(thinking));
            }
        }
        "redacted_thinking" => {}
        _ if kind.ends_with("tool_result") => visit(Part::Returned(Returned {
            id: block.tool_use_id,
            tool: None,
            result: block.content,
            failed: block.failed(),
            // Tools that run at the provider return within the answer itself, and no plain blocks.
            is_data: kind != "tool_result",
        })),
        _ => {
            let said = block.said().map(Part::Said);
            said.or_else(|| block.shown().map(Part::Shown)).into_iter().for_each(visit);
        }
    }
}

#[derive(Deserialize)]
#[serde(expecting = "a tool call")]
struct ToolCall<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
    #[serde(borrow)]
    custom: Option<Function<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(expecting = "a function with name and arguments")]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

impl<'a> Function<'a> {
    fn called(self, id: Option<&'a RawValue>) -> Part<'a> {
        called(id, self.name, self.arguments.or(self.input))
    }
}

/// A call whose result always comes in another message.
pub(crate) fn called<'a>(
    id: Option<&'a RawValue>,
    tool: Option<&'a RawValue>,
    args: Option<&'a RawValue>,
) -> Part<'a> {
    Part::Called(Called {
        waits_for: Some(id.map(words).unwrap_or_default()),
        tool: tool.and_then(string).unwrap_or(Cow::Borrowed("unknown")),
        args,
        result: None,
    })
}

/// Whether the list has a block of this type. A string that only talks about one has its quotes escaped.
fn has_block_of(blocks: &str, kind: &str) -> bool {
    let name = format!("\"{kind}\"");
    memmem::find_iter(blocks.as_bytes(), name.as_bytes()).any(|at| {
        let before = blocks.get(..at).unwrap_or_default().trim_ascii_end();
        before.strip_suffix(':').is_some_and(|before| before.trim_ascii_end().ends_with("\"type\""))
    })
}
