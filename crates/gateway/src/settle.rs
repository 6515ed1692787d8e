//! What happens when an answer is over: usage is settled once, the transcript kept, the record written.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use loopbreaker::{Chant, DetectorName, Kind, Severity};
use loopbreaker_budget::{Actual, Tokens};
use loopbreaker_dialect::{Answer, Dialect, Usage};
use loopbreaker_fleet::AnswerNamed;
use loopbreaker_telemetry::{FindingNote, Mode, Record, Tokens as ToldTokens};
use serde_json::{Value, json};

use crate::answer::{End, Ended};
use crate::cache::Keeping;
use crate::consider::family;
use crate::few::Few;
use crate::inspect::thread_key;
use crate::journal::{Answered, Entry, Judged, Who};
use crate::limits::Estimate;
use crate::reminders::Ending;
use crate::send::CLIENT_GONE;
use crate::sessions::Located;
use crate::settings::{Applied, Settings};
use crate::state::Shared;
use crate::ticket::Ticket;
use crate::transcripts::Transcript;

/// What is left to do when an answer is over.
pub(crate) struct Settling {
    pub(crate) shared: Arc<Shared>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) record: Record,
    pub(crate) arrived: Instant,
    pub(crate) dialect: Option<Dialect>,
    pub(crate) ticket: Ticket,
    pub(crate) estimate: Estimate,
    pub(crate) tenant: u128,
    /// Whose request it is, where answers are written down, and the place of what this one adds.
    pub(crate) who: Option<Who>,
    pub(crate) position: usize,
    pub(crate) located: Located,
    /// The loop state of a client that will name this answer instead of repeating what led to it.
    pub(crate) thread: Option<Box<Transcript>>,
    /// The words behind the request's newest result, which are heard when it is answered.
    pub(crate) ending: Option<(u128, Ending)>,
    /// The conversation that such a client names instead.
    pub(crate) conversation: Option<Box<str>>,
    /// Policies that look for chants.
    pub(crate) chants: Few<FindingNote>,
    /// Where the answer is kept to be given again.
    pub(crate) keeping: Option<Keeping>,
}

/// What is told of a chant, by each policy that looks for them.
pub(crate) fn watching_for_chants(policies: &[Applied<'_>], held_out: bool) -> Few<FindingNote> {
    let watching = policies.iter().filter(|applied| applied.policy.policy.chant.is_some());
    let note = |applied: &Applied<'_>| FindingNote {
        kind: Kind::Chant,
        severity: Severity::Loop,
        mode: if held_out { Mode::Shadow } else { applied.mode() },
        detector: DetectorName::Redundancy,
        count: 0,
        period: 1,
        policy: Arc::clone(&applied.policy.id),
    };
    watching.map(note).collect()
}

impl Settling {
    /// Does it.
    pub(crate) fn settle(mut self: Box<Self>, ended: Ended) {
        let moment = Instant::now();
        let now = self.shared.at(moment);
        let Ended { end, mut answer, chant, first_chunk, kept } = ended;
        // What is given again was used and paid when it was given first.
        let is_given_again = self.record.cache_age.is_some();
        let succeeded = match self.record.status {
            101 | 200..300 => true,
            // What the provider did until its client had gone is not known, and not free either.
            CLIENT_GONE => matches!(end, End::ClientGone),
            _ => false,
        };

        if let Some((owner, ending)) = self.ending.take().filter(|_| succeeded) {
            self.shared.reminders.remember(owner, &ending);
        }

        // What did it use, and what does that cost?
        if let Some(dialect) = self.dialect.filter(|_| succeeded && !is_given_again) {
            let (tokens, estimated) = self.tokens(answer.as_ref(), matches!(end, End::Complete));
            let cost = self.settings.prices.cost(family(dialect), self.record.model.as_deref(), &tokens);
            self.record.tokens = Some(told(&tokens));
            self.record.tokens_estimated = estimated;
            (self.record.cost_micros, self.record.cost_known) = (cost.micros, cost.known);
            let actual = Actual { tokens: tokens.total(), money_micros: cost.micros };
            self.ticket.settle(&self.shared.ledger, &actual, now);
        } else if succeeded {
            self.ticket.settle(&self.shared.ledger, &Actual::default(), now);
        } else {
            self.ticket.refund(&self.shared.ledger, now);
        }

        let (is_cut, is_complete) = (matches!(end, End::Cut(_)), matches!(end, End::Complete));
        self.record.is_cut = is_cut;
        let chanted: Option<Chant> = match end {
            End::Cut(chant) => Some(chant),
            // A stream was watched while it passed; another answer is whole only now.
            End::Complete | End::ClientGone | End::Broken => chant.or_else(|| {
                let text = answer.as_ref().filter(|_| !self.record.stream && !self.chants.is_empty())?;
                Chant::of(&text.text)
            }),
        };
        if let Some(chant) = &chanted {
            let copies = chant.copies as u32;
            let seen = self.chants.iter().map(|note| FindingNote { count: copies, ..note.clone() });
            self.record.findings.extend(seen);
        }

        if let (Some(keeping), Some(kept), Some(answer)) = (self.keeping.take(), kept, &answer)
            && is_complete
            && chanted.is_none()
        {
            keeping.keep(&self.shared, kept, answer);
        }

        // What did it say that has to be written down and remembered?
        if let (Some(mut who), Some(answer)) = (self.who.take(), answer.as_ref().filter(|_| succeeded)) {
            who.at = SystemTime::now();
            if chanted.is_some() {
                let findings = chants_of(&self.record.findings, is_cut);
                self.shared.tell(|| {
                    Entry::Judged(who.clone(), Judged { has_looped: true, findings, verdict: None })
                });
            }
            let answered = Answered {
                position: self.position,
                answer: answer.clone(),
                tokens: self
                    .record
                    .tokens
                    .as_ref()
                    .map_or(0, |tokens| tokens.read().saturating_add(tokens.written())),
                cost_micros: self.record.cost_micros,
                is_given_again,
            };
            self.shared.tell(|| Entry::Answered(who, Box::new(answered)));
        }
        let model = answer.as_mut().and_then(|answer| answer.model.take().map(Into::into));
        if let (Some(mut transcript), Some(answer)) = (self.thread.take(), answer)
            && let Some(name) = self.conversation.as_deref().or(answer.id.as_deref())
        {
            let key = thread_key(self.tenant, name);
            let before = self.conversation.as_ref().and_then(|_| self.shared.transcripts.copy(key));
            if let Some(before) = before.filter(|before| before.sent == transcript.sent) {
                transcript.loops.keep_earlier(&before.loops);
            }
            transcript.loops.keep_answer(answer);
            self.shared.transcripts.note_answer(transcript.tip, key);
            transcript.tip = key;
            if let Some(over) = self.ticket.over() {
                let (session, window) = (self.located.key.0, transcript.save());
                over.answered = Some(AnswerNamed { session, thread: key, window });
            }
            self.shared.transcripts.put(transcript);
            self.shared.sessions.goes_on_from(self.located, key, now);
        }
        drop(self.ticket);

        self.record.response_model = model;
        self.record.duration = moment.duration_since(self.arrived);
        self.record.first_chunk = first_chunk.map(|at| at.duration_since(self.arrived));
        self.shared.telemetry.record(self.record);
    }

    /// What the provider counted, else what can be told from what was seen, and whether it is an estimate.
    fn tokens(&self, answer: Option<&Answer>, complete: bool) -> (Tokens, bool) {
        let seen = answer.map_or(0, |answer| answer.text_bytes.div_ceil(Tokens::BYTES_PER_TOKEN));
        match answer.and_then(|answer| answer.usage.as_ref()) {
            Some(usage) if complete => (counted(usage), false),
            // A stream that broke off has counted its input, and of its output perhaps only the first token.
            Some(usage) => {
                let counted = counted(usage);
                (Tokens { output: counted.output.max(seen), ..counted }, true)
            }
            None => (Tokens { input: self.estimate.input, output: seen, ..Tokens::default() }, true),
        }
    }
}

/// What was said of chants, as it is kept.
fn chants_of(notes: &[FindingNote], is_cut: bool) -> Vec<Value> {
    let chants = notes.iter().filter(|note| note.kind == Kind::Chant);
    let kept = chants.map(|note| {
        json!({
            "key": format!("chant/{}", note.policy),
            "detector": note.detector.as_str(), "kind": note.kind.as_str(), "severity": note.severity.as_str(),
            "count": note.count, "policy": &*note.policy, "mode": note.mode.as_str(),
            "action": if is_cut { "cut" } else { "warn" },
            "message": format!("one answer repeated the same words {} times", note.count),
        })
    });
    kept.collect()
}

fn counted(usage: &Usage) -> Tokens {
    Tokens {
        input: usage.input,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        cache_write_long: usage.cache_write_long,
        output: usage.output,
        reasoning: usage.reasoning,
    }
}

fn told(tokens: &Tokens) -> ToldTokens {
    ToldTokens {
        input: tokens.input,
        cache_read: tokens.cache_read,
        cache_write: tokens.cache_write.saturating_add(tokens.cache_write_long),
        output: tokens.output,
        reasoning: tokens.reasoning,
    }
}
