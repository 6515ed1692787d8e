//! Scripts: which turn is next.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use memchr::memmem;
use serde::Deserialize;

use crate::turn::Turn;

/// The scripts by name; the empty name is the one for requests that name none.
#[derive(Debug, Default)]
pub(crate) struct Scripts(Mutex<HashMap<String, Queue>>);

/// The turns of one script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    #[serde(default)]
    pub(crate) name: String,
    pub(crate) turns: Vec<Turn>,
    /// Whether the last turn is given again when there is no other, and not the default answer.
    #[serde(default = "yes")]
    pub(crate) repeat_last: bool,
}

const fn yes() -> bool {
    true
}

#[derive(Debug)]
struct Queue {
    script: Script,
    next: usize,
}

impl Scripts {
    /// More scripts than this are refused.
    const MAX_SCRIPTS: usize = 10_000;

    /// Sets a script in place of the one with its name; says whether there was room.
    pub(crate) fn set(&self, script: Script) -> bool {
        let mut queues = self.queues();
        if queues.len() >= Self::MAX_SCRIPTS && !queues.contains_key(&script.name) {
            return false;
        }
        queues.insert(script.name.clone(), Queue { script, next: 0 });
        true
    }

    /// The next turn for a request with this body. A request that was edited where the turn forbids it gets that
    /// turn's refusal, and the turn stays.
    pub(crate) fn next(&self, name: &str, body: &[u8]) -> Turn {
        self.queues().get_mut(name).map_or_else(Turn::default, |queue| queue.next(body))
    }

    /// Forgets all scripts.
    pub(crate) fn clear(&self) {
        self.queues().clear();
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<String, Queue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn next(&mut self, body: &[u8]) -> Turn {
        let turns = &self.script.turns;
        let again = if self.script.repeat_last { turns.last() } else { None };
        let Some(turn) = turns.get(self.next).or(again) else { return Turn::default() };
        if let Some(status) = turn.status_if_edited
            && memmem::find(body, turn.mark().as_bytes()).is_some()
        {
            return Turn::status(status);
        }
        self.next = self.next.saturating_add(1);
        turn.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::{Script, Scripts};
    use crate::turn::Turn;

    fn scripts(name: &str, turns: Vec<Turn>, repeat_last: bool) -> Scripts {
        let scripts = Scripts::default();
        assert!(scripts.set(Script { name: name.to_owned(), turns, repeat_last }));
        scripts
    }

    #[test]
    fn turns_come_in_order_and_the_last_one_stays() {
        let scripts = scripts("", vec![Turn::text("a"), Turn::text("b")], true);
        let said = [(); 3].map(|()| scripts.next("", b"").text.unwrap());
        assert_eq!(said, ["a", "b", "b"]);
    }

    #[test]
    fn a_script_that_does_not_repeat_ends_with_the_default_answer() {
        let scripts = scripts("", vec![Turn::text("a")], false);
        assert!(scripts.next("", b"").text.is_some());
        assert!(scripts.next("", b"").text.is_none());
    }

    #[test]
    fn scripts_with_other_names_are_other_scripts() {
        let scripts = scripts("x", vec![Turn::text("a")], true);
        assert!(scripts.next("", b"").text.is_none());
        assert!(scripts.next("x", b"").text.is_some());
    }

    #[test]
    fn an_edited_request_is_refused_and_the_turn_stays() {
        let turn = Turn { status_if_edited: Some(400), ..Turn::text("a") };
        let scripts = scripts("", vec![turn, Turn::text("b")], true);
        assert_eq!(scripts.next("", b"... Loopbreaker: ...").status, Some(400));
        assert_eq!(scripts.next("", b"...").text.as_deref(), Some("a"));
        assert_eq!(scripts.next("", b"... Loopbreaker: ...").text.as_deref(), Some("b"));
    }
}
