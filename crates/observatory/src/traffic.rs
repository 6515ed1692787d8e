//! Traffic of a gateway as decision logs: noted as it passes, completed when the results come.

use std::num::NonZeroUsize;
use std::sync::Arc;

use loopbreaker::Action;
use loopbreaker_record::{DecisionLog, Moment, StateDelta, Status, TraceId};
use serde_json::{Value, json};

use crate::concern::Concern;
use crate::error::Stored;
use crate::events::Topic;
use crate::graph::{DoneNode, start_of};
use crate::hitl::Order;
use crate::ingest::Arrival;
use crate::notes::{Completion, Usage, Verdict};
use crate::orders::Origin;
use crate::redact::{redact_text, redacted};
use crate::store::{Completed, KnownStep, VerdictRow};
use crate::writer::Scribe;

/// Calls that are under way and whose words are kept in memory: with logs of this length they are 32 MB at most.
pub(crate) const MAX_OPEN: NonZeroUsize = NonZeroUsize::new(4_096).unwrap();
const MAX_OPEN_BYTES: usize = 8 << 10;

impl Scribe<'_> {
    pub(crate) fn note_step(&mut self, arrival: Arrival, usage: Option<&Usage>) -> Stored<()> {
        let Arrival { tenant: tenant_name, session, mut log } = arrival;
        cut(&mut log);
        let tenant = self.store.tenant(&tenant_name)?;
        if let Some(known) = self.step_noted(tenant, session.as_deref(), log.meta.trace_id)? {
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

    /// The step of this name, if it is known. A gateway names steps after their sessions, so those of a session that began
    /// here are all known by heart.
    fn step_noted(
        &mut self,
        tenant: i64,
        session: Option<&str>,
        trace: TraceId,
    ) -> Stored<Option<Arc<KnownStep>>> {
        let session = match session {
            Some(name) => self.store.session_id(tenant, name)?,
            None => None,
        };
        let live = session.and_then(|session| self.live.peek(&session));
        if live.is_some_and(|live| live.surely_lacks(trace)) {
            return Ok(None);
        }
        self.store.step(tenant, trace)
    }

    pub(crate) fn complete(&mut self, completion: &Completion) -> Stored<()> {
        let tenant = self.store.tenant(&completion.tenant)?;
        let Some(known) = self.store.step(tenant, completion.trace_id)?.filter(|known| known.open) else {
            return Ok(());
        };
        self.complete_known(&known, completion.status, completion.output.as_deref())
    }

    /// The one change that a step may see.
    fn complete_known(&mut self, known: &KnownStep, status: Status, output: Option<&str>) -> Stored<()> {
        let output = output.map(|output| start_of(output, DecisionLog::MAX_TEXT));
        let keep_prompts = self.shared.keep_prompts;
        // Detectors see what was really said, as far as it is still there.
        let (mut log, seen) = if let Some(mut original) = self.open.pop(&(known.session, known.trace)) {
            original.action.tool_output_summary = output.map(str::to_owned);
            match redacted(&original, keep_prompts) {
                Some(kept) => (kept, Some(original)),
                None => (original.clone(), Some(original)),
            }
        } else {
            let Ok(mut kept) = serde_json::from_str::<DecisionLog>(&self.store.said(known)?.log) else {
                return Ok(());
            };
            kept.action.tool_output_summary = output.map(|text| redact_text(text, keep_prompts));
            let seen = keep_prompts.then(|| kept.clone());
            (kept, seen)
        };
        log.action.status = status;
        if self.count(known, log)? != "normal" {
            self.look_back(known.session, known.id)?;
        }
        if status == Status::Pending {
            return Ok(());
        }
        self.withdraw_input(known.session, known.trace)?;
        if let Some(mut seen) = seen {
            seen.action.status = status;
            let watched = self.observe(known.session, known.id, &seen, false)?;
            if watched.is_wasted() {
                self.note_waste(known.session, std::iter::once(known.id))?;
            }
            self.note_found(known.session, (known.id, known.number), &watched, false)?;
        }
        Ok(())
    }

    /// An open step is open no more: its entropy counts, and it is told again. Says the level of its session's decisions.
    fn count(&mut self, known: &KnownStep, mut log: DecisionLog) -> Stored<&'static str> {
        let reading = self.score(known.session, &log, None)?;
        log.cognition.entropy_score = Some(reading.score);
        let level = reading.level.as_str();
        let text = crate::ingest::text_of(&log);
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
        let node = DoneNode {
            trace_id: known.trace,
            agent_id: (*known.agent).into(),
            status: done.status,
            severity: level,
            entropy_score: reading.score,
            completed: true,
        };
        self.tell_grown(&tenant, &name, node, Vec::new());
        self.tell_entropy(&tenant, &name, known.session, &log, None, &reading)?;
        Ok(level)
    }

    /// The session ends: its last round is over, nobody has to decide about it any more, and it is in no alarm.
    pub(crate) fn end(&mut self, session: i64, tells: bool) -> Stored<()> {
        self.count_open_steps(session)?;
        self.end_round(session, tells)?;
        if self.pause_of(session).is_some() {
            self.give_order(session, "system", Order::Resume, Origin::Here)?;
        }
        let row = self.change(session)?;
        row.marks.concern = Concern::default();
        let (tenant, name) = (Arc::<str>::from(row.tenant_name.as_str()), row.name.clone());
        if let Some(alert) = row.marks.alert.take() {
            // Whoever was told of the alert is told that it is over, and its window ends with it: nobody is told twice.
            let body = json!({
                "event_type": "entropy_recovered", "session_id": name, "agent_id": alert["agent_id"],
                "entropy_score": row.entropy,
            });
            self.tell(Topic::EntropyAlerts, "entropy_recovered", &tenant, &body);
        }
        self.live(session)?.free_window();
        let shared = Arc::clone(self.shared);
        self.effects.push(Box::new(move || shared.free_guard(&tenant, &name)));
        Ok(())
    }

    /// What has no result will have none, and counts as it is.
    fn count_open_steps(&mut self, session: i64) -> Stored<()> {
        for known in self.store.open_steps(session)? {
            self.open.pop(&(session, known.trace));
            if let Ok(log) = serde_json::from_str(&self.store.said(&known)?.log) {
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
        if let (Some(severity), Some(score)) = (finding["severity"].as_str(), finding["score"].as_f64()) {
            self.change(id)?.found(severity, score);
        }
        self.tell_finding(id, &finding)
    }

    pub(crate) fn note_usage(&mut self, usage: &Usage) -> Stored<()> {
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

    pub(crate) fn note_verdict(&mut self, verdict: &Verdict) -> Stored<()> {
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
        let marks = &mut row.marks;
        let recovery = &mut marks.verdict_recovery;
        let before = marks.verdict_score;
        let (level, score) = match (verdict.action, noted.kind) {
            // An agent that is out of money, or was switched off, does not go round in circles, nor does it take a step.
            (action, "kill_switch" | "budget_exceeded") if action != Action::Allow => {
                if recovery.is_under_way() { ("warning", before) } else { ("", 0.0) }
            }
            (Action::Allow, _) => (recovery.step(""), recovery.fade(before)),
            (Action::Warn, _) => (recovery.step("warning"), marks.found_warning),
            _ => (recovery.step("loop"), marks.found_loop),
        };
        level.clone_into(&mut marks.verdict_level);
        marks.verdict_score = score;
        if verdict.action != Action::Allow {
            marks.verdict = Some(json!({
                "action": noted.action, "enforced": noted.enforced, "policy": noted.policy, "kind": noted.kind,
                "at": Moment::from_millis(now).as_str(),
            }));
        } else if marks.verdict_level.is_empty() {
            marks.verdict = None;
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
