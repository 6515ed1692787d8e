//! A walk over JSON text: its own steps over brackets, commas and keys; values are left to the parser.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::text::Text;

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
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let blank = rest.iter().position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
        self.at += blank.unwrap_or(rest.len());
        rest.get(blank?).copied()
    }

    /// Steps into a list or an object.
    pub(crate) fn open(&mut self, bracket: u8) -> Result<(), Broken<'a>> {
        self.first = true;
        self.expect(bracket)
    }

    /// Whether another element comes; else steps out over the closing bracket.
    pub(crate) fn has_element(&mut self, bracket: u8) -> Result<bool, Broken<'a>> {
        if self.peek() == Some(bracket) {
            self.at += 1;
            // Whatever this was the end of, it was an element of what is around it.
            self.first = false;
            return Ok(false);
        }
        if !self.first {
            self.expect(b',')?;
        }
        self.first = false;
        Ok(true)
    }

    /// The key of a member, and the step over its colon.
    pub(crate) fn key(&mut self) -> Result<Text<'a>, Broken<'a>> {
        let key = self.value()?;
        self.expect(b':')?;
        Ok(key)
    }

    /// Parses the value that comes here. On an error the cursor stays before it.
    pub(crate) fn value<T: Deserialize<'a>>(&mut self) -> Result<T, Broken<'a>> {
        self.peek();
        let part = self.rest();
        let mut values = serde_json::Deserializer::from_str(part).into_iter::<T>();
        match values.next() {
            Some(Ok(value)) => {
                self.at += values.byte_offset();
                Ok(value)
            }
            Some(Err(error)) => Err(Broken { part, error: Some(error) }),
            None => Err(self.broken()),
        }
    }

    /// Steps over the value that comes here and returns its text.
    pub(crate) fn skip(&mut self) -> Result<&'a str, Broken<'a>> {
        self.peek();
        let start = self.at;
        self.value::<IgnoredAny>()?;
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    /// Nothing but white space may be left.
    pub(crate) fn end(&mut self) -> Result<(), Broken<'a>> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.broken()),
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Broken<'a>> {
        if self.peek() != Some(byte) {
            return Err(self.broken());
        }
        self.at += 1;
        Ok(())
    }

    /// Something is missing here.
    pub(crate) fn broken(&self) -> Broken<'a> {
        Broken { part: self.rest(), error: None }
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
            found.push((cursor.key().unwrap().0.into_owned(), cursor.skip().unwrap().len()));
        }
        cursor.end().unwrap();
        assert_eq!(found, [("a".to_owned(), 20_000), ("b".to_owned(), 9)]);
    }

    #[test]
    fn a_value_of_another_type_leaves_the_cursor_before_it() {
        let mut cursor = Cursor::new(" {\"a\":1}");
        assert!(cursor.value::<u64>().is_err());
        assert_eq!(cursor.skip().unwrap(), "{\"a\":1}");
    }
}
