//! The content of a message: a string, or a list of blocks.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use twox_hash::XxHash3_64;

use crate::json::{Broken, Cursor, Json, hash, string, words};

/// One block of a message's content.
#[derive(Debug, Default, Clone, Copy)]
pub struct Block<'a> {
    /// All of it, as it is written.
    written: Option<&'a str>,
    kind: Option<Json<'a>>,
    text: Option<Json<'a>>,
    refusal: Option<Json<'a>>,
    pub(crate) thinking: Option<Json<'a>>,
    pub(crate) id: Option<Json<'a>>,
    pub(crate) name: Option<Json<'a>>,
    pub(crate) input: Option<Json<'a>>,
    pub(crate) tool_use_id: Option<Json<'a>>,
    pub(crate) content: Option<Json<'a>>,
    is_error: Option<Json<'a>>,
}

impl<'a> Block<'a> {
    /// A block that only the text of a string is known of.
    fn plain(text: Json<'a>) -> Self {
        Self { text: Some(text), ..Self::default() }
    }

    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Broken<'a>> {
        cursor.peek();
        let (start, rest) = (cursor.at(), cursor.rest());
        let mut block = Self::default();
        cursor.members(|key, value| match key {
            "type" => block.kind = Some(value),
            "text" => block.text = Some(value),
            "refusal" => block.refusal = Some(value),
            "thinking" => block.thinking = Some(value),
            "id" => block.id = Some(value),
            "name" => block.name = Some(value),
            "input" => block.input = Some(value),
            "tool_use_id" => block.tool_use_id = Some(value),
            "content" => block.content = Some(value),
            "is_error" => block.is_error = Some(value),
            _ => {}
        })?;
        block.written = rest.get(..cursor.at() - start);
        Ok(block)
    }

    pub(crate) fn kind(&self) -> Cow<'a, str> {
        self.kind.and_then(string).unwrap_or_default()
    }

    pub(crate) fn failed(&self) -> bool {
        self.is_error.is_some_and(|value| value.get() == "true")
    }

    /// The text that the block says, as a JSON string.
    pub(crate) fn said(&self) -> Option<Json<'a>> {
        self.text.or(self.refusal).filter(|text| text.is_string())
    }

    /// What the block says.
    pub(crate) fn words(&self) -> Option<Cow<'a, str>> {
        self.text.and_then(string).or_else(|| self.shown().map(|shown| Cow::Owned(shown.words())))
    }

    /// What the block shows instead of saying it.
    pub(crate) fn shown(&self) -> Option<Shown<'a>> {
        self.written.map(|written| Shown { kind: self.kind(), written: without_cache_control(written) })
    }
}

/// Something in a message that is no words, like a picture.
#[derive(Debug, Clone)]
pub(crate) struct Shown<'a> {
    /// What it is.
    pub(crate) kind: Cow<'a, str>,
    /// All of it but for the marks that clients move about.
    pub(crate) written: Cow<'a, str>,
}

impl Shown<'_> {
    /// A picture says something else than another picture, so its bytes are named by their hash.
    pub(crate) fn words(&self) -> String {
        let kind = if self.kind.is_empty() { "block" } else { &self.kind };
        let bytes = self.written.as_bytes();
        // The short hash takes a nanosecond for each byte, which are milliseconds for a picture.
        let name = if bytes.len() > LONG { XxHash3_64::oneshot(bytes) } else { hash(bytes) };
        format!("[{kind} {name:016x}]")
    }
}

/// From this length on a block is named by the fast hash.
const LONG: usize = 4_096;

/// Visits the blocks of a content.
pub fn each<'a>(content: impl Into<Json<'a>>, visit: &mut dyn FnMut(Block<'a>)) -> Result<(), Broken<'a>> {
    let content = content.into();
    let mut cursor = Cursor::new(content.get());
    match cursor.peek() {
        Some(b'"') => visit(Block::plain(content)),
        Some(b'{') => visit(Block::read(&mut cursor)?),
        Some(b'[') => {
            cursor.open(b'[')?;
            while cursor.has_element(b']')? {
                visit(match cursor.peek() {
                    Some(b'"') => Block::plain(cursor.skip()?),
                    _ => Block::read(&mut cursor)?,
                });
            }
        }
        _ => {}
    }
    Ok(())
}

/// The words of a content; of an object that is no block, its JSON text.
pub fn text(content: Json<'_>) -> Cow<'_, str> {
    match blocks(content) {
        Some(blocks) => joined(blocks.iter().filter_map(Block::words).collect()),
        None => words(content),
    }
}

/// The blocks of a tool's result; `None` when it has none, but is a string or data.
pub(crate) fn blocks(content: Json<'_>) -> Option<Vec<Block<'_>>> {
    let mut cursor = Cursor::new(content.get());
    let mut blocks = Vec::new();
    cursor.open(b'[').ok()?;
    while cursor.has_element(b']').ok()? {
        // A list of anything but blocks is data that the tool returned.
        if cursor.peek() != Some(b'{') || blocks.len() == MAX_BLOCKS {
            return None;
        }
        let block = Block::read(&mut cursor).ok()?;
        block.kind?;
        blocks.push(block);
    }
    Some(blocks)
}

/// The parts with line breaks between them.
pub fn joined(mut parts: Vec<Cow<'_, str>>) -> Cow<'_, str> {
    match parts.len() {
        0 => Cow::Borrowed(""),
        1 => parts.swap_remove(0),
        _ => Cow::Owned(parts.join("\n")),
    }
}

/// The object without its `cache_control`, as if it had never been written.
fn without_cache_control(object: &str) -> Cow<'_, str> {
    if memmem::find(object.as_bytes(), b"\"cache_control\"").is_none() {
        return Cow::Borrowed(object);
    }
    let Ok(Some(span)) = member_span(object, "cache_control") else { return Cow::Borrowed(object) };
    let (before, behind) = (object.get(..span.start), object.get(span.end..));
    Cow::Owned([before, behind].into_iter().flatten().collect())
}

/// Where a member of the object stands, with the comma that it needs.
fn member_span<'a>(object: &'a str, name: &str) -> Result<Option<Range<usize>>, Broken<'a>> {
    let mut cursor = Cursor::new(object);
    cursor.open(b'{')?;
    let mut before = cursor.at();
    while cursor.has_element(b'}')? {
        cursor.peek();
        let start = cursor.at();
        let is_first = object.get(before..start).is_some_and(|between| !between.contains(','));
        let found = cursor.key()? == name;
        cursor.skip()?;
        if found && !is_first {
            return Ok(Some(before..cursor.at()));
        }
        if found {
            let more = cursor.has_element(b'}')?;
            cursor.peek();
            let end = if more { cursor.at() } else { cursor.at().saturating_sub(1) };
            return Ok(Some(start..end));
        }
        before = cursor.at();
    }
    Ok(None)
}

/// A result with more blocks than this is data.
const MAX_BLOCKS: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(json: &str) -> String {
        text(serde_json::from_str::<Json<'_>>(json).unwrap()).into_owned()
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
        assert_ne!(picture(&"A".repeat(5_000)), picture(&"A".repeat(5_001)));
    }

    #[test]
    fn a_list_that_is_data_stays_json() {
        assert_eq!(text_of(r#"[1, {"a": 2}]"#), r#"[1, {"a": 2}]"#);
        assert_eq!(text_of(r#"{"rows": 2}"#), r#"{"rows": 2}"#);
    }

    #[test]
    fn a_moved_cache_mark_does_not_rename_a_picture() {
        let plain = r#"{"type": "image", "source": {"data": "A"}}"#;
        for marked in [
            r#"{"type": "image", "source": {"data": "A"}, "cache_control": {"type": "ephemeral"}}"#,
            r#"{"type": "image", "cache_control": {"type": "ephemeral"}, "source": {"data": "A"}}"#,
            r#"{"cache_control": {"type": "ephemeral"}, "type": "image", "source": {"data": "A"}}"#,
        ] {
            assert_eq!(without_cache_control(marked), plain, "{marked}");
        }
        assert_eq!(without_cache_control(r#"{"cache_control":{}}"#), "{}");
        assert_eq!(without_cache_control(r#"{"a":"\"cache_control\""}"#), r#"{"a":"\"cache_control\""}"#);
    }
}
