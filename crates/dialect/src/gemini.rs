//! The parts of Gemini's contents.

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::content::Shown;
use crate::json::{Broken, Cursor};
use crate::written::{self, Returned};

/// One part of a content. The API takes the names in both spellings.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(expecting = "a part of a content")]
pub(crate) struct Part<'a> {
    #[serde(borrow)]
    pub(crate) text: Option<&'a RawValue>,
    #[serde(borrow)]
    thought: Option<&'a RawValue>,
    #[serde(rename = "functionCall", alias = "function_call", borrow)]
    pub(crate) function_call: Option<Function<'a>>,
    #[serde(rename = "functionResponse", alias = "function_response", borrow)]
    function_response: Option<Function<'a>>,
    #[serde(rename = "inlineData", alias = "inline_data", borrow)]
    inline_data: Option<&'a RawValue>,
    #[serde(rename = "fileData", alias = "file_data", borrow)]
    file_data: Option<&'a RawValue>,
    #[serde(rename = "executableCode", alias = "executable_code", borrow)]
    executable_code: Option<&'a RawValue>,
    #[serde(rename = "codeExecutionResult", alias = "code_execution_result", borrow)]
    code_execution_result: Option<&'a RawValue>,
}

/// A call, or its result.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(expecting = "a function")]
pub(crate) struct Function<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) name: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) args: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

impl<'a> Part<'a> {
    /// Whether the part is what the model thought and not what it said.
    pub(crate) fn is_thought(&self) -> bool {
        self.thought.is_some_and(|thought| thought.get() == "true")
    }

    /// Whether there is nothing but text in the part.
    pub(crate) fn is_only_text(&self) -> bool {
        self.function_call.or(self.function_response).is_none()
            && self.text.is_some_and(|text| text.get().starts_with('"'))
    }

    /// What is shown instead of said, and what it is.
    fn shown(&self) -> Option<Shown<'a>> {
        let shown = |kind, value: Option<&'a RawValue>| {
            value.map(|value| Shown { kind: Cow::Borrowed(kind), written: Cow::Borrowed(value.get()) })
        };
        shown("inlineData", self.inline_data)
            .or_else(|| shown("fileData", self.file_data))
            .or_else(|| shown("executableCode", self.executable_code))
            .or_else(|| shown("codeExecutionResult", self.code_execution_result))
    }
}

/// Visits the parts of a content: a list, or a single one.
pub(crate) fn each<'a>(parts: &'a RawValue, visit: &mut dyn FnMut(Part<'a>)) -> Result<(), Broken<'a>> {
    let mut cursor = Cursor::new(parts.get());
    if cursor.peek() == Some(b'{') {
        visit(cursor.value()?);
        return Ok(());
    }
    cursor.open(b'[')?;
    while cursor.has_element(b']')? {
        visit(cursor.value()?);
    }
    Ok(())
}

/// Visits what the parts of a content are.
pub(crate) fn each_part<'a>(
    parts: &'a RawValue,
    visit: &mut dyn FnMut(written::Part<'a>),
) -> Result<(), Broken<'a>> {
    each(parts, &mut |part| {
        if let Some(call) = part.function_call {
            visit(written::called(call.id, call.name, call.args));
        } else if let Some(response) = part.function_response {
            visit(written::Part::Returned(Returned {
                id: response.id,
                tool: response.name,
                result: response.response,
                failed: response.response.is_some_and(only_error),
                is_data: true,
            }));
        } else if let Some(text) = part.text.filter(|text| text.get().starts_with('"')) {
            visit(if part.is_thought() { written::Part::Thought(text) } else { written::Part::Said(text) });
        } else if let Some(shown) = part.shown() {
            visit(written::Part::Shown(shown));
        }
    })
}

/// Whether one of the parts is a result. A string that only talks about one has its quotes escaped.
pub(crate) fn holds_results(parts: &RawValue) -> bool {
    ["\"functionResponse\"", "\"function_response\""].iter().any(|name| {
        memmem::find_iter(parts.get().as_bytes(), name.as_bytes()).any(|at| {
            let behind = parts.get().get(at + name.len()..).unwrap_or_default();
            behind.trim_ascii_start().starts_with(':')
        })
    })
}

/// Whether a result has nothing but an error, which is how the SDKs report one.
fn only_error(response: &RawValue) -> bool {
    let mut cursor = Cursor::new(response.get());
    let mut walk = || -> Result<bool, Broken<'_>> {
        cursor.open(b'{')?;
        let is_error = cursor.has_element(b'}')? && cursor.key()?.0 == "error";
        if !is_error {
            return Ok(false);
        }
        let is_null = cursor.skip()? == "null";
        Ok(!is_null && !cursor.has_element(b'}')?)
    };
    walk().unwrap_or(false)
}
