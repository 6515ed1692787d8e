//! Traffic of a gateway as decision logs: noted without waiting, completed when the results come.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use loopbreaker::Action;
use loopbreaker_record::{DecisionLog, Moment, StateDelta, Status, TraceId};
use serde_json::{Value, json};

use crate::concern::Concern;
use crate::error::Stored;
use crate::events::Topic;
use crate::graph::start_of;
use crate::hitl::Order;
use crate::ingest::Arrival;
use crate::observatory::Observatory;
use crate::orders::Origin;
use crate::redact::redact_text;
use crate::store::{Completed, KnownStep, VerdictRow};
use crate::writer::Scribe;

/// The result of a call that was noted while it was pending.
#[derive(Debug, Clone)]
pub struct Completion {
    /// Whose it is.
    pub tenant: Arc<str>,
    /// The session of the call.
    pub session: String,
    /// The step that the call was noted as.
    pub trace_id: TraceId,
    /// How it ended.
    pub status: Status,
    /// What came back, in short.
    pub output: Option<String>,
}

/// What one round used.
#[derive(Debug, Clone)]
pub struct Usage {
    /// Whose it is.
    pub tenant: Arc<str>,
    /// The session that used it.
    pub session: String,
    /// The step that it was used for, where there is one.
    pub trace_id: Option<TraceId>,
    /// The model that was asked.
    pub model: Option<String>,
    /// Tokens of this round.
    pub tokens: u64,
    /// US dollars of this round.
    pub cost_usd: f64,
}

impl Usage {
    /// A provider may claim what it likes; sums have an end.
    fn tokens(&self) -> u64 {
        self.tokens.min(DecisionLog::MAX_TOKENS)
    }

    fn cost_usd(&self) -> f64 {
        if self.cost_usd.is_finite() { self.cost_usd.clamp(0.0, DecisionLog::MAX_COST) } else { 0.0 }
    }
}

/// What a gateway did with one request, or would have done.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Whose it is.
    pub tenant: Arc<str>,
    /// The session of the request.
    pub session: String,
    /// What was done; [`Action::Allow`] says that all is well again.
    pub action: Action,
    /// Whether it was really done: in shadow, and for sessions that are only observed, it was not.
    pub enforced: bool,
    /// The policy that decided.
    pub policy: Option<String>,
    /// The kind of loop, or the rule.
    pub kind: Option<String>,
    /// What the client was told.
    pub message: Option<String>,
}

/// Calls that are under way and whose words are kept in memory: with logs of this length they are 32 MB at most.
pub(crate) const MAX_OPEN: NonZeroUsize = NonZeroUsize::new(4_096).unwrap();
const MAX_OPEN_BYTES: usize = 8 << 10;
/// A store that needs longer for what waits is broken.
const FLUSH_PATIENCE: Duration = Duration::from_secs(5);

impl Observatory {
    /// Notes a log of gateway traffic without waiting; `false` when there is no room, which is counted.
    ///
    /// A log that is `pending` is kept open: its entropy counts when its result comes, or when the session ends. A log
    /// that is not completes an open one of the same name. A log that is known otherwise, as of a transcript that is
    /// sent again, changes nothing.
    ///
    /// ```
    /// use loopbreaker_observatory::{Arrival, Completion, Observatory, Options};
    /// use loopbreaker_record::{DecisionLog, Moment, Status, TraceId};
    ///
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let path = folder.path().join("log.db");
    /// let observatory = Observatory::open(Options::at(path))?;
    /// let trace_id = TraceId::derived(&[b"run-17", b"3"]);
    /// let log = DecisionLog::builder("coder", "gateway", "2.0.0")
    ///     .intent("build")
    ///     .called("make", "{}")
    ///     .build(trace_id, Moment::from_millis(0))
    ///     .expect("it is valid");
    /// let (tenant, session) = ("acme".into(), "run-17".to_owned());
    /// assert!(observatory.note(Arrival { tenant, session: Some(session.clone()), log }));
    /// let output = Some("1 error".to_owned());
    /// let tenant = "acme".into();
    /// assert!(observatory.complete(Completion { tenant, session, trace_id, status: Status::Failure, output }));
    /// # Ok::<(), loopbreaker_observatory::StoreError>(())
    /// ```
    pub fn note(&self, arrival: Arrival) -> bool {
        self.hand_over(move |scribe| scribe.note(arrival, None))
    }

    /// The same for a log whose round is over: what it used is known, and stands in the log.
    pub fn note_with_usage(&self, arrival: Arrival, usage: Usage) -> bool {
        self.hand_over(move |scribe| scribe.note(arrival, Some(&usage)))
    }

    /// Notes the result of a pending call without waiting. It is taken once; a second one changes nothing.
    pub fn complete(&self, completion: Completion) -> bool {
        self.hand_over(move |scribe| scribe.complete(&completion))
    }

    /// Gives an order without waiting, behind everything that was noted before it: the gateway's own verdict pauses a
    /// session that may be as new as the request.
    pub fn note_order(
        &self,
        tenant: Arc<str>,
        session: String,
        operator: &'static str,
        order: Order,
    ) -> bool {
        self.hand_over(move |scribe| {
            let id = scribe.session_named(&tenant, &session)?;
            // A request has just come: it goes on.
            scribe.change(id)?.ended = false;
            scribe.give_order(id, operator, order, Origin::Here).map(drop)
        })
    }

    /// Waits until everything that was noted before is safe, for at most a few seconds. It blocks its thread.
    pub fn flush(&self) {
        let (done, is_done) = std::sync::mpsc::channel();
        let handed = self.push_through(move |scribe| {
            // Whoever waits may have given up.
            scribe.effects.push(Box::new(move || done.send(()).unwrap_or_default()));
            Ok(())
        });
        if handed {
            is_done.recv_timeout(FLUSH_PATIENCE).ok();
        }
    }

    /// Notes what a round used whose log is known or of which there is none, as a difference and not as a sum, without
    /// waiting.
    pub fn note_usage(&self, usage: Usage) -> bool {
        self.hand_over(move |scribe| scribe.note_usage(&usage))
    }

    /// Notes what a detector found, without waiting; [`finding_json`](crate::finding_json) gives its form.
    ///
    /// A finding with a text as `key` takes the place of the session's earlier one of that key.
    pub fn note_finding(&self, tenant: Arc<str>, session: String, finding: Value) -> bool {
        self.hand_over(move |scribe| scribe.keep_finding(&tenant, &session, finding))
    }

    /// Notes what was done with a request, without waiting. Each is one round of its session.
    pub fn note_verdict(&self, verdict: Verdict) -> bool {
        self.hand_over(move |scribe| scribe.note_verdict(&verdict))
    }

    /// Notes that the provider keeps a session's history: what was said before stands in no later request.
    pub fn note_history_elsewhere(&self, tenant: Arc<str>, session: String) -> bool {
        self.hand_over(move |scribe| {
            let id = scribe.session_named(&tenant, &session)?;
            scribe.change(id)?.marks.history_elsewhere = true;
            Ok(())
        })
    }

    /// Ends a session without waiting: what is open is counted as it is, and its windows are freed.
    pub fn end_session(&self, tenant: Arc<str>, session: String) -> bool {
        self.hand_over(move |scribe| {
            let id = scribe.session_named(&tenant, &session)?;
            scribe.change(id)?.ended = true;
            scribe.end(id, false)
        })
    }
}

impl Scribe<'_> {
    fn note(&mut self, arrival: Arrival, usage: Option<&Usage>) -> Stored<()> {
        let Arrival { tenant: tenant_name, session, mut log } = arrival;
        cut(&mut log);
        let tenant = self.store.tenant(&tenant_name)?;
        if let Some(known) = self.store.step(tenant, log.meta.trace_id)? {
            if known.open && log.action.status != Status::Pending {
                let output = log.action.tool_output_summary.take();
                self.complete_known(&known, log.action.status, output.as_deref())?;
            }
            return usage.map_or(Ok(()), |usage| self.note_usage(usage));
        }
        // A transcript cannot be its own past; one that says so is not worth an answer.
        let Ok(place) = self.place(tenant, &tenant_name, session, &log)? else { return Ok(()) };
        if let Some(usage) = usage {
            log.state_delta = Some(StateDelta {
                tokens_consumed: Some(usage.tokens()),
                cumulative_session_cost: Some(self.live(place.session())?.row.cumulative + usage.cost_usd()),
                ..StateDelta::default()
            });
        }
        let open = log.action.status == Status::Pending;
        self.keep(place, &tenant_name, log, open, false)?;
        Ok(())
    }

    fn complete(&mut self, completion: &Completion) -> Stored<()> {
        let tenant = self.store.tenant(&completion.tenant)?;
        let Some(known) = self.store.step(tenant, completion.trace_id)?.filter(|known| known.open) else {
            return Ok(());
        };
        self.complete_known(&known, completion.status, completion.output.as_deref())
    }

    /// The one change that a step may see.
    fn complete_known(&mut self, known: &KnownStep, status: Status, output: Option<&str>) -> Stored<()> {
        let Ok(mut log) = serde_json::from_str::<DecisionLog>(&known.log) else { return Ok(()) };
        let output = output.map(|output| start_of(output, DecisionLog::MAX_TEXT));
        log.action.status = status;
        log.action.tool_output_summary = output.map(|text| redact_text(text, self.shared.keep_prompts));
        // Detectors see what was really said, as far as it is still there.
        let original = self.open.pop(&(known.session, known.trace));
        let seen = match original {
            Some(mut original) => {
                original.action.status = status;
                original.action.tool_output_summary = output.map(str::to_owned);
                Some(original)
            }
            None => self.shared.keep_prompts.then(|| log.clone()),
        };
        self.count(known, log)?;
        if status != Status::Pending {
            self.withdraw_input(known.session, known.trace)?;
        }
        if let Some(seen) = seen.filter(|_| status != Status::Pending) {
            let watched = self.observe(known.session, known.id, &seen, false)?;
            self.note_found(known.session, (known.id, known.number), &watched, false)?;
        }
        Ok(())
    }

    /// An open step is open no more: its entropy counts, and it is told again.
    fn count(&mut self, known: &KnownStep, mut log: DecisionLog) -> Stored<()> {
        let reading = self.score(known.session, &log, None)?;
        log.cognition.entropy_score = Some(reading.score);
        let level = reading.level.as_str();
        let text = serde_json::to_string(&log).unwrap_or_default();
        let reasoning = crate::ingest::reasoning(&log);
        let done = Completed {
            status: log.action.status.as_str(),
            level,
            log: &text,
            texts: crate::ingest::texts(&log, &reasoning),
        };
        self.store.complete_step(known, &done)?;
        let now = self.now;
        let row = self.change(known.session)?;
        row.scored(reading.score, level);
        row.stepped(&known.agent, level);
        row.last_at = row.last_at.max(now);
        let (tenant, name) = (Arc::from(row.tenant_name.as_str()), row.name.clone());
        let node = json!({
            "trace_id": known.trace, "agent_id": known.agent, "status": done.status, "severity": level,
            "entropy_score": reading.score, "completed": true,
        });
        let body = json!({ "event_type": "graph", "session_id": name, "node": node, "edges": [] });
        self.tell(Topic::Graph, "graph", &tenant, body);
        self.tell_entropy(&tenant, &name, known.session, &log, None, &reading)
    }

    /// The session ends: its last round is over, nobody has to decide about it any more, and it is in no alarm.
    pub(crate) fn end(&mut self, session: i64, tells: bool) -> Stored<()> {
        self.count_open_steps(session)?;
        self.end_round(session, tells)?;
        if self.pause_of(session).is_some() {
            self.give_order(session, "system", Order::Resume, Origin::Here)?;
        }
        let row = self.change(session)?;
        row.marks.alert = None;
        row.marks.concern = Concern::default();
        Ok(())
    }

    /// What has no result will have none, and counts as it is.
    fn count_open_steps(&mut self, session: i64) -> Stored<()> {
        for known in self.store.open_steps(session)? {
            self.open.pop(&(session, known.trace));
            if let Ok(log) = serde_json::from_str(&known.log) {
                self.count(&known, log)?;
            }
        }
        Ok(())
    }

    /// Keeps a finding of a session, and tells of it; secrets in its words are masked.
    pub(crate) fn keep_finding(&mut self, tenant: &str, session: &str, mut finding: Value) -> Stored<()> {
        let id = self.session_named(tenant, session)?;
        if let Some(message) = finding["message"].as_str() {
            finding["message"] = redact_text(message, true).into();
        }
        self.store.add_finding(id, self.now, &finding)?;
        self.tell_finding(id, &finding)
    }

    fn note_usage(&mut self, usage: &Usage) -> Stored<()> {
        let id = self.session_named(&usage.tenant, &usage.session)?;
        let (tokens, cost) = (usage.tokens(), usage.cost_usd());
        let mut wasted = false;
        if let Some(trace_id) = usage.trace_id {
            let tenant = self.store.tenant(&usage.tenant)?;
            if let Some(known) = self.store.step(tenant, trace_id)? {
                let model = usage.model.as_deref().unwrap_or_default();
                wasted = self.store.add_usage(&known, model, tokens, cost)?;
            }
        }
        self.shared.rates.spent(self.now, &usage.tenant, cost);
        let row = self.change(id)?;
        row.tokens = row.tokens.saturating_add(tokens);
        row.spend(cost);
        if wasted {
            row.wasted.tokens = row.wasted.tokens.saturating_add(tokens);
            row.wasted.cost_usd += cost;
        }
        Ok(())
    }

    fn note_verdict(&mut self, verdict: &Verdict) -> Stored<()> {
        let id = self.session_named(&verdict.tenant, &verdict.session)?;
        let now = self.now;
        let kind = verdict.kind.as_deref().unwrap_or_default();
        let message = match verdict.message.as_deref() {
            Some(text) if !text.is_empty() => redact_text(text, true),
            // A warning says nothing to the client; what it is about was found just before.
            _ if verdict.action != Action::Allow => self.store.said_of(id, kind)?.unwrap_or_default(),
            _ => String::new(),
        };
        let noted = VerdictRow {
            action: verdict.action.as_str(),
            enforced: verdict.enforced,
            policy: verdict.policy.as_deref().unwrap_or_default(),
            kind,
            message: &message,
        };
        let row = self.change(id)?;
        row.last_at = row.last_at.max(now);
        let cost = row.cost_of_a_round();
        if verdict.action == Action::Allow {
            row.marks.verdict = None;
            row.marks.verdict_level.clear();
        } else {
            row.marks.verdict = Some(json!({
                "action": noted.action, "enforced": noted.enforced, "policy": noted.policy, "kind": noted.kind,
                "at": Moment::from_millis(now).as_str(),
            }));
            let level = match noted.kind {
                // An agent that is out of money, or was switched off, does not go round in circles.
                "kill_switch" | "budget_exceeded" => "",
                _ if verdict.action == Action::Warn => "warning",
                _ => "loop",
            };
            level.clone_into(&mut row.marks.verdict_level);
        }
        row.settle_level();
        if verdict.action != Action::Allow {
            self.store.add_verdict(id, now, &noted)?;
        }
        if verdict.action >= Action::Pause {
            self.store.count_round(id, noted.kind, verdict.enforced, cost, now)?;
        }
        Ok(())
    }

    /// The session of this name, which is made if it is not known.
    pub(crate) fn session_named(&mut self, tenant_name: &str, name: &str) -> Stored<i64> {
        let tenant = self.store.tenant(tenant_name)?;
        let name = start_of(name, DecisionLog::MAX_SESSION_ID);
        match self.store.session_id(tenant, name)? {
            Some(id) => Ok(id),
            None => self.new_session(tenant, tenant_name, name, false),
        }
    }

    /// Keeps the words of an open step until its result comes, unless they are many: the store has them too, but for
    /// what was masked. `written` is how long it is there.
    pub(crate) fn remember_open(&mut self, session: i64, log: DecisionLog, written: usize) {
        if written <= MAX_OPEN_BYTES {
            self.open.put((session, log.meta.trace_id), log);
        }
    }
}

/// Texts that are longer than a log may hold are cut: traffic is not refused for its length.
fn cut(log: &mut DecisionLog) {
    let cut = |text: &mut String| text.truncate(start_of(text, DecisionLog::MAX_TEXT).len());
    cut(&mut log.cognition.intent);
    cut(&mut log.identity.agent_id);
    cut(&mut log.identity.agent_type);
    for text in [&mut log.action.tool_call, &mut log.action.tool_input, &mut log.action.tool_output_summary] {
        text.iter_mut().for_each(cut);
    }
    let memory = log.state_delta.as_mut().and_then(|delta| delta.added_to_memory.as_mut());
    for texts in log.cognition.reasoning_chain.as_mut().into_iter().chain(memory) {
        texts.truncate(DecisionLog::MAX_ITEMS);
        // As much as a log may hold in all, shared out.
        let each = (DecisionLog::MAX_BYTES / 4 / texts.len().max(1)).min(DecisionLog::MAX_TEXT);
        for text in texts {
            text.truncate(start_of(text, each).len());
        }
    }
}
