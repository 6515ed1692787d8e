//! Transcripts that were read before: a request that begins with the bytes of an earlier one is read from there on.
//!
//! It is a cache with a limit in bytes. A transcript that was evicted is read again from its body and loses nothing
//! but time.

use std::hash::Hasher;
use std::sync::{Mutex, PoisonError};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use loopbreaker::{Fingerprint, RedundancyRules, Saved};
use loopbreaker_dialect::Mark;

use crate::loops::LoopState;
use crate::prefix::{Boundary, PrefixHash};
use crate::recency::Recency;
use crate::recent::Recent;

/// What is known of a transcript after a request.
#[derive(Debug)]
pub(crate) struct Transcript {
    /// Its hash chain so far, which is keyed by the tenant: no two tenants share one.
    pub(crate) tip: u128,
    /// The chain's first link.
    pub(crate) anchor: Option<u128>,
    /// The session that its client names, 0 where it names none; `None` for a transcript that is new. Two sessions that
    /// say the same are two.
    pub(crate) owner: Option<u128>,
    /// Hash over the canonical form of its messages.
    pub(crate) canonical: u128,
    /// Hash of the request that goes on from here, where the provider keeps the conversation: one that comes again does.
    pub(crate) sent: u128,
    /// Its last messages.
    pub(crate) recent: Recent,
    pub(crate) loops: LoopState,
    /// Where the transcript is that has the answer to it, for a client that goes on by naming parts of that.
    pub(crate) answer: Option<u128>,
    /// Where it ended in the bytes of the request; `None` when that cannot be taken up.
    pub(crate) place: Option<Place>,
}

/// The end of a transcript in the bytes of a request.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) mark: Mark,
    /// Hash of the bytes before the mark.
    pub(crate) prefix: u128,
    /// Where it is looked for: hash of the bytes up to the last boundary before the mark.
    pub(crate) bucket: Option<u64>,
    /// Where the first message began.
    pub(crate) first: usize,
    /// What the rest of the body said, with the hash of its bytes behind the mark.
    pub(crate) rest: Option<(u64, Fingerprint)>,
}

/// The cache.
#[derive(Debug)]
pub(crate) struct Transcripts {
    shards: Box<[Mutex<Shard>]>,
    /// What stands around messages, by a hash of its bytes: the sessions of an agent begin with the same tools.
    rests: Mutex<Recency<Option<Fingerprint>>>,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct Shard {
    by_tip: Recency<Kept>,
    /// Transcripts by the hash of their bytes up to the last boundary.
    by_prefix: HashTable<Alike>,
    bytes: usize,
}

/// A transcript, and what it counts for.
#[derive(Debug, Default)]
struct Kept {
    transcript: Option<Box<Transcript>>,
    bytes: usize,
}

/// Transcripts with the same leading bytes, nearly always one.
#[derive(Debug)]
struct Alike {
    bucket: u64,
    newest: Known,
    older: Vec<Known>,
}

/// A transcript as it is known by its bytes.
#[derive(Debug, Clone, Copy)]
struct Known {
    end: usize,
    prefix: u128,
    tip: u128,
}

impl Transcripts {
    /// So many transcripts with the same leading bytes are told apart.
    const MAX_ALIKE: usize = 32;
    const SHARDS: usize = 64;
    /// More agents than this read their tools anew.
    const MAX_RESTS: usize = 4_096;

    /// A cache that holds at most about `max_bytes`.
    pub(crate) fn new(max_bytes: usize) -> Self {
        let shard = || Mutex::new(Shard::default());
        Self {
            shards: (0..Self::SHARDS).map(|_| shard()).collect(),
            rests: Mutex::default(),
            max_bytes: max_bytes / Self::SHARDS,
        }
    }

    /// Takes out the transcript whose bytes this body begins with, the longest if there are several.
    ///
    /// It is taken and not copied: the request that goes on with it puts it back, longer.
    pub(crate) fn take_by_prefix(&self, hash: &PrefixHash<'_>, body: &[u8]) -> Option<Box<Transcript>> {
        // Most requests bring little that is new, so the longest beginnings are the most likely ones.
        for boundary in hash.boundaries() {
            loop {
                let known = self.shard(boundary.bucket().into()).longest(boundary, body);
                let Some(known) = known else { break };
                if let Some(taken) = self.take_with(known.tip, known.prefix) {
                    return Some(taken);
                }
            }
        }
        None
    }

    /// Takes out a transcript that was found by its leading bytes, unless another request has moved it to its own
    /// bytes since.
    fn take_with(&self, tip: u128, prefix: u128) -> Option<Box<Transcript>> {
        let is_there = |kept: &Transcript| kept.place.as_ref().is_some_and(|place| place.prefix == prefix);
        self.shard(tip).take_if(tip, is_there)
    }

    /// Takes out the transcript that ends with this link of its chain.
    pub(crate) fn take(&self, tip: u128) -> Option<Box<Transcript>> {
        let taken = self.shard(tip).take_if(tip, |_| true)?;
        self.forget(&taken);
        Some(taken)
    }

    /// A copy of the transcript that ends with this link, for a client that may go on from it more than once.
    pub(crate) fn copy(&self, tip: u128) -> Option<Transcript> {
        self.shard(tip).get(tip).map(|kept| kept.without_place())
    }

    /// Notes where the answer to a transcript is kept, if nobody has gone on from it yet.
    pub(crate) fn note_answer(&self, tip: u128, answer: u128) {
        if let Some(transcript) = self.shard(tip).get(tip) {
            transcript.answer = Some(answer);
        }
    }

    /// Whether there is a transcript that ends with this link.
    pub(crate) fn has(&self, tip: u128) -> bool {
        self.shard(tip).peek(tip).is_some()
    }

    /// What stands around messages, as it was read before or is read now.
    pub(crate) fn rest(&self, key: u128, read: impl FnOnce() -> Fingerprint) -> Fingerprint {
        let rests = || self.rests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(known)) = rests().get(key) {
            return *known;
        }
        let rest = read();
        let mut rests = rests();
        rests.put(key, Some(rest));
        if rests.len() > Self::MAX_RESTS {
            rests.pop_oldest();
        }
        rest
    }

    /// Keeps a transcript that another process has left, unless this one has gone on further by itself.
    pub(crate) fn take_over(&self, transcript: Transcript) {
        let steps = transcript.loops.steps();
        let is_behind =
            self.shard(transcript.tip).peek(transcript.tip).is_some_and(|own| own.loops.steps() > steps);
        if !is_behind {
            self.put(Box::new(transcript));
        }
    }

    /// Keeps a transcript.
    pub(crate) fn put(&self, transcript: Box<Transcript>) {
        if let Some(place) = &transcript.place
            && let Some(bucket) = place.bucket
        {
            let known = Known { end: place.mark.offset(), prefix: place.prefix, tip: transcript.tip };
            self.shard(u128::from(bucket)).know(bucket, known);
        }
        let evicted = self.shard(transcript.tip).put(transcript, self.max_bytes);
        for evicted in &evicted {
            self.forget(evicted);
        }
    }

    /// A transcript that is not kept any more is not looked for by its bytes either.
    fn forget(&self, gone: &Transcript) {
        if let Some(place) = &gone.place
            && let Some(bucket) = place.bucket
        {
            self.shard(u128::from(bucket)).forget(bucket, |known| known.tip == gone.tip);
        }
    }

    /// Forgets everything, since the detectors have other settings now.
    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            *shard.lock().unwrap_or_else(PoisonError::into_inner) = Shard::default();
        }
    }

    fn shard(&self, key: u128) -> std::sync::MutexGuard<'_, Shard> {
        let index = (key as usize) % Self::SHARDS;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    fn peek(&self, tip: u128) -> Option<&Transcript> {
        self.by_tip.peek(tip)?.transcript.as_deref()
    }

    fn get(&mut self, tip: u128) -> Option<&mut Transcript> {
        self.by_tip.get(tip)?.transcript.as_deref_mut()
    }

    fn take_if(&mut self, tip: u128, is_meant: impl FnOnce(&Transcript) -> bool) -> Option<Box<Transcript>> {
        let taken = self.by_tip.remove_if(tip, |kept| kept.transcript.as_deref().is_some_and(is_meant))?;
        self.bytes -= taken.bytes;
        taken.transcript
    }

    /// Keeps a transcript, and gives back those that have no room any more.
    #[expect(clippy::vec_box, reason = "they are kept in boxes, and moved as such")]
    fn put(&mut self, transcript: Box<Transcript>, max_bytes: usize) -> Vec<Box<Transcript>> {
        let (tip, bytes) = (transcript.tip, transcript.bytes());
        self.bytes += bytes;
        let mut evicted = Vec::new();
        if let Some(before) = self.by_tip.put(tip, Kept { transcript: Some(transcript), bytes }) {
            self.bytes -= before.bytes;
        }
        while self.bytes > max_bytes {
            let Some(oldest) = self.by_tip.pop_oldest() else { break };
            self.bytes -= oldest.bytes;
            evicted.extend(oldest.transcript);
        }
        evicted
    }

    /// Takes out what is known of the longest transcript in this bucket that the body begins with.
    fn longest(&mut self, boundary: Boundary, body: &[u8]) -> Option<Known> {
        let bucket = boundary.bucket();
        let mut found = self.by_prefix.find_entry(spread(bucket), |alike| alike.bucket == bucket).ok()?;
        let mut longest: Option<Known> = None;
        for known in found.get().all() {
            let is_longer = longest.is_none_or(|longest| longest.end < known.end);
            if is_longer && boundary.hash_to(known.end, body) == Some(known.prefix) {
                longest = Some(*known);
            }
        }
        let longest = longest?;
        if !found.get_mut().forget(|known| known.prefix == longest.prefix) {
            found.remove();
        }
        Some(longest)
    }

    fn know(&mut self, bucket: u64, known: Known) {
        let is_it = |alike: &Alike| alike.bucket == bucket;
        match self.by_prefix.entry(spread(bucket), is_it, |alike| spread(alike.bucket)) {
            Entry::Vacant(vacant) => drop(vacant.insert(Alike { bucket, newest: known, older: Vec::new() })),
            Entry::Occupied(mut occupied) => occupied.get_mut().add(known),
        }
    }

    fn forget(&mut self, bucket: u64, is_meant: impl Fn(&Known) -> bool) {
        if let Ok(mut found) = self.by_prefix.find_entry(spread(bucket), |alike| alike.bucket == bucket)
            && !found.get_mut().forget(is_meant)
        {
            found.remove();
        }
    }
}

/// A bucket's hash within its shard, all of whose buckets end with the same bits.
const fn spread(bucket: u64) -> u64 {
    bucket.rotate_left(32)
}

impl Alike {
    fn all(&self) -> impl Iterator<Item = &Known> {
        std::iter::once(&self.newest).chain(&self.older)
    }

    fn add(&mut self, known: Known) {
        let before = std::mem::replace(&mut self.newest, known);
        self.older.retain(|older| older.prefix != known.prefix);
        if before.prefix != known.prefix {
            if self.older.len() + 1 == Transcripts::MAX_ALIKE {
                self.older.remove(0);
            }
            self.older.push(before);
        }
    }

    /// Forgets what is meant; says whether anything is left.
    fn forget(&mut self, is_meant: impl Fn(&Known) -> bool) -> bool {
        self.older.retain(|older| !is_meant(older));
        if !is_meant(&self.newest) {
            return true;
        }
        self.older.pop().map(|older| self.newest = older).is_some()
    }
}

impl Transcript {
    /// A copy that is not tied to the bytes of a request.
    pub(crate) fn without_place(&self) -> Self {
        let Self { tip, anchor, owner, canonical, sent, recent, .. } = *self;
        let loops = self.loops.clone();
        Self { tip, anchor, owner, canonical, sent, recent, loops, answer: None, place: None }
    }

    /// What another process needs to go on from here, as bytes: hashes, and the open calls of the newest answer. Nothing
    /// when that is too long to be carried about.
    pub(crate) fn save(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.anchor.save(&mut bytes);
        self.owner.save(&mut bytes);
        self.recent.save(&mut bytes);
        self.loops.save(&mut bytes);
        if bytes.len() > Self::MAX_CARRIED { Vec::new() } else { bytes }
    }

    /// What another process has saved under this key; `None` when it has other rules.
    pub(crate) fn load(key: u128, mut bytes: &[u8], rules: &RedundancyRules) -> Option<Self> {
        let bytes = &mut bytes;
        Some(Self {
            tip: key,
            anchor: Saved::load(bytes)?,
            owner: Saved::load(bytes)?,
            canonical: 0,
            sent: 0,
            recent: Saved::load(bytes)?,
            loops: LoopState::load(bytes, rules)?,
            answer: None,
            place: None,
        })
    }

    /// A window of 64 steps has less than half of this.
    const MAX_CARRIED: usize = 64 * 1024;

    /// What both tables need for it.
    const INDEX: usize = 192;

    fn bytes(&self) -> usize {
        let place = self.place.as_ref().map_or(0, |place| place.mark.bytes());
        size_of::<Self>() + self.loops.bytes() + place + Self::INDEX
    }
}

/// A hasher for keys that are hashes already.
#[derive(Debug, Default)]
pub(crate) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = self.0.rotate_left(5) ^ u64::from_le_bytes(word);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }

    fn write_u128(&mut self, value: u128) {
        self.0 = (value >> 64) as u64 ^ value as u64;
    }
}

#[cfg(test)]
mod tests {
    use loopbreaker::{Fingerprint, RedundancyConfig, RedundancyRules};
    use loopbreaker_dialect::{Answer, Call, Dialect, Ran, read_request};

    use super::{Transcript, Transcripts};
    use crate::loops::{LoopState, Tail};
    use crate::recent::Recent;

    fn transcript(tip: u128) -> Box<Transcript> {
        let rules = RedundancyRules::compile(&RedundancyConfig::default());
        let loops = LoopState::new(&rules);
        Box::new(Transcript {
            tip,
            anchor: None,
            owner: None,
            canonical: 0,
            sent: 0,
            recent: Recent::default(),
            loops,
            answer: None,
            place: None,
        })
    }

    #[test]
    fn the_cache_keeps_to_its_bytes_and_forgets_the_oldest_first() {
        let transcripts = Transcripts::new(64 * 4_000);
        for tip in 0..64_000 {
            transcripts.put(transcript(tip));
        }
        let kept = (0..64_000).filter(|tip| transcripts.copy(*tip).is_some()).count();
        assert!(kept > 64 && kept * size_of::<Transcript>() <= 64 * 4_000, "{kept} are kept");
        assert!(transcripts.copy(63_999).is_some() && transcripts.copy(0).is_none());
    }

    /// A transcript of so many different calls, with an answer whose results are still to come.
    fn long_transcript(rules: &RedundancyRules, calls: usize, said: &str) -> Transcript {
        let items = (0..calls).map(|call| {
            format!(
                r#"{{"type":"function_call","call_id":"c{call}","name":"bash","arguments":"{{\"command\":\"sed -n {call}p src/some/long/path/file{call}.rs tests/other.rs\"}}"}},
                {{"type":"function_call_output","call_id":"c{call}","output":"line {call} of the file"}}"#
            )
        });
        let body = format!(r#"{{"input":[{}]}}"#, items.collect::<Vec<_>>().join(","));
        let mut messages = Vec::new();
        let read =
            read_request(Dialect::Responses, body.as_bytes(), None, &mut |message| messages.push(message));
        assert!(read.is_ok());
        let mut whole = *transcript(7);
        whole.anchor = Some(5);
        whole.loops = LoopState::new(rules);
        whole.loops.hear(&messages, &mut Tail::default(), &mut |_, _, _| ());
        let call = Call { id: "c".to_owned(), tool: "bash".to_owned(), args: "{}".to_owned() };
        let ran = vec![Ran { tool: "fetch".into(), result: Some("a page".into()), ..Ran::default() }];
        whole.loops.keep_answer(Answer {
            text: said.to_owned(),
            calls: vec![call],
            ran,
            ..Answer::default()
        });
        whole
    }

    #[test]
    fn a_transcript_that_was_carried_is_the_one_that_was_left() {
        let rules = RedundancyRules::compile(&RedundancyConfig::default());
        let left = long_transcript(&rules, 70, "let me see");
        let bytes = left.save();
        assert!((8_000..24_000).contains(&bytes.len()), "64 steps are {} bytes", bytes.len());
        let carried = Transcript::load(7, &bytes, &rules).unwrap();
        assert_eq!(format!("{carried:?}"), format!("{left:?}"));
        assert!(Transcript::load(7, &bytes[..bytes.len() - 1], &rules).is_none(), "it was cut");
    }

    #[test]
    fn what_is_too_long_is_not_carried() {
        let rules = RedundancyRules::compile(&RedundancyConfig::default());
        assert!(long_transcript(&rules, 3, &"so ".repeat(30_000)).save().is_empty());
    }

    #[test]
    fn what_another_process_left_is_taken_over_unless_this_one_is_further() {
        let (transcripts, rules) =
            (Transcripts::new(1 << 20), RedundancyRules::compile(&RedundancyConfig::default()));
        let steps = || transcripts.copy(7).map(|kept| kept.loops.steps());
        assert!(!transcripts.has(7));
        for (left, kept) in [(3, 3), (5, 5), (4, 5)] {
            transcripts.take_over(long_transcript(&rules, left, ""));
            assert_eq!(steps(), Some(kept));
        }
    }

    #[test]
    fn what_stands_around_messages_is_read_once() {
        let transcripts = Transcripts::new(1 << 20);
        let [one, other] = [&b"1"[..], b"2"].map(Fingerprint::of_document);
        assert_eq!(transcripts.rest(7, || one), one);
        assert_eq!(transcripts.rest(7, || other), one);
        for key in 0..Transcripts::MAX_RESTS as u128 + 8 {
            transcripts.rest(1_000 + key, || other);
        }
        assert_eq!(transcripts.rest(7, || other), other, "it was used longest ago");
    }

    #[test]
    fn taking_leaves_nothing_and_copying_leaves_it() {
        let transcripts = Transcripts::new(1 << 20);
        transcripts.put(transcript(7));
        assert!(transcripts.copy(7).is_some());
        assert!(transcripts.take(7).is_some());
        assert!(transcripts.take(7).is_none());
    }
}
