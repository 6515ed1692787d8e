//! What was said last in each session, as far as this process heard it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loopbreaker::{Names, Wording};
use lru::LruCache;

use crate::desk::Vector;
use crate::reading::Results;
use crate::words::Words;

/// The last deltas of many sessions: facts and vectors, and the text only until it has a vector.
///
/// Bounded in bytes; the session that was quiet longest goes first.
#[derive(Debug)]
pub(crate) struct Recent {
    shards: Box<[Mutex<Shard>]>,
    size: usize,
    ttl_millis: u64,
    max_bytes: usize,
    next_id: AtomicU64,
}

#[derive(Debug)]
struct Shard {
    sessions: LruCache<u128, VecDeque<Heard>>,
    bytes: usize,
}

/// One delta as it comes in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Saying<'a> {
    pub(crate) text: &'a str,
    pub(crate) excerpt: &'a Arc<str>,
    pub(crate) fingerprint: u128,
    pub(crate) results: Results,
    /// Whether it asks somebody for something in plain language.
    pub(crate) is_order: bool,
    /// Whether the text has to be kept until it has a vector.
    pub(crate) keep_text: bool,
}

/// One delta of before, seen from a new one.
#[derive(Debug, Clone)]
pub(crate) struct Earlier {
    pub(crate) id: u64,
    pub(crate) likeness: Likeness,
    pub(crate) same_results: bool,
    /// Both failed, in the same way.
    pub(crate) same_failure: bool,
    /// Both are orders for the same, and both were answered.
    pub(crate) same_order: bool,
    pub(crate) body: Body,
}

/// How far two texts are alike before anything is embedded; each step has what the ones before it have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likeness {
    /// They share too few words to say the same.
    Unlike,
    /// Their words let them say the same.
    Words,
    /// The new one names no number, path, id or quoted name that the old one did not name.
    NothingNew,
    /// Numbers, paths, ids and quoted names are the same too.
    Names,
    /// They are the same text.
    Exact,
}

impl Earlier {
    pub(crate) fn is_exact(&self) -> bool {
        self.likeness == Likeness::Exact
    }

    pub(crate) fn has_same_names(&self) -> bool {
        self.likeness >= Likeness::Names
    }

    /// Whether nothing has changed since, provided that the two say the same. A call that leaves out what an earlier one
    /// named, and fails in the same way, has found out nothing either; where calls succeed, less is another question.
    pub(crate) fn is_unchanged(&self) -> bool {
        let failed_alike = self.same_failure && self.likeness >= Likeness::NothingNew;
        failed_alike || (self.same_results && self.has_same_names())
    }
}

/// What there is of a text.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// Its excerpt: nobody needed the vector so far.
    Text(Arc<str>),
    Vector(Vector),
    /// Its vector is kept elsewhere.
    Elsewhere,
}

#[derive(Debug)]
struct Heard {
    id: u64,
    at: u64,
    fingerprint: u128,
    words: Words,
    results: Results,
    names: Names,
    /// How it is put, where it is an order that was answered.
    order: Option<Wording>,
    body: Body,
}

const SHARDS: usize = 16;

impl Recent {
    pub(crate) fn new(size: usize, ttl_millis: u64, max_bytes: usize) -> Self {
        let shard = || Mutex::new(Shard { sessions: LruCache::unbounded(), bytes: 0 });
        Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            size: size.max(1),
            ttl_millis,
            max_bytes: max_bytes / SHARDS,
            next_id: AtomicU64::new(1),
        }
    }

    /// Takes a delta in, and says how it stands to the last ones, newest first. Two deltas at once see each other: one
    /// of them is the earlier.
    pub(crate) fn hear(&self, session: u128, saying: &Saying<'_>, now: u64) -> (u64, Vec<Earlier>) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let words = Words::of(saying.excerpt);
        let names = Names::of(bounded(saying.text, NAMED));
        let is_answered = saying.is_order && saying.results.are_told();
        let order = is_answered.then(|| Wording::of(bounded(saying.text, WORDED)));
        let mut shard = self.shard(session);
        let heard = shard.take(session, now, self.ttl_millis, self.size);
        let earlier =
            heard.iter().rev().map(|heard| heard.seen_from(saying, &words, &names, order.as_ref())).collect();
        let body = if saying.keep_text { Body::Text(Arc::clone(saying.excerpt)) } else { Body::Elsewhere };
        let (fingerprint, results) = (saying.fingerprint, saying.results);
        shard.put(session, heard, Heard { id, at: now, fingerprint, words, results, names, order, body });
        while shard.bytes > self.max_bytes
            && let Some((_, gone)) = shard.sessions.pop_lru()
        {
            shard.bytes -= bytes_of(&gone);
        }
        (id, earlier)
    }

    /// Gives deltas of a session their vectors.
    pub(crate) fn embedded(&self, session: u128, vectors: &[(u64, Vector)]) {
        let mut shard = self.shard(session);
        let Some(mut heard) = shard.sessions.pop(&session) else { return };
        shard.bytes -= bytes_of(&heard);
        for heard in &mut heard {
            if let Some((_, vector)) = vectors.iter().find(|(id, _)| *id == heard.id) {
                heard.body = Body::Vector(Arc::clone(vector));
            }
        }
        shard.bytes += bytes_of(&heard);
        shard.sessions.put(session, heard);
    }

    /// Sessions that are remembered.
    pub(crate) fn sessions(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).sessions.len()).sum()
    }

    fn shard(&self, session: u128) -> MutexGuard<'_, Shard> {
        lock(&self.shards[session as usize % SHARDS])
    }
}

impl Shard {
    /// What is remembered of a session, without what is too old or one too many.
    fn take(&mut self, session: u128, now: u64, ttl_millis: u64, size: usize) -> VecDeque<Heard> {
        let Some(mut heard) = self.sessions.pop(&session) else { return VecDeque::new() };
        self.bytes -= bytes_of(&heard);
        heard.retain(|heard| now.saturating_sub(heard.at) < ttl_millis);
        while heard.len() > size {
            heard.pop_front();
        }
        heard
    }

    fn put(&mut self, session: u128, mut heard: VecDeque<Heard>, new: Heard) {
        heard.push_back(new);
        self.bytes += bytes_of(&heard);
        self.sessions.put(session, heard);
    }
}

impl Heard {
    fn seen_from(
        &self,
        saying: &Saying<'_>,
        words: &Words,
        names: &Names,
        order: Option<&Wording>,
    ) -> Earlier {
        let likeness = if self.fingerprint == saying.fingerprint {
            Likeness::Exact
        } else if !self.words.may_say(words) {
            Likeness::Unlike
        } else if self.names == *names {
            Likeness::Names
        } else if names.are_all_in(&self.names) {
            Likeness::NothingNew
        } else {
            Likeness::Words
        };
        let same_results = saying.results.unchanged_since(self.results);
        let same_failure = same_results && saying.results.are_failures();
        let same_order = order.zip(self.order.as_ref()).is_some_and(|(new, old)| new.asks_the_same(old));
        Earlier { id: self.id, likeness, same_results, same_failure, same_order, body: self.body.clone() }
    }
}

/// Bytes of a text in which names are looked for.
const NAMED: usize = 64 * 1_024;

/// Bytes of an order whose wording is remembered.
const WORDED: usize = 4 * 1_024;

fn bounded(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

/// What a session takes, about: names are counted as if each text had a dozen of them.
fn bytes_of(heard: &VecDeque<Heard>) -> usize {
    let body = |body: &Body| match body {
        Body::Text(text) => text.len() + 32,
        Body::Vector(vector) => 4 * vector.len() + 32,
        Body::Elsewhere => 0,
    };
    let order = |heard: &Heard| heard.order.as_ref().map_or(0, Wording::size);
    128 + heard.iter().map(|heard| size_of::<Heard>() + 96 + order(heard) + body(&heard.body)).sum::<usize>()
}

fn lock(mutex: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use twox_hash::XxHash3_128;

    use super::{Body, Earlier, Likeness, Recent, Saying};
    use crate::reading::Results;

    const HOUR: u64 = 3_600_000;

    fn hear(recent: &Recent, session: u128, text: &str, results: u64, now: u64) -> Vec<Earlier> {
        let excerpt: Arc<str> = text.into();
        let saying = Saying {
            text,
            excerpt: &excerpt,
            fingerprint: XxHash3_128::oneshot(text.as_bytes()),
            results: Results::Gave(results),
            is_order: false,
            keep_text: true,
        };
        recent.hear(session, &saying, now).1
    }

    #[test]
    fn the_last_five_are_seen_newest_first() {
        let recent = Recent::new(5, HOUR, 1 << 20);
        for number in 0..8 {
            hear(&recent, 1, &format!("step {number}"), number, 0);
        }
        let earlier = hear(&recent, 1, "step 7", 6, 0);
        assert_eq!(
            earlier.iter().map(Earlier::is_exact).collect::<Vec<_>>(),
            [true, false, false, false, false]
        );
        assert_eq!(earlier.iter().position(|earlier| earlier.same_results), Some(1));
    }

    #[test]
    fn numbers_tell_apart() {
        let recent = Recent::new(5, HOUR, 1 << 20);
        hear(&recent, 1, "open page 3 of the report", 0, 0);
        let earlier = hear(&recent, 1, "open page 4 of the report", 0, 0);
        assert_eq!(earlier[0].likeness, Likeness::Words);
        assert!(hear(&recent, 1, "now open the page 4 of that report", 0, 0)[0].has_same_names());
    }

    #[test]
    fn what_names_nothing_new_is_told_from_what_names_the_same() {
        let recent = Recent::new(5, HOUR, 1 << 20);
        hear(&recent, 1, "open page 3 of a/b", 0, 0);
        let less = hear(&recent, 1, "open the page of a/b", 0, 0);
        assert_eq!(less[0].likeness, Likeness::NothingNew);
        assert!(!less[0].is_unchanged(), "what was given to less is another answer");
        assert_eq!(hear(&recent, 1, "open page 3 of a/b", 0, 0)[0].likeness, Likeness::Words);
    }

    #[test]
    fn orders_for_the_same_are_known_where_both_were_answered() {
        let recent = Recent::new(5, HOUR, 1 << 20);
        let ask = |text: &str, results: Results, is_order: bool| {
            let excerpt: Arc<str> = text.into();
            let fingerprint = XxHash3_128::oneshot(text.as_bytes());
            let saying = Saying { text, excerpt: &excerpt, fingerprint, results, is_order, keep_text: true };
            let earlier = recent.hear(1, &saying, 0).1;
            earlier.iter().map(|earlier| earlier.same_order).collect::<Vec<_>>()
        };
        let first = "Please scan the video and note when two birds are in the picture.";
        ask(first, Results::Gave(1), true);
        assert_eq!(
            ask("Please look through the video and note when two birds are in it.", Results::Gave(2), true),
            [true]
        );
        assert_eq!(ask("Please ask Anna to look through the video.", Results::Gave(3), true), [false, false]);
        assert_eq!(ask(first, Results::Unclear, true), [false; 3]);
        assert_eq!(ask(first, Results::Gave(4), false), [false; 4]);
    }

    #[test]
    fn what_tells_nothing_is_no_unchanged_result() {
        let recent = Recent::new(5, HOUR, 1 << 20);
        let hear = |results: Results| {
            let excerpt: Arc<str> = "go on".into();
            let saying = Saying {
                text: "go on",
                excerpt: &excerpt,
                fingerprint: 1,
                results,
                is_order: false,
                keep_text: true,
            };
            recent.hear(1, &saying, 0).1.first().map(|earlier| earlier.same_results)
        };
        assert_eq!(hear(Results::Unclear), None);
        assert_eq!(hear(Results::Unclear), Some(false));
        assert_eq!(hear(Results::Failed(1)), Some(false));
        assert_eq!(hear(Results::Failed(1)), Some(true));
        assert_eq!(hear(Results::Gave(1)), Some(false));
    }

    #[test]
    fn sessions_and_times_are_apart() {
        let recent = Recent::new(5, HOUR, 1 << 20);
        hear(&recent, 1, "go", 0, 0);
        assert!(hear(&recent, 2, "go", 0, 0).is_empty());
        assert_eq!(hear(&recent, 1, "go", 0, HOUR - 1).len(), 1);
        assert_eq!(hear(&recent, 1, "go", 0, 2 * HOUR - 2).len(), 1);
        assert!(hear(&recent, 1, "go", 0, 4 * HOUR).is_empty());
    }

    #[test]
    fn a_vector_takes_the_place_of_the_text() {
        let recent = Recent::new(5, HOUR, 1 << 20);
        hear(&recent, 1, "go", 0, 0);
        let id = hear(&recent, 1, "go", 0, 0)[0].id;
        recent.embedded(1, &[(id, Arc::from([1.0, 0.0].as_slice()))]);
        let earlier = hear(&recent, 1, "go", 0, 0);
        assert!(matches!((&earlier[0].body, &earlier[1].body), (Body::Text(_), Body::Vector(_))));
    }

    #[test]
    fn memory_is_bounded_and_the_quiet_go_first() {
        let recent = Recent::new(5, HOUR, 16 * 64 * 1_024);
        for session in 0..4_000 {
            hear(&recent, session, &"some words of a text ".repeat(40), 0, 0);
            hear(&recent, 16, "I go on", 0, 0);
        }
        assert!(recent.sessions() < 1_200, "{}", recent.sessions());
        assert_eq!(hear(&recent, 16, "I go on", 0, 0).len(), 5);
        assert!(hear(&recent, 0, "go", 0, 0).is_empty());
    }
}
