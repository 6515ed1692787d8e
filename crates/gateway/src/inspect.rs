//! What a request's body says: facts, transcript, and what is known of both from earlier requests.

use std::sync::Arc;

use loopbreaker::{Fingerprint, RedundancyRules};
use loopbreaker_dialect::{Dialect, Facts, Mark, Message, Speaker, Unreadable, read_messages};
use twox_hash::{XxHash3_64, XxHash3_128};

use crate::loops::{LoopState, Tail, Tell};
use crate::prefix::PrefixHash;
use crate::recent::{Recent, Tails};
use crate::reminders::Ending;
use crate::transcripts::{Place, Transcript, Transcripts};

/// A body that was read.
pub(crate) struct Inspection {
    pub(crate) facts: Arc<Facts>,
    /// The transcript with what this request added to it.
    pub(crate) transcript: Box<Transcript>,
    /// Links of the transcript's chain, from where an earlier request ended or else from the start.
    pub(crate) chain: Vec<u128>,
    /// What its messages end with, by which a compacted transcript is recognised.
    pub(crate) tails: Tails,
    /// Whether only what is new had to be read.
    pub(crate) resumed: bool,
    /// Where the loop state is kept when the client does not send its history again.
    pub(crate) thread: Option<u128>,
    /// The same, where other processes may know more of it than this one does.
    pub(crate) elsewhere: Option<u128>,
    /// A conversation as it was before this request, which is judged in the same way when it comes again.
    before: Option<Box<Transcript>>,
    /// The body's fingerprint, key order and white space aside.
    pub(crate) document: Option<[u8; 48]>,
    /// The words behind the newest result, which may be a reminder.
    pub(crate) ending: Option<Ending>,
}

/// What reading needs beside the body.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'s> {
    pub(crate) tenant: u128,
    pub(crate) rules: &'s RedundancyRules,
    pub(crate) transcripts: &'s Transcripts,
    /// Whether the body's fingerprint is wanted: it costs about as much as all the rest.
    pub(crate) fingerprint: bool,
    /// Whether it is read from the start, whatever is known of it: that was another session's.
    pub(crate) anew: bool,
    /// Whether the words behind the newest result stood at the end of an earlier request.
    pub(crate) knows_the_end: bool,
}

impl Reader<'_> {
    /// Reads a body, and tells each step that was not known before.
    pub(crate) fn read(
        self,
        dialect: Dialect,
        body: &[u8],
        tell: &mut Tell<'_>,
    ) -> Result<Inspection, Unreadable> {
        let hash = PrefixHash::new(self.tenant, body);
        let kept = if self.anew { None } else { self.transcripts.take_by_prefix(&hash, body) };
        let mark = kept.as_ref().and_then(|kept| Some(&kept.place.as_ref()?.mark));
        let (mut reading, mut messages) = read_messages(dialect, body, mark)?;
        let mut resumed = mark.is_some_and(|mark| mark.messages() + messages.len() == reading.messages);
        let thread = self.thread(&reading.facts);
        // What led to an answer stays as it is, but a conversation goes on wherever it is named.
        let stays = reading.facts.previous_response_id.is_some();
        let elsewhere = thread.filter(|thread| !stays || !self.transcripts.has(*thread));
        if thread.is_some() && resumed {
            // What the provider keeps is where this goes on from, however its bytes begin.
            (reading, messages) = read_messages(dialect, body, None)?;
            resumed = false;
        }
        let mut kept = kept.filter(|_| resumed);
        // An answer that is only begun has not been given: the model goes on with it, and the next request says how.
        let is_begun = messages.last().is_some_and(Message::is_begun_answer);
        let given = &messages[..messages.len() - usize::from(is_begun)];
        let from = newest_result(given).filter(|_| thread.is_none());
        let mut tail = Tail { from, is_old: self.knows_the_end, words: Vec::new() };
        if let Some(kept) = &mut kept {
            self.recall(kept, given);
            kept.loops.hear(given, &mut tail, tell);
        }

        let start = kept.as_ref().map(|kept| kept.tip).or(thread).unwrap_or(self.tenant);
        // An answer is told by its own name, so a retry names the one before it again. A conversation has one name for all
        // of its answers.
        let conversation = thread.filter(|_| !stays);
        let before = conversation.map(|thread| Box::new(self.before(thread, hash.of(body.len()), given)));
        let spoken = spoken(given);
        // Nor do the same words make the same transcript, when more has happened before them.
        let happened = before.as_ref().map_or(0, |before| before.loops.steps() as u128);
        let mut chain = Vec::with_capacity(spoken.len() + 1);
        if resumed || thread.is_some() {
            chain.push(start);
        }
        let known = chain.len();
        chain.extend(links(if happened > 0 { mix(start, happened) } else { start }, &spoken));
        let links = &chain[known..];
        let mut transcript = match (kept, &before) {
            (Some(kept), _) => kept,
            (None, Some(before)) => {
                let mut transcript = Box::new(before.without_place());
                transcript.loops.hear(given, &mut tail, tell);
                transcript
            }
            (None, None) => self.taken_up(thread, links, &spoken, given, &mut tail, tell),
        };
        let place = transcript.place.take();
        transcript.place = reading.mark.filter(|_| !is_begun).map(|mark| Place {
            prefix: hash.of(mark.offset()),
            bucket: hash.bucket(mark.offset()),
            first: place.as_ref().map_or_else(|| first(&messages, &mark), |place| place.first),
            rest: place.and_then(|place| place.rest),
            mark,
        });
        let document = self.fingerprint.then(|| {
            transcript.canonical = to_the_letter(transcript.canonical, resumed, &messages);
            self.document(&mut transcript, body)
        });
        let digests = spoken.iter().map(|(digest, _)| *digest);
        let tails = transcript.recent.go_on(self.tenant, resumed || thread.is_some(), digests);
        transcript.tip = chain.last().copied().unwrap_or(start);
        let ending =
            from.filter(|_| (1..=Ending::MAX_WORDS).contains(&tail.words.len())).map(|from| Ending {
                behind: spoken
                    .iter()
                    .zip(links)
                    .rev()
                    .find(|((_, at), _)| *at < from)
                    .map_or(start, |(_, link)| *link),
                tip: transcript.tip,
                words: tail.words,
            });
        transcript.anchor = transcript.anchor.or(chain.first().copied());
        Ok(Inspection {
            facts: reading.facts,
            transcript,
            chain,
            tails,
            resumed,
            thread,
            elsewhere,
            before,
            document,
            ending,
        })
    }

    /// The conversation that this request goes on with although its bytes are others, or a new one.
    fn taken_up(
        self,
        thread: Option<u128>,
        links: &[u128],
        spoken: &[(u128, usize)],
        messages: &[Message<'_>],
        tail: &mut Tail,
        tell: &mut Tell<'_>,
    ) -> Box<Transcript> {
        if let Some(thread) = thread {
            // It stays where it is: another request may go on from the same answer.
            let mut transcript = Box::new(self.transcripts.copy(thread).unwrap_or_else(|| self.fresh()));
            transcript.loops.hear(messages, tail, tell);
            return transcript;
        }
        let look_back = if self.anew { 0 } else { MAX_LOOK_BACK };
        for (link, (_, index)) in links.iter().zip(spoken).rev().take(look_back) {
            if let Some(mut known) = self.transcripts.take(*link) {
                tail.from = tail.from.map(|from| from.saturating_sub(index + 1));
                self.recall(&mut known, &messages[index + 1..]);
                known.loops.hear(&messages[index + 1..], tail, tell);
                // The bytes are others, so their hashes are worth nothing.
                (known.canonical, known.place) = (0, None);
                return known;
            }
        }
        let mut transcript = Box::new(self.fresh());
        transcript.loops.hear(messages, tail, tell);
        transcript
    }

    /// Lets a transcript know what the answer to it called, where its client only names that.
    fn recall(self, known: &mut Transcript, messages: &[Message<'_>]) {
        let answer = known.answer.take();
        if let Some(answer) = answer.filter(|_| messages.iter().any(Message::is_reference))
            && let Some(answered) = self.transcripts.copy(answer)
        {
            known.loops.recall(answered.loops, messages);
        }
    }

    /// What a request of a conversation goes on from: for the last one that was sent, when it comes again, from where it
    /// went on then, and else from the newest answer.
    fn before(self, conversation: u128, sent: u128, messages: &[Message<'_>]) -> Transcript {
        let (key, newest) = (mix(conversation, BEFORE), self.transcripts.copy(conversation));
        // Words may be said twice, and a provider may give each call the same name: it comes again when it answers what
        // was asked before.
        let is_late = newest.as_ref().is_some_and(|newest| newest.loops.is_answered_late(messages));
        let again = self.transcripts.copy(key).filter(|before| is_late && before.sent == sent);
        Transcript { tip: key, sent, ..again.or(newest).unwrap_or_else(|| self.fresh()) }
    }

    /// A transcript of which nothing was heard yet.
    fn fresh(self) -> Transcript {
        Transcript {
            tip: 0,
            anchor: None,
            owner: None,
            canonical: 0,
            sent: 0,
            recent: Recent::default(),
            loops: LoopState::new(self.rules),
            answer: None,
            place: None,
        }
    }

    /// Messages and the rest of the body, each in canonical form: equal for two bodies exactly when they say the same.
    fn document(self, transcript: &mut Transcript, body: &[u8]) -> [u8; 48] {
        let rest = match &mut transcript.place {
            Some(place) => {
                let around = [&body[..place.first], &body[place.mark.offset()..]];
                let tail_hash = XxHash3_64::oneshot(around[1]);
                match place.rest {
                    Some((known, rest)) if known == tail_hash => rest,
                    _ => {
                        let hashes = around.map(XxHash3_128::oneshot);
                        let key = hashes.into_iter().fold(self.tenant, mix);
                        let read = || Fingerprint::of_document(&around.concat());
                        let rest = self.transcripts.rest(key, read);
                        place.rest = Some((tail_hash, rest));
                        rest
                    }
                }
            }
            None => Fingerprint::of_document(body),
        };
        let mut document = [0; 48];
        document[..16].copy_from_slice(&transcript.canonical.to_le_bytes());
        document[16..].copy_from_slice(rest.as_bytes());
        document
    }

    /// The thread that the provider keeps for this client, if it does.
    fn thread(self, facts: &Facts) -> Option<u128> {
        let named = facts.previous_response_id.as_deref().or(facts.conversation.as_deref())?;
        Some(thread_key(self.tenant, named))
    }
}

impl Inspection {
    /// Whether this is of one session and goes on from what another one said. What the provider keeps for a client is
    /// its own, whatever it calls itself.
    pub(crate) fn is_of_another(&self, owner: u128) -> bool {
        self.thread.is_none() && self.transcript.owner.is_some_and(|known| known != owner)
    }

    /// Keeps the transcript for the next request, and gives a copy back where that may name the answer instead of
    /// repeating what led to it.
    pub(crate) fn keep(self, transcripts: &Transcripts, answers_are_named: bool) -> Option<Box<Transcript>> {
        if self.thread.is_some() {
            if let Some(before) = self.before {
                transcripts.put(before);
            }
            return Some(self.transcript);
        }
        let copy = answers_are_named.then(|| Box::new(self.transcript.without_place()));
        transcripts.put(self.transcript);
        copy
    }
}

/// Whether a body's transcript goes through this link. It reads all of the body.
pub(crate) fn goes_through(dialect: Dialect, tenant: u128, body: &[u8], link: u128) -> bool {
    read_messages(dialect, body, None)
        .is_ok_and(|(_, messages)| links(tenant, &spoken(&messages)).any(|known| known == link))
}

/// The message of the newest result, where nothing but words from outside and instructions follows it.
fn newest_result(messages: &[Message<'_>]) -> Option<usize> {
    let result = messages.iter().rposition(|message| message.speaker == Speaker::Tool)?;
    let behind = messages.get(result + 1..)?;
    behind.iter().all(|message| message.speaker != Speaker::Agent).then_some(result)
}

/// The key of a thread that the provider keeps: a response id, or a conversation's.
pub(crate) fn thread_key(tenant: u128, name: &str) -> u128 {
    mix(tenant ^ 0x7468_7265_6164, XxHash3_128::oneshot(name.as_bytes()))
}

/// Digests of the messages that count, and which they are. What the system says is no part of a transcript: many
/// clients put the time of day there.
fn spoken(messages: &[Message<'_>]) -> Vec<(u128, usize)> {
    let counted = messages.iter().enumerate().filter(|(_, message)| message.speaker != Speaker::System);
    counted.map(|(index, message)| (message.digest(), index)).collect()
}

/// The link after each message that counts.
fn links(start: u128, spoken: &[(u128, usize)]) -> impl Iterator<Item = u128> {
    spoken.iter().scan(start, |link, (digest, _)| {
        *link = mix(*link, *digest);
        Some(*link)
    })
}

/// One more link of a chain of hashes.
pub(crate) fn mix(before: u128, next: u128) -> u128 {
    let mut both = [0; 32];
    both[..16].copy_from_slice(&before.to_le_bytes());
    both[16..].copy_from_slice(&next.to_le_bytes());
    XxHash3_128::oneshot(&both)
}

fn first(messages: &[Message<'_>], mark: &Mark) -> usize {
    messages.first().map_or(mark.offset(), |message| message.span.start)
}

/// What the messages say to the letter. It never leaves the fingerprint that it becomes a part of, and who could forge
/// it could as well send the same message again, so its hashes are quick ones.
fn to_the_letter(before: u128, resumed: bool, messages: &[Message<'_>]) -> u128 {
    let start = if resumed { before } else { 0 };
    messages.iter().fold(start, |hash, message| mix(hash, message.to_the_letter()))
}

/// Tells a conversation before its newest request from what became of it.
const BEFORE: u128 = 0x6265_666f_7265;

/// Between two requests lie an answer and its results.
const MAX_LOOK_BACK: usize = 64;

#[cfg(test)]
mod tests;
