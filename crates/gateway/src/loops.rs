//! The loop state of one conversation: what its transcript has shown so far.

use std::ops::Range;

use loopbreaker::{Finding, Ladder, Outcome, Redundancy, RedundancyRules, Saved, Severity, Step, Strikes};
use loopbreaker_dialect::{Answer, Call, Conversation, Event, Message, Ran, Speaker};

use crate::reminders::hash_of_words;

/// A finding and how often its loop went on after it was found.
#[derive(Debug, Clone)]
pub(crate) struct Ruled {
    pub(crate) finding: Finding,
    pub(crate) strikes: u32,
}

impl Ruled {
    /// Whether it is a loop, and not only a warning.
    pub(crate) fn is_loop(&self) -> bool {
        self.finding.severity == Severity::Loop
    }
}

/// Hears of each step of a transcript that was not known before, its place in it, and what its result says of itself.
pub(crate) type Tell<'t> = dyn FnMut(usize, &Step<'_>, &Outcome) + 't;

/// What stands behind the newest result of a request.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// The message of that result, which may hold words itself; `None` where the model has answered since.
    pub(crate) from: Option<usize>,
    /// Whether its words stood at the end of an earlier request, and are no news.
    pub(crate) is_old: bool,
    /// Its words, as hashes.
    pub(crate) words: Vec<u128>,
}

/// Detector and strikes of one conversation.
///
/// It is fed the messages of a transcript in order, as they come with one request after the other. What it says about
/// a request is what became certain in the newest answer, unless new words from outside have come since.
#[derive(Debug, Clone)]
pub(crate) struct LoopState {
    detector: Redundancy,
    strikes: Strikes,
    /// The number of the next round.
    round: u64,
    /// The first round of the newest answer that has a step, and its first step.
    newest: (Option<u64>, usize),
    /// The rounds of the newest answer. One in which tools ran at the provider has several.
    rounds: Range<u64>,
    /// The first round that the message which is read now may begin.
    next: u64,
    rulings: Vec<Ruled>,
    /// Whether it was ever in a loop.
    has_looped: bool,
    /// What an answer said and called, for a client that will not send it again.
    said: String,
    open: Vec<Call>,
    /// What ran at the provider for that answer.
    ran: Vec<Ran>,
    /// The calls of answers that the same request got before: a client that asked twice may go on from either.
    earlier: Vec<Call>,
}

impl LoopState {
    /// A conversation that has not begun.
    pub(crate) fn new(rules: &RedundancyRules) -> Self {
        Self {
            detector: rules.detector(),
            strikes: Strikes::default(),
            round: 0,
            newest: (None, 0),
            rounds: 0..0,
            next: 0,
            rulings: Vec::new(),
            has_looped: false,
            said: String::new(),
            open: Vec::new(),
            ran: Vec::new(),
            earlier: Vec::new(),
        }
    }

    /// Takes in what a request brought that was not known before, and tells each step with its place.
    pub(crate) fn hear(&mut self, messages: &[Message<'_>], tail: &mut Tail, tell: &mut Tell<'_>) {
        if messages.is_empty() {
            return;
        }
        let mut conversation = Conversation::at_round(self.round);
        let (said, mut open) = (std::mem::take(&mut self.said), std::mem::take(&mut self.open));
        let (ran, earlier) = (std::mem::take(&mut self.ran), std::mem::take(&mut self.earlier));
        if !earlier.is_empty() && !answer_any(messages, &open) && answer_any(messages, &earlier) {
            open = earlier;
        }
        self.next = u64::MAX;
        for ran in &ran {
            conversation.take(ran.event(), &mut |step| self.observe(step, tell));
        }
        if !said.is_empty() {
            conversation.take(Event::Said(said.into()), &mut |step| self.observe(step, tell));
        }
        for call in &open {
            conversation.take(call.event(), &mut |step| self.observe(step, tell));
        }
        for (index, message) in messages.iter().enumerate() {
            let is_tail = tail.from.is_some_and(|from| from <= index);
            self.next = conversation.round();
            let mut take = |event| {
                if let (Event::Heard { text, .. }, true) = (&event, is_tail) {
                    tail.words.push(hash_of_words(text));
                    if tail.is_old {
                        return;
                    }
                }
                conversation.take(event, &mut |step| self.observe(step, tell));
            };
            match message.speaker {
                Speaker::System => message.events(&mut take),
                // Nearly always the digest is asked for next.
                _ => drop(message.read(&mut take)),
            }
            if conversation.round() > self.next {
                self.rounds = self.next..conversation.round();
            }
        }
        conversation.finish(&mut |step| self.observe(step, tell));
        self.round = conversation.round();
        // The next request begins with answers of its own.
        (self.rounds, self.next) = (0..0, 0);
        let findings = self.detector.end_round();
        self.rule(findings);
        let (newest, detector) = (self.newest.1, &self.detector);
        self.rulings
            .retain(|ruled| ruled.finding.step >= newest && !detector.has_news_since(ruled.finding.step));
    }

    /// Keeps an answer, for a client that will not send it again.
    pub(crate) fn keep_answer(&mut self, answer: Answer) {
        let mut bytes = 0;
        // The reader of answers has bounded the text.
        self.said = answer.text;
        self.open = answer.calls;
        self.open.truncate(Self::MAX_OPEN);
        self.open.retain(|call| {
            bytes += call.args.len() + call.tool.len();
            bytes <= Self::MAX_OPEN_BYTES
        });
        self.ran = answer.ran;
        self.ran.truncate(Self::MAX_OPEN);
        self.ran.retain(|ran| {
            bytes += bytes_of(ran);
            bytes <= Self::MAX_OPEN_BYTES
        });
    }

    /// Takes over what an answer said and called, as far as these messages do not say it themselves: some clients send a
    /// part of it again and only name the rest.
    pub(crate) fn recall(&mut self, answered: Self, messages: &[Message<'_>]) {
        (self.said, self.open, self.ran) = (answered.said, answered.open, answered.ran);
        for message in messages {
            message.events(&mut |event| match event {
                Event::Said(_) => self.said.clear(),
                Event::Called { waits_for: Some(id), .. } => self.open.retain(|call| call.id != id),
                Event::Called { waits_for: None, .. } => self.ran.clear(),
                _ => {}
            });
        }
    }

    /// Keeps what an answer to the same request called before this one came.
    pub(crate) fn keep_earlier(&mut self, before: &Self) {
        self.earlier = before.open.iter().chain(&before.earlier).take(Self::MAX_OPEN).cloned().collect();
    }

    /// Whether these messages bring no result of a call that is waited for, although they bring others, or although
    /// nothing goes on without one.
    pub(crate) fn is_answered_late(&self, messages: &[Message<'_>]) -> bool {
        let has_results = messages.iter().any(|message| message.speaker == Speaker::Tool);
        (has_results || !self.open.is_empty())
            && !answer_any(messages, &self.open)
            && !answer_any(messages, &self.earlier)
    }

    /// Writes it down for another process to go on with: hashes, and the calls whose results are still to come.
    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        let Self {
            detector,
            strikes,
            round,
            newest,
            rounds: _,
            next: _,
            rulings,
            has_looped: _,
            said,
            open,
            ran,
            earlier: _,
        } = self;
        detector.save(out);
        strikes.save(out);
        round.save(out);
        newest.save(out);
        rulings.len().save(out);
        for ruled in rulings {
            ruled.finding.save(out);
            ruled.strikes.save(out);
        }
        said.save(out);
        open.len().save(out);
        for call in open {
            for text in [&call.id, &call.tool, &call.args] {
                text.save(out);
            }
        }
        ran.len().save(out);
        for ran in ran {
            ran.tool.save(out);
            ran.args.save(out);
            ran.result.save(out);
            ran.failed.save(out);
        }
    }

    /// What was saved; `None` when it was seen with other rules.
    pub(crate) fn load(from: &mut &[u8], rules: &RedundancyRules) -> Option<Self> {
        let (detector, strikes) = (rules.load(from)?, Saved::load(from)?);
        let (round, newest) = (Saved::load(from)?, Saved::load(from)?);
        let rulings: Vec<Ruled> = Vec::<(Finding, u32)>::load(from)?
            .into_iter()
            .map(|(finding, strikes)| Ruled { finding, strikes })
            .collect();
        Some(Self {
            detector,
            strikes,
            round,
            newest,
            rounds: 0..0,
            next: 0,
            // Where that loop is over and goes on later, it is found again.
            has_looped: rulings.iter().any(Ruled::is_loop),
            rulings,
            said: Saved::load(from)?,
            open: Vec::<(String, (String, String))>::load(from)?
                .into_iter()
                .map(|(id, (tool, args))| Call { id, tool, args })
                .collect(),
            ran: Vec::<(String, (Option<String>, (Option<String>, bool)))>::load(from)?
                .into_iter()
                .map(|(tool, (args, (result, failed)))| Ran { tool, args, result, failed })
                .collect(),
            earlier: Vec::new(),
        })
    }

    /// What is certain about the newest round.
    pub(crate) fn rulings(&self) -> &[Ruled] {
        &self.rulings
    }

    /// Whether it was in a loop at any time, as far as this process has seen it.
    pub(crate) const fn has_looped(&self) -> bool {
        self.has_looped
    }

    /// How many steps there are: the place of the next one.
    pub(crate) fn steps(&self) -> usize {
        self.detector.steps()
    }

    /// How many bytes it holds.
    pub(crate) fn bytes(&self) -> usize {
        let open: usize = self
            .open
            .iter()
            .chain(&self.earlier)
            .map(|call| call.id.len() + call.tool.len() + call.args.len() + 72)
            .sum();
        let ran: usize = self.ran.iter().map(|ran| bytes_of(ran) + size_of::<Ran>()).sum();
        let open = open + ran + self.said.capacity();
        let rulings = self.rulings.len() * (size_of::<Ruled>() + 512);
        size_of::<Self>() + self.detector.bytes() + open + rulings
    }

    /// So many calls of one answer are kept, and as many that ran for it at the provider.
    pub(crate) const MAX_OPEN: usize = 64;
    const MAX_OPEN_BYTES: usize = 256 * 1024;

    fn observe(&mut self, step: &Step<'_>, tell: &mut Tell<'_>) {
        let index = self.detector.steps();
        let first = step.round.map(|round| match round {
            _ if round >= self.next => self.next,
            _ if self.rounds.contains(&round) => self.rounds.start,
            _ => round,
        });
        if first.is_some() && first != self.newest.0 {
            self.newest = (first, index);
        }
        let (findings, outcome) = self.detector.observe_and_tell(step);
        tell(index, step, &outcome);
        self.rule(findings);
    }

    fn rule(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            self.has_looped |= finding.severity == Severity::Loop;
            let ruling = self.strikes.rule(&finding, &Ladder::default());
            let newest = self.newest.1;
            self.rulings.retain(|ruled| ruled.finding.step >= newest);
            self.rulings.push(Ruled { finding, strikes: ruling.strikes });
        }
    }
}

/// Bytes of its texts.
fn bytes_of(ran: &Ran) -> usize {
    ran.tool.len()
        + [&ran.args, &ran.result].map(|text| text.as_ref().map_or(0, String::len)).iter().sum::<usize>()
}

/// Whether one of these messages is the result of one of these calls.
fn answer_any(messages: &[Message<'_>], calls: &[Call]) -> bool {
    let mut is_answer = false;
    for message in messages.iter().filter(|message| message.speaker == Speaker::Tool) {
        message.events(&mut |event| {
            if let Event::Returned { call, .. } = event {
                is_answer |= calls.iter().any(|known| call.id.as_deref() == Some(&known.id));
            }
        });
    }
    is_answer
}
