//! Makes decision logs of traffic.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use loopbreaker::{Action, Outcome};
use loopbreaker_dialect::Ran;
use loopbreaker_observatory::{
    Arrival, Completion, Note, Observatory, Order, STEPS_OUT_OF_A_LOOP, Usage, Verdict,
};
use loopbreaker_record::{Action as Deed, Cognition, DecisionLog, Identity, Meta, Moment, Status, TraceId};
use loopbreaker_telemetry::mask;
use lru::LruCache;
use serde_json::{Map, Value};

use super::{Answered, Entry, Heard, Judged, Refused, Who, input, start_of, tool_name, trace_id};
use crate::loops::LoopState;
use crate::sessions::SessionKey;

/// What is remembered of the sessions that were written about last.
pub(super) struct Clerk {
    observatory: Arc<Observatory>,
    runs: LruCache<SessionKey, Run>,
    /// What is noted and not handed over: one by one, each would cost a place in the store's queue.
    notes: Vec<Note>,
}

/// What is remembered of one session. Without it nothing is lost but the order of its newest round.
#[derive(Debug, Default)]
struct Run {
    /// Names that no credential stands in.
    harmless: Option<Names>,
    /// What was said last from outside, which is what the agent is after.
    asked: Option<Box<str>>,
    /// The round of the newest step, the step that led to it, and that step itself.
    round: Option<u64>,
    parent: Option<TraceId>,
    newest: Option<TraceId>,
    /// Calls that were answered to the agent and have not come back with a result.
    open: Vec<TraceId>,
    /// Steps that are written down already, the newest ones, with their places in the transcript.
    known: Vec<(usize, TraceId)>,
    /// So many times yet it is told that a request is allowed: what was wrong before is over after a few of them.
    marked: u8,
    /// Whether it was told that the provider keeps its history.
    history_elsewhere: bool,
    /// The newest call that stood in an answer in words, before it is known whether the agent types its calls.
    typed: Option<TraceId>,
    /// Whether it does: answers in which a call is typed are calls.
    types_calls: bool,
}

impl Clerk {
    const MAX_RUNS: usize = 20_000;
    /// As many are handed over at once, and dropped where there is no room for them: about a page, since the store would
    /// write a part of it with a transaction of its own.
    const MAX_NOTES: usize = 4_096;

    pub(super) fn new(observatory: Arc<Observatory>) -> Self {
        let runs =
            LruCache::new(std::num::NonZero::new(Self::MAX_RUNS).unwrap_or(std::num::NonZero::<usize>::MIN));
        Self { observatory, runs, notes: Vec::new() }
    }

    /// Writes an entry down; it is handed over with the others of its page.
    pub(super) fn write(&mut self, mut entry: Entry) {
        if let Some(who) = entry.who_mut() {
            let run = self.runs.get_or_insert_mut(who.key, Run::default);
            run.hide_credentials(who);
            if who.history_elsewhere && !std::mem::replace(&mut run.history_elsewhere, true) {
                let (tenant, session) = (Arc::clone(&who.tenant), who.session.to_string());
                self.note(Note::HistoryElsewhere { tenant, session });
            }
        }
        match entry {
            Entry::Heard(who, steps) => {
                for step in &steps {
                    self.heard(&who, step);
                }
            }
            Entry::Judged(who, judged) => self.judged(&who, judged),
            Entry::Answered(who, answered) => self.answered(&who, &answered),
            Entry::Refused(who, refused) => self.refused(&who, &refused),
            Entry::Failed(who, failed) => self.failed(&who, &failed),
            Entry::Paused(who, session, reason) => {
                let (tenant, session) = (Arc::clone(&who.tenant), mask(&session).into_owned());
                let order = Order::Pause { reason };
                self.note(Note::Ordered { tenant, session, operator: "gateway", order });
            }
            // Whoever asked may have gone.
            Entry::CatchUp(done) => {
                self.hand_over();
                self.observatory.flush();
                done.send(()).ok();
            }
        }
    }

    fn note(&mut self, note: impl Into<Note>) {
        self.notes.push(note.into());
        if self.notes.len() >= Self::MAX_NOTES {
            self.hand_over();
        }
    }

    /// Hands over what is noted. What finds no room in the store's queue is counted there.
    pub(super) fn hand_over(&mut self) {
        if !self.notes.is_empty() {
            self.observatory.note_all(std::mem::take(&mut self.notes));
        }
    }

    fn heard(&mut self, who: &Who, step: &Heard) {
        let run = self.runs.get_or_insert_mut(who.key, Run::default);
        if step.from_outside {
            run.asked = step.thought.as_deref().map(|text| start_of(text, MAX_INTENT).into());
            return;
        }
        let (tool, args) = (step.tool.as_deref(), step.args.as_deref());
        let id = trace_id(who.key, who.anchor, step.position, tool, args);
        let (status, output) = outcome(step);
        if let Some(at) = run.open.iter().position(|open| *open == id) {
            run.open.remove(at);
            self.note(Completion {
                tenant: Arc::clone(&who.tenant),
                session: who.session.to_string(),
                trace_id: id,
                status,
                output,
            });
            return;
        }
        // A call that was taken for words when it was answered is written down as such.
        run.types_calls |= run.typed == Some(id);
        if run.knows(id) || run.typed.take_if(|typed| *typed == id).is_some() {
            return;
        }
        if step.round.is_none() || step.round != run.round {
            (run.round, run.parent) = (step.round, run.newest);
        }
        let log = run.log(who, (step.position, id), step.thought.as_deref(), tool, args, (status, output));
        self.note(who.arrival(log));
    }

    fn answered(&mut self, who: &Who, answered: &Answered) {
        let run = self.runs.get_or_insert_mut(who.key, Run::default);
        (run.round, run.parent) = (None, run.newest);
        let text = Some(answered.answer.text.as_str()).filter(|text| !text.trim_ascii().is_empty());
        let mut logs = Vec::new();
        let mut first = None;
        // What ran at the provider stands before what its model says and calls, where the next request goes on from there.
        let ran = answered.answer.ran.iter().take(LoopState::MAX_OPEN);
        let position = answered.position + ran.len();
        for (place, ran) in (answered.position..).zip(ran) {
            let args = ran.args.as_deref().map(input);
            let (tool, args) = (Some(tool_name(&ran.tool)), args.as_deref());
            let id = trace_id(who.key, who.anchor, place, tool, args);
            first.get_or_insert(id);
            if !run.knows(id) {
                logs.push(run.log(who, (place, id), None, tool, args, outcome_of(ran)));
            }
        }
        let typed = answered.answer.typed();
        if let Some(call) = &typed {
            let args = input(&call.args);
            run.typed =
                Some(trace_id(who.key, who.anchor, position, Some(tool_name(&call.tool)), Some(&args)));
        }
        let typed = typed.filter(|_| run.types_calls);
        for (index, call) in answered.answer.calls.iter().chain(&typed).enumerate() {
            let args = input(&call.args);
            let (tool, args) = (tool_name(&call.tool), Some(&*args));
            let place = position + index;
            let id = trace_id(who.key, who.anchor, place, Some(tool), args);
            first.get_or_insert(id);
            if run.knows(id) {
                continue;
            }
            run.open.push(id);
            logs.push(run.log(who, (place, id), text, Some(tool), args, (Status::Pending, None)));
        }
        // An answer of which nothing else is known was one all the same.
        let says = text.is_some() || answered.answer.ran.is_empty();
        if says && answered.answer.calls.is_empty() && typed.is_none() {
            let id = if answered.is_given_again {
                // It may be the same place as that of the first time, and is another step all the same.
                TraceId::derived(&[
                    &who.key.0.to_le_bytes(),
                    &position.to_le_bytes(),
                    b"given again",
                    &millis(who.at).to_le_bytes(),
                ])
            } else {
                trace_id(who.key, who.anchor, position, None, None)
            };
            let said = text.map(|text| start_of(text, Heard::MAX_TEXT).to_owned());
            logs.push(run.log(who, (position, id), None, None, None, (Status::Success, said)));
        }
        let excess = run.open.len().saturating_sub(MAX_OPEN);
        run.open.drain(..excess);
        // Calls of one round share what it used; the first of them carries it. A retry is answered with calls that are
        // known already: what it used is added to theirs.
        let mut usage = (answered.tokens > 0 || answered.cost_micros > 0).then(|| Usage {
            tenant: Arc::clone(&who.tenant),
            session: who.session.to_string(),
            trace_id: first.or_else(|| logs.first().map(|log| log.meta.trace_id)),
            model: who.model.as_deref().map(str::to_owned),
            tokens: answered.tokens,
            cost_usd: answered.cost_micros as f64 / 1e6,
        });
        for mut log in logs {
            if answered.is_given_again {
                log.extensions.insert("cache".to_owned(), Value::from("hit"));
            }
            let its_own = usage.take_if(|usage| usage.trace_id == Some(log.meta.trace_id));
            self.note(Note::Stepped(who.arrival(log).into(), its_own));
        }
        if let Some(usage) = usage {
            self.note(usage);
        }
    }

    fn refused(&mut self, who: &Who, refused: &Refused) {
        let run = self.runs.get_or_insert_mut(who.key, Run::default);
        let id = TraceId::derived(&[
            &who.key.0.to_le_bytes(),
            &refused.position.to_le_bytes(),
            refused.code.as_bytes(),
            &millis(who.at).to_le_bytes(),
        ]);
        (run.round, run.parent) = (None, run.newest);
        let why = format!("{}: {}", refused.code, refused.message);
        let log = run.log(who, (refused.position, id), None, None, None, (Status::Skipped, Some(why)));
        self.note(who.arrival(log));
    }

    /// A call that its provider did not answer. Retries of an outage are one step, for they say nothing new.
    fn failed(&mut self, who: &Who, failed: &Refused) {
        let run = self.runs.get_or_insert_mut(who.key, Run::default);
        let id = TraceId::derived(&[
            &who.key.0.to_le_bytes(),
            &who.anchor.to_le_bytes(),
            &failed.position.to_le_bytes(),
            failed.code.as_bytes(),
        ]);
        if run.knows(id) {
            return;
        }
        (run.round, run.parent) = (None, run.newest);
        let why = format!("{}: {}", failed.code, failed.message);
        let log = run.log(who, (failed.position, id), None, None, None, (Status::Failure, Some(why)));
        self.note(who.arrival(log));
    }

    fn judged(&mut self, who: &Who, judged: Judged) {
        if judged.has_looped || !judged.findings.is_empty() {
            let (tenant, session) = (Arc::clone(&who.tenant), who.session.to_string());
            self.note(Note::Looped { tenant, session });
        }
        for mut finding in judged.findings {
            self.runs.get_or_insert_mut(who.key, Run::default).name_steps(&mut finding);
            let (tenant, session) = (Arc::clone(&who.tenant), who.session.to_string());
            self.note(Note::Found { tenant, session, finding });
        }
        let run = self.runs.get_or_insert_mut(who.key, Run::default);
        let Some(thought) = judged.verdict else { return };
        run.marked = match (thought.action, run.marked) {
            (Action::Allow, 0) => return,
            (Action::Allow, left) => left - 1,
            _ => STEPS_OUT_OF_A_LOOP,
        };
        self.note(Verdict {
            tenant: Arc::clone(&who.tenant),
            session: who.session.to_string(),
            action: thought.action,
            enforced: thought.enforced,
            policy: thought.policy.map(|policy| policy.to_string()),
            kind: thought.kind.map(str::to_owned),
            message: thought.message,
        });
    }
}

impl Who {
    fn arrival(&self, log: DecisionLog) -> Arrival {
        Arrival { tenant: Arc::clone(&self.tenant), session: Some(self.session.to_string()), log }
    }
}

/// The names in a request, which stay the same from one to the next.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    tenant: Arc<str>,
    session: Arc<str>,
    agent: Arc<str>,
    model: Option<Arc<str>>,
}

impl Names {
    fn are_of(&self, who: &Who) -> bool {
        let Self { tenant, session, agent, model } = self;
        *tenant == who.tenant && *session == who.session && *agent == who.agent && *model == who.model
    }
}

impl Run {
    /// Masks what looks like a credential: clients have put keys into every name there is.
    fn hide_credentials(&mut self, who: &mut Who) {
        if self.harmless.as_ref().is_some_and(|names| names.are_of(who)) {
            return;
        }
        who.hide_credentials();
        // What is masked once stays as it is when it is masked again.
        self.harmless = Some(Names {
            tenant: Arc::clone(&who.tenant),
            session: Arc::clone(&who.session),
            agent: Arc::clone(&who.agent),
            model: who.model.clone(),
        });
    }

    fn knows(&self, id: TraceId) -> bool {
        self.known.iter().any(|(_, known)| *known == id)
    }

    /// Names the steps that prove a finding as the log does; it knows them by their places in the transcript.
    fn name_steps(&self, finding: &mut Value) {
        let name = |place: &Value| {
            let place = usize::try_from(place.as_u64()?).ok()?;
            let (_, id) = self.known.iter().rev().find(|(known, _)| *known == place)?;
            Some(Value::from(id.to_string()))
        };
        if let Some(step) = name(&finding["step"]) {
            finding["trace_id"] = step;
        }
        if let Some(evidence) = finding["evidence"].as_array() {
            finding["traces"] = evidence.iter().filter_map(name).collect();
        }
    }

    /// The log of one step, which is the newest from now on.
    fn log(
        &mut self,
        who: &Who,
        (place, id): (usize, TraceId),
        thought: Option<&str>,
        tool: Option<&str>,
        args: Option<&str>,
        (status, output): (Status, Option<String>),
    ) -> DecisionLog {
        self.newest = Some(id);
        if self.known.len() >= MAX_KNOWN {
            self.known.drain(..MAX_KNOWN / 2);
        }
        self.known.push((place, id));
        let intent = thought.or(self.asked.as_deref()).or(tool).unwrap_or("answer");
        let mut extensions = Map::new();
        if let Some(model) = &who.model {
            extensions.insert("model".to_owned(), Value::from(&**model));
        }
        DecisionLog {
            meta: Meta {
                trace_id: id,
                parent_step_id: self.parent.filter(|parent| *parent != id),
                timestamp: Moment::from_millis(millis(who.at)),
                cluster_id: None,
                session_id: None,
            },
            identity: Identity {
                agent_id: who.agent.to_string(),
                agent_type: who.dialect.map_or("client", |dialect| dialect.as_str()).to_owned(),
                capability_version: FORM.to_owned(),
            },
            cognition: Cognition {
                intent: start_of(intent, MAX_INTENT).to_owned(),
                reasoning_chain: thought
                    .filter(|text| text.len() > MAX_INTENT)
                    .map(|text| vec![text.to_owned()]),
                confidence_score: None,
                strategy_used: None,
                entropy_score: None,
            },
            action: Deed {
                tool_call: tool.map(str::to_owned),
                tool_input: args.map(str::to_owned),
                tool_output_summary: output,
                status,
            },
            state_delta: None,
            control: None,
            extensions,
        }
    }
}

/// How a step ended, and what came of it.
fn outcome(step: &Heard) -> (Status, Option<String>) {
    use loopbreaker::Status as Seen;
    let status = match step.status {
        Some(Seen::Success) => Status::Success,
        Some(Seen::Failure) => Status::Failure,
        Some(Seen::Skipped) => Status::Skipped,
        // A call that the transcript goes on from without a result never brought one.
        Some(Seen::Pending) | None => match step.result.as_deref() {
            None if step.tool.is_some() => Status::Skipped,
            Some(_) if step.failed => Status::Failure,
            _ => Status::Success,
        },
    };
    let output = step.result.as_deref().or(step.thought.as_deref().filter(|_| step.tool.is_none()));
    (status, output.map(str::to_owned))
}

/// What became of a call that ran at the provider, as it is when it is heard.
fn outcome_of(ran: &Ran) -> (Status, Option<String>) {
    let status = match ran.result.as_deref() {
        _ if ran.failed => Status::Failure,
        None => Status::Skipped,
        Some(result) if Outcome::of(result).failed() => Status::Failure,
        Some(_) => Status::Success,
    };
    (status, ran.result.clone())
}

fn millis(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The form of the logs: the second one allows fields of our own.
const FORM: &str = "2.0.0";
const MAX_INTENT: usize = 400;
/// Calls of one session that may wait for their results.
const MAX_OPEN: usize = 128;
const MAX_KNOWN: usize = 512;
