//! Steps that only ask what was asked before, and are told what was told before: `standstill`.
//!
//! Each veto has a reason of its own to believe that something may have changed: a move, another answer to the same
//! call, an answer by turns. Where many steps in a row bring nothing that had not been there, whatever their order,
//! nothing has.

use crate::finding::Kind;
use crate::fingerprint::Fingerprint;
use crate::redundancy::print::{Form, Print};
use crate::redundancy::repeat::is_bare_action;
use crate::redundancy::sighting::{Rule, Sighting};
use crate::redundancy::window::Window;

/// So many rounds in a row have brought nothing new.
const STANDSTILL: Rule = Rule::new("standstill", Kind::Repeat, 6, 8);
/// The last of them has come about so often.
const OCCURRENCES: usize = 3;
/// So many different calls are among them: one or two in turn may step through something, and see it move only later.
const CALLS: usize = 3;

/// The last steps have all been there before, and this one more than once.
pub(super) fn standstill(window: &Window, now: &Print) -> Option<Sighting> {
    if now.form != Form::Call || !is_old_news(window, now) {
        return None;
    }
    if 1 + window.earlier(now).filter(|print| print.equals(now)).count() < OCCURRENCES {
        return None;
    }
    let mut calls = vec![now.call];
    let mut round = now.round;
    let row = window.earlier(now).take_while(|print| is_old_news(window, print));
    // What runs side by side is one step.
    let mut steps = Vec::new();
    for print in row {
        if !calls.contains(&print.call) {
            calls.push(print.call);
        }
        if std::mem::replace(&mut round, print.round) != print.round {
            steps.push(print.index);
        }
    }
    let sighting = STANDSTILL.sight(|| Fingerprint::of_bytes(b"standstill", b""), now, steps.into_iter());
    sighting.filter(|_| calls.len() >= CALLS)
}

/// Whether a step tells that nothing is new. Whoever waits expects that, and an action that is answered with the same few words
/// as several others tells of none what came of it.
fn is_old_news(window: &Window, print: &Print) -> bool {
    let facts = print.outcome.facts;
    let says_nothing = print.form == Form::Call && (facts.acknowledged || print.outcome.result == 0);
    let is_mute = || is_bare_action(window, print) && window.has_given_this_to_others(print);
    print.old && !facts.transient && !print.is_waiting() && !says_nothing && !is_mute()
}
