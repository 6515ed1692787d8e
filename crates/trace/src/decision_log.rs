//! `decision-log`: one decision per line, the sessions interleaved; bare, or as the observatory exports them.

use std::borrow::Cow;
use std::rc::Rc;

use loopbreaker::Status;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::output::Output;
use crate::recent::Recent;
use crate::record::Record;
use crate::runs::Runs;
use crate::{Problem, Reader, time};
use loopbreaker_dialect::conversation::{Answer, CallName, Event, Held, Outcome, Who};
use loopbreaker_dialect::json::{Text, hash, words};

/// Reads decision logs, or lists of them.
pub(crate) struct DecisionLogs {
    runs: Runs<Session>,
    /// The recent steps, for the children that do not name their session and for steps that come twice.
    steps: Recent<Seen>,
}

impl DecisionLogs {
    pub(crate) fn new() -> Self {
        Self { runs: Runs::new(), steps: Recent::default() }
    }

    fn take(&mut self, log: Log<'_>, out: &mut Output<'_>) {
        let meta = log.meta.unwrap_or_default();
        let step = meta.trace_id.as_ref().map(|id| hash(id.0.as_bytes()));
        let id = self.session(&meta, out.name());
        let again = step.and_then(|step| self.steps.get(step)).is_some_and(|seen| seen.itself);
        if let Some(step) = step {
            self.steps.insert(step, Seen { session: Rc::clone(&id), itself: true });
        }
        let action = log.action.unwrap_or_default();
        let delta = log.state_delta.unwrap_or_default();
        let session = &mut self.runs.get(&id, out).state;
        let cost_usd = delta.cumulative_session_cost.map(|total| session.pay(total));
        let status = action.status.as_ref().and_then(|status| Status::parse(&status.0));
        let result = action.tool_output_summary.map(words);
        let trace_id = meta.trace_id.map(|id| id.0);
        if again {
            // The only change that a written decision may see is that its pending call comes to an end. Whatever else
            // comes again is the same step once more, and finds no open call.
            let outcome = Outcome { result, status, tokens: delta.tokens_consumed, cost_usd };
            let call = CallName { id: trace_id, tool: None };
            self.runs.take(&id, out, |take| take(Event::Returned { call, outcome }));
        } else {
            let round = session.round_of(meta.parent_step_id.as_ref().map(|parent| &*parent.0));
            let held = Held {
                round: Some(round),
                who: log
                    .identity
                    .and_then(|identity| identity.agent_id)
                    .map_or(Who::Answering, |id| Who::Agent(id.0)),
                thought: log.cognition.and_then(|cognition| cognition.intent).map(|intent| intent.0),
                tool: action.tool_call.map(|tool| tool.0).filter(|tool| !tool.is_empty()),
                args: action.tool_input.map(words),
                result,
                status,
                time: meta.timestamp.and_then(|text| time::parse(&text.0)),
                tokens: delta.tokens_consumed,
                cost_usd,
            };
            let answer = Answer { id: Some(Cow::Owned(round.to_string())), ..Answer::default() };
            let waits_for = trace_id.filter(|_| status == Some(Status::Pending));
            self.runs.take(&id, out, |take| {
                take(Event::Answer(answer));
                take(Event::Called { waits_for, step: held });
            });
        }
        if log.control.is_some_and(|control| control.is_terminal == Some(true)) {
            self.runs.end(&id, out);
        }
    }

    /// The session that is named, else the parent's, else the one that this step is the root of.
    fn session(&mut self, meta: &Meta<'_>, name: &str) -> Rc<str> {
        let named = |text: &Option<Text<'_>>| {
            text.as_ref().map(|text| &*text.0).filter(|text| !text.is_empty()).map(Rc::from)
        };
        if let Some(session) = named(&meta.session_id) {
            return session;
        }
        if let Some(parent) = named(&meta.parent_step_id) {
            let step = hash(parent.as_bytes());
            // A parent that was never seen is the nearest thing to a root that its children have.
            let Some(seen) = self.steps.get(step) else {
                self.steps.insert(step, Seen { session: Rc::clone(&parent), itself: false });
                return parent;
            };
            return Rc::clone(&seen.session);
        }
        named(&meta.trace_id).unwrap_or_else(|| Rc::from(name))
    }
}

impl Reader for DecisionLogs {
    fn record(&mut self, record: Record<'_>, out: &mut Output<'_>) -> Result<(), Problem> {
        if record.is_array() {
            record.each(record.text, |log: Log<'_>| log.unwrapped().check(record))?;
            return record.each(record.text, |log: Log<'_>| {
                self.take(log.unwrapped(), out);
                Ok(())
            });
        }
        let log = record.parse::<Log<'_>>()?.unwrapped();
        log.check(record)?;
        self.take(log, out);
        Ok(())
    }

    fn finish(&mut self, out: &mut Output<'_>) {
        self.runs.end_all(out);
    }
}

/// A step of which is known where it belongs.
struct Seen {
    session: Rc<str>,
    /// Whether the step itself was read, and not only a child of it.
    itself: bool,
}

#[derive(Default)]
struct Session {
    paid: f64,
    round: Option<u64>,
    parent: Option<u64>,
}

impl Session {
    /// What came on top since the last log: the recorded cost is that of the whole session so far.
    fn pay(&mut self, total: f64) -> f64 {
        let more = (total - self.paid).max(0.0);
        self.paid = self.paid.max(total);
        more
    }

    /// The round of a step with this parent: calls of one round share their parent.
    fn round_of(&mut self, parent: Option<&str>) -> u64 {
        let parent = parent.filter(|parent| !parent.is_empty()).map(|parent| hash(parent.as_bytes()));
        let round = match self.round {
            Some(round) if parent.is_some() && parent == self.parent => round,
            Some(round) => round + 1,
            None => 0,
        };
        (self.round, self.parent) = (Some(round), parent);
        round
    }
}

#[derive(Deserialize)]
#[serde(expecting = "a decision log")]
struct Log<'a> {
    #[serde(borrow)]
    meta: Option<Meta<'a>>,
    #[serde(borrow)]
    identity: Option<Identity<'a>>,
    #[serde(borrow)]
    cognition: Option<Cognition<'a>>,
    #[serde(borrow)]
    action: Option<Action<'a>>,
    state_delta: Option<StateDelta>,
    control: Option<Control>,
    /// The log itself, where it was exported with its session beside it.
    #[serde(rename = "log", borrow)]
    exported: Option<Box<Self>>,
    #[serde(borrow)]
    session_id: Option<Text<'a>>,
}

impl Log<'_> {
    /// The log in what was exported, with the session that it was given.
    fn unwrapped(self) -> Self {
        let Some(mut log) = self.exported else { return self };
        let meta = log.meta.get_or_insert_default();
        meta.session_id = meta.session_id.take().or(self.session_id);
        *log
    }

    fn check(&self, record: Record<'_>) -> Result<(), Problem> {
        if self.cognition.is_none() && self.action.is_none() {
            let message = "a decision log needs `cognition` or `action`; repair it, or name another format";
            return Err(record.unusable(message));
        }
        Ok(())
    }
}

#[derive(Default, Deserialize)]
struct Meta<'a> {
    #[serde(borrow)]
    trace_id: Option<Text<'a>>,
    #[serde(borrow)]
    parent_step_id: Option<Text<'a>>,
    #[serde(borrow)]
    session_id: Option<Text<'a>>,
    #[serde(borrow)]
    timestamp: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Identity<'a> {
    #[serde(borrow)]
    agent_id: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Cognition<'a> {
    #[serde(borrow)]
    intent: Option<Text<'a>>,
}

#[derive(Default, Deserialize)]
struct Action<'a> {
    #[serde(borrow)]
    tool_call: Option<Text<'a>>,
    #[serde(borrow)]
    tool_input: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_output_summary: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<Text<'a>>,
}

#[derive(Default, Deserialize)]
struct StateDelta {
    tokens_consumed: Option<u64>,
    cumulative_session_cost: Option<f64>,
}

#[derive(Deserialize)]
struct Control {
    is_terminal: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_step_is_what_came_on_top() {
        let mut session = Session::default();
        let paid: Vec<_> = [0.5, 0.5, 0.75, 0.25, 1.0].map(|total| session.pay(total)).to_vec();
        assert_eq!(paid, [0.5, 0.0, 0.25, 0.0, 0.25]);
    }

    #[test]
    fn steps_with_the_same_parent_are_one_round_and_roots_are_a_round_each() {
        let mut session = Session::default();
        let parents = [None, Some("a"), Some("a"), Some("b"), Some(""), None];
        assert_eq!(parents.map(|parent| session.round_of(parent)), [0, 1, 1, 2, 3, 4]);
    }

    #[test]
    fn a_child_that_comes_before_its_parent_is_in_the_parents_session() {
        let mut logs = DecisionLogs::new();
        let meta = |trace_id, parent| Meta {
            trace_id: Some(Text(Cow::Borrowed(trace_id))),
            parent_step_id: Some(Text(Cow::Borrowed(parent))),
            ..Meta::default()
        };
        assert_eq!(&*logs.session(&meta("child", "root"), "x"), "root");
        assert_eq!(&*logs.session(&meta("root", ""), "x"), "root");
        let seen = logs.steps.get(hash(b"root")).map(|seen| seen.itself);
        assert_eq!(seen, Some(false), "the root itself is still to come");
    }
}
