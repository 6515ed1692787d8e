//! A path under each of its spellings: what a policy is for must not be escaped by writing it in another way.

use std::cell::OnceCell;

use loopbreaker_config::{Selector, Subject};

use crate::route::other_spelling;

/// What a selector looks at, with its path as it came and as many servers take it.
#[derive(Debug)]
pub(crate) struct Spellings<'r> {
    subject: Subject<'r>,
    /// Found when a selector is not for the path as it came: that is rare.
    other: OnceCell<Option<String>>,
}

impl<'r> Spellings<'r> {
    /// The spellings of a request.
    pub(crate) fn of(subject: Subject<'r>) -> Self {
        Self { subject, other: OnceCell::new() }
    }

    /// Whether a selector is for this request under one of them.
    pub(crate) fn fit(&self, selector: &Selector) -> bool {
        let path = || self.other.get_or_init(|| other_spelling(self.subject.path)).as_deref();
        let other = || path().map(|path| Subject { path, ..self.subject });
        selector.matches(&self.subject) || other().is_some_and(|other| selector.matches(&other))
    }
}
