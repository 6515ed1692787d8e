//! Chat completions: whole answers and the chunks of a stream, which differ in one word.

use serde::Deserialize;

use super::Scribe;
use crate::Usage;
use crate::content;
use crate::json::{Broken, Cursor, Json, string};

/// A chunk, or all of an answer.
#[derive(Default)]
pub(crate) struct Chunk<'a> {
    pub(crate) id: Option<Json<'a>>,
    pub(crate) model: Option<Json<'a>>,
    pub(crate) created: Option<Json<'a>>,
    pub(crate) choices: Option<Choices<'a>>,
    /// Whether it reports what was used, and what that is; `None` where the report makes no sense.
    pub(crate) usage: Option<Option<Usage>>,
    /// Bytes without a meaning that hide how long a chunk is.
    pub(crate) obfuscation: Option<Json<'a>>,
}

/// The choices of a chunk, nearly always one.
#[derive(Default)]
pub(crate) struct Choices<'a> {
    first: Option<Choice<'a>>,
    others: Vec<Choice<'a>>,
}

#[derive(Default)]
pub(crate) struct Choice<'a> {
    index: u64,
    delta: Option<Delta<'a>>,
    finish_reason: Option<Json<'a>>,
}

#[derive(Default)]
struct Delta<'a> {
    content: Option<Json<'a>>,
    refusal: Option<Json<'a>>,
    reasoning_content: Option<Json<'a>>,
    tool_calls: Option<Json<'a>>,
    function_call: Option<Json<'a>>,
}

#[derive(Deserialize)]
struct CallDelta<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    id: Option<Json<'a>>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
    #[serde(borrow)]
    custom: Option<Function<'a>>,
}

#[derive(Default, Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<Json<'a>>,
    #[serde(alias = "input", borrow)]
    arguments: Option<Json<'a>>,
}

/// Which call each index of the deltas means.
#[derive(Debug, Default)]
pub(crate) struct Indices(Vec<(Option<u64>, usize)>);

pub(crate) fn read_whole(body: &str, scribe: &mut Scribe) -> Option<()> {
    let chunk = Chunk::parse(body)?;
    chunk.choices.as_ref()?;
    chunk.read(scribe, &mut Indices::default());
    Some(())
}

impl<'a> Chunk<'a> {
    /// Reads a chunk; `None` when it is none.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let mut chunk = Self::default();
        let mut cursor = Cursor::new(text);
        cursor
            .walk(|key, cursor| {
                let member = match key {
                    "id" => &mut chunk.id,
                    "model" => &mut chunk.model,
                    "created" => &mut chunk.created,
                    "obfuscation" => &mut chunk.obfuscation,
                    "choices" => {
                        chunk.choices = Choices::read(cursor)?;
                        return Ok(());
                    }
                    "usage" => {
                        chunk.usage =
                            if cursor.is_null()? { None } else { Some(Usage::openai_here(cursor)?) };
                        return Ok(());
                    }
                    _ => return cursor.skip().map(drop),
                };
                *member = cursor.skip_unless_null()?;
                Ok(())
            })
            .ok()?;
        cursor.end().ok()?;
        Some(chunk)
    }

    /// The words of a chunk that has nothing but words of the first choice, and whether they are thought.
    pub(crate) fn only_words(&self) -> Option<(Json<'a>, bool)> {
        let choices = self.choices.as_ref()?;
        let choice = choices.first.as_ref().filter(|_| choices.others.is_empty() && self.usage.is_none())?;
        if choice.index > 0 || choice.finish_reason.is_some() {
            return None;
        }
        let delta = choice.delta.as_ref()?;
        delta.refusal.or(delta.tool_calls).or(delta.function_call).is_none().then_some(())?;
        let words = match (delta.content, delta.reasoning_content) {
            (Some(said), None) => (said, false),
            (None, Some(thought)) => (thought, true),
            _ => return None,
        };
        words.0.is_string().then_some(words)
    }

    pub(crate) fn read(&self, scribe: &mut Scribe, indices: &mut Indices) {
        scribe.identify(self.id, self.model);
        if let Some(usage) = self.usage.flatten() {
            scribe.answer.usage = Some(usage);
        }
        if let Some(choices) = &self.choices {
            for choice in choices.first.iter().chain(&choices.others) {
                choice.tell(scribe, indices);
            }
        }
    }
}

impl Choice<'_> {
    fn tell(&self, scribe: &mut Scribe, indices: &mut Indices) {
        if self.index > 0 {
            // Only the first choice is followed, and a stream with several is not cut: all would have to end.
            scribe.leave_whole();
            let delta = self.delta.iter();
            let words = delta.flat_map(|delta| [delta.content, delta.reasoning_content, delta.tool_calls]);
            words.flatten().for_each(|text| scribe.murmured(text));
            return;
        }
        scribe.ended(self.finish_reason);
        let Some(delta) = &self.delta else { return };
        if let Some(reasoning) = delta.reasoning_content {
            scribe.thought(reasoning);
        }
        for text in [delta.content, delta.refusal].into_iter().flatten() {
            if text.is_string() {
                scribe.said(text);
            } else {
                // Some give a list of blocks. What is wrong with it is for the client to find out.
                drop(content::each(text, &mut |block| {
                    if let Some(text) = block.said() {
                        scribe.said(text);
                    }
                }));
            }
        }
        if let Some(calls) = delta.tool_calls {
            each_call(calls, scribe, indices);
        }
        if let Some(function) = delta.function_call.and_then(|call| serde_json::from_str(call.get()).ok()) {
            let call = CallDelta { index: Some(0), id: None, function: Some(function), custom: None };
            call.read(scribe, indices);
        }
    }
}

fn each_call(calls: Json<'_>, scribe: &mut Scribe, indices: &mut Indices) -> Option<()> {
    let mut cursor = Cursor::new(calls.get());
    cursor.open(b'[').ok()?;
    while cursor.has_element(b']').ok()? {
        cursor.value::<CallDelta<'_>>().ok()?.read(scribe, indices);
    }
    Some(())
}

impl CallDelta<'_> {
    fn read(self, scribe: &mut Scribe, indices: &mut Indices) {
        let function = self.function.or(self.custom).unwrap_or_default();
        let known = indices.find(self.index, self.id, scribe);
        let call = known.unwrap_or_else(|| {
            // Nothing tells where its arguments end, and a call without that is worse than a chant.
            scribe.leave_whole();
            let call = scribe.call(self.id, function.name);
            if call != usize::MAX {
                indices.0.push((self.index, call));
            }
            call
        });
        if let Some(args) = function.arguments {
            scribe.arguments(call, args);
        }
    }
}

impl Indices {
    /// The call that a delta goes on with. Another id makes another call, since some servers number every call 0 or not
    /// at all.
    fn find(&self, index: Option<u64>, id: Option<Json<'_>>, scribe: &Scribe) -> Option<usize> {
        let (_, call) = self.0.iter().rev().find(|(known, _)| *known == index)?;
        let id = id.and_then(string).unwrap_or_default();
        let is_other = scribe.answer.calls.get(*call).is_some_and(|known| !id.is_empty() && known.id != id);
        (!is_other).then_some(*call)
    }
}

impl<'a> Choices<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Option<Self>, Broken<'a>> {
        if cursor.is_null()? {
            return Ok(None);
        }
        let mut choices = Self::default();
        cursor.open(b'[')?;
        while cursor.has_element(b']')? {
            let choice = Choice::read(cursor)?;
            match &mut choices.first {
                None => choices.first = Some(choice),
                Some(_) => choices.others.push(choice),
            }
        }
        Ok(Some(choices))
    }
}

impl<'a> Choice<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Broken<'a>> {
        let mut choice = Self::default();
        cursor.walk(|key, cursor| {
            match key {
                "index" => choice.index = cursor.count()?.unwrap_or_default(),
                "delta" | "message" => choice.delta = Delta::read(cursor)?,
                "finish_reason" => choice.finish_reason = cursor.skip_unless_null()?,
                _ => drop(cursor.skip()?),
            }
            Ok(())
        })?;
        Ok(choice)
    }
}

impl<'a> Delta<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Option<Self>, Broken<'a>> {
        if cursor.is_null()? {
            return Ok(None);
        }
        let mut delta = Self::default();
        cursor.members(|key, value| match key {
            "content" => delta.content = Some(value),
            "refusal" => delta.refusal = Some(value),
            "reasoning_content" | "reasoning" => delta.reasoning_content = Some(value),
            "tool_calls" => delta.tool_calls = Some(value),
            "function_call" => delta.function_call = Some(value),
            _ => {}
        })?;
        Ok(Some(delta))
    }
}
