//! A conversation in which calls and their results stand apart, put together into steps.
//!
//! ```
//! use loopbreaker_dialect::conversation::{CallName, Conversation, Event, Held, Outcome};
//!
//! let call = Held { tool: Some("bash".into()), args: Some(r#"{"command":"ls"}"#.into()), ..Held::default() };
//! let outcome = Outcome { result: Some("a.txt".into()), ..Outcome::default() };
//! let mut conversation = Conversation::default();
//! let mut steps = Vec::new();
//! let mut emit = |step: &loopbreaker::Step<'_>| {
//!     steps.push((step.tool.map(str::to_owned), step.result.map(str::to_owned)));
//! };
//! conversation.take(Event::Called { waits_for: Some("call_1".into()), step: call }, &mut emit);
//! let call = CallName { id: Some("call_1".into()), tool: None };
//! conversation.take(Event::Returned { call, outcome }, &mut emit);
//! assert_eq!(steps, [(Some("bash".to_owned()), Some("a.txt".to_owned()))]);
//! ```

mod owned;

use std::borrow::Cow;
use std::collections::VecDeque;

use loopbreaker::{Role, Status, Step, Timestamp};

use crate::typed::{Typed, is_outcome, typed_call};

/// Something that happens in a conversation.
#[derive(Debug)]
pub enum Event<'a> {
    /// The model begins an answer, and everything it asks for is one round. A second one with the same id goes on
    /// with the same answer.
    Answer(Answer<'a>),
    /// The model says something to everyone.
    Said(Cow<'a, str>),
    /// The model thinks aloud.
    Reasoned(Cow<'a, str>),
    /// The model calls a tool.
    Called {
        /// The id of the result that is still to come; `None` when the step is complete as it is.
        waits_for: Option<Cow<'a, str>>,
        /// What is known of the call.
        step: Held<'a>,
    },
    /// A tool returns.
    Returned {
        /// Which call it answers.
        call: CallName<'a>,
        /// What it says.
        outcome: Outcome<'a>,
    },
    /// Someone outside speaks.
    Heard {
        /// The words.
        text: Cow<'a, str>,
        /// When they were said.
        time: Option<Timestamp>,
    },
    /// The history was compacted.
    Compacted {
        /// When that was.
        time: Option<Timestamp>,
    },
}

/// What the steps of one answer have in common.
#[derive(Debug, Default)]
pub struct Answer<'a> {
    /// The answer's id, by which its parts are known.
    pub id: Option<Cow<'a, str>>,
    /// The name of the agent that answers.
    pub agent: Option<Cow<'a, str>>,
    /// When it was given.
    pub time: Option<Timestamp>,
    /// What the answer consumed, which goes with its first step.
    pub tokens: Option<u64>,
}

/// Which call a result belongs to: the one of this id, else the first open one of this tool, else the first open one.
#[derive(Debug, Default)]
pub struct CallName<'a> {
    /// The call's id.
    pub id: Option<Cow<'a, str>>,
    /// The tool that was called.
    pub tool: Option<Cow<'a, str>>,
}

/// How a call ended.
#[derive(Debug, Default)]
pub struct Outcome<'a> {
    /// What the tool answered.
    pub result: Option<Cow<'a, str>>,
    /// How the call ended, where that is known apart from the words.
    pub status: Option<Status>,
    /// Tokens that the call consumed.
    pub tokens: Option<u64>,
    /// Money on top of what the call itself is known to cost.
    pub cost_usd: Option<f64>,
}

/// A step that is kept until its result is known.
#[derive(Debug, Default)]
pub struct Held<'a> {
    /// The round, where it is not the one of the answer that the step is part of.
    pub round: Option<u64>,
    /// Who does it.
    pub who: Who<'a>,
    /// What was said or thought with it.
    pub thought: Option<Cow<'a, str>>,
    /// The tool that was called.
    pub tool: Option<Cow<'a, str>>,
    /// The arguments as JSON text.
    pub args: Option<Cow<'a, str>>,
    /// What the tool answered.
    pub result: Option<Cow<'a, str>>,
    /// How the call ended.
    pub status: Option<Status>,
    /// When it happened.
    pub time: Option<Timestamp>,
    /// Tokens that it consumed.
    pub tokens: Option<u64>,
    /// Money that it cost, in US dollars.
    pub cost_usd: Option<f64>,
}

/// Who does a held step.
#[derive(Debug, Default)]
pub enum Who<'a> {
    /// Whoever gives the answer that the step is part of.
    #[default]
    Answering,
    /// The agent of this name.
    Agent(Cow<'a, str>),
    /// Someone outside.
    Outside,
    /// Nobody: the history was compacted.
    Compaction,
}

/// Turns events into steps: in order of the calls, each as soon as its result and those before it are known.
///
/// A call that was typed in words and answered by the user's is a call like any other.
/// A call whose result has not come when the next answer begins goes on without one, and so does the oldest when more
/// than 64 are open or they hold more than 16 MiB. A result whose call is unknown is dropped: its step is gone.
#[derive(Debug, Default)]
pub struct Conversation<'a> {
    queue: VecDeque<Entry<'a>>,
    answer: Option<Answer<'a>>,
    /// Whether someone else has had the floor since the answer began.
    interrupted: bool,
    round: u64,
    said: Option<Cow<'a, str>>,
    reasoned: Option<Cow<'a, str>>,
    bytes: usize,
}

impl<'a> Conversation<'a> {
    /// A conversation that goes on where an earlier one ended: its next answer is round `round`.
    ///
    /// ```
    /// use loopbreaker_dialect::conversation::{Conversation, Event};
    /// let mut conversation = Conversation::at_round(7);
    /// let mut rounds = Vec::new();
    /// conversation.take(Event::Said("done".into()), &mut |_| ());
    /// conversation.finish(&mut |step| rounds.push(step.round));
    /// assert_eq!((rounds, conversation.round()), (vec![Some(7)], 8));
    /// ```
    pub fn at_round(round: u64) -> Self {
        Self { round, ..Self::default() }
    }

    /// How many answers have begun, those before [`at_round`](Self::at_round) included: the number of the next round.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Takes one event; `emit` gets the steps that are complete with it.
    pub fn take(&mut self, event: Event<'a>, emit: &mut dyn FnMut(&Step<'_>)) {
        match event {
            Event::Answer(answer) => self.begin_or_go_on(answer, emit),
            Event::Said(text) => {
                self.expect_answer(emit);
                self.bytes += text.len();
                append(&mut self.said, text);
            }
            Event::Reasoned(text) => {
                self.expect_answer(emit);
                self.bytes += text.len();
                append(&mut self.reasoned, text);
            }
            Event::Called { waits_for, mut step } => {
                self.expect_answer(emit);
                // What was thought before the words were said is not what the next call is about.
                let (said, reasoned) = (self.take_said(), self.reasoned.take());
                step.thought = step.thought.or(said).or(reasoned);
                self.push_answered(waits_for, step);
            }
            Event::Returned { call, outcome } => {
                self.interrupted = true;
                self.fill_in(&call, outcome);
            }
            Event::Heard { text, time } => {
                self.interrupted = true;
                if let Some(text) = self.answer_what_was_typed(text) {
                    self.say_the_rest();
                    self.push(None, Held { who: Who::Outside, thought: Some(text), time, ..Held::default() });
                }
            }
            Event::Compacted { time } => {
                self.finish(emit);
                self.push(None, Held { who: Who::Compaction, time, ..Held::default() });
            }
        }
        while self.queue.front().is_some_and(|entry| entry.waits_for.is_none())
            || self.queue.len() > MAX_HELD
            || (self.bytes > MAX_BYTES && !self.queue.is_empty())
        {
            self.pass_on_first(emit);
        }
        if self.queue.is_empty() && self.bytes > MAX_BYTES {
            self.say_the_rest();
            self.pass_on_first(emit);
        }
    }

    /// Passes on what is left.
    pub fn finish(&mut self, emit: &mut dyn FnMut(&Step<'_>)) {
        self.say_the_rest();
        while !self.queue.is_empty() {
            self.pass_on_first(emit);
        }
        self.answer = None;
        self.reasoned = None;
        self.bytes = 0;
    }

    /// How many bytes are held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn begin_or_go_on(&mut self, answer: Answer<'a>, emit: &mut dyn FnMut(&Step<'_>)) {
        if let Some(current) = &mut self.answer
            && answer.id.is_some()
            && current.id == answer.id
        {
            current.time = answer.time.or(current.time);
            // Each part tells the count so far. Once a step has it, later parts have nothing to add it to.
            current.tokens = current.tokens.max(current.tokens.and(answer.tokens));
            return;
        }
        self.finish(emit);
        self.round += 1;
        self.interrupted = false;
        self.answer = Some(answer);
    }

    /// Begins an answer where the recording does not say so: the model has the floor again after someone else.
    fn expect_answer(&mut self, emit: &mut dyn FnMut(&Step<'_>)) {
        let goes_on = self.answer.as_ref().is_some_and(|answer| answer.id.is_some() || !self.interrupted);
        if !goes_on {
            self.begin_or_go_on(Answer::default(), emit);
        }
    }

    fn take_said(&mut self) -> Option<Cow<'a, str>> {
        self.said.take().filter(|text| !text.trim_ascii().is_empty())
    }

    /// Takes words from outside as the outcome of the call that was typed right before, and gives them back when they are
    /// none.
    fn answer_what_was_typed(&mut self, text: Cow<'a, str>) -> Option<Cow<'a, str>> {
        let said = self.said.as_deref().filter(|_| is_outcome(&text));
        let Some(Typed { thought, tool, args }) = said.and_then(typed_call) else { return Some(text) };
        let thought = match self.said.take() {
            Some(Cow::Borrowed(said)) => Cow::Borrowed(&said[..thought]),
            said => Cow::Owned(said.map(|said| said[..thought].to_owned()).unwrap_or_default()),
        };
        let thought =
            Some(thought).filter(|thought| !thought.trim_ascii().is_empty()).or(self.reasoned.take());
        let (tool, args) = (Some(tool.into()), Some(args.into()));
        self.push_answered(None, Held { thought, tool, args, result: Some(text), ..Held::default() });
        None
    }

    /// Words that no call followed are a step of their own.
    fn say_the_rest(&mut self) {
        if let Some(text) = self.take_said() {
            self.push_answered(None, Held { thought: Some(text), ..Held::default() });
        }
    }

    fn push_answered(&mut self, waits_for: Option<Cow<'a, str>>, mut step: Held<'a>) {
        step.round = step.round.or(Some(self.round.saturating_sub(1)));
        if let Some(answer) = &mut self.answer {
            step.time = step.time.or(answer.time);
            step.tokens = step.tokens.or_else(|| answer.tokens.take());
            if let (Who::Answering, Some(agent)) = (&step.who, &answer.agent) {
                step.who = Who::Agent(agent.clone());
            }
        }
        self.push(waits_for, step);
    }

    fn push(&mut self, waits_for: Option<Cow<'a, str>>, step: Held<'a>) {
        self.queue.push_back(Entry { waits_for, step });
        self.weigh();
    }

    fn fill_in(&mut self, call: &CallName<'a>, outcome: Outcome<'a>) {
        let waits = |entry: &&mut Entry<'a>| match (&entry.waits_for, &call.id, &call.tool) {
            (None, ..) => false,
            (Some(waits_for), Some(id), _) => waits_for == id,
            (Some(_), None, Some(tool)) => entry.step.tool.as_ref() == Some(tool),
            (Some(_), None, None) => true,
        };
        let Some(entry) = self.queue.iter_mut().find(waits) else { return };
        entry.waits_for = None;
        let step = &mut entry.step;
        step.result = outcome.result;
        step.status = outcome.status.or(step.status);
        step.tokens = outcome.tokens.or(step.tokens);
        step.cost_usd = match (step.cost_usd, outcome.cost_usd) {
            (Some(known), Some(more)) => Some(known + more),
            (known, more) => known.or(more),
        };
        self.weigh();
    }

    fn pass_on_first(&mut self, emit: &mut dyn FnMut(&Step<'_>)) {
        if let Some(entry) = self.queue.pop_front() {
            emit(&entry.step.as_step());
            self.weigh();
        }
    }

    fn weigh(&mut self) {
        let words = [&self.said, &self.reasoned].into_iter().flatten().map(|text| text.len()).sum::<usize>();
        self.bytes = self.queue.iter().map(|entry| entry.step.bytes()).sum::<usize>() + words;
    }
}

#[derive(Debug)]
struct Entry<'a> {
    waits_for: Option<Cow<'a, str>>,
    step: Held<'a>,
}

impl Held<'_> {
    /// The step as the detectors see it.
    pub fn as_step(&self) -> Step<'_> {
        Step {
            round: self.round,
            role: match &self.who {
                Who::Answering => Role::default(),
                Who::Agent(name) => Role::Agent(name),
                Who::Outside => Role::Outside,
                Who::Compaction => Role::Compaction,
            },
            thought: self.thought.as_deref(),
            tool: self.tool.as_deref(),
            args: self.args.as_deref(),
            result: self.result.as_deref(),
            status: self.status,
            time: self.time,
            tokens: self.tokens,
            cost_usd: self.cost_usd,
        }
    }

    fn bytes(&self) -> usize {
        [&self.thought, &self.tool, &self.args, &self.result]
            .into_iter()
            .flatten()
            .map(|text| text.len())
            .sum()
    }
}

fn append<'a>(text: &mut Option<Cow<'a, str>>, more: Cow<'a, str>) {
    match text {
        Some(text) => {
            let text = text.to_mut();
            text.push('\n');
            text.push_str(&more);
        }
        None => *text = Some(more),
    }
}

/// How many calls may be open at once: models ask for a handful, so more than this are lost results.
const MAX_HELD: usize = 64;

/// How many bytes the open calls may have together.
const MAX_BYTES: usize = 16 << 20;

#[cfg(test)]
mod tests;
