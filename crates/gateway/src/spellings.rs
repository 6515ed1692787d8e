//! A path under each of its spellings: what a policy is for must not be escaped by writing it in another way.

use loopbreaker_config::{Selector, Subject};

use crate::route::other_spelling;

/// What a selector looks at, with its path as it came and as many servers take it.
#[derive(Debug)]
pub(crate) struct Spellings<'r> {
    subject: Subject<'r>,
    other: Option<String>,
}

impl<'r> Spellings<'r> {
    /// The spellings of a request.
    pub(crate) fn of(subject: Subject<'r>) -> Self {
        Self { subject, other: other_spelling(subject.path) }
    }

    /// Whether a selector is for this request under one of them.
    pub(crate) fn fit(&self, selector: &Selector) -> bool {
        let other = || self.other.as_deref().map(|path| Subject { path, ..self.subject });
        selector.matches(&self.subject) || other().is_some_and(|other| selector.matches(&other))
    }
}
