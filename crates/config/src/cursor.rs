//! Reads one value of the tree as what its key asks for, and reports it when it is something else.

use crate::fields::Fields;
use crate::kinds::excerpt;
use crate::path::{Path, quote};
use crate::problem::Problem;
use crate::report::Report;
use crate::scalar::{Meaning, meaning};
use crate::suggest::{listed, suggest};
use crate::tree::{Key, Node, Value};

/// One value, the way to it, and the report that it may be put on.
///
/// Every reader gives [`Refused`] when the value is wrong, and has reported it by then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    node: &'a Node,
    path: &'a Path<'a>,
    report: &'a Report,
}

/// Proof that a value was wrong and is on the report; only [`Cursor::refuse`] makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused(());

/// A value that was read, or is on the report.
pub(crate) type Read<T> = Result<T, Refused>;

impl<'a> Cursor<'a> {
    pub(crate) const fn new(node: &'a Node, path: &'a Path<'a>, report: &'a Report) -> Self {
        Self { node, path, report }
    }

    /// A map with known keys.
    pub(crate) fn map(self) -> Read<Fields<'a>> {
        let Value::Map(entries) = &self.node.value else {
            return Err(self.mismatch("a map", "write `key: value` pairs, one per line, or `{}` for none"));
        };
        Ok(Fields::new(self, entries))
    }

    /// A map whose keys are names that the user chose; [`Refused`] when one of its values is wrong.
    pub(crate) fn entries<T>(self, mut read: impl FnMut(&Key, Cursor<'_>) -> Read<T>) -> Read<Vec<T>> {
        let Value::Map(entries) = &self.node.value else {
            return Err(self.mismatch("a map", "write `name: {...}` pairs, one per line, or `{}` for none"));
        };
        let values: Vec<_> = entries
            .iter()
            .map(|(key, node)| self.step(&Path::Key(self.path, &key.text), node, |at| read(key, at)))
            .collect();
        values.into_iter().collect()
    }

    /// A list; [`Refused`] when one of its items is wrong.
    pub(crate) fn list<T>(self, mut read: impl FnMut(Cursor<'_>) -> Read<T>) -> Read<Vec<T>> {
        let items = match &self.node.value {
            Value::List(items) => items,
            Value::Scalar { text, quoted: false } if !text.is_empty() && text.len() < 40 => {
                return Err(self.mismatch("a list", &format!("write `[{text}]`")));
            }
            _ => {
                let hint = "write `[a, b]`, or one `- item` per line, or `[]` for none";
                return Err(self.mismatch("a list", hint));
            }
        };
        let values: Vec<_> = items
            .iter()
            .enumerate()
            .map(|(index, node)| self.step(&Path::Index(self.path, index), node, &mut read))
            .collect();
        values.into_iter().collect()
    }

    /// One of a few names.
    pub(crate) fn choice<T: Copy>(self, choices: &[(&str, T)]) -> Read<T> {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let Some(text) = self.scalar().filter(|_| !self.is_null()) else {
            return Err(self.mismatch("a name", &format!("write one of {}", listed(&names))));
        };
        let chosen = choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        chosen.ok_or_else(|| self.refuse(format!("{} is not known here", quote(text)), suggest(text, &names)))
    }

    /// A value that may also be `null`, where the spec says what that means.
    pub(crate) fn or_null<T>(self, read: impl FnOnce(Self) -> Read<T>) -> Read<Option<T>> {
        if self.is_null() { Ok(None) } else { read(self).map(Some) }
    }

    /// Reports the value.
    pub(crate) fn refuse(self, message: impl Into<String>, hint: impl Into<String>) -> Refused {
        if !self.report.is_full() {
            self.report.problem(Problem::at(self.node.spot, message).path(self.path).hint(hint));
        }
        Refused(())
    }

    /// Reports the key of an entry of this map.
    pub(crate) fn refuse_key(self, key: &Key, message: impl Into<String>, hint: impl Into<String>) {
        if self.report.is_full() {
            return;
        }
        let path = Path::Key(self.path, &key.text);
        self.report.problem(Problem::at(key.spot, message).path(path).hint(hint));
    }

    /// Mentions a value that is legal but rarely meant.
    pub(crate) fn notice(self, message: impl Into<String>, hint: impl Into<String>) {
        self.report.notice(Problem::at(self.node.spot, message).path(self.path).hint(hint));
    }

    /// Reads what stands below this value.
    pub(crate) fn step<T>(self, path: &Path<'_>, node: &Node, read: impl FnOnce(Cursor<'_>) -> T) -> T {
        read(Cursor { node, path, report: self.report })
    }

    /// The line that the value stands on.
    pub(crate) const fn line(self) -> u64 {
        self.node.spot.line
    }

    pub(crate) const fn is_list(self) -> bool {
        matches!(self.node.value, Value::List(_))
    }

    /// Whether this is a list of maps, and no empty one.
    pub(crate) fn is_list_of_maps(self) -> bool {
        let Value::List(items) = &self.node.value else { return false };
        !items.is_empty() && items.iter().all(|item| matches!(item.value, Value::Map(_)))
    }

    pub(crate) const fn is_map(self) -> bool {
        matches!(self.node.value, Value::Map(_))
    }

    pub(crate) const fn report(self) -> &'a Report {
        self.report
    }

    pub(crate) const fn path(self) -> &'a Path<'a> {
        self.path
    }

    /// Reports a value of another kind than the key asks for.
    pub(crate) fn mismatch(self, expected: &str, hint: &str) -> Refused {
        let hint = if self.is_null() { "give it a value, or remove it to use the default" } else { hint };
        self.refuse(format!("expected {expected}, found {}", self.describe()), hint)
    }

    fn describe(self) -> String {
        let text = self.scalar().unwrap_or_default();
        match (&self.node.value, self.meaning()) {
            (Value::List(_), _) => "a list".to_owned(),
            (Value::Map(_), _) => "a map".to_owned(),
            (_, Some(Meaning::Null)) if text.is_empty() => "nothing".to_owned(),
            (_, Some(Meaning::Null)) => "null".to_owned(),
            (_, Some(Meaning::Flag(flag))) => flag.to_string(),
            (_, Some(Meaning::Whole | Meaning::Real(_))) => format!("the number {}", excerpt(text)),
            _ => format!("the text {}", quote(text)),
        }
    }

    /// The text of a scalar, quoted or not.
    pub(crate) fn scalar(self) -> Option<&'a str> {
        match &self.node.value {
            Value::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// What a scalar stands for; a quoted one is always text.
    pub(crate) fn meaning(self) -> Option<Meaning> {
        match &self.node.value {
            Value::Scalar { quoted: true, .. } => Some(Meaning::Text),
            Value::Scalar { text, .. } => Some(meaning(text)),
            _ => None,
        }
    }

    pub(crate) fn is_null(self) -> bool {
        self.meaning() == Some(Meaning::Null)
    }
}
