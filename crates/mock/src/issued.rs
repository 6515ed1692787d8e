//! Answers that a Responses request may continue.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::answer::Answer;
use crate::responses;

/// The calls of the last Responses answers, for requests that continue them.
#[derive(Debug, Default)]
pub(crate) struct Issued(Mutex<VecDeque<(String, Vec<String>)>>);

impl Issued {
    const MAX_ANSWERS: usize = 10_000;

    pub(crate) fn add(&self, answer: &Answer) {
        let calls = answer.calls().map(responses::call_id).collect();
        let mut issued = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if issued.len() == Self::MAX_ANSWERS {
            issued.pop_front();
        }
        issued.push_back((responses::id_of(answer), calls));
    }

    /// The calls of an answer; `None` where it is not known.
    pub(crate) fn calls_of(&self, id: &str) -> Option<Vec<String>> {
        let issued = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        issued.iter().rev().find(|(known, _)| known == id).map(|(_, calls)| calls.clone())
    }
}
