//! A walk over JSON text that finds values and their places, and parses none that is not asked for.

use std::borrow::Cow;

use serde::Deserialize;

use super::Json;
use super::escape::unescaped;
use super::scan::{behind_space, plain_end, scalar_end, string_end};

/// A place in a JSON text.
///
/// Lists and objects are walked like this, so that each element can be parsed as what it is and its place is known:
///
/// ```text
/// cursor.open(b'[')?;
/// while cursor.has_element(b']')? { cursor.value::<T>()?; }
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// Whether the next element of the current list or object is its first.
    first: bool,
}

/// The text is not JSON, or not what was asked for.
#[derive(Debug)]
pub struct Broken<'a> {
    /// The text from the place on to which the error refers.
    pub part: &'a str,
    /// What is wrong with the value there; `None` when a bracket, comma or colon is missing right there.
    pub error: Option<serde_json::Error>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, first: true }
    }

    /// A cursor behind an element of a list or object.
    pub(crate) fn behind_element(text: &'a str) -> Self {
        Self { text, at: 0, first: false }
    }

    /// Bytes before this place.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Everything from this place on.
    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next byte that is no white space, which the cursor then stands before.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.at = behind_space(self.text.as_bytes(), self.at);
        self.text.as_bytes().get(self.at).copied()
    }

    /// Steps into a list or an object.
    #[inline]
    pub(crate) fn open(&mut self, bracket: u8) -> Result<(), Broken<'a>> {
        self.first = true;
        self.over_sign(bracket).ok_or_else(|| self.broken())
    }

    /// Whether another element comes; else steps out over the closing bracket.
    #[inline]
    pub(crate) fn has_element(&mut self, bracket: u8) -> Result<bool, Broken<'a>> {
        self.next_element(bracket).ok_or_else(|| self.broken())
    }

    /// The key of a member, and the step over its colon.
    pub(crate) fn key(&mut self) -> Result<Cow<'a, str>, Broken<'a>> {
        self.peek();
        let start = self.at;
        self.over_string().ok_or_else(|| self.broken())?;
        let inside = self.text.get(start + 1..self.at - 1).unwrap_or_default();
        self.over_sign(b':').ok_or_else(|| self.broken())?;
        Ok(unescaped(inside))
    }

    /// Visits the members of an object, but for those that are null.
    pub(crate) fn members(&mut self, mut visit: impl FnMut(&str, Json<'a>)) -> Result<(), Broken<'a>> {
        self.walk(|key, cursor| {
            if let Some(value) = cursor.skip_unless_null()? {
                visit(key, value);
            }
            Ok(())
        })
    }

    /// Walks over the members of an object. `visit` gets each key with the cursor before its value, and steps over it:
    /// what is inside of a value is then read on the same walk.
    pub(crate) fn walk(
        &mut self,
        mut visit: impl FnMut(&str, &mut Self) -> Result<(), Broken<'a>>,
    ) -> Result<(), Broken<'a>> {
        self.open(b'{')?;
        loop {
            let key = match self.over_plain_key() {
                Some(key) => Cow::Borrowed(key),
                None if self.has_element(b'}')? => self.key()?,
                None => return Ok(()),
            };
            visit(&key, self)?;
        }
    }

    /// Steps over the value that comes here and returns it, unless it is null.
    pub(crate) fn skip_unless_null(&mut self) -> Result<Option<Json<'a>>, Broken<'a>> {
        let value = self.skip()?;
        Ok((!value.is_null()).then_some(value))
    }

    /// Steps over a null, if that is what comes here.
    pub(crate) fn is_null(&mut self) -> Result<bool, Broken<'a>> {
        let is_null = self.peek() == Some(b'n');
        if is_null {
            self.over_scalar().ok_or_else(|| self.broken())?;
        }
        Ok(is_null)
    }

    /// A count that comes here: a number that is whole and not negative, or null.
    pub(crate) fn count(&mut self) -> Result<Option<u64>, Broken<'a>> {
        let Some(value) = self.skip_unless_null()? else { return Ok(None) };
        value.get().parse().map(Some).map_err(|_| self.broken())
    }

    /// Parses the value that comes here. On an error the cursor stays before it.
    pub(crate) fn value<T: Deserialize<'a>>(&mut self) -> Result<T, Broken<'a>> {
        let part = self.rest();
        let before = self.clone();
        let value = self.skip()?;
        serde_json::from_str(value.get()).map_err(|error| {
            *self = before;
            Broken { part, error: Some(error) }
        })
    }

    /// Steps over the value that comes here and returns it.
    ///
    /// Nesting costs memory on the heap, never stack. A number may be any word of its letters, and a string may have
    /// raw control characters: nobody here reads them, and whoever does will complain.
    #[inline]
    pub(crate) fn skip(&mut self) -> Result<Json<'a>, Broken<'a>> {
        self.over_value().map(Json).ok_or_else(|| self.broken())
    }

    /// Nothing but white space may be left.
    pub(crate) fn end(&mut self) -> Result<(), Broken<'a>> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.broken()),
        }
    }

    /// Something is missing here.
    #[cold]
    pub(crate) fn broken(&self) -> Broken<'a> {
        Broken { part: self.rest(), error: None }
    }
}

/// Steps over what comes here; `None` where it is broken, with the cursor before the place. They are so short that putting
/// into words what is wrong would cost more than they do: that is for who called them.
impl<'a> Cursor<'a> {
    #[inline]
    fn over_sign(&mut self, sign: u8) -> Option<()> {
        (self.peek()? == sign).then(|| self.at += 1)
    }

    /// To the next element, over the comma before it, or out over the closing bracket: whether there is one.
    fn next_element(&mut self, bracket: u8) -> Option<bool> {
        let is_first = std::mem::take(&mut self.first);
        let next = self.peek()?;
        if next == bracket || !is_first {
            // A place that holds neither is broken, and the cursor stays before it.
            (next == bracket || next == b',').then_some(())?;
            self.at += 1;
        }
        Some(next != bracket)
    }

    /// To the next member of an object and over its key, where that is a word or two without an escape and the colon stands
    /// right behind it. Nearly all are such; before anything else it stays where it is.
    #[inline(never)]
    fn over_plain_key(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        let mut start = behind_space(bytes, self.at);
        if !self.first {
            start = bytes.get(start).filter(|next| **next == b',').map(|_| behind_space(bytes, start + 1))?;
        }
        let end = plain_end(bytes, start).filter(|end| bytes.get(*end) == Some(&b':'))?;
        (self.at, self.first) = (end + 1, false);
        self.text.get(start + 1..end - 1)
    }

    #[inline(never)]
    fn over_value(&mut self) -> Option<&'a str> {
        // Behind a colon, most spaces stand alone.
        if let Some([b' ', b'!'..=u8::MAX, ..]) = self.text.as_bytes().get(self.at..) {
            self.at += 1;
        }
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'{' | b'[' => self.over_nested(first)?,
            _ => self.over_scalar()?,
        }
        self.text.get(start..self.at)
    }

    /// A value without others in it.
    #[inline]
    fn over_scalar(&mut self) -> Option<()> {
        self.at = scalar_end(self.text.as_bytes(), self.at)?;
        Some(())
    }

    /// An object or a list, which begins with this byte.
    #[inline(never)]
    fn over_nested(&mut self, first: u8) -> Option<()> {
        let mut open = Nesting::default();
        let mut next = first;
        loop {
            match next {
                b'{' | b'[' => {
                    let is_object = next == b'{';
                    self.at += 1;
                    if self.peek()? == if is_object { b'}' } else { b']' } {
                        self.at += 1;
                    } else {
                        open.push(is_object);
                        if is_object {
                            self.over_key()?;
                        }
                        next = self.peek()?;
                        continue;
                    }
                }
                _ => self.over_scalar()?,
            }
            // Behind a value: steps out of all that ends here, and on to the next value.
            loop {
                let Some(is_object) = open.last() else { return Some(()) };
                match (self.peek()?, is_object) {
                    (b',', _) => {
                        self.at += 1;
                        if is_object {
                            self.over_key()?;
                        }
                        break;
                    }
                    (b'}', true) | (b']', false) => {
                        self.at += 1;
                        open.pop();
                    }
                    _ => return None,
                }
            }
            next = self.peek()?;
        }
    }

    #[inline]
    fn over_key(&mut self) -> Option<()> {
        self.peek();
        self.over_string()?;
        self.over_sign(b':')
    }

    #[inline]
    fn over_string(&mut self) -> Option<()> {
        self.at = string_end(self.text.as_bytes(), self.at)?;
        Some(())
    }
}

/// Whether each of the objects and lists that are open is an object: a bit each, the innermost lowest. Only what is
/// nested deeper than any message is needs memory of its own.
#[derive(Default)]
struct Nesting {
    innermost: u64,
    depth: usize,
    outer: Vec<u64>,
}

impl Nesting {
    fn push(&mut self, is_object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.innermost);
        }
        self.innermost = (self.innermost << 1) | u64::from(is_object);
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.innermost >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.innermost = self.outer.pop().unwrap_or_default();
        }
    }

    fn last(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.innermost & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Option<Vec<u64>> {
        let mut cursor = Cursor::new(text);
        let mut found = Vec::new();
        cursor.open(b'[').ok()?;
        while cursor.has_element(b']').ok()? {
            found.push(cursor.value().ok()?);
        }
        cursor.end().ok()?;
        Some(found)
    }

    #[test]
    fn a_list_is_walked_with_any_white_space() {
        assert_eq!(numbers(" [ 1 ,\t2\r\n, 3 ] "), Some(vec![1, 2, 3]));
        assert_eq!(numbers("[]"), Some(vec![]));
    }

    #[test]
    fn a_list_with_a_comma_too_many_or_too_few_is_broken() {
        for text in ["[1,]", "[,1]", "[1 2]", "[1", "[", "", "[1]]", "[1],"] {
            assert_eq!(numbers(text), None, "{text}");
        }
    }

    #[test]
    fn an_object_is_walked_over_values_of_any_depth() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let text = format!(r#"{{"a":{deep},"\u0062":{{"c":[1]}} }}"#);
        let mut cursor = Cursor::new(&text);
        let mut found = Vec::new();
        cursor.open(b'{').unwrap();
        while cursor.has_element(b'}').unwrap() {
            found.push((cursor.key().unwrap().into_owned(), cursor.skip().unwrap().get().len()));
        }
        cursor.end().unwrap();
        assert_eq!(found, [("a".to_owned(), 20_000), ("b".to_owned(), 9)]);
    }

    #[test]
    fn a_value_of_another_type_leaves_the_cursor_before_it() {
        let mut cursor = Cursor::new(" {\"a\":1}");
        assert!(cursor.value::<u64>().is_err());
        assert_eq!(cursor.skip().unwrap().get(), "{\"a\":1}");
    }

    #[test]
    fn a_quote_behind_backslashes_ends_a_string_only_if_they_are_even() {
        for (text, length) in [(r#""""#, 2), (r#""a\"b""#, 6), (r#""a\\""#, 5), (r#""\\\"\\""#, 8)] {
            assert_eq!(Cursor::new(&format!("{text},\"")).skip().unwrap().get().len(), length, "{text}");
        }
        for text in [r#"""#, r#""\""#, r#""\\\""#, "x", "\"é"] {
            assert!(Cursor::new(text).skip().is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_inside_of_a_value_is_read_on_the_same_walk() {
        let mut found = Vec::new();
        let mut cursor = Cursor::new(r#"{"a": {"b": 1, "c": null}, "d": null, "e": [], "f": {}, "g": 2}"#);
        cursor
            .walk(|outer, cursor| {
                if cursor.peek() == Some(b'{') {
                    return cursor.walk(|inner, cursor| {
                        found.push((format!("{outer}.{inner}"), cursor.count()?));
                        Ok(())
                    });
                }
                let value = cursor.skip_unless_null()?;
                found.push((outer.to_owned(), value.map(|value| value.get().len() as u64)));
                Ok(())
            })
            .unwrap();
        cursor.end().unwrap();
        let expected = [("a.b", Some(1)), ("a.c", None), ("d", None), ("e", Some(2)), ("g", Some(1))];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value)));
    }

    #[test]
    fn a_count_is_whole_and_not_negative() {
        assert_eq!(Cursor::new("7,").count().unwrap(), Some(7));
        assert_eq!(Cursor::new("null").count().unwrap(), None);
        for text in ["-1", "1.5", "\"1\"", "[1]", "1e3", "18446744073709551616", ""] {
            assert!(Cursor::new(text).count().is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nesting_is_a_stack_of_any_depth(kinds in proptest::collection::vec(proptest::prelude::any::<bool>(), 0..200)) {
            let mut open = Nesting::default();
            for kind in &kinds {
                open.push(*kind);
            }
            for kind in kinds.iter().rev() {
                proptest::prop_assert_eq!(open.last(), Some(*kind));
                open.pop();
            }
            proptest::prop_assert_eq!(open.last(), None);
        }

        #[test]
        fn what_is_skipped_is_what_a_parser_reads(
            text in "[\\[\\]{}\",:\\\\ 0-9a-c]{0,12}|(\\{\"a\":)?\\[(1|true|\"\\\\\"\"|\\{\\}|null|,|-1\\.5e3| ){0,5}\\]\\}?",
        ) {
            let mut values = serde_json::Deserializer::from_str(&text).into_iter::<serde::de::IgnoredAny>();
            if let Some(Ok(_)) = values.next() {
                let mut cursor = Cursor::new(&text);
                cursor.skip().unwrap();
                proptest::prop_assert_eq!(cursor.at(), values.byte_offset());
            } else if let Ok(skipped) = Cursor::new(&text).skip() {
                // Only numbers and strings are judged more kindly.
                proptest::prop_assert!(skipped.get().contains(|c: char| c.is_ascii_digit() || c == '"'), "{}", text);
            }
        }
    }
}
