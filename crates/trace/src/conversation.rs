//! A conversation in which calls and their results stand apart, put together into steps.

mod owned;

use std::borrow::Cow;
use std::collections::VecDeque;

use loopbreaker::{Role, Status, Step, Timestamp};

/// Something that happens in a conversation.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// The model begins an answer, and everything it asks for is one round. A second one with the same id goes on
    /// with the same answer.
    Answer(Answer<'a>),
    /// The model says something to everyone.
    Said(Cow<'a, str>),
    /// The model thinks aloud.
    Reasoned(Cow<'a, str>),
    /// The model calls a tool. With `waits_for`, the result of that id is still to come.
    Called { waits_for: Option<Cow<'a, str>>, step: Held<'a> },
    /// A tool returns.
    Returned { call: CallName<'a>, outcome: Outcome<'a> },
    /// Someone outside speaks.
    Heard { text: Cow<'a, str>, time: Option<Timestamp> },
    /// The history was compacted.
    Compacted { time: Option<Timestamp> },
}

/// What the steps of one answer have in common.
#[derive(Debug, Default)]
pub(crate) struct Answer<'a> {
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) agent: Option<Cow<'a, str>>,
    pub(crate) time: Option<Timestamp>,
    /// What the answer consumed, which goes with its first step.
    pub(crate) tokens: Option<u64>,
}

/// Which call a result belongs to: the one of this id, else the first open one of this tool, else the first open one.
#[derive(Debug, Default)]
pub(crate) struct CallName<'a> {
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) tool: Option<Cow<'a, str>>,
}

/// How a call ended.
#[derive(Debug, Default)]
pub(crate) struct Outcome<'a> {
    pub(crate) result: Option<Cow<'a, str>>,
    pub(crate) status: Option<Status>,
    pub(crate) tokens: Option<u64>,
    /// Money on top of what the call itself is known to cost.
    pub(crate) cost_usd: Option<f64>,
}

/// A step that is kept until its result is known.
#[derive(Debug, Default)]
pub(crate) struct Held<'a> {
    pub(crate) round: Option<u64>,
    pub(crate) who: Who<'a>,
    pub(crate) thought: Option<Cow<'a, str>>,
    pub(crate) tool: Option<Cow<'a, str>>,
    pub(crate) args: Option<Cow<'a, str>>,
    pub(crate) result: Option<Cow<'a, str>>,
    pub(crate) status: Option<Status>,
    pub(crate) time: Option<Timestamp>,
    pub(crate) tokens: Option<u64>,
    pub(crate) cost_usd: Option<f64>,
}

/// Who does a held step.
#[derive(Debug, Default)]
pub(crate) enum Who<'a> {
    /// Whoever gives the answer that the step is part of.
    #[default]
    Answering,
    Agent(Cow<'a, str>),
    Outside,
    Compaction,
}

/// Turns events into steps: in order of the calls, each as soon as its result and those before it are known.
///
/// A call whose result has not come when the next answer begins goes on without one, and so does the oldest when more
/// are open than [`MAX_HELD`] or [`MAX_BYTES`] allow. A result whose call is unknown is dropped: its step is gone.
#[derive(Debug, Default)]
pub(crate) struct Conversation<'a> {
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
    /// Takes one event; `emit` gets the steps that are complete with it.
    pub(crate) fn take(&mut self, event: Event<'a>, emit: &mut dyn FnMut(&Step<'_>)) {
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
                self.say_the_rest();
                self.push(None, Held { who: Who::Outside, thought: Some(text), time, ..Held::default() });
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
    pub(crate) fn finish(&mut self, emit: &mut dyn FnMut(&Step<'_>)) {
        self.say_the_rest();
        while !self.queue.is_empty() {
            self.pass_on_first(emit);
        }
        self.answer = None;
        self.reasoned = None;
        self.bytes = 0;
    }

    /// How many bytes are held.
    pub(crate) fn bytes(&self) -> usize {
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
    pub(crate) fn as_step(&self) -> Step<'_> {
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
