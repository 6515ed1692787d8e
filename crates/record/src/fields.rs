//! The fields of one section, read one by one; what is wrong is noted and reading goes on.

use serde_json::{Map, Value};

use crate::log::DecisionLog;
use crate::rejection::Violation;

/// A section whose fields are taken out as they are read.
pub(crate) struct Fields<'a> {
    section: &'static str,
    values: Map<String, Value>,
    problems: &'a mut Vec<Violation>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(
        section: &'static str,
        values: Map<String, Value>,
        problems: &'a mut Vec<Violation>,
    ) -> Self {
        Self { section, values, problems }
    }

    /// Notes what is wrong with a field.
    fn problem<T>(&mut self, name: &str, message: impl Into<String>) -> Option<T> {
        self.problems.push(Violation::new(format!("{}.{name}", self.section), message));
        None
    }

    /// A field's value; `null` is as good as absent.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.values.remove(name).filter(|value| !value.is_null())
    }

    /// A text that must be there and must say something.
    pub(crate) fn required_text(&mut self, name: &str) -> Option<String> {
        match self.take(name) {
            None => self.problem(name, "is required"),
            Some(Value::String(text)) if text.is_empty() => self.problem(name, "must not be empty"),
            Some(value) => self.text_of(name, value, DecisionLog::MAX_TEXT),
        }
    }

    pub(crate) fn text(&mut self, name: &str, max: usize) -> Option<String> {
        let value = self.take(name)?;
        self.text_of(name, value, max)
    }

    fn text_of(&mut self, name: &str, value: Value, max: usize) -> Option<String> {
        match value {
            Value::String(text) if text.len() <= max => Some(text),
            Value::String(text) => {
                self.problem(name, format!("has {} bytes, at most {max} are accepted", text.len()))
            }
            _ => self.problem(name, "must be a string"),
        }
    }

    /// A text that must be there and stands for something.
    pub(crate) fn required<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        match self.take(name) {
            None => self.problem(name, "is required"),
            Some(value) => self.parsed(name, &value, expected, read),
        }
    }

    /// A text that stands for something, if it is there.
    pub(crate) fn optional<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let value = self.take(name)?;
        self.parsed(name, &value, expected, read)
    }

    fn parsed<T>(
        &mut self,
        name: &str,
        value: &Value,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let Some(text) = value.as_str() else {
            return self.problem(name, "must be a string");
        };
        read(text).or_else(|| self.problem(name, format!("must be {expected}")))
    }

    /// A step's name, where an empty text is as good as none.
    pub(crate) fn optional_or_empty<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        if self.values.get(name).and_then(Value::as_str) == Some("") {
            self.values.remove(name);
        }
        self.optional(name, expected, read)
    }

    pub(crate) fn texts(&mut self, name: &str) -> Option<Vec<String>> {
        let Value::Array(members) = self.take(name)? else {
            return self.problem(name, "must be an array of strings");
        };
        if members.len() > DecisionLog::MAX_ITEMS {
            let (count, max) = (members.len(), DecisionLog::MAX_ITEMS);
            return self.problem(name, format!("has {count} members, at most {max} are accepted"));
        }
        let mut texts = Vec::with_capacity(members.len());
        for (index, member) in members.into_iter().enumerate() {
            texts.extend(self.text_of(&format!("{name}[{index}]"), member, DecisionLog::MAX_TEXT));
        }
        Some(texts)
    }

    pub(crate) fn number(&mut self, name: &str, max: f64) -> Option<f64> {
        match self.take(name)?.as_f64() {
            None => self.problem(name, "must be a number"),
            Some(number) if (0.0..=max).contains(&number) => Some(number),
            Some(_) => self.problem(name, format!("must be from 0 to {max}")),
        }
    }

    pub(crate) fn count(&mut self, name: &str) -> Option<u64> {
        let value = self.take(name)?;
        let whole = value.as_u64().or_else(|| {
            // JSON does not tell 5 from 5.0.
            let number = value.as_f64().filter(|number| number.fract() == 0.0 && *number >= 0.0)?;
            (number <= DecisionLog::MAX_TOKENS as f64).then(|| {
                #[expect(clippy::cast_sign_loss, reason = "it was compared with 0 above")]
                let whole = number as u64;
                whole
            })
        });
        match whole {
            Some(count) if count <= DecisionLog::MAX_TOKENS => Some(count),
            _ if !value.is_number() => self.problem(name, "must be an integer"),
            _ => self.problem(name, format!("must be an integer from 0 to {}", DecisionLog::MAX_TOKENS)),
        }
    }

    pub(crate) fn flag(&mut self, name: &str) -> Option<bool> {
        let value = self.take(name)?;
        value.as_bool().or_else(|| self.problem(name, "must be true or false"))
    }

    /// JSON in a text, or an object, which is put into one.
    pub(crate) fn json_text(&mut self, name: &str) -> Option<String> {
        let text = match self.take(name)? {
            value @ Value::Object(_) => value.to_string(),
            Value::String(text) if text.is_empty() => return Some(text),
            Value::String(text) => {
                if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_err() {
                    return self.problem(name, "must be JSON-encoded text, or an object");
                }
                text
            }
            _ => return self.problem(name, "must be a string or an object"),
        };
        self.text_of(name, Value::String(text), DecisionLog::MAX_TEXT)
    }
}
