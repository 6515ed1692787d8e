//! The same call again: `repeat`, `failing_repeat`, `stale_poll`, `unknown_tool`, and `retry`, which is none.

use crate::config::Effect;
use crate::finding::{Kind, Severity};
use crate::fingerprint::Fingerprint;
use crate::redundancy::cycle::CYCLE;
use crate::redundancy::print::{Form, Print};
use crate::redundancy::sighting::{Rule, Sight, Sighting, occurrences};
use crate::redundancy::window::Window;

const REPEAT: Rule = Rule::new("repeat", Kind::Repeat, 2, 3);
/// What is equal only without a line that changes with every answer: that the line says nothing is learnt, and not known.
const FRAMED: Rule = Rule::new("framed", Kind::Repeat, 2, 3);
/// What such a call does may be what the line tells: so often again, it tells of nothing else.
const FRAMED_DEED: Rule = Rule { looping: 6, ..FRAMED };

/// A tool that moves through something outside answers every move with the same few words.
const MOVE: Rule = Rule::new("move", Kind::Repeat, 4, 6);
const POLL: Rule = Rule::new("poll", Kind::StalePoll, 10, 20);
/// Polling on after the answer was final. A wait that is over says nothing of what it waits for.
const FINAL_POLL: Rule = Rule::new("final_poll", Kind::StalePoll, 3, 5);
const FAILING: Rule = Rule::new("failing_repeat", Kind::FailingRepeat, 2, 3);
const FAILING_POLL: Rule = Rule::new("failing_poll", Kind::FailingRepeat, 10, 20);
const UNKNOWN_TOOL: Rule = Rule::new("unknown_tool", Kind::UnknownTool, 2, 3);
const RETRY: Rule = Rule::new("retry", Kind::Retry, 3, usize::MAX);
/// Fewer words than this are no text.
const FEW_WORDS: u32 = 4;
/// The same failure in spite of changes in between: stagnation.
const DESPITE_WRITES: Rule = Rule::new("failing_despite_writes", Kind::FailingRepeat, 4, 5);

/// Marks what was seen by comparing what is left of answers without their frame.
pub(super) fn seen_within_a_frame(sighting: &mut Sighting, now: &Print) {
    // Other rules wait longer by themselves, or look at something else than the whole answer.
    if ![REPEAT.name, CYCLE.name].contains(&sighting.rule.name) {
        return;
    }
    sighting.rule.name = FRAMED.name;
    let is_deed = !matches!(now.does.effect, Some(Effect::Read | Effect::Poll)) && !now.outcome.facts.failed;
    if is_deed && sighting.rule.kind == Kind::Repeat {
        sighting.severity = FRAMED_DEED.severity(sighting.count).unwrap_or(Severity::Warning);
    }
}

/// The same call with the same result.
pub(super) fn repeat(window: &Window, now: &Print) -> Option<Sighting> {
    if now.form != Form::Call || !now.again || now.outcome.facts.transient || now.outcome.facts.unknown_tool {
        return None;
    }
    let facts = now.outcome.facts;
    let acts = is_bare_action(window, now);
    let ended = facts.terminal && !now.does.bides;
    let waits = now.is_waiting() && !ended;
    let steps = occurrences(
        window.earlier(now),
        now,
        |print| {
            (print.may_change(now) && !print.is_variation_of(now))
                || (acts && window.shows_a_change(print))
                || (waits && window.shows_a_move(print))
        },
        |print| match same_or_other(print, now) {
            Sight::Other if leaves_the_same(window, now) => Sight::Same,
            sight => sight,
        },
    );
    let rule = if now.is_waiting() {
        if ended { FINAL_POLL } else { POLL }
    } else if now.does.moves && facts.brief {
        MOVE
    } else {
        REPEAT
    };
    rule.sight(|| identity_of_call(now), now, steps)
}

/// Whether a change leaves the same however often it is made: a text that is put somewhere. Making it once more is no
/// progress, whatever it answers. A key, a move in a game, a command or a request may bring something new each time:
/// whoever sends one asks, and the answer tells.
fn leaves_the_same(window: &Window, now: &Print) -> bool {
    let puts_a_text = now.does.after != 0 || window.vocabulary.count(&now.words) >= FEW_WORDS;
    let asks = now.does.command || now.does.sends;
    now.is_write() && !asks && puts_a_text && !now.outcome.facts.failed
}

/// Whether a call does something and tells no more than that: a click, a key, a motor. What it brought about is seen by
/// looking.
pub(super) fn is_bare_action(window: &Window, now: &Print) -> bool {
    let facts = now.outcome.facts;
    let may_act = !matches!(now.does.effect, Some(Effect::Read | Effect::Poll));
    may_act && facts.brief && !facts.failed && !now.does.command && !leaves_the_same(window, now)
}

/// The same call with the same class of error, however its words differ.
pub(super) fn failing_repeat(window: &Window, now: &Print) -> Option<Sighting> {
    if now.form != Form::Call || !now.again || !now.failed_for_good() || now.outcome.facts.unknown_tool {
        return None;
    }
    let steps = occurrences(
        earlier_calls(window, now),
        now,
        |print| changes_failure(print, now),
        |print| match () {
            () if print.call != now.call || print.outcome.facts.transient => Sight::Unrelated,
            () if print.outcome.facts.failed && print.outcome.class == now.outcome.class => Sight::Same,
            () => Sight::Other,
        },
    );
    let steady =
        if now.is_waiting() { FAILING_POLL } else { FAILING }.sight(|| identity_of_call(now), now, steps);
    if steady.as_ref().is_some_and(|sighting| sighting.severity == Severity::Loop) {
        return steady;
    }
    // To the letter the same failure again and again, in spite of what was done in between: it does not help. A command
    // that is answered anew each time walks through something (a bisection): what fails is another thing each time.
    let walks = |print: &Print| print.again && print.fresh_write && print.does.command;
    let steps = occurrences(earlier_calls(window, now), now, walks, |print| same_or_other(print, now));
    let rule = if now.is_waiting() { FAILING_POLL } else { DESPITE_WRITES };
    let despite = rule.sight(|| identity_of_call(now), now, steps);
    Sighting::strongest([steady, despite].into_iter().flatten())
}

/// Calls of tools that do not exist or are denied, whatever the arguments: of one tool, or of several in a row, which is
/// guessing at names.
pub(super) fn unknown_tool(window: &Window, now: &Print) -> Option<Sighting> {
    if now.form != Form::Call || !now.outcome.facts.unknown_tool {
        return None;
    }
    let steps = occurrences(
        window.earlier(now),
        now,
        |_| false,
        |print| match () {
            () if print.form != Form::Call || print.tool != now.tool => Sight::Unrelated,
            () if print.outcome.facts.unknown_tool => Sight::Same,
            () => Sight::Other,
        },
    );
    let guesses = occurrences(
        window.earlier(now),
        now,
        |_| false,
        |print| match () {
            () if print.form != Form::Call => Sight::Unrelated,
            () if print.outcome.facts.unknown_tool => Sight::Same,
            () => Sight::Other,
        },
    );
    let of_this = || Fingerprint::of_bytes(b"unknown tool", &now.tool.to_le_bytes());
    let of_any = || Fingerprint::of_bytes(b"unknown tool", b"");
    let sightings = [UNKNOWN_TOOL.sight(of_this, now, steps), UNKNOWN_TOOL.sight(of_any, now, guesses)];
    Sighting::strongest(sightings.into_iter().flatten())
}

/// Back-off after a transient failure: worth a word, never a loop.
pub(super) fn retry(window: &Window, now: &Print) -> Option<Sighting> {
    if now.form != Form::Call || !now.again || !now.outcome.facts.transient {
        return None;
    }
    let steps = occurrences(
        window.earlier(now),
        now,
        |_| false,
        |print| match () {
            () if print.call != now.call => Sight::Unrelated,
            () if print.outcome.facts.transient => Sight::Same,
            () => Sight::Other,
        },
    );
    RETRY.sight(|| identity_of_call(now), now, steps)
}

/// What repeats is this call.
pub(super) fn identity_of_call(now: &Print) -> Fingerprint {
    Fingerprint::of_set(b"loop", &mut vec![now.call])
}

/// Whether a change in between may have changed this failure: nothing mends what is wrong with the environment, and
/// an edit that fails is not helped by other edits. A command that writes (a commit, an install) may well be.
pub(super) fn changes_failure(print: &Print, now: &Print) -> bool {
    let failed_edit = now.is_write() && !now.does.command;
    !now.outcome.facts.environmental && !failed_edit && print.may_change(now)
}

fn same_or_other(print: &Print, now: &Print) -> Sight {
    match () {
        () if print.call != now.call || print.outcome.facts.transient => Sight::Unrelated,
        () if print.outcome.answers_as(&now.outcome) => Sight::Same,
        () => Sight::Other,
    }
}

fn earlier_calls<'a>(window: &'a Window, now: &Print) -> impl Iterator<Item = &'a Print> + Clone + use<'a> {
    window.earlier_despite_words(now).filter(|print| print.form == Form::Call)
}
