//! The fields of a map with known keys, read one after the other.

use crate::cursor::{Cursor, Read};
use crate::path::{Path, quote};
use crate::suggest::suggest;
use crate::tree::{Key, Node};

/// A map that is being read. Whoever reads it names each key once, then calls [`Fields::finish`], which reports
/// every key that was not named; so the list of accepted keys can never differ from what is read.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    map: Cursor<'a>,
    entries: &'a [(Key, Node)],
    accepted: Vec<&'static str>,
    /// Keys that are known and refused; they are not suggested.
    foreign: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    pub(crate) const fn new(map: Cursor<'a>, entries: &'a [(Key, Node)]) -> Self {
        Self { map, entries, accepted: Vec::new(), foreign: Vec::new() }
    }

    /// The value of a key: `default` when it is absent.
    pub(crate) fn field<T>(
        &mut self,
        name: &'static str,
        default: T,
        read: impl FnOnce(Cursor<'_>) -> Read<T>,
    ) -> Read<T> {
        self.field_or(name, Ok(default), read)
    }

    /// The same with a default that is itself wrong, perhaps; then only a value that is there can be judged.
    pub(crate) fn field_or<T>(
        &mut self,
        name: &'static str,
        default: Read<T>,
        read: impl FnOnce(Cursor<'_>) -> Read<T>,
    ) -> Read<T> {
        self.accepted.push(name);
        match self.find(name) {
            Some(node) => self.map.step(&Path::Key(self.map.path(), name), node, read),
            None => default,
        }
    }

    /// The value of a key that may be left out and has no default.
    pub(crate) fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Cursor<'_>) -> Read<T>,
    ) -> Read<Option<T>> {
        self.field(name, None, |value| read(value).map(Some))
    }

    /// The value of a key that must be there.
    pub(crate) fn required<T>(
        &mut self,
        name: &'static str,
        hint: &str,
        read: impl FnOnce(Cursor<'_>) -> Read<T>,
    ) -> Read<T> {
        match self.optional(name, read)? {
            Some(value) => Ok(value),
            None => Err(self.map.refuse(format!("`{name}` is missing"), hint)),
        }
    }

    /// A key whose value is checked and not used.
    pub(crate) fn check<T>(&mut self, name: &'static str, read: impl FnOnce(Cursor<'_>) -> Read<T>) {
        // What is wrong with it is on the report already.
        drop(self.optional(name, read));
    }

    /// A key of another product's format that has no counterpart here: refused by name, with the next step.
    pub(crate) fn foreign(&mut self, name: &'static str, message: &str, hint: &str) {
        self.foreign.push(name);
        if let Some((key, _)) = self.entries.iter().find(|(key, _)| &*key.text == name) {
            self.map.refuse_key(key, message, hint);
        }
    }

    /// A key that means nothing, here as where it comes from.
    pub(crate) fn ignored(&mut self, name: &'static str) {
        self.foreign.push(name);
    }

    /// Whether the key is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Looks at the value of a key once more, to say something about it; at the whole map when it is absent.
    pub(crate) fn about<T>(&self, name: &str, say: impl FnOnce(Cursor<'_>) -> T) -> T {
        match self.find(name) {
            Some(node) => self.map.step(&Path::Key(self.map.path(), name), node, say),
            None => say(self.map),
        }
    }

    /// Reports every key that nobody asked for.
    pub(crate) fn finish(self) {
        let known = |name: &str| self.accepted.contains(&name) || self.foreign.contains(&name);
        for (key, _) in self.entries.iter().filter(|(key, _)| !known(&key.text)) {
            if self.map.report().is_full() {
                return;
            }
            let hint = match &*key.text {
                "<<" => "merge keys are not supported, write the keys out".to_owned(),
                name => suggest(name, &self.accepted),
            };
            self.map.refuse_key(key, format!("unknown key {}", quote(&key.text)), hint);
        }
    }

    fn find(&self, name: &str) -> Option<&'a Node> {
        self.entries.iter().find(|(key, _)| &*key.text == name).map(|(_, node)| node)
    }
}
