//! Answers without a tool call, near-equal in words: `monologue`.

use crate::finding::{Kind, Severity};
use crate::fingerprint::Fingerprint;
use crate::redundancy::print::{Form, Print};
use crate::redundancy::sighting::{Sight, Sighting, Threshold, occurrences};
use crate::redundancy::window::Window;

/// The same text.
const SAME: Threshold = Threshold::new(2, 3);
/// Much the same words.
const ALIKE: Threshold = Threshold::new(3, 4);
/// How many steps back the same words are looked for.
const REACH: usize = 16;
/// Fewer words than this are alike by chance ("Yes.", "Done.").
const MIN_WORDS: u32 = 4;

/// One speaker says the same again, and nothing new came from outside.
pub(super) fn monologue(window: &Window, now: &Print) -> Option<Sighting> {
    if now.form != Form::Text || now.words.len() == 0 {
        return None;
    }
    let texts = || window.earlier(now).take(REACH);
    let same = occurrences(texts(), now, |_| false, |print| sight_if(says_the_same(print, now)));
    let alike = occurrences(texts(), now, learned, |print| sight_if(speaks_alike(print, now, 0.6)));
    let identity = Fingerprint::of_bytes(b"monologue", &now.speaker.to_le_bytes());
    let same = SAME.sight(Kind::Monologue, identity, same);
    match same {
        Some(sighting) if sighting.severity == Severity::Loop => Some(sighting),
        _ => ALIKE.sight(Kind::Monologue, identity, alike).or(same),
    }
}

fn says_the_same(print: &Print, now: &Print) -> bool {
    print.form == Form::Text && print.speaker == now.speaker && print.call == now.call
}

fn speaks_alike(print: &Print, now: &Print, alike: f32) -> bool {
    print.form == Form::Text
        && print.speaker == now.speaker
        && now.words.len() >= MIN_WORDS
        && print.words.jaccard(&now.words) >= alike
}

/// A call that was new and went well: whoever speaks after it speaks about something new.
fn learned(print: &Print) -> bool {
    print.form == Form::Call && print.news
}

const fn sight_if(same: bool) -> Sight {
    if same { Sight::Same } else { Sight::Unrelated }
}
