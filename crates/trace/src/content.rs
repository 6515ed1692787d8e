//! The content of a message: a string, or a list of blocks.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Problem;
use crate::record::Record;
use crate::text::{Text, hash, string, words};

/// One block of a message's content.
#[derive(Default, Deserialize)]
#[serde(expecting = "a block of content")]
pub(crate) struct Block<'a> {
    /// All of it, as it is written.
    #[serde(skip)]
    raw: Option<&'a RawValue>,
    #[serde(rename = "type", borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) refusal: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) thinking: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) tool_use_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) content: Option<&'a RawValue>,
    pub(crate) is_error: Option<bool>,
}

impl<'a> Block<'a> {
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kind.as_ref().is_some_and(|own| own.0 == kind)
    }

    pub(crate) fn kind_ends_with(&self, end: &str) -> bool {
        self.kind.as_ref().is_some_and(|own| own.0.ends_with(end))
    }

    /// What the block says. A picture says something else than another picture, so its bytes are named by their hash.
    pub(crate) fn words(self) -> Option<Cow<'a, str>> {
        if let Some(text) = self.text {
            return Some(text.0);
        }
        let kind = self.kind.as_ref().map_or("block", |kind| &*kind.0);
        self.raw.map(|raw| Cow::Owned(format!("[{kind} {:016x}]", hash(raw.get().as_bytes()))))
    }
}

/// Visits the blocks of a content.
pub(crate) fn each<'a, F>(record: Record<'a>, content: &'a RawValue, mut visit: F) -> Result<(), Problem>
where
    F: FnMut(Block<'a>) -> Result<(), Problem>,
{
    match content.get().as_bytes().first() {
        Some(b'"') => visit(Block { text: string(content).map(Text), ..Block::default() }),
        Some(b'[') => record.each(content.get(), |raw: &'a RawValue| {
            if raw.get().starts_with('"') {
                return visit(Block { text: string(raw).map(Text), ..Block::default() });
            }
            visit(parsed(record, raw)?)
        }),
        Some(b'{') => visit(parsed(record, content)?),
        _ => Ok(()),
    }
}

/// The words of a content; of an object that is no block, its JSON text.
pub(crate) fn text<'a>(record: Record<'a>, content: &'a RawValue) -> Result<Cow<'a, str>, Problem> {
    if !content.get().starts_with('[') {
        return Ok(words(content));
    }
    let mut parts = Vec::new();
    let mut is_blocks = true;
    record.each(content.get(), |raw: &'a RawValue| {
        // A list of anything but blocks is data that the tool returned.
        is_blocks = is_blocks && raw.get().starts_with('{');
        if is_blocks {
            match parsed(record, raw) {
                Ok(block) if block.kind.is_some() => parts.extend(block.words()),
                _ => is_blocks = false,
            }
        }
        Ok(())
    })?;
    Ok(if is_blocks { joined(parts) } else { Cow::Borrowed(content.get()) })
}

/// The parts with line breaks between them.
pub(crate) fn joined(mut parts: Vec<Cow<'_, str>>) -> Cow<'_, str> {
    match parts.len() {
        0 => Cow::Borrowed(""),
        1 => parts.swap_remove(0),
        _ => Cow::Owned(parts.join("\n")),
    }
}

fn parsed<'a>(record: Record<'a>, raw: &'a RawValue) -> Result<Block<'a>, Problem> {
    let block: Block<'a> = record.parse_part(raw)?;
    Ok(Block { raw: Some(raw), ..block })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(json: &str) -> String {
        let record = Record { line: 1, text: json, only: true };
        text(record, record.parse().unwrap()).unwrap().into_owned()
    }

    #[test]
    fn text_blocks_are_joined_with_line_breaks() {
        assert_eq!(text_of(r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#), "a\nb");
    }

    #[test]
    fn two_pictures_have_different_words() {
        let picture = |data: &str| text_of(&format!(r#"[{{"type":"image","source":{{"data":"{data}"}}}}]"#));
        assert!(picture("AAAA").starts_with("[image "));
        assert_ne!(picture("AAAA"), picture("BBBB"));
    }

    #[test]
    fn a_list_that_is_data_stays_json() {
        assert_eq!(text_of(r#"[1, {"a": 2}]"#), r#"[1, {"a": 2}]"#);
        assert_eq!(text_of(r#"{"rows": 2}"#), r#"{"rows": 2}"#);
    }
}
