//! A sequence of calls and results again and again: `cycle`, and `sweep`, which pages round.

use crate::finding::{Finding, Kind, Severity};
use crate::fingerprint::Fingerprint;
use crate::redundancy::print::{Form, Print};
use crate::redundancy::sighting::{Rule, Sighting};
use crate::redundancy::window::Window;

pub(super) const CYCLE: Rule = Rule::new("cycle", Kind::Cycle, 2, 3);
/// A sequence that waits for something is a poll in several steps. One that changes something each time, or fails for
/// good in between, does more than wait.
const WAITING_CYCLE: Rule = Rule::new("waiting_cycle", Kind::StalePoll, 10, 20);
/// One wrap over the same pages is the second time that they are read.
const SWEEP: Rule = Rule::new("sweep", Kind::Sweep, 2, 2);
/// Steps that are only acknowledged each time, or one call that is answered by turns (a debugger that steps through a
/// loop): what they do cannot be seen, so that the same again may be work.
const BLIND_CYCLE: Rule = Rule::new("blind_cycle", Kind::Cycle, 4, 6);
const MAX_PERIOD: usize = 8;

/// The last steps are copies of one unit of two to eight steps.
pub(super) fn cycle(window: &Window) -> Option<Sighting> {
    let newest = window.sequence();
    let last = newest.clone().next().filter(|last| last.again)?;
    // One step again and again is a repeat: a unit is longer than the run of equal steps at its end.
    let run = newest.clone().take(MAX_PERIOD).take_while(|print| print.equals(last)).count();
    // The shortest period names the loop; a longer one would only count two rounds of it as one.
    let (period, matching) = (run + 1..=MAX_PERIOD).find_map(|period| {
        // Cheap refusal first: the step one period back is another one.
        if !newest.clone().nth(period)?.equals(last) {
            return None;
        }
        let matching =
            newest.clone().zip(newest.clone().skip(period)).take_while(|(a, b)| a.equals(b)).count();
        (matching >= period).then_some((period, matching))
    })?;
    // Counted from where the sequence started. Of a short unit a copy counts when it is complete; of a long one the copy
    // after two complete ones counts from its first step on: to wait for its end would be to watch several more steps
    // that are known to be redundant.
    let copies = 1 + if period < Finding::LONG { matching / period } else { matching.div_ceil(period) };
    if matching % period != 0 && copies < CYCLE.looping {
        return None;
    }
    let unit = newest.clone().take(period);
    let transient = unit.clone().any(|print| print.outcome.facts.transient);
    let acts = unit.clone().any(|print| print.form == Form::Call);
    if transient || !acts {
        return None;
    }
    let rule = match () {
        () if unit.clone().any(Print::is_waiting) && !unit.clone().any(does_something) => WAITING_CYCLE,
        () if is_one_call(unit.clone()) => BLIND_CYCLE,
        () if unit.clone().any(tells_something) => CYCLE,
        () => BLIND_CYCLE,
    };
    let severity = rule.severity(copies)?;
    let mut evidence: Vec<usize> = newest.clone().take(period + matching).map(|print| print.index).collect();
    evidence.sort_unstable();
    let identity = Fingerprint::of_set(b"loop", &mut unit.map(|print| print.call).collect());
    Some(Sighting { rule, severity, count: copies, period, identity, evidence })
}

/// The names of the tools that a cycle of this period goes through, in order and each once, with quotes between them.
pub(super) fn tools(window: &Window, period: usize) -> String {
    let mut names: Vec<&str> = Vec::new();
    for print in window.sequence().take(period) {
        let name = if print.form == Form::Call { print.label.as_str() } else { "an answer" };
        names.retain(|known| *known != name);
        names.push(name);
    }
    names.reverse();
    names.join("`, `")
}

/// Whether a unit is one call with several answers: what it asks about moves.
fn is_one_call<'a>(mut unit: impl Iterator<Item = &'a Print>) -> bool {
    let first = unit.next().map(|print| print.call);
    unit.all(|print| Some(print.call) == first)
}

/// Whether a step of a cycle is more than waiting and looking.
fn does_something(print: &Print) -> bool {
    print.form == Form::Call && (print.is_write() || print.failed_for_good())
}

/// Whether a result tells more than that a call was made.
fn tells_something(print: &Print) -> bool {
    print.outcome.result != 0 && !print.outcome.facts.acknowledged
}

/// Whether the last steps repeat the ones before them: a unit has stood twice, and may be going on. One whose steps are
/// only acknowledged is told late, so that it stands for none of its repeats.
pub(super) fn is_under_way(window: &Window) -> bool {
    let sequence = || window.sequence();
    let Some(last) = sequence().next().filter(|last| last.again) else { return false };
    // One step again and again is a repeat: a unit is longer than the run of equal steps at its end.
    let run = sequence().take(MAX_PERIOD).take_while(|print| print.equals(last)).count();
    (run + 1..=MAX_PERIOD).any(|period| {
        let mut compared = 0;
        let mut pairs = sequence().zip(sequence().skip(period)).take(period).inspect(|_| compared += 1);
        let equal = pairs.all(|(a, b)| a.equals(b));
        equal && compared == period && sequence().take(period).any(tells_something)
    })
}

/// Pages in order, then the same pages from the start: one wrap over the same results.
pub(super) fn sweep(window: &Window, now: &Print) -> Option<Sighting> {
    if now.form != Form::Call
        || !now.again
        || now.outcome.result == 0
        || now.outcome.facts.failed
        || now.is_waiting()
    {
        return None;
    }
    // Nearly every step is a page of its own: done, before anything is gathered.
    let is_page = |print: &&Print| print.tool == now.tool && print.shape == now.shape;
    if window.earlier(now).filter(is_page).position(|print| print.equals(now))? + 1 < FEWEST {
        return None;
    }
    let mut pages: Vec<&Print> = Vec::new();
    for print in std::iter::once(now).chain(window.earlier(now)) {
        if print.may_change(now) {
            break;
        }
        if is_page(&print) {
            pages.push(print);
        }
    }
    // Newest first: the last passage over this page, and how far the two passages agree backwards from here.
    let back = 1 + pages.iter().skip(1).position(|print| print.equals(now))?;
    let agreed = pages.iter().zip(&pages[back..]).take_while(|(a, b)| a.equals(b)).count();
    let passage = &pages[agreed.min(back)..];
    // All of the pages again, back to back, are no second look, however few they are.
    let all_again =
        agreed == back && pages.get(1..agreed + back).is_some_and(|pages| window.ends_with(pages, now));
    let fewest = if all_again { FEWEST } else { MIN_PAGES };
    if back < fewest || agreed < fewest || agreed > back || !moves_one_way(&pages[..agreed]) {
        return None;
    }
    // Where the second passage starts, the numbers jump back.
    if !moves_one_way(&passage[..back.min(passage.len())]) {
        return None;
    }
    let evidence: Vec<usize> = pages[..agreed + back].iter().rev().map(|print| print.index).collect();
    // The pages that agree grow with every step, so the loop is known by what they are pages of.
    let identity =
        Fingerprint::of_bytes(b"sweep", &[now.tool.to_le_bytes(), now.shape.to_le_bytes()].concat());
    Some(Sighting { rule: SWEEP, severity: Severity::Loop, count: 2, period: back, identity, evidence })
}

/// Fewer pages than this may be a second look at some of them.
const MIN_PAGES: usize = 3;
/// One page is a repeat.
const FEWEST: usize = 2;

/// Whether one of the numbers in the arguments only grows, or only shrinks, over these steps.
fn moves_one_way(newest_first: &[&Print]) -> bool {
    (0..4).any(|place| {
        let numbers = || newest_first.iter().map(|print| print.numbers[place]);
        let pairs = || numbers().zip(numbers().skip(1));
        pairs().all(|(later, sooner)| later > sooner) || pairs().all(|(later, sooner)| later < sooner)
    })
}
