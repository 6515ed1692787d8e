//! One tool, changing arguments, the same outcome: `churn`.

use std::cell::Cell;

use crate::config::Effect;
use crate::finding::Kind;
use crate::fingerprint::Fingerprint;
use crate::redundancy::print::{Form, Print};
use crate::redundancy::repeat::changes_failure;
use crate::redundancy::sighting::{Rule, Sight, Sighting, occurrences};
use crate::redundancy::window::Window;

/// Near-equal calls that fail in the same way: variations without a new idea.
const NEAR_FAILING: Rule = Rule::new("near_failing", Kind::Churn, 2, 3);
/// Any calls of one tool in a row that fail in the same way.
const FAILING: Rule = Rule::new("failing_row", Kind::Churn, 3, 4);
/// Any calls of one tool that the environment refuses in the very same words: what is broken is the tool.
const TOOL_DOWN: Rule = Rule::new("tool_down", Kind::Churn, 3, 3);
/// One number after the other, each refused: who tries them all has to go on for longer than who varies a call.
const COUNTING: Rule = Rule::new("counting_on", Kind::Churn, 6, 10);
/// The same failure from whatever tool.
const ANY_TOOL: Rule = Rule::new("failing_everywhere", Kind::Churn, 4, 5);
/// So many of these are a loop where such a call has just gone well: its form is right, and what it names may or may not
/// be there.
const ITEMS: usize = 6;
/// Near-equal questions with one answer.
const ONE_ANSWER: Rule = Rule::new("one_answer", Kind::Churn, 3, 4);
/// Whatever is asked, one answer that tells something.
const WHATEVER_ASKED: Rule = Rule::new("whatever_asked", Kind::Churn, 4, 6);
/// The same hits for whatever is searched for: that something is found is no news any more, however short it is.
const SAME_HITS: Rule = Rule { looping: 5, ..WHATEVER_ASKED };
/// An answer in a few words may be right for many questions, and nobody knows how many there are: worth a word.
const FEW_WORDS: Rule = Rule::new("few_words", Kind::Churn, 6, usize::MAX);
/// Nearly the same change once more, with nothing to show for it.
const SAME_CHANGE: Rule = Rule::new("same_change", Kind::Churn, 3, 4);
/// The whole plan in other words once more, and nothing done in between.
const PLANS_ONLY: Rule = Rule::new("plans_only", Kind::Churn, 3, 5);
/// So many words in the place of others are another wording. States ("pending", "done") are fewer.
const REWORDED: u32 = 3;
/// Fewer words than this are alike by chance.
const MIN_WORDS: u32 = 8;
/// Near-equal questions in plain language, whatever they are answered.
const SAME_QUESTION: Rule = Rule::new("same_question", Kind::Churn, 3, 4);
/// So many questions of one form are a series.
const MANY: usize = 4;
/// Near-equal commands that never answered.
const PUT_ASIDE: Rule = Rule::new("put_aside", Kind::Churn, 3, 4);
/// Any commands that never answered, close together: what hangs is not the command.
const ASIDE_ROW: Rule = Rule::new("aside_row", Kind::Churn, 4, 5);
/// Two looks that never answered, or waits before one, and then something else that did not. These end by themselves, as a
/// server does not, and who only waits longer each time expects an answer: what hangs is none of the commands.
const ALL_ASIDE: Rule = Rule::new("all_aside", Kind::Churn, 3, 3);
/// They are among so many calls.
const AT_ONCE: usize = 4;
/// What hangs, or lacks something in the environment, is looked into in between, so attempts lie further apart.
const LONG_REACH: usize = 24;
/// Searches that found nothing may be about quite different things, one after the other: worth a word.
const NOTHING_FOUND: Rule = Rule::new("nothing_found", Kind::Churn, 6, usize::MAX);
/// Searches for much the same that found nothing: it is not to be found in this way.
const NOTHING_AGAIN: Rule = Rule { warning: 4, looping: 6, ..NOTHING_FOUND };
/// How many steps back variations are looked for: what lies further back was another attempt.
const REACH: usize = 12;

/// Different calls, one failure.
pub(super) fn failing(window: &Window, now: &Print) -> Option<Sighting> {
    let explained = now.failed_for_good() && !now.outcome.facts.unexplained;
    if now.form != Form::Call || !explained || now.is_waiting() {
        return None;
    }
    // An agent that varies what it varied last drifts away from where it began: each attempt is near to the next one.
    let variation = Cell::new(None);
    let learned = Cell::new(false);
    let near = occurrences(
        attempts(window, now),
        now,
        |print| changes_failure(print, now),
        |print| match () {
            // Who has learned something since, and names something new, makes another attempt and no variation. What is
            // wrong with the environment is wrong whatever is learned.
            () if print.news => {
                learned.set(!now.outcome.facts.environmental);
                Sight::Unrelated
            }
            // The very same call with another answer: it moves.
            () if print.call == now.call && !same_failure(print, now) => Sight::Other,
            () if print.tool != now.tool || !same_failure(print, now) => Sight::Unrelated,
            () if learned.get() && !same_names(window, print, now) => Sight::Unrelated,
            () => {
                // What is looked for in one place after the other is no variation: it takes a row of them.
                let near = |other: &Print| {
                    near_args(window, print, other, 0.5) && !print.does.places.apart_from(&other.does.places)
                };
                let varies = near(now) || variation.get().is_some_and(near);
                if varies {
                    variation.set(Some(print));
                }
                Sight::same_if(varies)
            }
        },
    );
    let row = occurrences(
        attempts(window, now),
        now,
        |print| changes_failure(print, now),
        |print| match () {
            () if print.tool != now.tool => Sight::Unrelated,
            () if same_failure(print, now) => Sight::Same,
            () => Sight::Other,
        },
    );
    let by_tool = || identity(now.tool, now.outcome.class.into());
    if counts_on(window, now) {
        return COUNTING.sight(by_tool, now, row);
    }
    let any = occurrences(
        attempts(window, now),
        now,
        |print| changes_failure(print, now) || is_another_item(print, now),
        |print| Sight::same_if(same_failure(print, now)),
    );
    let is_item = has_just_gone_well(window, now);
    let rule = |rule: Rule| if is_item { Rule { looping: ITEMS, ..rule } } else { rule };
    let near = rule(NEAR_FAILING).sight(by_tool, now, near);
    let row = rule(FAILING).sight(by_tool, now, row);
    let any = rule(ANY_TOOL).sight(|| identity(0, now.outcome.class.into()), now, any);
    Sighting::strongest([near, row, tool_down(window, now), any].into_iter().flatten())
}

/// Whether a call of the same tool told something new: the tool works, and what it does not find is an answer. A shell is
/// many tools.
fn is_another_item(print: &Print, now: &Print) -> bool {
    print.news && print.tool == now.tool && !print.does.command && !print.does.sends
}

/// Whether the same call with a name or two in the place of others went well a short while ago. A command takes options,
/// which are no names.
fn has_just_gone_well(window: &Window, now: &Print) -> bool {
    attempts(window, now).any(|print| is_another_item(print, now) && is_filled_in(window, print, now))
}

/// Whether two calls are one form, filled in with other names.
fn is_filled_in(window: &Window, print: &Print, now: &Print) -> bool {
    let [theirs, ours] = window.vocabulary.exchanged(&print.words, &now.words);
    theirs == ours && matches!(ours, 1 | 2)
}

/// One tool that the environment refuses in the very same words, whatever it is asked. A missing command is named in its
/// refusal, so that trying another one is answered in other words.
fn tool_down(window: &Window, now: &Print) -> Option<Sighting> {
    if !now.outcome.facts.environmental {
        return None;
    }
    let steps = occurrences(
        attempts(window, now),
        now,
        |_| false,
        |print| match () {
            () if print.tool != now.tool => Sight::Unrelated,
            () if print.outcome.answers_as(&now.outcome) => Sight::Same,
            () => Sight::Other,
        },
    );
    TOOL_DOWN.sight(|| identity(now.tool, now.outcome.class.into()), now, steps)
}

/// Different questions in nearly the same words, one answer.
pub(super) fn one_answer(window: &Window, now: &Print) -> Option<Sighting> {
    let facts = now.outcome.facts;
    let changes = now.does.effect != Some(Effect::Read);
    let tells = now.form == Form::Call && now.outcome.result != 0 && !facts.failed;
    // Each move is answered with the same few words.
    let moves = now.does.moves && facts.brief;
    if !tells || moves || now.is_waiting() || now.does.notes {
        return None;
    }
    // A bare "ok" of something that changes the world is progress each time, unless it is the same change.
    if changes && (facts.empty || facts.acknowledged) {
        return same_change(window, now);
    }
    let steps = occurrences(
        recent(window, now),
        now,
        |print| print.may_change(now),
        |print| {
            let alike = || {
                window.vocabulary.likeness(&print.words, &now.words) >= 0.8 && same_names(window, print, now)
            };
            match print.outcome.answers_as(&now.outcome) {
                // The very same question with another answer: it moves.
                false if print.call == now.call => Sight::Other,
                is_same => Sight::same_if(is_same && print.tool == now.tool && alike()),
            }
        },
    );
    ONE_ANSWER.sight(|| identity(now.tool, now.outcome.result), now, steps)
}

/// Questions of one tool in a row that all get one answer to the letter, however different they are: a login page behind
/// every address, the same hits for every query. A few words may answer many things.
pub(super) fn whatever_asked(window: &Window, now: &Print) -> Option<Sighting> {
    let facts = now.outcome.facts;
    let asks =
        now.form == Form::Call && !now.again && now.does.effect == Some(Effect::Read) && !now.does.notes;
    let tells =
        now.outcome.result != 0 && !facts.failed && !facts.empty && !facts.acknowledged && !facts.terse;
    if !asks || !tells || now.does.moves || now.is_waiting() {
        return None;
    }
    let steps = asked_in_a_row(window, now, |print| {
        // The same question again is a repeat, and none of many.
        if print.outcome.answers_as(&now.outcome) { Sight::same_if(!print.again) } else { Sight::Other }
    });
    // A few words may be right for many things, unless it is one thing that is asked about in many ways.
    let last = recent(window, now).find(|print| print.tool == now.tool);
    let is_one = |print: &Print| {
        let near = window.vocabulary.likeness(&print.words, &now.words) >= 0.5
            && same_names(window, print, now)
            && !print.does.places.apart_from(&now.does.places);
        near || in_another_range(print, now)
    };
    let is_item = || goes_through_a_list(window, now, |print| print.outcome.answers_as(&now.outcome));
    let rule = match () {
        () if searches(now) && !is_item() => SAME_HITS,
        () if facts.brief && !last.is_some_and(is_one) => FEW_WORDS,
        () => WHATEVER_ASKED,
    };
    rule.sight(|| identity(now.tool, now.outcome.result), now, steps)
}

/// Nearly the same written to the same place, or run, in a row: a change that nothing looks at is none. What differs in
/// numbers only is a series of like things.
fn same_change(window: &Window, now: &Print) -> Option<Sighting> {
    if window.vocabulary.count(&now.words) < MIN_WORDS {
        return None;
    }
    let again = |print: &Print| {
        print.tool == now.tool
            && (print.call == now.call || print.shape != now.shape)
            && print.outcome.answers_as(&now.outcome)
            && print.does.places == now.does.places
            && window.vocabulary.likeness(&print.words, &now.words) >= 0.9
            && same_names(window, print, now)
    };
    let steps = occurrences(
        recent(window, now),
        now,
        // Whatever else is done in between may look at it.
        |print| !again(print),
        |_| Sight::Same,
    );
    SAME_CHANGE.sight(|| identity(now.tool, now.outcome.result), now, steps)
}

/// Notes that carry a whole list, in a row and in other words each time: each takes the place of the last one. A note
/// that adds something adds to the others, an item that is ticked off keeps its words, and whoever says something in
/// between has done a piece of the work.
pub(super) fn plans_only(window: &Window, now: &Print) -> Option<Sighting> {
    let plans = |print: &Print| print.form == Form::Call && print.does.lists && !print.outcome.facts.failed;
    if !plans(now) {
        return None;
    }
    let is_other = |print: &Print| !plans(print) || print.tool != now.tool;
    let rewords = |print: &Print| {
        let [theirs, ours] = window.vocabulary.exchanged(&print.words, &now.words);
        theirs.min(ours) >= REWORDED
    };
    let earlier = window.earlier(now).filter(|print| !print.narrates);
    let steps = occurrences(earlier, now, is_other, |print| Sight::same_if(rewords(print)));
    PLANS_ONLY.sight(|| identity(now.tool, 3), now, steps)
}

/// Searches in a row that all found nothing: worth a word where they are about different things, and a loop where one
/// thing is looked for in many ways.
pub(super) fn nothing_found(window: &Window, now: &Print) -> Option<Sighting> {
    let searches = now.does.effect == Some(Effect::Read) && !now.does.notes;
    if now.form != Form::Call || !searches || !finds_nothing(now) {
        return None;
    }
    let steps =
        asked_in_a_row(window, now, |print| if finds_nothing(print) { Sight::Same } else { Sight::Other });
    let any = NOTHING_FOUND.sight(|| identity(now.tool, 2), now, steps);
    let again = asked_in_a_row(window, now, |print| match () {
        () if !finds_nothing(print) => Sight::Other,
        () => Sight::same_if(seeks_the_same(window, print, now)),
    });
    let again = NOTHING_AGAIN.sight(|| identity(now.tool, 2), now, again);
    let again = again.filter(|_| !goes_through_a_list(window, now, finds_nothing));
    Sighting::strongest([any, again].into_iter().flatten())
}

/// Nothing came back, or a command that only looks ended with no more than an exit code: a search has no match.
fn finds_nothing(print: &Print) -> bool {
    let facts = print.outcome.facts;
    let has_no_match = facts.unexplained && facts.brief && print.does.command;
    if facts.failed { has_no_match } else { facts.empty }
}

/// Whether two searches are for much the same: in nearly the same words, or in the same words over another range.
fn seeks_the_same(window: &Window, print: &Print, now: &Print) -> bool {
    in_another_range(print, now) || window.vocabulary.likeness(&print.words, &now.words) >= 0.5
}

/// Whether a search is the same but for its numbers: other hours, another page. What is got by its number is another
/// thing each time.
fn in_another_range(print: &Print, now: &Print) -> bool {
    print.shape == now.shape && searches(now)
}

/// Whether a tool searches, by its name.
fn searches(print: &Print) -> bool {
    let name = print.label.as_str().as_bytes();
    name.windows(4).any(|word| matches!(word, b"find" | b"Find" | b"grep" | b"Grep"))
        || name.windows(6).any(|word| matches!(word, b"search" | b"Search"))
}

/// Whether every such search differs from `now` in one name, or two, that stand in the place of others: a form that is
/// filled in for one thing after the other. Of many, one may be odd.
fn goes_through_a_list(window: &Window, now: &Print, is_such: impl Fn(&Print) -> bool) -> bool {
    let others = || recent(window, now).filter(|print| print.tool == now.tool && is_such(print));
    let fills_in = |print: &&Print| is_filled_in(window, print, now) && !in_another_range(print, now);
    let new_words = window.vocabulary.new_words(&now.words, others().map(|print| &print.words));
    let (all, filled_in) = (others().count(), others().filter(fills_in).count());
    new_words > 0 && filled_in + usize::from(all >= MANY) >= all
}

/// Near-equal commands that were put aside before they answered: starting the same once more tells nothing new.
pub(super) fn put_aside(window: &Window, now: &Print) -> Option<Sighting> {
    let is_put_aside = |print: &Print| print.form == Form::Call && print.outcome.facts.put_aside;
    if !is_put_aside(now) {
        return None;
    }
    // A change may help, and what has answered when it was asked about does not hang.
    let cut = |print: &Print| (print.fresh_write && print.is_write()) || has_come_to_an_end(print);
    let steps = occurrences(window.earlier(now).take(LONG_REACH - 1), now, cut, |print| {
        Sight::same_if(is_put_aside(print) && print.tool == now.tool && near_args(window, print, now, 0.6))
    });
    let near = PUT_ASIDE.sight(|| identity(now.tool, 1), now, steps);
    let row = occurrences(recent(window, now), now, cut, |print| {
        Sight::same_if(is_put_aside(print) && print.tool == now.tool)
    });
    let row = ASIDE_ROW.sight(|| identity(now.tool, 1), now, row);
    let looks = |print: &Print| matches!(print.does.effect, Some(Effect::Read | Effect::Poll));
    let looked = occurrences(recent(window, now).take(AT_ONCE - 1), now, cut, |print| {
        Sight::same_if(is_put_aside(print) && print.tool == now.tool && looks(print))
    });
    let all = ALL_ASIDE.sight(|| identity(now.tool, 1), now, looked).filter(|_| now.does.effect.is_none());
    Sighting::strongest([near, row, all].into_iter().flatten())
}

/// Whether a look at something that runs was told what came of it.
fn has_come_to_an_end(print: &Print) -> bool {
    let facts = print.outcome.facts;
    let tells = print.outcome.result != 0 && !facts.empty && !facts.failed;
    print.does.follows && tells && !facts.in_progress
}

/// The same question in other words, although its answers differ: an order to another agent, or a search, that names
/// nothing new.
pub(super) fn same_question(window: &Window, now: &Print) -> Option<Sighting> {
    if !is_question(now) || fills_in_a_form(window, now) {
        return None;
    }
    let steps = occurrences(
        recent(window, now),
        now,
        |print| print.fresh_write && print.is_write(),
        |print| {
            // What was answered in another way has moved on, and so has the very same question with another answer.
            let moved_on = print.outcome.facts.failed != now.outcome.facts.failed;
            match () {
                () if print.call == now.call && !print.outcome.answers_as(&now.outcome) => Sight::Other,
                () => Sight::same_if(
                    print.tool == now.tool
                        && is_question(print)
                        && !moved_on
                        && asks_alike(window, print, now),
                ),
            }
        },
    );
    SAME_QUESTION.sight(|| identity(now.tool, 0), now, steps)
}

/// Whether `now` differs from every question like it in one or two words that nobody has asked about yet: a form that is
/// filled in for one thing after the other. Whoever asks the same in other words changes more, or less, or brings no
/// new word. The same answer to all of them is no news. Where many were filled in, one of them may be odd: a word can
/// fall on the bit of another one.
fn fills_in_a_form(window: &Window, now: &Print) -> bool {
    let vocabulary = &window.vocabulary;
    let questions = || recent(window, now).filter(|print| print.tool == now.tool && is_question(print));
    let new_words = vocabulary.new_words(&now.words, questions().map(|print| &print.words));
    if new_words > 2 {
        return false;
    }
    let (mut alike, mut filled_in) = (0, 0);
    for print in questions().filter(|print| asks_alike(window, print, now)) {
        let [theirs, ours] = vocabulary.exchanged(&print.words, &now.words);
        alike += 1;
        let is_other = matches!(theirs, 1 | 2) && ours == new_words && (theirs == ours || ours == 0);
        filled_in += usize::from(is_other && !print.outcome.answers_as(&now.outcome));
    }
    match alike {
        0..MANY => new_words > 0 && filled_in == alike,
        MANY.. => filled_in + 1 >= alike,
    }
}

/// Much the same words, about the same names.
fn asks_alike(window: &Window, print: &Print, now: &Print) -> bool {
    window.vocabulary.likeness(&print.words, &now.words) >= 0.6 && same_names(window, print, now)
}

/// A call in plain language: enough words to compare, and neither a command nor code nor the agent's own notes.
fn is_question(print: &Print) -> bool {
    print.form == Form::Call
        && print.does.prose
        && !print.does.notes
        && !print.is_write()
        && !print.is_waiting()
}

/// Where variations of a failing call are looked for. What is wrong with the environment stays wrong while the agent
/// looks around, so such attempts lie further apart.
fn attempts<'a>(window: &'a Window, now: &Print) -> impl Iterator<Item = &'a Print> + Clone + use<'a> {
    let reach = if now.outcome.facts.environmental { LONG_REACH } else { REACH };
    window.earlier(now).take(reach - 1).filter(|print| print.form == Form::Call)
}

/// Questions of one tool, one after the other, as long as nothing that they read is changed.
fn asked_in_a_row(
    window: &Window,
    now: &Print,
    sight: impl Fn(&Print) -> Sight,
) -> impl Iterator<Item = usize> {
    occurrences(
        recent(window, now),
        now,
        |print| print.may_change(now),
        move |print| if print.tool == now.tool { sight(print) } else { Sight::Unrelated },
    )
}

fn recent<'a>(window: &'a Window, now: &Print) -> impl Iterator<Item = &'a Print> + Clone + use<'a> {
    window.earlier(now).take(REACH - 1).filter(|print| print.form == Form::Call)
}

/// The same kind of failure. A report that counts what failed tells of the files that it was asked for: one on others is
/// another one.
fn same_failure(print: &Print, now: &Print) -> bool {
    let is_other_report = now.outcome.facts.tallied && print.does.places.apart_from(&now.does.places);
    print.failed_for_good() && print.outcome.class == now.outcome.class && !is_other_report
}

/// Whether a call is the last one of its tool with the next number in one place, and is told no in one short line: an
/// attempt at each of many, as a key or a door. A call that says plainly that it failed was none, and
/// neither is an edit that does not fit.
fn counts_on(window: &Window, now: &Print) -> bool {
    let facts = now.outcome.facts;
    let tries = facts.brief && now.outcome.lines == 0 && !facts.failed_plainly && !now.is_write();
    let last = || window.earlier(now).find(|print| print.form == Form::Call && print.tool == now.tool);
    let steps_on = |print: &Print| {
        let mut apart = print.numbers.iter().zip(now.numbers).filter(|(a, b)| *a != b);
        matches!((apart.next(), apart.next()), (Some((a, b)), None) if a.abs_diff(b) == 1)
    };
    tries && last().is_some_and(|print| print.shape == now.shape && steps_on(print))
}

/// Whether two calls name the same numbers, people and things: "page 3" is not "page 4".
fn same_names(window: &Window, print: &Print, now: &Print) -> bool {
    window.vocabulary.likeness_of_names(&print.words, &now.words) >= 0.8
}

/// Arguments that differ in a few words, or in numbers only.
fn near_args(window: &Window, print: &Print, now: &Print, alike: f32) -> bool {
    print.shape == now.shape || window.vocabulary.likeness(&print.words, &now.words) >= alike
}

/// What repeats is the tool with its outcome, since the arguments change.
fn identity(tool: u64, outcome: u128) -> Fingerprint {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&tool.to_le_bytes());
    bytes[8..].copy_from_slice(&outcome.to_le_bytes());
    Fingerprint::of_bytes(b"churn", &bytes)
}
