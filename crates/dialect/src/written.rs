//! Messages as they are written in the APIs of `OpenAI`, Anthropic and Gemini.
//!
//! Recordings mix the dialects (proxies translate, frameworks keep the blocks of one inside the messages of the
//! other), so one reader understands all of them.

use std::borrow::Cow;
use std::cell::OnceCell;

use loopbreaker::Role;
use memchr::memmem;
use serde::de::{Deserialize, Deserializer, Error as _};

use crate::json::{Broken, Cursor, Json, string, words};
use crate::members::Members;
use crate::{content, gemini};

/// One message, or one item of the Responses API. Nothing in it has a type but the whole, so that a strange value
/// costs no more than what it would have said.
#[derive(Debug, Default)]
pub struct Written<'a> {
    kind: Option<Json<'a>>,
    role: Option<Json<'a>>,
    name: Option<Json<'a>>,
    content: Option<Json<'a>>,
    parts: Option<Json<'a>>,
    refusal: Option<Json<'a>>,
    reasoning_content: Option<Json<'a>>,
    tool_calls: Option<Json<'a>>,
    function_call: Option<Json<'a>>,
    tool_call_id: Option<Json<'a>>,
    call_id: Option<Json<'a>>,
    arguments: Option<Json<'a>>,
    /// What a tool is given that has a word of its own for it.
    input: Option<Json<'a>>,
    action: Option<Json<'a>>,
    /// The first member that nobody here knows.
    unknown: Option<Json<'a>>,
    output: Option<Json<'a>>,
    error: Option<Json<'a>>,
    status: Option<Json<'a>>,
    summary: Option<Json<'a>>,
    /// All that stands in it, known or not.
    members: Members<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Written<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Json::deserialize(deserializer)?;
        Self::read(&mut Cursor::new(value.get())).map_err(|_| D::Error::custom("expected a message"))
    }
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
    Said(Json<'a>),
    /// What the model thought: a string or blocks.
    Thought(Json<'a>),
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
    pub(crate) args: Option<Args<'a>>,
    /// The output that tools which run at the provider bring along.
    pub(crate) result: Option<Json<'a>>,
    /// Whether it is known that such a tool failed.
    pub(crate) failed: bool,
}

/// What a call is given, of which the words are read once, whoever asks for them.
#[derive(Debug, Clone)]
pub(crate) struct Args<'a> {
    pub(crate) written: Json<'a>,
    words: OnceCell<Cow<'a, str>>,
}

impl<'a> Args<'a> {
    fn of(written: Json<'a>) -> Self {
        Self { written, words: OnceCell::new() }
    }

    pub(crate) fn words(&self) -> &str {
        self.words.get_or_init(|| words(self.written))
    }

    pub(crate) fn into_words(self) -> Cow<'a, str> {
        self.words.into_inner().unwrap_or_else(|| words(self.written))
    }
}

/// A result in a message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Returned<'a> {
    pub(crate) id: Option<Json<'a>>,
    pub(crate) tool: Option<Json<'a>>,
    pub(crate) result: Option<Json<'a>>,
    /// What is shown beside the result, like a picture of what the tool did.
    pub(crate) shown: Option<Json<'a>>,
    pub(crate) failed: bool,
    /// Whether the result is data even if it looks like blocks.
    pub(crate) is_data: bool,
}

impl<'a> Written<'a> {
    /// Reads the object that comes here. Of two members of the same name the last one counts.
    pub(crate) fn read(cursor: &mut Cursor<'a>) -> Result<Self, Broken<'a>> {
        let mut message = Self::default();
        message.fill(cursor)?;
        Ok(message)
    }

    /// [`read`](Self::read), where the message will stay: it is large.
    pub(crate) fn fill(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Broken<'a>> {
        let message = self;
        cursor.walk(|key, cursor| {
            let value = cursor.skip()?;
            message.members.add(key, value);
            let member = match key {
                "type" => &mut message.kind,
                "role" => &mut message.role,
                "name" => &mut message.name,
                "content" => &mut message.content,
                "parts" => &mut message.parts,
                "refusal" => &mut message.refusal,
                "reasoning_content" => &mut message.reasoning_content,
                "tool_calls" => &mut message.tool_calls,
                "function_call" => &mut message.function_call,
                "tool_call_id" => &mut message.tool_call_id,
                "call_id" => &mut message.call_id,
                "arguments" => &mut message.arguments,
                "input" | "actions" | "operation" | "code" | "queries" | "revised_prompt" => {
                    &mut message.input
                }
                "action" => &mut message.action,
                "output" | "outputs" | "results" | "result" | "tools" => &mut message.output,
                "error" => &mut message.error,
                "status" => &mut message.status,
                "summary" => &mut message.summary,
                "id" | "caller" | "namespace" | "environment" => return Ok(()),
                _ if message.unknown.is_none() => &mut message.unknown,
                _ => return Ok(()),
            };
            if !value.is_null() {
                *member = Some(value);
            }
            Ok(())
        })
    }

    /// All that stands in it, known or not.
    pub(crate) fn members(&self) -> &Members<'a> {
        &self.members
    }

    /// A message of which only the content is known.
    pub(crate) fn saying(content: Json<'a>) -> Self {
        Self { content: Some(content), ..Self::default() }
    }

    pub(crate) fn form(&self) -> Form {
        let kind = self.kind.and_then(string);
        match (kind.as_deref(), self.role().as_deref()) {
            (Some("reasoning"), _) => Form::Reasoning,
            (Some("compaction" | "compaction_summary"), _) => Form::Compaction,
            (Some(kind), None) if kind.ends_with("_call_output") => Form::CallOutput,
            // Those of tools that run at the provider may name no call.
            (Some(kind), None) if kind.ends_with("_output") && self.call_id.is_some() => Form::CallOutput,
            (Some(kind), None) if kind.ends_with("_call") || kind == "program" => Form::Call,
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

    /// Whether it only names an item that the provider has.
    pub(crate) fn is_reference(&self) -> bool {
        self.kind.and_then(Json::inside) == Some("item_reference")
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
            Form::Call => self.item_call().map(Part::Called).into_iter().for_each(visit),
            Form::CallOutput => {
                visit(Part::Returned(Returned {
                    id: self.call_id,
                    result: self.output,
                    failed: self.has_failed(),
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
                if let Some(refusal) = self.refusal.filter(|refusal| refusal.is_string()) {
                    visit(Part::Said(refusal));
                }
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
                let (mut id, mut function) = (None, None);
                cursor.members(|key, value| match key {
                    "id" => id = Some(value),
                    "function" | "custom" => function = Some(value),
                    _ => {}
                })?;
                visit(function_call(id, function)?);
            }
        }
        if let Some(function) = self.function_call {
            visit(function_call(None, Some(function))?);
        }
        Ok(())
    }

    /// A call that is an item of the Responses API. Tools that run at the provider bring their output along or have
    /// none. `None` where nothing is said of it but that there was one: two of them need not be alike.
    fn item_call(&self) -> Option<Called<'a>> {
        let kind = self.kind.and_then(string).unwrap_or_default();
        let own_name = || Cow::Owned(kind.strip_suffix("_call").unwrap_or(&kind).to_owned());
        let args = self.arguments.or(self.input).or(self.action).or(self.unknown);
        let result = self.output.or(self.error);
        args.or(result).or(self.call_id)?;
        Some(Called {
            waits_for: self.call_id.filter(|_| result.is_none()).map(words),
            tool: self.name().unwrap_or_else(own_name),
            args: args.map(Args::of),
            result,
            failed: self.error.is_some() || self.has_failed(),
        })
    }

    fn has_failed(&self) -> bool {
        self.status.and_then(Json::inside) == Some("failed")
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
        // Without words it is one that failed, and nothing was left out.
        "compaction" => {
            if block.content.is_some_and(Json::is_string) {
                visit(Part::Compacted);
            }
        }
        _ if kind.ends_with("tool_result") => visit(Part::Returned(Returned {
            id: block.tool_use_id,
            tool: None,
            result: block.content,
            shown: None,
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

/// The call of a function, `{"name", "arguments"}`.
fn function_call<'a>(id: Option<Json<'a>>, function: Option<Json<'a>>) -> Result<Part<'a>, Broken<'a>> {
    let (mut name, mut args) = (None, None);
    if let Some(function) = function {
        Cursor::new(function.get()).members(|key, value| match key {
            "name" => name = Some(value),
            "arguments" | "input" => args = Some(value),
            _ => {}
        })?;
    }
    Ok(called(id, name, args))
}

/// A call whose result always comes in another message.
pub(crate) fn called<'a>(id: Option<Json<'a>>, tool: Option<Json<'a>>, args: Option<Json<'a>>) -> Part<'a> {
    Part::Called(Called {
        waits_for: Some(id.map(words).unwrap_or_default()),
        tool: tool.and_then(string).unwrap_or(Cow::Borrowed("unknown")),
        args: args.map(Args::of),
        result: None,
        failed: false,
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
