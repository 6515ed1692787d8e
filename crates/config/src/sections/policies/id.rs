//! Names of policies and rules, each given once.

use std::collections::HashMap;

use crate::cursor::{Cursor, Read};
use crate::kinds::filled;
use crate::path::quote;

/// The ids that were given so far, and where each stands.
#[derive(Debug)]
pub(crate) struct Ids {
    what: &'static str,
    file: Option<String>,
    places: HashMap<String, String>,
}

impl Ids {
    /// No ids yet, of policies or of rules.
    pub(crate) fn of(what: &'static str) -> Self {
        Self { what, file: None, places: HashMap::new() }
    }

    /// What is claimed from now on stands in this file.
    pub(crate) fn enter(&mut self, file: &str) {
        self.file = Some(file.to_owned());
    }

    /// Gives an id to whatever stands at `at`, unless it was given before.
    pub(super) fn claim(&mut self, id: &str, at: Cursor<'_>) -> Read<()> {
        if let Some(place) = self.places.get(id) {
            let message = format!("the {} {} stands twice, first on {place}", self.what, quote(id));
            return Err(at.refuse(message, "give one of them another name"));
        }
        let place = match &self.file {
            Some(file) => format!("line {} of {}", at.line(), quote(file)),
            None => format!("line {}", at.line()),
        };
        self.places.insert(id.to_owned(), place);
        Ok(())
    }
}

/// A name that can stand in a header: printable ASCII, not too long.
pub(super) fn read(value: Cursor<'_>) -> Read<String> {
    let text = filled(value)?;
    if text.len() <= MAX_LENGTH && text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Ok(text);
    }
    let message = format!("a name has at most {MAX_LENGTH} characters, all of them plain ASCII");
    Err(value
        .refuse(message, "it is shown in headers and metrics: write a short one, such as `daily-budget`"))
}

const MAX_LENGTH: usize = 100;
