//! Transcripts that were read before: a request that begins with the bytes of an earlier one is read from there on.
//!
//! It is a cache with a limit in bytes. A transcript that was evicted is read again from its body and loses nothing
//! but time.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, PoisonError};

use loopbreaker::{Fingerprint, RedundancyRules, Saved};
use loopbreaker_dialect::Mark;
use twox_hash::XxHash3_128;

use crate::inspect::{Recent, mix};
use crate::loops::LoopState;
use crate::recency::Recency;

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

/// Hashes of a body's leading bytes up to each boundary: four of them between a power of two and the next. The bytes
/// are read once, and going on from a boundary costs only what is behind it.
pub(crate) struct PrefixHash {
    tenant: u128,
    boundaries: Vec<u128>,
}

impl PrefixHash {
    /// Requests shorter than this are read whole: that is as fast.
    const SHORTEST: usize = 256;

    /// The hashes of a tenant's body.
    pub(crate) fn new(tenant: u128, body: &[u8]) -> Self {
        let count = Self::last_before(body.len()).map_or(0, |last| last + 1);
        let mut boundaries = Vec::with_capacity(count);
        let (mut hash, mut from) = (tenant, 0);
        for index in 0..count {
            let to = Self::boundary(index);
            hash = mix(hash, XxHash3_128::oneshot(&body[from..to]));
            boundaries.push(hash);
            from = to;
        }
        Self { tenant, boundaries }
    }

    /// The hash of `body[..end]`.
    pub(crate) fn of(&self, body: &[u8], end: usize) -> u128 {
        let last = Self::last_before(end);
        let before = last.and_then(|last| self.boundaries.get(last)).copied().unwrap_or(self.tenant);
        mix(before, XxHash3_128::oneshot(&body[last.map_or(0, Self::boundary)..end]))
    }

    /// Where a transcript that ends here is looked for.
    pub(crate) fn bucket(&self, end: usize) -> Option<u64> {
        self.boundaries.get(Self::last_before(end)?).map(|hash| *hash as u64)
    }

    fn boundary(index: usize) -> usize {
        (4 + index % 4) << (6 + index / 4)
    }

    /// The last boundary that is not behind `end`.
    fn last_before(end: usize) -> Option<usize> {
        let octave = (end / Self::SHORTEST).checked_ilog2()? as usize;
        Some(4 * octave + (end >> (6 + octave)) % 4)
    }
}

/// The cache.
#[derive(Debug)]
pub(crate) struct Transcripts {
    shards: Box<[Mutex<Shard>]>,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct Shard {
    by_tip: Recency<Box<Transcript>>,
    /// Transcripts by the hash of their bytes up to the last boundary.
    by_prefix: HashMap<u64, Alike, BuildHasherDefault<Hashed>>,
    bytes: usize,
}

/// Transcripts with the same leading bytes, nearly always one.
#[derive(Debug)]
struct Alike {
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

    /// A cache that holds at most about `max_bytes`.
    pub(crate) fn new(max_bytes: usize) -> Self {
        let shard = || Mutex::new(Shard::default());
        Self { shards: (0..Self::SHARDS).map(|_| shard()).collect(), max_bytes: max_bytes / Self::SHARDS }
    }

    /// Takes out the transcript whose bytes this body begins with, the longest if there are several.
    ///
    /// It is taken and not copied: the request that goes on with it puts it back, longer.
    pub(crate) fn take_by_prefix(&self, hash: &PrefixHash, body: &[u8]) -> Option<Box<Transcript>> {
        // Most requests bring little that is new, so the longest beginnings are the most likely ones.
        for boundary in hash.boundaries.iter().rev() {
            let bucket = *boundary as u64;
            loop {
                let known = self.shard(u128::from(bucket)).longest(bucket, hash, body);
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
        let mut shard = self.shard(tip);
        let place = shard.by_tip.peek(tip)?.place.as_ref()?;
        if place.prefix == prefix { shard.take(tip) } else { None }
    }

    /// Takes out the transcript that ends with this link of its chain.
    pub(crate) fn take(&self, tip: u128) -> Option<Box<Transcript>> {
        let taken = self.shard(tip).take(tip)?;
        self.forget(&taken);
        Some(taken)
    }

    /// A copy of the transcript that ends with this link, for a client that may go on from it more than once.
    pub(crate) fn copy(&self, tip: u128) -> Option<Transcript> {
        let mut shard = self.shard(tip);
        let kept = shard.by_tip.get(tip)?;
        Some(kept.without_place())
    }

    /// Notes where the answer to a transcript is kept, if nobody has gone on from it yet.
    pub(crate) fn note_answer(&self, tip: u128, answer: u128) {
        if let Some(transcript) = self.shard(tip).by_tip.get(tip) {
            transcript.answer = Some(answer);
        }
    }

    /// Whether there is a transcript that ends with this link.
    pub(crate) fn has(&self, tip: u128) -> bool {
        self.shard(tip).by_tip.peek(tip).is_some()
    }

    /// Keeps a transcript that another process has left, unless this one has gone on further by itself.
    pub(crate) fn take_over(&self, transcript: Transcript) {
        let steps = transcript.loops.steps();
        let is_behind = self
            .shard(transcript.tip)
            .by_tip
            .peek(transcript.tip)
            .is_some_and(|own| own.loops.steps() > steps);
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
    fn take(&mut self, tip: u128) -> Option<Box<Transcript>> {
        let taken = self.by_tip.remove(tip)?;
        self.bytes = self.bytes.saturating_sub(taken.bytes());
        Some(taken)
    }

    /// Keeps a transcript, and gives back those that have no room any more.
    #[expect(clippy::vec_box, reason = "they are kept in boxes, and moved as such")]
    fn put(&mut self, transcript: Box<Transcript>, max_bytes: usize) -> Vec<Box<Transcript>> {
        self.bytes += transcript.bytes();
        let mut evicted = Vec::new();
        if let Some(before) = self.by_tip.put(transcript.tip, transcript) {
            self.bytes = self.bytes.saturating_sub(before.bytes());
        }
        while self.bytes > max_bytes {
            let Some(oldest) = self.by_tip.pop_oldest() else { break };
            self.bytes = self.bytes.saturating_sub(oldest.bytes());
            evicted.push(oldest);
        }
        evicted
    }

    /// Takes out what is known of the longest transcript in this bucket that the body begins with.
    fn longest(&mut self, bucket: u64, hash: &PrefixHash, body: &[u8]) -> Option<Known> {
        let alike = self.by_prefix.get(&bucket)?;
        let mut longest: Option<Known> = None;
        for known in std::iter::once(&alike.newest).chain(&alike.older) {
            let is_longer = longest.is_none_or(|longest| longest.end < known.end);
            if is_longer && known.end <= body.len() && hash.of(body, known.end) == known.prefix {
                longest = Some(*known);
            }
        }
        let longest = longest?;
        self.forget(bucket, |known| known.prefix == longest.prefix);
        Some(longest)
    }

    fn know(&mut self, bucket: u64, known: Known) {
        let mut alike = match self.by_prefix.entry(bucket) {
            Entry::Vacant(vacant) => {
                vacant.insert(Alike { newest: known, older: Vec::new() });
                return;
            }
            Entry::Occupied(occupied) => occupied,
        };
        let alike = alike.get_mut();
        let before = std::mem::replace(&mut alike.newest, known);
        alike.older.retain(|older| older.prefix != known.prefix);
        if before.prefix != known.prefix {
            if alike.older.len() + 1 == Transcripts::MAX_ALIKE {
                alike.older.remove(0);
            }
            alike.older.push(before);
        }
    }

    fn forget(&mut self, bucket: u64, is_meant: impl Fn(&Known) -> bool) {
        let Some(alike) = self.by_prefix.get_mut(&bucket) else { return };
        alike.older.retain(|older| !is_meant(older));
        if is_meant(&alike.newest) {
            match alike.older.pop() {
                Some(older) => alike.newest = older,
                None => drop(self.by_prefix.remove(&bucket)),
            }
        }
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
    use loopbreaker::{RedundancyConfig, RedundancyRules};
    use loopbreaker_dialect::{Answer, Call, Dialect, Ran, read_request};

    use super::{PrefixHash, Transcript, Transcripts};
    use crate::inspect::Recent;
    use crate::loops::{LoopState, Tail};

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
        whole.loops.hear(&messages, &mut Tail::default(), &mut |_, _| ());
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
    fn taking_leaves_nothing_and_copying_leaves_it() {
        let transcripts = Transcripts::new(1 << 20);
        transcripts.put(transcript(7));
        assert!(transcripts.copy(7).is_some());
        assert!(transcripts.take(7).is_some());
        assert!(transcripts.take(7).is_none());
    }

    #[test]
    fn boundaries_divide_each_power_of_two_into_four() {
        let boundaries: Vec<usize> = (0..9).map(PrefixHash::boundary).collect();
        assert_eq!(boundaries, [256, 320, 384, 448, 512, 640, 768, 896, 1_024]);
        for end in 0..5_000 {
            let last = (0..40).take_while(|index| PrefixHash::boundary(*index) <= end).last();
            assert_eq!(PrefixHash::last_before(end), last, "{end}");
        }
    }

    #[test]
    fn a_hash_is_that_of_the_leading_bytes_however_long_the_body_is() {
        let body: Vec<u8> = (0..3_000_u32).map(|at| (at * at) as u8).collect();
        let whole = PrefixHash::new(7, &body);
        for end in (0..=body.len()).step_by(97) {
            let short = PrefixHash::new(7, &body[..end]);
            assert_eq!((whole.of(&body, end), whole.bucket(end)), (short.of(&body, end), short.bucket(end)));
            assert_ne!(PrefixHash::new(8, &body).of(&body, end), whole.of(&body, end), "another tenant");
        }
    }
}
