//! A policy tried on recorded sessions: what it would have done with each, beside what was done.

use std::time::Instant;

use loopbreaker::{
    Action, DetectorsConfig, Finding, Ladder, Redundancy, RedundancyRules, Severity, Step, Strikes,
};
use loopbreaker_record::{DecisionLog, Status, TraceId};
use serde_json::{Map, Value, json};

use crate::error::{StoreError, Stored};
use crate::observatory::Observatory;
use crate::policies::Change;
use crate::store::Store;
use crate::waste::as_step;

/// Sessions that a change is tried on, unless another number is asked for.
const TRIED: u32 = 50;
const MAX_TRIED: u32 = 1_000;
/// Steps that a change is tried on in all.
const MAX_STEPS: usize = 200_000;

impl Observatory {
    /// What a policy would have done with the last recorded sessions, beside what was done.
    pub(crate) async fn try_policy(
        &self,
        spec: &Value,
        last: Option<u32>,
        tenant: Option<String>,
    ) -> Stored<Change> {
        let Some(policies) = self.shared.governed.policies() else { return Ok(Change::Ungoverned) };
        let detectors = match policies.detectors(spec) {
            Ok(detectors) => detectors,
            Err(problems) => return Ok(Change::Wrong(problems)),
        };
        let count = last.unwrap_or(TRIED).clamp(1, MAX_TRIED);
        let tried =
            self.read(move |store| try_on(store, detectors.as_ref(), count, tenant.as_deref())).await?;
        Ok(Change::Done(tried))
    }
}

/// One session under the policy that is tried.
struct Trial<'a> {
    detector: Redundancy,
    strikes: Strikes,
    ladder: &'a Ladder,
    /// What would have been done, each with what was found at that moment. A refusal is the last.
    acts: Vec<(Finding, Action)>,
}

impl<'a> Trial<'a> {
    fn new(rules: &RedundancyRules, ladder: &'a Ladder) -> Self {
        Self { detector: rules.detector(), strikes: Strikes::default(), ladder, acts: Vec::new() }
    }

    fn observe(&mut self, step: &Step<'_>) {
        let found = self.detector.observe(step);
        self.rule(found);
    }

    fn finish(mut self) -> Vec<(Finding, Action)> {
        let found = self.detector.finish();
        self.rule(found);
        self.acts
    }

    fn rule(&mut self, found: Vec<Finding>) {
        for finding in found {
            let ruling = self.strikes.rule(&finding, self.ladder);
            let is_refused = self.acts.last().is_some_and(|(_, action)| *action == Action::Reject);
            if finding.severity == Severity::Loop && !is_refused {
                self.acts.push((finding, ruling.action));
            }
        }
    }
}

/// One recorded step, as far as what is found there is told.
struct Recorded {
    trace_id: TraceId,
    agent: String,
}

fn try_on(
    store: &mut Store,
    detectors: Option<&DetectorsConfig>,
    count: u32,
    tenant: Option<&str>,
) -> Stored<Value> {
    let started = Instant::now();
    let usual = DetectorsConfig::default();
    let config = detectors.unwrap_or(&usual);
    let rules = RedundancyRules::compile(&config.redundancy);
    let (mut fired, mut by_session, mut steps, mut sessions) = (Vec::new(), Vec::new(), 0, 0);
    let (mut would, mut did) = (Map::new(), Map::new());
    for session in store.last_sessions(tenant, count)? {
        if steps >= MAX_STEPS {
            break;
        }
        sessions += 1;
        let mut trial = Trial::new(&rules, &config.ladder);
        let recorded = play(store, session.id, &mut trial)?;
        steps += recorded.len();
        // A policy that does nothing about loops of tools finds them all the same.
        let acts = if detectors.is_some() { trial.finish() } else { Vec::new() };
        let done = store.verdicts(session.id)?;
        let done = done.iter().filter(|verdict| verdict["enforced"] == true);
        let done: Vec<Action> = done.filter_map(|done| Action::parse(done["action"].as_str()?)).collect();
        for action in &done {
            add(&mut did, *action);
        }
        for (_, action) in &acts {
            add(&mut would, *action);
        }
        let strictest = |actions: &mut dyn Iterator<Item = Action>| actions.max().map(Action::as_str);
        if !acts.is_empty() || !done.is_empty() {
            by_session.push(json!({
                "session_id": session.name, "tenant": session.tenant_name, "steps": recorded.len(),
                "would": strictest(&mut acts.iter().map(|(_, action)| *action)),
                "did": strictest(&mut done.iter().copied()),
            }));
        }
        for (finding, action) in acts {
            let at = recorded.get(finding.step);
            fired.push(json!({
                "session_id": session.name, "tenant": session.tenant_name, "step": finding.step + 1,
                "trace_id": at.map(|at| at.trace_id), "agent_id": at.map(|at| &at.agent),
                "kind": finding.kind.as_str(), "count": finding.count, "period": finding.period,
                "message": finding.message, "action": action.as_str(),
            }));
        }
    }
    let took = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(json!({
        "sessions": sessions, "steps": steps, "took_ms": took, "truncated": steps >= MAX_STEPS, "fired": fired,
        "by_session": by_session, "summary": { "would": would, "did": did },
    }))
}

fn add(sums: &mut Map<String, Value>, action: Action) {
    let sum = sums.get(action.as_str()).and_then(Value::as_u64).unwrap_or(0) + 1;
    sums.insert(action.as_str().to_owned(), sum.into());
}

/// Plays the steps of a recorded session; those that have no result yet are left out.
fn play(store: &mut Store, session: i64, trial: &mut Trial<'_>) -> Stored<Vec<Recorded>> {
    let (mut recorded, mut behind) = (Vec::new(), 0);
    let (mut round, mut parent) = (0, None);
    loop {
        let page = store.steps(session, behind, 500)?;
        for mut row in page.rows {
            if row["open"] == true {
                continue;
            }
            let Ok(log) = serde_json::from_value::<DecisionLog>(row["log"].take()) else {
                return Err(StoreError::Corrupt("a stored log is none".to_owned()));
            };
            if log.meta.parent_step_id.is_none() || log.meta.parent_step_id != parent {
                round += 1;
            }
            parent = log.meta.parent_step_id;
            if log.action.tool_call.is_some() && log.action.status != Status::Pending {
                trial.observe(&as_step(&log).in_round(round));
                recorded.push(Recorded { trace_id: log.meta.trace_id, agent: log.identity.agent_id });
            }
        }
        match page.next.and_then(|next| next.parse().ok()) {
            Some(next) if recorded.len() < MAX_STEPS => behind = next,
            _ => return Ok(recorded),
        }
    }
}
