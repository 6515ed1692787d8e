//! Which format a record has, by its content.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::record::Record;
use crate::{Format, Problem};
use loopbreaker_dialect::json::Text;

/// The format of a record.
pub(crate) fn format_of(record: Record<'_>) -> Result<Format, Problem> {
    record.parse::<IgnoredAny>()?;
    let format = if record.is_array() { of_list(record.text) } else { of_object(record.text) };
    format.ok_or_else(|| {
        record.unusable(
            "it has the shape of no known format; name the format, or remove what is no recorded run",
        )
    })
}

/// The fields that tell formats apart. None has a type: what looks strange here is for the format's reader to judge.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Shape<'a> {
    #[serde(rename = "resourceSpans", alias = "resource_spans", borrow)]
    resource_spans: Option<&'a RawValue>,
    #[serde(borrow)]
    trajectory: Option<&'a RawValue>,
    #[serde(borrow)]
    steps: Option<&'a RawValue>,
    #[serde(borrow)]
    meta: Option<&'a RawValue>,
    #[serde(borrow)]
    identity: Option<&'a RawValue>,
    #[serde(borrow)]
    log: Option<&'a RawValue>,
    #[serde(borrow)]
    cognition: Option<&'a RawValue>,
    #[serde(rename = "sessionId", borrow)]
    session_id: Option<&'a RawValue>,
    #[serde(rename = "leafUuid", borrow)]
    leaf_uuid: Option<&'a RawValue>,
    #[serde(borrow)]
    uuid: Option<&'a RawValue>,
    #[serde(borrow)]
    snapshot: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    contents: Option<&'a RawValue>,
    #[serde(borrow)]
    history: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    action: Option<&'a RawValue>,
    #[serde(borrow)]
    observation: Option<&'a RawValue>,
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(rename = "type", borrow)]
    kind: Option<&'a RawValue>,
}

fn of_object(text: &str) -> Option<Format> {
    let shape: Shape<'_> = serde_json::from_str(text).ok()?;
    if shape.resource_spans.is_some() {
        return Some(Format::OtlpJson);
    }
    if shape.trajectory.is_some_and(is_list) {
        return Some(Format::SweAgent);
    }
    if shape.steps.is_some_and(is_list) {
        return Some(Format::Trace);
    }
    if let Some(messages) = shape.messages.or(shape.contents.filter(|contents| is_list(contents))) {
        return of_list(messages.get()).or(Some(Format::OpenAi));
    }
    if let Some(history) = shape.history.filter(|history| is_list(history)) {
        return of_list(history.get()).filter(|format| *format == Format::OpenHands);
    }
    of_part(&shape).or_else(|| {
        let items = [shape.input, shape.output].into_iter().flatten();
        items.filter(|items| is_list(items)).find_map(|items| of_list(items.get()))
    })
}

/// The format of one element of a list, or of a line that is a part of a run.
fn of_part(shape: &Shape<'_>) -> Option<Format> {
    let kind = shape.kind.map_or("", RawValue::get);
    let is_entry = shape.leaf_uuid.or(shape.uuid).or(shape.snapshot).is_some() && !kind.is_empty();
    if shape.session_id.is_some() && !kind.is_empty() || is_entry {
        return Some(Format::ClaudeCode);
    }
    let is_decision = shape.identity.or(shape.cognition).or(shape.meta).is_some();
    if is_decision && [shape.meta, shape.cognition, shape.action].into_iter().flatten().any(is_object) {
        return Some(Format::DecisionLog);
    }
    if shape.log.is_some_and(|log| of_object(log.get()) == Some(Format::DecisionLog)) {
        return Some(Format::DecisionLog);
    }
    if [shape.action, shape.observation].into_iter().flatten().any(|name| name.get().starts_with('"')) {
        return Some(Format::OpenHands);
    }
    if shape.role.is_some() {
        return Some(if shape.content.is_some_and(has_blocks) { Format::Anthropic } else { Format::OpenAi });
    }
    let is_item = kind.ends_with("_call\"") || kind.ends_with("_call_output\"") || kind == "\"reasoning\"";
    is_item.then_some(Format::OpenAi)
}

/// The format of a list by its elements: the first that knows decides, but a later message may still show that what
/// looked like plain messages are Anthropic's.
fn of_list(text: &str) -> Option<Format> {
    let mut found = None;
    let record = Record { line: 1, text, only: true };
    let visited = record.each(text, |element: &RawValue| {
        if matches!(found, None | Some(Format::OpenAi)) {
            found = of_element(element.get()).or(found);
        }
        Ok(())
    });
    visited.ok().and(found)
}

fn of_element(text: &str) -> Option<Format> {
    // `OpenHands` has lists of pairs; lists any deeper than that are nothing that is known.
    let pair = text.starts_with('[').then(|| serde_json::from_str::<Vec<&RawValue>>(text).ok());
    let text = match &pair {
        Some(pair) => pair.as_ref()?.first()?.get(),
        None => text,
    };
    let shape: Shape<'_> = serde_json::from_str(text).ok()?;
    let is_run = shape.steps.is_some_and(is_list);
    of_part(&shape).or(is_run.then_some(Format::Trace))
}

/// Whether a message's content has blocks that only Anthropic has.
fn has_blocks(content: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Block<'a> {
        #[serde(rename = "type", borrow)]
        kind: Option<Text<'a>>,
    }
    is_list(content)
        && serde_json::from_str::<Vec<Block<'_>>>(content.get()).is_ok_and(|blocks| {
            let kinds = blocks.iter().filter_map(|block| block.kind.as_ref());
            kinds.into_iter().any(|kind| matches!(&*kind.0, "tool_use" | "tool_result" | "thinking"))
        })
}

fn is_list(value: &RawValue) -> bool {
    value.get().starts_with('[')
}

fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

#[cfg(test)]
mod tests;
