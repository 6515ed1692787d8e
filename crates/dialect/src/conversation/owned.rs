//! Events that outlive the line they were read from.

use std::borrow::Cow;

use super::{Answer, CallName, Event, Held, Outcome, Who};

impl Event<'_> {
    /// The same event with words of its own.
    pub fn into_owned(self) -> Event<'static> {
        match self {
            Event::Answer(answer) => Event::Answer(Answer {
                id: answer.id.map(owned),
                agent: answer.agent.map(owned),
                time: answer.time,
                tokens: answer.tokens,
            }),
            Event::Said(text) => Event::Said(owned(text)),
            Event::Reasoned(text) => Event::Reasoned(owned(text)),
            Event::Called { waits_for, step } => {
                Event::Called { waits_for: waits_for.map(owned), step: step.into_owned() }
            }
            Event::Returned { call, outcome } => Event::Returned {
                call: CallName { id: call.id.map(owned), tool: call.tool.map(owned) },
                outcome: Outcome {
                    result: outcome.result.map(owned),
                    status: outcome.status,
                    tokens: outcome.tokens,
                    cost_usd: outcome.cost_usd,
                },
            },
            Event::Heard { text, time } => Event::Heard { text: owned(text), time },
            Event::Compacted { time } => Event::Compacted { time },
        }
    }
}

impl Held<'_> {
    fn into_owned(self) -> Held<'static> {
        Held {
            round: self.round,
            who: match self.who {
                Who::Answering => Who::Answering,
                Who::Agent(name) => Who::Agent(owned(name)),
                Who::Outside => Who::Outside,
                Who::Compaction => Who::Compaction,
            },
            thought: self.thought.map(owned),
            tool: self.tool.map(owned),
            args: self.args.map(owned),
            result: self.result.map(owned),
            status: self.status,
            time: self.time,
            tokens: self.tokens,
            cost_usd: self.cost_usd,
        }
    }
}

fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}
