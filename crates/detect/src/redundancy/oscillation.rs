//! A write that brings back what stood there before: `oscillation`.

use crate::finding::Kind;
use crate::fingerprint::Fingerprint;
use crate::redundancy::print::{Form, Print};
use crate::redundancy::sighting::{Rule, Sighting};
use crate::redundancy::window::Window;

/// One return may be a change of mind, two are back and forth.
const RETURNS: Rule = Rule::new("oscillation", Kind::Oscillation, 1, 2);

/// Whether `now` writes a content to a place where that content stood before something else did.
pub(super) fn returns(window: &Window, now: &Print) -> bool {
    if !writes_content(now) {
        return false;
    }
    let here = || window.earlier(now).filter(|print| at_same_place(print, now));
    if now.does.before == 0 {
        // Whole contents: the same one, with another one in between.
        let mut between = false;
        return here().any(|print| {
            let same = print.does.before == 0 && print.does.after == now.does.after;
            let back = same && between;
            between |= !same;
            back
        });
    }
    here().any(|print| print.does.before == now.does.after && print.does.after == now.does.before)
}

/// Returns at one place, one after the other.
pub(super) fn oscillation(window: &Window, now: &Print) -> Option<Sighting> {
    if !now.returned {
        return None;
    }
    let mut evidence: Vec<usize> =
        window.earlier(now).filter(|print| at_same_place(print, now)).map(|print| print.index).collect();
    evidence.reverse();
    evidence.push(now.index);
    let earlier = window.earlier(now).filter(|print| print.returned && at_same_place(print, now)).count();
    let count = earlier + 1;
    let severity = RETURNS.severity(count)?;
    // A whole content does not say what it takes the place of: that is what stood there last.
    let mut stood =
        window.earlier(now).filter(|print| at_same_place(print, now)).map(|print| print.does.after);
    let before = match now.does.before {
        0 => stood.find(|content| *content != now.does.after).unwrap_or(0),
        before => before,
    };
    let contents = [before.min(now.does.after), before.max(now.does.after)];
    let bytes: Vec<u8> = contents.iter().flat_map(|content| content.to_le_bytes()).collect();
    let identity = Fingerprint::of_bytes(b"oscillation", &bytes);
    Some(Sighting { rule: RETURNS, severity, count, period: 2, identity, evidence })
}

fn writes_content(print: &Print) -> bool {
    print.form == Form::Call && print.is_write() && !print.outcome.facts.failed && print.does.after != 0
}

fn at_same_place(print: &Print, now: &Print) -> bool {
    // Another field of a form, or another one who is written to, is another place.
    let is_told = !now.does.places.is_empty() || print.does.beside == now.does.beside;
    writes_content(print) && print.tool == now.tool && print.does.places == now.does.places && is_told
}
