//! Gemini: answers, and the chunks of a stream, which have the same shape.

use serde::Deserialize;

use super::Scribe;
use crate::json::{Cursor, Json};
use crate::{Usage, gemini};

/// An answer, or a part of one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Chunk<'a> {
    #[serde(borrow)]
    pub(crate) response_id: Option<Json<'a>>,
    #[serde(borrow)]
    pub(crate) model_version: Option<Json<'a>>,
    #[serde(borrow)]
    candidates: Option<Json<'a>>,
    #[serde(borrow)]
    pub(crate) usage_metadata: Option<Json<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Json<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Json<'a>>,
}

pub(crate) fn read_whole(body: &str, scribe: &mut Scribe) -> Option<()> {
    let chunk: Chunk<'_> = serde_json::from_str(body).ok()?;
    chunk.candidates.or(chunk.usage_metadata)?;
    chunk.read(scribe);
    scribe.answer.usage = chunk.usage_metadata.and_then(Usage::gemini);
    Some(())
}

impl<'a> Chunk<'a> {
    /// The words of a chunk that has nothing but words of the first candidate, and whether they are thought.
    pub(crate) fn only_words(&self) -> Option<(Json<'a>, bool)> {
        let mut candidates = Cursor::new(self.candidates?.get());
        candidates.open(b'[').ok()?;
        candidates.has_element(b']').ok()?.then_some(())?;
        let candidate: Candidate<'a> = candidates.value().ok()?;
        let is_first = candidate.index.unwrap_or_default() == 0 && candidate.finish_reason.is_none();
        (is_first && !candidates.has_element(b']').ok()?).then_some(())?;
        let (mut words, mut count) = (None, 0);
        gemini::each(candidate.content?.parts?, &mut |part| {
            count += 1;
            words = part.text.filter(|_| part.is_only_text()).map(|text| (text, part.is_thought()));
        })
        .ok()?;
        words.filter(|_| count == 1)
    }

    /// Everything but the usage.
    pub(crate) fn read(&self, scribe: &mut Scribe) {
        scribe.identify(self.response_id, self.model_version);
        if let Some(candidates) = self.candidates {
            each_candidate(candidates, scribe);
        }
    }
}

fn each_candidate(candidates: Json<'_>, scribe: &mut Scribe) -> Option<()> {
    let mut cursor = Cursor::new(candidates.get());
    cursor.open(b'[').ok()?;
    while cursor.has_element(b']').ok()? {
        let candidate: Candidate<'_> = cursor.value().ok()?;
        let parts = candidate.content.and_then(|content| content.parts);
        if candidate.index.unwrap_or_default() > 0 {
            // Only the first candidate is followed, and a stream with several is not cut: all would have to end.
            scribe.leave_whole();
            if let Some(parts) = parts {
                scribe.murmured(parts);
            }
            continue;
        }
        scribe.ended(candidate.finish_reason);
        if let Some(parts) = parts {
            gemini::each(parts, &mut |part| read_part(&part, scribe)).ok()?;
        }
    }
    Some(())
}

fn read_part(part: &gemini::Part<'_>, scribe: &mut Scribe) {
    if let Some(function) = part.function_call {
        if function.runs_at_provider {
            return scribe.begin_anew();
        }
        if function.comes_in_pieces {
            // Where the last of them is, is not known before the next.
            scribe.leave_whole();
        }
        let call = scribe.call(function.id, function.name);
        if let Some(args) = function.args {
            scribe.arguments(call, args);
        }
    } else if let Some(text) = part.text {
        if part.is_thought() {
            scribe.thought(text);
        } else {
            scribe.said(text);
        }
    }
}
