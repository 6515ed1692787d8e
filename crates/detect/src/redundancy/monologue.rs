//! Answers without a tool call, near-equal in words: `monologue`.

use crate::finding::Kind;
use crate::fingerprint::Fingerprint;
use crate::redundancy::print::{Form, Print};
use crate::redundancy::sighting::{Rule, Sight, Sighting, occurrences};
use crate::redundancy::window::Window;

/// The same text, or the same words in another order.
const SAME: Rule = Rule::new("same_words", Kind::Monologue, 2, 3);
/// Much the same words.
const ALIKE: Rule = Rule::new("alike_words", Kind::Monologue, 3, 4);
/// Different words to one canned reply.
const CANNED: Rule = Rule::new("canned_reply", Kind::Monologue, 3, 4);
/// Different words to one refusal: it says what is wrong, each time.
const REFUSED: Rule = Rule { warning: 2, looping: 3, ..CANNED };
/// Other words at last, and still nothing is done: the loop that was found goes on.
const TALKS_ON: Rule = Rule::new("talks_on", Kind::Monologue, 2, 2);
/// How many steps back the same words are looked for.
const REACH: usize = 16;
/// Fewer words than this are alike by chance ("Yes.", "Done.").
const MIN_WORDS: u32 = 4;

/// One speaker says the same again, and nothing new came from outside.
pub(super) fn monologue(window: &Window, now: &Print) -> Option<Sighting> {
    let reports = now.outcome.facts.in_progress && now.outcome.result == 0;
    if now.form != Form::Text || reports || window.vocabulary.count(&now.words) == 0 {
        return None;
    }
    let texts = || window.earlier(now).take(REACH).filter(|print| !print.narrates);
    let same = occurrences(texts(), now, learned, |print| Sight::same_if(says_the_same(window, print, now)));
    let near =
        occurrences(texts(), now, learned, |print| Sight::same_if(speaks_alike(window, print, now, 0.9)));
    let alike =
        occurrences(texts(), now, learned, |print| Sight::same_if(speaks_alike(window, print, now, 0.6)));
    let canned = occurrences(texts(), now, learned, |print| Sight::same_if(gets_the_same_reply(print, now)));
    let prompted = occurrences(texts(), now, learned, |print| Sight::same_if(answers_the_same(print, now)));
    let prompted_by = if window.is_refused(now) { REFUSED } else { CANNED };
    let identity = || Fingerprint::of_bytes(b"monologue", &now.speaker.to_le_bytes());
    let sightings = [
        SAME.sight(identity, now, same),
        SAME.sight(identity, now, near),
        ALIKE.sight(identity, now, alike),
        CANNED.sight(identity, now, canned),
        prompted_by.sight(identity, now, prompted),
        TALKS_ON.sight(identity, now, talk(window, now)),
    ];
    Sighting::strongest(sightings.into_iter().flatten()).filter(|_| !hears_news(window, now))
}

/// Whether another speaker has said something that is not like what it said before, since this one spoke last: whoever
/// answers that in the words of the last time agrees, or leads a round. Talk that goes round brings nothing new from
/// anybody.
fn hears_news(window: &Window, now: &Print) -> bool {
    let said = window.earlier(now).take(REACH).take_while(|print| print.speaker != now.speaker);
    said.clone().any(|print| {
        let before = window.earlier(now).take(REACH).filter(|other| other.round < print.round);
        let likes = |other: &Print| {
            other.call == print.call || window.vocabulary.likeness(&other.words, &print.words) >= 0.5
        };
        print.form == Form::Text
            && window.vocabulary.count(&print.words) >= MIN_WORDS
            && !before.filter(|other| other.form == Form::Text && other.speaker == print.speaker).any(likes)
    })
}

/// What the same speaker said right before `now`, newest first, back to where it was found to say the same again and
/// again. An apology for the repetition is no way out of it; a call, code, another speaker or new words are.
fn talk(window: &Window, now: &Print) -> impl Iterator<Item = usize> {
    let speaker = now.speaker;
    let goes_on = move |print: &&Print| print.talks && print.speaker == speaker;
    let earlier = window.earlier(now).take(REACH).take_while(goes_on).map(|print| print.index);
    earlier.take(if now.carries_code { 0 } else { REACH })
}

/// The same text. A word or two ("Yes.") are the same only where they answer the same.
fn says_the_same(window: &Window, print: &Print, now: &Print) -> bool {
    let is_same = print.form == Form::Text && print.speaker == now.speaker && print.call == now.call;
    let answers_same = || print.answers == now.answers || window.vocabulary.count(&now.words) >= MIN_WORDS;
    is_same && answers_same()
}

/// Whatever it says, the answer is the same sentence to the letter: nobody listens. A "no" is an answer each time.
fn gets_the_same_reply(print: &Print, now: &Print) -> bool {
    print.form == Form::Text
        && now.outcome.result != 0
        && print.outcome.result == now.outcome.result
        && !now.outcome.facts.terse
}

/// The same where the reply is a step of its own: words of a user, or of another agent, that both texts answer. An answer
/// that carries code is a piece of work.
fn answers_the_same(print: &Print, now: &Print) -> bool {
    print.form == Form::Text
        && print.speaker == now.speaker
        && now.answers != 0
        && print.answers == now.answers
        && !print.carries_code
        && !now.carries_code
}

fn speaks_alike(window: &Window, print: &Print, now: &Print, alike: f32) -> bool {
    print.form == Form::Text
        && print.speaker == now.speaker
        && window.vocabulary.count(&now.words) >= MIN_WORDS
        && (!now.carries_code || window.was_answered_since(print) || print.failed_for_good())
        && window.vocabulary.likeness(&print.words, &now.words) >= alike
        && window.vocabulary.likeness_of_names(&print.words, &now.words) >= 0.5
}

/// A call that was new and went well: whoever speaks after it speaks about something new.
fn learned(print: &Print) -> bool {
    print.form == Form::Call && print.news
}
