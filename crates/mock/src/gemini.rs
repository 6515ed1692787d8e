//! Gemini: `:generateContent`, and `:streamGenerateContent` as events or as an array that grows.

use bytes::Bytes;

use crate::answer::{Answer, Part, pieces};
use crate::json::{Json, object};
use crate::turn::Usage;

/// The answer in one piece.
pub(crate) fn whole(answer: &Answer) -> Bytes {
    let parts = answer.parts.iter().map(|part| whole_part(part, answer)).collect();
    response(answer, parts, Some("STOP")).pretty().into()
}

/// The answer as server-sent events, with the line ends that Google writes.
pub(crate) fn events(answer: &Answer) -> Vec<Bytes> {
    responses(answer).iter().map(|response| format!("data: {}\r\n\r\n", response.compact()).into()).collect()
}

/// The answer as one JSON array that comes element by element.
pub(crate) fn array(answer: &Answer) -> Vec<Bytes> {
    let mut chunks: Vec<Bytes> = responses(answer)
        .iter()
        .enumerate()
        .map(|(index, response)| {
            let before = if index == 0 { "[" } else { ",\r\n" };
            format!("{before}{}", response.pretty()).into()
        })
        .collect();
    chunks.push(Bytes::from_static(b"]"));
    chunks
}

/// Each piece of a text is a response of its own, and so is each call; the last one says why it ended.
fn responses(answer: &Answer) -> Vec<Json> {
    let parts: Vec<Json> = answer
        .parts
        .iter()
        .flat_map(|part| match part {
            Part::Reasoning(text) => pieces(text).into_iter().map(thought).collect(),
            Part::Text(text) => pieces(text).into_iter().map(said).collect(),
            Part::Call(_) => vec![whole_part(part, answer)],
        })
        .collect();
    let last = parts.len() - 1;
    let finish = |index| (index == last).then_some("STOP");
    parts.into_iter().enumerate().map(|(index, part)| response(answer, vec![part], finish(index))).collect()
}

fn response(answer: &Answer, parts: Vec<Json>, finish: Option<&str>) -> Json {
    let mut candidate = vec![("content", object! { "parts": parts, "role": "model" })];
    candidate.extend(finish.map(|finish| ("finishReason", finish.into())));
    candidate.push(("index", 0u64.into()));
    object! {
        "candidates": vec![Json::Object(candidate)],
        "usageMetadata": usage(&answer.usage),
        "modelVersion": answer.model.as_str(),
        "responseId": answer.id(""),
    }
}

fn whole_part(part: &Part, answer: &Answer) -> Json {
    match part {
        Part::Reasoning(text) => thought(text),
        Part::Text(text) => said(text),
        Part::Call(call) => {
            let function = object! { "name": call.tool.as_str(), "args": Json::Raw(call.args.clone()) };
            // Only the first call of a round is signed.
            if answer.calls().next().is_some_and(|first| first.id == call.id) {
                object! { "functionCall": function, "thoughtSignature": "bW9jaw==" }
            } else {
                object! { "functionCall": function }
            }
        }
    }
}

fn said(text: &str) -> Json {
    object! { "text": text }
}

fn thought(text: &str) -> Json {
    object! { "text": text, "thought": true }
}

fn usage(usage: &Usage) -> Json {
    let prompt = usage.input + usage.cache_read + usage.cache_write;
    let mut fields = vec![
        ("promptTokenCount", prompt.into()),
        ("candidatesTokenCount", usage.output.into()),
        ("totalTokenCount", (prompt + usage.output + usage.reasoning).into()),
    ];
    if usage.cache_read > 0 {
        fields.push(("cachedContentTokenCount", usage.cache_read.into()));
    }
    let details = object! { "modality": "TEXT", "tokenCount": prompt };
    fields.push(("promptTokensDetails", vec![details].into()));
    if usage.reasoning > 0 {
        fields.push(("thoughtsTokenCount", usage.reasoning.into()));
    }
    Json::Object(fields)
}
