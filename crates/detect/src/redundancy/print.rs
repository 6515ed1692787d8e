//! What the detector keeps of a step: hashes and facts in a few hundred bytes, never its words.

use crate::args::numbers;
use crate::config::Effect;
use crate::effect::{CallFacts, steps_on};
use crate::fingerprint::{Fingerprint, with_call};
use crate::harness::is_of_a_harness;
use crate::outcome::{Outcome, TERSE};
use crate::redundancy::label::Label;
use crate::redundancy::rules::{Rules, what_counts};
use crate::redundancy::vocabulary::Kept;
use crate::saved::{saved, saved_as_one_of};
use crate::step::{Role, Status, Step};
use crate::words::{Words, hash_bytes, hash_without_digits};

/// The print of one step.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which may hold or not")]
pub(super) struct Print {
    /// Its 0-based index in the session.
    pub(super) index: usize,
    /// Its round, counted from the session's start.
    pub(super) round: u64,
    /// What the caller calls the round.
    pub(super) named_round: Option<u64>,
    pub(super) form: Form,
    /// Hash of the speaker's name.
    pub(super) speaker: u64,
    /// Hash of the tool's name; 0 for a text.
    pub(super) tool: u64,
    /// The tool's name, for messages.
    pub(super) label: Label,
    /// What was asked: tool and arguments; for a text its words.
    pub(super) call: Fingerprint,
    /// The arguments (or the text) with numbers folded.
    pub(super) shape: u64,
    /// The words of the arguments (or of the text), as far as they are compared with others.
    pub(super) words: Kept,
    /// Numbers in the arguments.
    pub(super) numbers: [i64; 4],
    pub(super) does: CallFacts,
    pub(super) outcome: Outcome,
    /// It changed something by a call that had not been made before.
    pub(super) fresh_write: bool,
    /// It is a text that carries code: a piece of work, however like the last one it looks.
    pub(super) carries_code: bool,
    /// The same call stands in an earlier round. Nearly every call is new, and a new one repeats nothing.
    pub(super) again: bool,
    /// It had not been asked before, and was answered.
    pub(super) news: bool,
    /// It had been asked before, and answered in the same way.
    pub(super) old: bool,
    /// It brought back a content that had stood there before.
    pub(super) returned: bool,
    /// It is a text of a monologue that was found to be a loop.
    pub(super) talks: bool,
    /// It is a text beside a call of the same round: what the agent does is the call.
    pub(super) narrates: bool,
    /// Its words are no more than one or two.
    pub(super) terse: bool,
    /// Hash of the words that it answers: what somebody else said right before this text; 0 when nobody did.
    pub(super) answers: u64,
}

/// What a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A tool call.
    Call,
    /// Words of an agent.
    Text,
    /// Words from outside.
    Outside,
    /// The history was compacted.
    Compaction,
}

saved!(Print {
    index,
    round,
    named_round,
    form,
    speaker,
    tool,
    label,
    call,
    shape,
    words,
    numbers,
    does,
    outcome,
    fresh_write,
    carries_code,
    again,
    news,
    old,
    returned,
    talks,
    narrates,
    terse,
    answers,
});
saved_as_one_of!(Form [Self::Call, Self::Text, Self::Outside, Self::Compaction]);

fn has(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

/// Whether a result is the body of an answer that refuses. What a server says to one request it need not say to the
/// next, and to try what it refuses is how a server is tested.
fn is_servers_answer(step: &Step<'_>) -> bool {
    let body = step.result.unwrap_or_default().trim_start();
    let is_body = body.starts_with(['{', '<']) || body.starts_with("HTTP/");
    is_body && step.status != Some(Status::Failure)
}

/// Whether the last line of a screen is the prompt of a shell: nothing runs in front any more.
fn ends_with_a_prompt(step: &Step<'_>) -> bool {
    let screen = step.result.unwrap_or_default().trim_end();
    screen
        .rsplit('\n')
        .next()
        .is_some_and(|line| line.ends_with(['$', '#']) && !line.trim_start().contains(' '))
}

/// Whether a time-out is that of a browser which waited for something on its page.
fn waits_for_an_element(step: &Step<'_>) -> bool {
    let result = step.result.unwrap_or_default().as_bytes();
    ["waiting for locator", "waiting for selector", "waiting for element", "intercepts pointer events"]
        .iter()
        .any(|sign| has(result, sign.as_bytes()))
}

/// What a harness says itself, in a tag of its own, counts steps or tells the time, and says nothing new by that. People
/// mean each number.
fn fingerprint_of_words(text: &str, form: Form) -> Fingerprint {
    if form == Form::Outside && is_of_a_harness(text) {
        return Fingerprint::of_bytes(b"harness", &hash_without_digits(text.as_bytes()).to_le_bytes());
    }
    Fingerprint::of_bytes(b"text", text.as_bytes())
}

/// Whether words from outside start like an error that a harness reports (`[ERROR] You did not use a tool`).
fn is_an_error(text: &str) -> bool {
    let first = text.trim().lines().next().unwrap_or_default();
    let error = first.trim_start_matches(|sign: char| !sign.is_alphanumeric());
    error.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("error")) && Outcome::of(first).failed()
}

impl Print {
    /// The print of a step, and its words.
    pub(super) fn of(step: &Step<'_>, outcome: Outcome, rules: &Rules) -> (Self, Words) {
        let mut words = Words::default();
        let mut print = Self {
            index: 0,
            round: 0,
            named_round: None,
            form: Form::Text,
            speaker: 0,
            tool: 0,
            label: Label::default(),
            call: Fingerprint::default(),
            shape: 0,
            words: Kept::NONE,
            numbers: [0; 4],
            does: CallFacts::default(),
            outcome,
            fresh_write: false,
            carries_code: false,
            again: false,
            news: false,
            old: false,
            returned: false,
            talks: false,
            narrates: false,
            terse: false,
            answers: 0,
        };
        match step.role {
            Role::Agent(name) => print.speaker = hash_bytes(name.as_bytes()),
            Role::Outside => print.form = Form::Outside,
            Role::Compaction => print.form = Form::Compaction,
        }
        if let (Form::Text, Some(tool)) = (print.form, step.tool) {
            print.form = Form::Call;
            print.tool = hash_bytes(tool.as_bytes()) | 1;
            print.label = Label::of(tool);
            let profile = rules.profile(tool);
            let mut is_servers = false;
            with_call(tool, step.args, what_counts(profile), |call, canonical| {
                print.call = call;
                print.shape = hash_without_digits(canonical);
                words = Words::of_args(canonical);
                print.numbers = numbers(canonical);
                print.does = CallFacts::read(tool, canonical, profile.and_then(|profile| profile.effect));
                // What was sent to the background on purpose does not hang, and who looks at what runs there starts nothing.
                let facts = &mut print.outcome.facts;
                facts.put_aside =
                    facts.put_aside && !has(canonical, b"\"run_in_background\":true") && !print.does.follows;
                // Addresses tell where a debugger stands.
                if print.does.moves && steps_on(canonical) {
                    let said = step.result.unwrap_or_default().as_bytes();
                    print.outcome.result = Fingerprint::of_bytes(b"result", said).short();
                    print.outcome.lines = 0;
                }
                let ended = print.does.effect == Some(Effect::Poll) && !facts.in_progress;
                facts.terminal |= ended && ends_with_a_prompt(step);
                is_servers = facts.failed && has(canonical, b"curl ") && is_servers_answer(step);
            });
            // What cannot be clicked is no trouble with the network: it does not pass by itself.
            let facts = &mut print.outcome.facts;
            facts.transient = facts.transient && !waits_for_an_element(step);
            // What a reader brings may talk about failures of others. A few words about trouble that passes are its own.
            let is_own = facts.failed_plainly || (facts.transient && facts.brief);
            let reads = print.does.effect == Some(Effect::Read) && !print.does.broad;
            if facts.failed && ((reads && !is_own) || (is_servers && !facts.transient)) {
                facts.failed = false;
                facts.transient = false;
                print.outcome.class = 0;
            }
        } else {
            let text = step.thought.unwrap_or_default();
            print.terse = text.trim().len() <= TERSE;
            print.carries_code = text.contains("```");
            words = Words::of_text(text);
            print.shape = hash_without_digits(text.trim().as_bytes());
            print.call = fingerprint_of_words(text.trim(), print.form);
            // Nobody failed by being spoken to: it is the answer that is told to be none.
            if print.form == Form::Outside {
                print.outcome.facts.failed |= is_an_error(text);
            }
        }
        (print, words)
    }

    /// The same call and the same result.
    pub(super) fn equals(&self, other: &Self) -> bool {
        self.call == other.call && self.outcome.answers_as(&other.outcome)
    }

    /// Something an agent did or said, which may repeat.
    pub(super) const fn is_agents(&self) -> bool {
        matches!(self.form, Form::Call | Form::Text)
    }

    pub(super) fn is_write(&self) -> bool {
        self.does.effect == Some(Effect::Write)
    }

    /// Whether this step's change may show in what `reader` gets.
    pub(super) fn may_change(&self, reader: &Self) -> bool {
        if !self.fresh_write || self.call == reader.call {
            return false;
        }
        let narrow = !reader.does.broad && matches!(reader.does.effect, Some(Effect::Read));
        self.does.moves || !narrow || !self.does.places.apart_from(&reader.does.places)
    }

    /// Whether a call that nobody knows the effect of is only another way to ask: the same tool told the same in so many
    /// words. Something that changes the world seldom answers like a question about it, and keys that leave a whole
    /// screen as it was have changed nothing.
    pub(super) fn is_variation_of(&self, other: &Self) -> bool {
        let facts = self.outcome.facts;
        let tells = self.outcome.result != 0 && !facts.empty && !facts.acknowledged;
        let is_key = self.does.sends && !self.does.command && self.outcome.lines != 0;
        (self.does.effect.is_none() || (self.is_write() && is_key))
            && !self.does.moves
            && tells
            && self.tool == other.tool
            && self.outcome.answers_as(&other.outcome)
    }

    /// It waits for something: a poll by its name, or by an answer that says it is not done yet.
    pub(super) fn is_waiting(&self) -> bool {
        let waits = self.does.effect == Some(Effect::Poll) || self.outcome.facts.in_progress;
        waits && !self.failed_for_good()
    }

    /// It failed, and doing the same again cannot help.
    pub(super) fn failed_for_good(&self) -> bool {
        self.outcome.facts.failed && !self.outcome.facts.transient && self.outcome.class != 0
    }
}
