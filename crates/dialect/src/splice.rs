//! Putting bytes into a body while all others stay as they are.

use std::borrow::Cow;
use std::ops::Range;

use crate::json::{Cursor, push_escaped};

/// An object in a body, and where the members that matter stand.
pub(crate) struct Object<'a> {
    /// The offset behind the opening brace.
    start: usize,
    is_empty: bool,
    members: Vec<(Cow<'a, str>, Range<usize>)>,
}

impl<'a> Object<'a> {
    /// The object at this place of the body; of its members only those of these names are remembered.
    pub(crate) fn at(body: &'a str, place: Range<usize>, names: &[&str]) -> Option<Self> {
        let offset = place.start;
        let mut cursor = Cursor::new(body.get(place)?);
        cursor.open(b'{').ok()?;
        let mut object = Self { start: offset + cursor.at(), is_empty: true, members: Vec::new() };
        while cursor.has_element(b'}').ok()? {
            object.is_empty = false;
            let key = cursor.key().ok()?;
            cursor.peek();
            let start = offset + cursor.at();
            cursor.skip().ok()?;
            if names.contains(&&*key) {
                object.members.retain(|(known, _)| *known != key);
                object.members.push((key, start..offset + cursor.at()));
            }
        }
        Some(object)
    }

    /// Where the value of this member stands.
    pub(crate) fn get(&self, name: &str) -> Option<Range<usize>> {
        self.members.iter().find(|(known, _)| known == name).map(|(_, place)| place.clone())
    }

    /// Puts in a new first member.
    pub(crate) fn put(&self, name: &str, value: &str) -> Splice {
        let comma = if self.is_empty { "" } else { "," };
        Splice::insert(self.start, format!("\"{name}\":{value}{comma}"))
    }
}

/// A list in a body, and where its elements stand.
pub(crate) struct List {
    /// The offset behind the opening bracket.
    start: usize,
    pub(crate) elements: Vec<Range<usize>>,
}

impl List {
    /// The list at this place of the body.
    pub(crate) fn at(body: &str, place: Range<usize>) -> Option<Self> {
        let offset = place.start;
        let mut cursor = Cursor::new(body.get(place)?);
        cursor.open(b'[').ok()?;
        let mut list = Self { start: offset + cursor.at(), elements: Vec::new() };
        while cursor.has_element(b']').ok()? {
            cursor.peek();
            let start = offset + cursor.at();
            cursor.skip().ok()?;
            list.elements.push(start..offset + cursor.at());
        }
        Some(list)
    }

    /// Puts in a new first element.
    pub(crate) fn put_first(&self, element: &str) -> Splice {
        let comma = if self.elements.is_empty() { "" } else { "," };
        Splice::insert(self.start, format!("{element}{comma}"))
    }

    /// Puts in a new last element.
    pub(crate) fn put_last(&self, element: &str) -> Splice {
        match self.elements.last() {
            Some(last) => Splice::insert(last.end, format!(",{element}")),
            None => Splice::insert(self.start, element.to_owned()),
        }
    }
}

/// One change of a body.
pub(crate) struct Splice {
    place: Range<usize>,
    put: String,
}

impl Splice {
    pub(crate) fn insert(at: usize, put: String) -> Self {
        Self { place: at..at, put }
    }

    pub(crate) fn replace(place: Range<usize>, put: String) -> Self {
        Self { place, put }
    }

    /// Puts a text before what a string says, with a blank line between them.
    pub(crate) fn before_string(string: &Range<usize>, text: &str) -> Self {
        Self::insert(string.start + 1, escaped(text) + gap(string))
    }

    /// Puts a text behind what a string says, with a blank line between them.
    pub(crate) fn behind_string(string: &Range<usize>, text: &str) -> Self {
        Self::insert(string.end - 1, gap(string).to_owned() + &escaped(text))
    }

    /// The body with the changes, which must come in order.
    pub(crate) fn apply(changes: &[Self], body: &str) -> Option<Vec<u8>> {
        let more: usize = changes.iter().map(|change| change.put.len()).sum();
        let mut edited = Vec::with_capacity(body.len() + more);
        let mut at = 0;
        for change in changes {
            edited.extend_from_slice(body.get(at..change.place.start)?.as_bytes());
            edited.extend_from_slice(change.put.as_bytes());
            at = change.place.end;
        }
        edited.extend_from_slice(body.get(at..)?.as_bytes());
        Some(edited)
    }
}

/// The text as it stands inside of a JSON string.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_escaped(text, &mut out);
    out
}

/// The text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// A blank line, unless the string has nothing to be kept apart from.
fn gap(string: &Range<usize>) -> &'static str {
    if string.len() > 2 { "\\n\\n" } else { "" }
}
