//! `similarity: semantic` of `loop_detection`: a request that is an earlier one but for the last words of its user, and
//! says the same with them, is one more of that one.
//!
//! Each process counts those that it has seen itself.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loopbreaker::{Action, Fingerprint, Kind, Timestamp, name_the_same};
use loopbreaker_config::{LoopDetection, Similarity};
use loopbreaker_dialect::{Dialect, read_request};
use lru::LruCache;

use crate::cache::only_words;
use crate::consider::{Case, Looked, keys};
use crate::identical::{Document, Sent};
use crate::judge::hear_identical;
use crate::meaning::Meaning;
use crate::pipeline::Worker;
use crate::settings::{Applied, Settings};

/// Last words that were heard lately, by all that stood around them.
#[derive(Debug)]
pub(crate) struct SimilarRequests {
    said: Mutex<LruCache<u128, Vec<Said>>>,
}

#[derive(Debug, Clone)]
struct Said {
    words: Arc<str>,
    /// The request that it counts as.
    counts_as: Fingerprint,
    at: Timestamp,
}

impl SimilarRequests {
    /// The surroundings that were seen longest ago are forgotten first.
    const MAX_FRAMES: usize = 2_048;
    /// Different words for each of them.
    const MAX_SAID: usize = 8;

    /// Nothing was said yet.
    pub(crate) fn new() -> Self {
        let most = NonZeroUsize::new(Self::MAX_FRAMES).unwrap_or(NonZeroUsize::MIN);
        Self { said: Mutex::new(LruCache::new(most)) }
    }

    /// What was said in these surroundings within so many milliseconds.
    fn heard(&self, frame: u128, millis: u64, now: Timestamp) -> Vec<Said> {
        let mut all = self.lock();
        let Some(said) = all.get_mut(&frame) else { return Vec::new() };
        said.retain(|said| now.millis_since(said.at) < millis);
        said.clone()
    }

    fn hear(&self, frame: u128, new: Said) {
        let mut all = self.lock();
        let said = all.get_or_insert_mut(frame, Vec::new);
        said.retain(|said| said.words != new.words);
        if said.len() >= Self::MAX_SAID {
            said.remove(0);
        }
        said.push(new);
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<u128, Vec<Said>>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a policy does about similar requests, if it looks for them.
pub(crate) fn by_meaning(applied: &Applied<'_>) -> Option<LoopDetection> {
    applied.policy.policy.loop_detection.filter(|config| config.similarity == Similarity::Semantic)
}

impl Worker {
    /// Counts a request together with those that say the same, for the policies that want that.
    pub(crate) async fn count_similar(
        &self,
        settings: &Settings,
        case: &mut Case<'_>,
        looked: &Looked<'_>,
        meaning: &Meaning,
    ) {
        let counting: Vec<_> =
            case.policies.iter().filter_map(|applied| Some((*applied, by_meaning(applied)?))).collect();
        if counting.is_empty() || case.verdict.action == Action::Reject {
            return;
        }
        let (Some(dialect), Some(body)) = (looked.dialect, looked.body) else { return };
        let Some((frame, words)) = apart(dialect, body) else { return };
        for (applied, config) in counting {
            let as_sent = |document: &[u8]| {
                let sent = Sent {
                    method: looked.method,
                    path: looked.path,
                    query: looked.query,
                    keys: keys(looked, case, &case.account_name),
                    document: Document::Written(document),
                };
                sent.fingerprint(&applied)
            };
            let Some(place) = as_sent(&frame).map(|frame| frame.short()) else { continue };
            let millis = u64::from(config.config.window_seconds()) * 1_000;
            let heard = self.shared.similar.heard(place, millis, case.now);
            let threshold = settings.config.detectors.semantic.threshold;
            let own = || as_sent(&[&frame[..], words.as_bytes()].concat());
            let counts_as = nearest(meaning, &words, &heard, threshold).await.or_else(own);
            let Some(counts_as) = counts_as else { continue };
            let said = Said { words: Arc::clone(&words), counts_as, at: case.now };
            self.shared.similar.hear(place, said);
            let (count, attempt) =
                self.shared.identical.observe(counts_as, config.config, config.once_in_flight, case.now);
            case.ticket.attempts.push(attempt);
            let is_told = case
                .verdict
                .notes
                .iter()
                .any(|note| note.kind == Kind::IdenticalRequest && note.policy == applied.policy.id);
            if count.fires && !is_told {
                let is_kept = self.shared.journal().is_some();
                hear_identical(&mut case.verdict, &applied, &config, count, case.held_out, is_kept);
            }
        }
    }
}

/// The request that says the same as these words; `None` where there is none, or nobody can tell in time.
async fn nearest(meaning: &Meaning, words: &str, heard: &[Said], threshold: f64) -> Option<Fingerprint> {
    if let Some(equal) = heard.iter().find(|said| *said.words == *words) {
        return Some(equal.counts_as);
    }
    let alike: Vec<&Said> = heard.iter().filter(|said| name_the_same(&said.words, words)).collect();
    if alike.is_empty() {
        return None;
    }
    let texts: Vec<Arc<str>> = alike.iter().map(|said| Arc::clone(&said.words)).collect();
    let (at, similarity) = meaning.checker.most_similar(words, &texts).await?;
    alike.get(at).filter(|_| similarity > threshold).map(|said| said.counts_as)
}

/// A body without the last words of its user, and these words.
fn apart(dialect: Dialect, body: &[u8]) -> Option<(Vec<u8>, Arc<str>)> {
    let mut last = None;
    read_request(dialect, body, None, &mut |message| last = Some(message.span.clone())).ok()?;
    let last = last?;
    let words = only_words(body.get(last.clone())?)?;
    Some(([&body[..last.start], b"null", &body[last.end..]].concat(), words.into()))
}

#[cfg(test)]
mod tests {
    use loopbreaker::{Fingerprint, Timestamp};
    use loopbreaker_dialect::Dialect;

    use super::{Said, SimilarRequests, apart};

    fn said(words: &str, at: u64) -> Said {
        let counts_as = Fingerprint::of_document(b"{}");
        Said { words: words.into(), counts_as, at: Timestamp::from_secs(at) }
    }

    #[test]
    fn words_are_heard_until_their_window_is_over_and_only_the_last_few() {
        let similar = SimilarRequests::new();
        similar.hear(1, said("a", 0));
        similar.hear(1, said("b", 30));
        similar.hear(2, said("elsewhere", 30));
        let heard = |now| -> Vec<String> {
            let heard = similar.heard(1, 60_000, Timestamp::from_secs(now));
            heard.iter().map(|said| said.words.to_string()).collect()
        };
        assert_eq!(heard(40), ["a", "b"]);
        assert_eq!(heard(60), ["b"]);
        for number in 0..20 {
            similar.hear(1, said(&number.to_string(), 61));
        }
        assert_eq!(heard(62).len(), SimilarRequests::MAX_SAID);
    }

    #[test]
    fn requests_that_differ_in_more_than_their_last_words_stand_apart() {
        let body = |system: &str, words: &str| {
            format!(
                r#"{{"model":"m","messages":[{{"role":"system","content":"{system}"}},{{"role":"user","content":"{words}"}}]}}"#
            )
        };
        let frame = |system, words| apart(Dialect::Chat, body(system, words).as_bytes()).unwrap();
        assert_eq!(frame("s", "list the files"), (frame("s", "show the files").0, "list the files".into()));
        assert_ne!(frame("s", "list the files").0, frame("t", "list the files").0);
        let with_a_picture = br#"{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}"#;
        assert_eq!(apart(Dialect::Chat, with_a_picture), None);
    }
}
