//! The parts of Gemini's contents.

use std::borrow::Cow;

use memchr::memmem;

use crate::content::Shown;
use crate::json::{Broken, Cursor, Json};
use crate::written::{self, Returned};

/// One part of a content.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) text: Option<Json<'a>>,
    thought: Option<Json<'a>>,
    pub(crate) function_call: Option<Function<'a>>,
    function_response: Option<Function<'a>>,
    /// What is shown instead of said, and what it is.
    shown: Option<(&'static str, Json<'a>)>,
}

/// A call, or its result: of a function of the client's, or of a tool that runs at the provider.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Function<'a> {
    pub(crate) id: Option<Json<'a>>,
    pub(crate) name: Option<Json<'a>>,
    pub(crate) args: Option<Json<'a>>,
    response: Option<Json<'a>>,
    /// What is shown beside the response.
    parts: Option<Json<'a>>,
    /// Whether it is code that failed.
    has_failed: bool,
    /// Whether its arguments come a piece at a time.
    pub(crate) comes_in_pieces: bool,
    /// Whether the provider runs it.
    pub(crate) runs_at_provider: bool,
}

impl<'a> Function<'a> {
    fn read(object: Json<'a>) -> Option<Self> {
        let mut function = Self::default();
        let members = Cursor::new(object.get()).members(|key, value| match key {
            "id" => function.id = Some(value),
            "name" | "toolType" | "tool_type" => function.name = Some(value),
            "args" | "code" => function.args = Some(value),
            "response" | "output" => function.response = Some(value),
            "parts" => function.parts = Some(value).filter(|parts| !parts.is_null() && parts.get() != "[]"),
            "outcome" => {
                let outcome = value.inside().unwrap_or_default();
                function.has_failed = matches!(outcome, "OUTCOME_FAILED" | "OUTCOME_DEADLINE_EXCEEDED");
            }
            "partialArgs" | "partial_args" | "willContinue" | "will_continue" => {
                function.comes_in_pieces = true;
            }
            _ => {}
        });
        members.ok().map(|()| function)
    }

    fn read_at_provider(object: Json<'a>) -> Option<Self> {
        Self::read(object).map(|function| Self { runs_at_provider: true, ..function })
    }

    /// Code that the model wrote, or what came of it. It has no name, and mostly no id.
    fn read_code(object: Json<'a>) -> Option<Self> {
        Self::read_at_provider(object).map(|function| Self { name: Some(CODE_EXECUTION), ..function })
    }
}

/// What the API calls the tool that runs code.
const CODE_EXECUTION: Json<'static> = Json::of("\"code_execution\"");

impl<'a> Part<'a> {
    /// Reads a part. The API takes the names in both spellings.
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Broken<'a>> {
        let mut part = Self::default();
        cursor.members(|key, value| match key {
            "text" => part.text = Some(value),
            "thought" => part.thought = Some(value),
            "functionCall" | "function_call" => part.function_call = Function::read(value),
            "functionResponse" | "function_response" => part.function_response = Function::read(value),
            "inlineData" | "inline_data" => part.shown = Some(("inlineData", value)),
            "fileData" | "file_data" => part.shown = Some(("fileData", value)),
            "executableCode" | "executable_code" => part.function_call = Function::read_code(value),
            "codeExecutionResult" | "code_execution_result" => {
                part.function_response = Function::read_code(value);
            }
            "toolCall" | "tool_call" => part.function_call = Function::read_at_provider(value),
            "toolResponse" | "tool_response" => part.function_response = Function::read_at_provider(value),
            _ => {}
        })?;
        Ok(part)
    }

    /// Whether the part is what the model thought and not what it said.
    pub(crate) fn is_thought(&self) -> bool {
        self.thought.is_some_and(|thought| thought.get() == "true")
    }

    /// Whether there is nothing but text in the part.
    pub(crate) fn is_only_text(&self) -> bool {
        self.function_call.or(self.function_response).is_none() && self.text.is_some_and(Json::is_string)
    }
}

/// Visits the parts of a content: a list, or a single one.
pub(crate) fn each<'a>(parts: Json<'a>, visit: &mut dyn FnMut(Part<'a>)) -> Result<(), Broken<'a>> {
    let mut cursor = Cursor::new(parts.get());
    if cursor.peek() == Some(b'{') {
        visit(Part::read(&mut cursor)?);
        return Ok(());
    }
    cursor.open(b'[')?;
    while cursor.has_element(b']')? {
        visit(Part::read(&mut cursor)?);
    }
    Ok(())
}

/// Visits what the parts of a content are.
pub(crate) fn each_part<'a>(
    parts: Json<'a>,
    visit: &mut dyn FnMut(written::Part<'a>),
) -> Result<(), Broken<'a>> {
    each(parts, &mut |part| {
        if let Some(call) = part.function_call {
            visit(written::called(call.id, call.name, call.args));
        } else if let Some(response) = part.function_response {
            visit(written::Part::Returned(Returned {
                id: response.id,
                tool: response.name,
                result: response.response.map(only_words),
                shown: response.parts,
                failed: response.response.is_some_and(only_error) || response.has_failed,
                is_data: true,
            }));
        } else if let Some(text) = part.text.filter(|text| text.is_string()) {
            visit(if part.is_thought() { written::Part::Thought(text) } else { written::Part::Said(text) });
        } else if let Some((kind, value)) = part.shown {
            let (kind, written) = (Cow::Borrowed(kind), Cow::Borrowed(value.get()));
            visit(written::Part::Shown(Shown { kind, written }));
        }
    })
}

/// Whether one of the parts is a result. A string that only talks about one has its quotes escaped.
pub(crate) fn holds_results(parts: Json<'_>) -> bool {
    ["\"functionResponse\"", "\"function_response\""].iter().any(|name| {
        memmem::find_iter(parts.get().as_bytes(), name.as_bytes()).any(|at| {
            let behind = parts.get().get(at + name.len()..).unwrap_or_default();
            behind.trim_ascii_start().starts_with(':')
        })
    })
}

/// The words of a result that has nothing else: the API wants an object, and the SDKs put what a tool returned into one
/// of these members. It is the result, as it is where a result may be a text.
fn only_words(response: Json<'_>) -> Json<'_> {
    let mut cursor = Cursor::new(response.get());
    let mut walk = || -> Result<Option<Json<'_>>, Broken<'_>> {
        cursor.open(b'{')?;
        let is_wrapped =
            cursor.has_element(b'}')? && matches!(&*cursor.key()?, "result" | "output" | "content");
        if !is_wrapped {
            return Ok(None);
        }
        let words = cursor.skip()?;
        Ok((words.is_string() && !cursor.has_element(b'}')?).then_some(words))
    };
    walk().ok().flatten().unwrap_or(response)
}

/// Whether a result has nothing but an error, which is how the SDKs report one.
fn only_error(response: Json<'_>) -> bool {
    let mut cursor = Cursor::new(response.get());
    let mut walk = || -> Result<bool, Broken<'_>> {
        cursor.open(b'{')?;
        let is_error = cursor.has_element(b'}')? && cursor.key()? == "error";
        if !is_error {
            return Ok(false);
        }
        let is_null = cursor.skip()?.get() == "null";
        Ok(!is_null && !cursor.has_element(b'}')?)
    };
    walk().unwrap_or(false)
}
