//! One log on its way in: known or new, whose session, which place in the graph, which score.

use std::sync::Arc;

use loopbreaker::{Decision, Entropy, EntropyReading};
use loopbreaker_record::{Action, DecisionLog, Meta, Status, TraceId};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::again::is_same;
use crate::concern::worse;
use crate::error::{StoreError, Stored};
use crate::events::{Draft, Said, Topic};
use crate::hitl::{self, HandedOutBy, Order};
use crate::orders::Origin;
use crate::redact::redacted;
use crate::store::{HandOff, KeptLog, KnownStep, NewStep, Session, Texts};
use crate::waste::Watched;
use crate::writer::Scribe;

/// A log that has come, and what its request says beside it.
#[derive(Debug)]
pub struct Arrival {
    /// Whose it is.
    pub tenant: Arc<str>,
    /// The session that the request's header names; the log's own wins.
    pub session: Option<String>,
    /// The log.
    pub log: DecisionLog,
}

/// A log that is kept.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// The session that it belongs to.
    pub session_id: String,
    /// It had come before.
    pub duplicate: bool,
    /// `normal`, `warning` or `loop`.
    pub severity: String,
    /// The log as it was broadcast, with the computed score.
    pub log: Box<RawValue>,
    /// What the agent must obey now.
    pub control: Value,
}

/// A log that is valid and refused all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another log has this name.
    #[error("another log with this trace_id and other content is kept already")]
    Conflict,
    /// It would be its own ancestor.
    #[error("the chain of parents would close a cycle")]
    Cycle,
}

impl Refusal {
    /// The refusal's name on the wire.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::Cycle => "cycle",
        }
    }
}

/// A session in memory.
#[derive(Debug)]
pub(crate) struct LiveSession {
    pub(crate) row: Session,
    entropy: Entropy,
    /// The names of all its steps, where it began in this process and has not too many.
    steps: Option<Vec<TraceId>>,
}

impl LiveSession {
    /// More names than these are not kept: 2 kB for each session.
    const MAX_STEPS: usize = 128;

    fn new(row: Session) -> Self {
        Self { row, entropy: Entropy::default(), steps: None }
    }

    /// The session has ended: what comes behind that has nothing to do with what was before.
    pub(crate) fn free_window(&mut self) {
        self.entropy = Entropy::default();
    }

    /// Whether it has no step of this name, as far as that is known without asking. Its first step is always asked for: the
    /// run may have had another session before.
    pub(crate) fn surely_lacks(&self, step: TraceId) -> bool {
        self.steps.as_ref().is_some_and(|steps| !steps.is_empty() && !steps.contains(&step))
    }

    fn add_step(&mut self, step: TraceId) {
        self.steps = self.steps.take().filter(|steps| steps.len() < Self::MAX_STEPS);
        if let Some(steps) = &mut self.steps {
            steps.push(step);
        }
    }
}

/// Where a new step belongs.
pub(crate) struct Place {
    tenant: i64,
    session: i64,
    above: Option<Arc<KnownStep>>,
    /// Steps that waited for it.
    children: Vec<KnownStep>,
}

impl Place {
    /// The session of the step.
    pub(crate) const fn session(&self) -> i64 {
        self.session
    }
}

impl Scribe<'_> {
    /// A log of somebody who names no tenant: it belongs to the session of that name, if there is only one. A gateway
    /// knows the same agent by its API key.
    pub(crate) fn meant(&mut self, mut arrival: Arrival) -> Stored<Arrival> {
        let Some(name) = arrival.log.meta.session_id.as_ref().or(arrival.session.as_ref()) else {
            return Ok(arrival);
        };
        let tenant = self.store.tenant(&arrival.tenant)?;
        if self.store.session_id(tenant, name)?.is_none()
            && let [only] = &self.store.sessions_named(name, None)?[..]
        {
            arrival.tenant = only.tenant_name.as_str().into();
        }
        Ok(arrival)
    }

    /// Takes a log in. Everything that could refuse it is looked at before anything is written.
    pub(crate) fn ingest(&mut self, arrival: Arrival) -> Stored<Result<Accepted, Refusal>> {
        let Arrival { tenant: tenant_name, session, log } = arrival;
        let tenant = self.store.tenant(&tenant_name)?;
        if let Some(known) = self.store.step(tenant, log.meta.trace_id)? {
            let kept = self.store.said(&known)?;
            if !is_same(&kept, &log) {
                return Ok(Err(Refusal::Conflict));
            }
            return self.repeat(&known, kept).map(Ok);
        }
        let place = match self.place(tenant, &tenant_name, session, &log)? {
            Ok(place) => place,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let (id, asks, is_last) = (place.session, log.hitl_required(), log.is_terminal());
        let (severity, log) = self.keep(place, &tenant_name, log, false, true)?;
        if asks {
            let reason = "the agent asked for a person".to_owned();
            self.give_order(id, "system", Order::Pause { reason }, Origin::Here)?;
        }
        let control = self.control_for(id, is_last)?;
        let session_id = self.live(id)?.row.name.clone();
        let log = written(log)?;
        Ok(Ok(Accepted { session_id, duplicate: false, severity: severity.to_owned(), log, control }))
    }

    /// Finds the place of a step that is new; its session is made where there is none.
    pub(crate) fn place(
        &mut self,
        tenant: i64,
        tenant_name: &str,
        session: Option<String>,
        log: &DecisionLog,
    ) -> Stored<Result<Place, Refusal>> {
        let (trace, parent) = (log.meta.trace_id, log.meta.parent_step_id);
        let children = self.store.waiting_for(tenant, trace)?;
        if let Some(parent) = parent {
            // Only a step that somebody waits for can be above its own parent.
            if parent == trace || (!children.is_empty() && self.store.is_above(tenant, trace, parent)?) {
                return Ok(Err(Refusal::Cycle));
            }
        }
        let above = match parent {
            Some(parent) => self.store.step(tenant, parent)?,
            None => None,
        };
        let named = log.meta.session_id.clone().or(session);
        let session =
            self.session_for(tenant, tenant_name, named, &log.meta, above.as_deref(), !children.is_empty())?;
        for child in &children {
            self.adopt(child, trace, session)?;
        }
        Ok(Ok(Place { tenant, session, above, children }))
    }

    /// Keeps a step that is new; says its level, and how its log is written. An open one is counted when its result
    /// comes; all others now.
    ///
    /// `tells` says whether what detectors see in it is told: a gateway does that itself.
    pub(crate) fn keep(
        &mut self,
        place: Place,
        tenant_name: &Arc<str>,
        log: DecisionLog,
        open: bool,
        tells: bool,
    ) -> Stored<(&'static str, String)> {
        let Place { tenant, session: id, above, children } = place;
        let (trace, parent) = (log.meta.trace_id, log.meta.parent_step_id);
        // Nobody sends a gateway's own logs twice, so what they were is not looked at.
        let content = tells.then(|| log.content());
        let content = content.as_ref().map_or(&[][..], |content| content.as_bytes());
        let reported = log.cognition.entropy_score;
        let kept = redacted(&log, self.shared.keep_prompts);
        // Detectors see what was really said.
        let (mut log, original) = match kept {
            Some(kept) => (kept, Some(log)),
            None => (log, None),
        };
        let counts = !open && (tells || is_made(&log));
        let reading = if counts { Some(self.score(id, &log, reported)?) } else { None };
        log.cognition.entropy_score = reading.as_ref().map(|reading| reading.score);
        // The severity of a log is that of its score; what else was found is the session's.
        let level = reading.as_ref().map_or("normal", |reading| reading.level.as_str());
        if level != "normal" && !tells {
            self.look_back(id, i64::MAX)?;
        }
        let watched = if counts {
            self.observe(id, i64::MAX, original.as_ref().unwrap_or(&log), tells)?
        } else {
            Watched::default()
        };

        let now = self.now;
        let (agent, at) = (log.identity.agent_id.as_str(), log.meta.timestamp.millis());
        let cluster = log.meta.cluster_id.as_deref().unwrap_or_default();
        let tokens = log.state_delta.as_ref().and_then(|delta| delta.tokens_consumed).unwrap_or(0);
        let cumulative = log.state_delta.as_ref().and_then(|delta| delta.cumulative_session_cost);
        let row = self.change(id)?;
        if let Some(reading) = &reading {
            row.scored(reading.score, level);
        }
        if tells {
            row.concerned(&watched.findings, watched.is_judged);
        }
        row.stepped(agent, if tells { worse(level, watched.level()) } else { level });
        row.ended = log.is_terminal();
        row.steps += 1;
        row.tokens = row.tokens.saturating_add(tokens);
        row.last_at = row.last_at.max(now);
        row.add_agent(agent);
        if !cluster.is_empty() {
            cluster.clone_into(&mut row.cluster);
        }
        let cost = row.add_cost(cumulative);
        if watched.is_wasted() {
            row.waste(tokens, cost);
        }
        let (name, number) = (row.name.clone(), row.steps);

        let text = text_of(&log);
        let reasoning = reasoning(&log);
        let step = NewStep {
            tenant,
            session: id,
            trace,
            parent,
            waiting: parent.is_some() && above.is_none(),
            at,
            received_at: now,
            agent,
            cluster,
            tool: log.action.tool_call.as_deref().unwrap_or_default(),
            model: log.extensions.get("model").and_then(Value::as_str).unwrap_or_default(),
            status: log.action.status.as_str(),
            level,
            open,
            tokens,
            cost,
            cumulative,
            content,
            log: &text,
            wasted: watched.is_wasted(),
            number,
            texts: texts(&log, &reasoning),
        };
        let Some(stored) = self.store.add_step(&step)? else {
            // Somebody has given a step of another session the name that this one was to have.
            return Ok((level, text));
        };
        self.live(id)?.add_step(trace);
        if step.waiting {
            self.shared.wait_for_parent(now, tenant_name, &name, trace);
        }
        self.shared.rates.stepped(now, tenant_name, cost);
        self.hand_offs(&step, above.as_deref(), &children)?;
        self.tell_graph(tenant_name, &name, &log, &step, &children);
        if let Some(reading) = &reading {
            self.tell_entropy(tenant_name, &name, id, &log, reported, reading)?;
            self.note_found(id, (stored, number), &watched, tells)?;
        } else {
            self.leave_round(id, original.as_ref().unwrap_or(&log), tells)?;
        }
        if log.is_terminal() {
            self.end(id, tells)?;
        }
        if open {
            self.remember_open(id, original.unwrap_or(log), text.len());
        }
        Ok((level, text))
    }

    /// The session of a new step: by its name, its parent's, or one that starts with its root.
    fn session_for(
        &mut self,
        tenant: i64,
        tenant_name: &str,
        named: Option<String>,
        log: &Meta,
        above: Option<&KnownStep>,
        awaited: bool,
    ) -> Stored<i64> {
        let (trace, parent) = (log.trace_id, log.parent_step_id);
        let (name, provisional) = match (named, above, parent) {
            (Some(name), _, _) => (name, false),
            (None, Some(above), _) => return Ok(above.session),
            // If the parent turns out to be a root, this is the name of its session; otherwise it moves.
            (None, None, Some(parent)) => (parent.to_string(), true),
            (None, None, None) => (trace.to_string(), false),
        };
        if let Some(id) = self.store.session_id(tenant, &name)? {
            if !provisional && self.live(id)?.row.provisional {
                self.change(id)?.provisional = false;
            }
            return Ok(id);
        }
        // Steps that came before this one have a session that only waits for its right name.
        let waiting = if awaited { self.store.session_id(tenant, &trace.to_string())? } else { None };
        if let Some(id) = waiting
            && self.live(id)?.row.provisional
        {
            self.store.rename_session(id, &name)?;
            let row = self.change(id)?;
            (row.name, row.provisional) = (name, provisional);
            return Ok(id);
        }
        self.new_session(tenant, tenant_name, &name, provisional)
    }

    pub(crate) fn new_session(
        &mut self,
        tenant: i64,
        tenant_name: &str,
        name: &str,
        provisional: bool,
    ) -> Stored<i64> {
        let mut session = Session::new(tenant, tenant_name, name, self.now);
        session.provisional = provisional;
        session.id = self.store.put_session(&session)?;
        let id = session.id;
        self.live.put(id, LiveSession { steps: Some(Vec::new()), ..LiveSession::new(session) });
        Ok(id)
    }

    /// A step finds its parent. If its session was only named after that parent, it becomes part of the parent's.
    fn adopt(&mut self, child: &KnownStep, parent: TraceId, session: i64) -> Stored<()> {
        self.store.attach(child.id)?;
        self.shared.found_parent(child.trace);
        if child.session == session || self.store.session_of(child.session)?.is_none() {
            return Ok(());
        }
        let theirs = &self.live(child.session)?.row;
        if !theirs.provisional || theirs.name != parent.to_string() {
            return Ok(());
        }
        let from = theirs.clone();
        let mut into = self.live(session)?.row.clone();
        self.store.merge(&from, &mut into)?;
        self.merged.push(from.id);
        // The windows are read again: the steps that came over are part of them.
        for id in [from.id, session] {
            self.live.pop(&id);
            self.watches.pop(&id);
        }
        self.store.put_session(&into)?;
        let shared = Arc::clone(self.shared);
        self.effects.push(Box::new(move || shared.hitl.merge(from.id, session)));
        Ok(())
    }

    /// A session with its window; read from the store where it is not in memory.
    pub(crate) fn live(&mut self, id: i64) -> Stored<&mut LiveSession> {
        if !self.live.contains(&id) {
            let gone = || StoreError::Other("the session is gone".to_owned());
            let row = self.store.session_of(id)?.ok_or_else(gone)?;
            let config = self.shared.thresholds.config().entropy;
            let mut live = LiveSession::new(row);
            // What ended has no window any more.
            let logs = if live.row.ended { Vec::new() } else { self.last_logs(id, config.window_size)? };
            let logs = logs.into_iter().map(|kept| kept.log);
            for log in logs.filter(|log| log.cognition.entropy_score.is_some()) {
                live.entropy.observe(&decision(&log, None), &config);
            }
            self.live.put(id, live);
        }
        let live = self.live.get_mut(&id);
        let live = live.ok_or_else(|| StoreError::Other("the session is gone".to_owned()))?;
        Ok(live)
    }

    /// The last logs of a session, oldest first, and none of before it ended: its windows are freed then.
    pub(crate) fn last_logs(&mut self, session: i64, count: u32) -> Stored<Vec<KeptLog<DecisionLog>>> {
        let logs = self.store.last_logs(session, count)?.into_iter();
        let read = |KeptLog { id, number, log }: KeptLog<String>| {
            Some(KeptLog { id, number, log: serde_json::from_str(&log).ok()? })
        };
        let mut logs: Vec<KeptLog<DecisionLog>> = logs.filter_map(read).collect();
        if let Some(end) = logs.iter().rposition(|kept: &KeptLog<DecisionLog>| kept.log.is_terminal()) {
            logs.drain(..=end);
        }
        Ok(logs)
    }

    /// A session that is written with this batch.
    pub(crate) fn change(&mut self, id: i64) -> Stored<&mut Session> {
        self.changed.insert(id);
        Ok(&mut self.live(id)?.row)
    }

    /// The score of a session with one more decision.
    pub(crate) fn score(
        &mut self,
        session: i64,
        log: &DecisionLog,
        reported: Option<f64>,
    ) -> Stored<EntropyReading> {
        let config = self.shared.thresholds.config().entropy;
        Ok(self.live(session)?.entropy.observe(&decision(log, reported), &config))
    }

    fn hand_offs(
        &mut self,
        step: &NewStep<'_>,
        above: Option<&KnownStep>,
        below: &[KnownStep],
    ) -> Stored<()> {
        let NewStep { tenant, cluster, agent, at, session, .. } = *step;
        let mut add = |from: &str, to: &str, sent: i64, taken: i64| {
            if from == to {
                return Ok(());
            }
            let latency = (taken - sent).max(0);
            self.store.add_hand_off(&HandOff {
                tenant,
                cluster,
                from,
                to,
                latency,
                at: step.received_at,
                session,
            })
        };
        if let Some(above) = above {
            add(&above.agent, agent, above.at, at)?;
        }
        below.iter().try_for_each(|child| add(agent, &child.agent, at, child.at))
    }

    /// What the agent must obey now. An order is told once.
    pub(crate) fn control_for(&mut self, session: i64, is_terminal: bool) -> Stored<Value> {
        let pause = self.pause_of(session);
        let order = match pause {
            Some(_) => None,
            None => self.next_order(session, |order| order.is_handed_out_by(HandedOutBy::Log))?,
        };
        Ok(hitl::control(pause.as_ref(), order.as_ref(), is_terminal))
    }

    /// Writes the sessions that changed, and tells of each of them once.
    pub(crate) fn write_sessions(&mut self) -> Stored<()> {
        for id in std::mem::take(&mut self.changed) {
            if self.merged.contains(&id) {
                continue;
            }
            let paused = self.pause_of(id).is_some();
            self.live(id)?;
            let Some(LiveSession { row, .. }) = self.live.peek(&id) else { continue };
            self.store.put_session(row)?;
            self.drafts.push(Draft {
                topic: Topic::Sessions,
                kind: "session",
                tenant: Some(row.tenant_name.as_str().into()),
                body: Said::now(&row.told(paused, self.now)),
                order: None,
            });
            if row.ended {
                self.live.pop(&id);
                self.watches.pop(&id);
            }
        }
        Ok(())
    }

    pub(crate) fn tell(
        &mut self,
        topic: Topic,
        kind: &'static str,
        tenant: &Arc<str>,
        said: &impl Serialize,
    ) {
        let tenant = Some(Arc::clone(tenant));
        self.drafts.push(Draft { topic, kind, tenant, body: Said::now(said), order: None });
    }
}

/// A log as it is kept.
pub(crate) fn text_of(log: &DecisionLog) -> String {
    /// All that is in a log of a gateway beside what was said.
    const NAMES: usize = 640;
    let Action { tool_input, tool_output_summary, .. } = &log.action;
    let said = [Some(&log.cognition.intent), tool_input.as_ref(), tool_output_summary.as_ref()];
    let said: usize = said.into_iter().flatten().map(String::len).sum();
    // Room for a few characters that have to be escaped: growing would copy all of it.
    let mut text = Vec::with_capacity(NAMES + said + said / 16);
    serde_json::to_writer(&mut text, log).unwrap_or_default();
    String::from_utf8(text).unwrap_or_default()
}

/// A stored log as it stands in an answer.
pub(crate) fn written(log: String) -> Stored<Box<RawValue>> {
    RawValue::from_string(log).map_err(|_| StoreError::Corrupt("a stored log is none".to_owned()))
}

/// Whether a gateway's log is of something that the agent did. A call that was refused was never made, and one to a model
/// that did not answer led to nothing: neither is a decision of the agent's that could be a new one.
fn is_made(log: &DecisionLog) -> bool {
    match log.action.status {
        Status::Skipped => false,
        Status::Failure => log.action.tool_call.is_some(),
        Status::Success | Status::Pending => true,
    }
}

fn decision(log: &DecisionLog, reported: Option<f64>) -> Decision<'_> {
    Decision {
        intent: &log.cognition.intent,
        tool_call: log.action.tool_call.as_deref().unwrap_or_default(),
        status: log.action.status.into(),
        tool_input: log.action.tool_input.as_deref(),
        reported,
    }
}

/// One thought per line.
pub(crate) fn reasoning(log: &DecisionLog) -> String {
    log.cognition.reasoning_chain.as_deref().unwrap_or_default().join("\n")
}

/// What of a log can be searched for.
pub(crate) fn texts<'a>(log: &'a DecisionLog, reasoning: &'a str) -> Texts<'a> {
    Texts {
        intent: &log.cognition.intent,
        reasoning,
        tool: log.action.tool_call.as_deref().unwrap_or_default(),
        input: log.action.tool_input.as_deref().unwrap_or_default(),
        output: log.action.tool_output_summary.as_deref().unwrap_or_default(),
    }
}
