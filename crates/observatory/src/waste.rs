//! What loops burn: every redundant repeat after the first occurrence is marked in its step and summed up in its session.

use std::collections::VecDeque;

use loopbreaker::{Finding, Fingerprint, Redundancy, RedundancyRules, Severity, Step};
use loopbreaker_record::{DecisionLog, TraceId};
use serde_json::{Value, json};

use crate::error::Stored;
use crate::events::Topic;
use crate::writer::Scribe;

/// Looks at the steps of one session.
#[derive(Debug)]
pub(crate) struct Watch {
    detector: Redundancy,
    /// Which settings it was made with.
    generation: u64,
    /// The last steps that it took in, by their places in the store.
    steps: VecDeque<Seen>,
    /// How many it took in before them.
    before: usize,
    round: u64,
    parent: Option<TraceId>,
    /// Loops that were told.
    told: VecDeque<Fingerprint>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    id: i64,
    trace: TraceId,
    /// It is marked as a redundant repeat: the next finding is about the same steps and one more.
    marked: bool,
}

impl Watch {
    /// Steps that a finding can still be about.
    const KEPT: usize = 96;
    /// Loops of one session that are told once.
    const MAX_TOLD: usize = 64;
    /// Steps that are read again when a session goes on after a restart.
    pub(crate) const READ_AGAIN: u32 = 16;

    fn new(rules: &RedundancyRules, generation: u64) -> Self {
        Self {
            detector: rules.detector(),
            generation,
            steps: VecDeque::new(),
            before: 0,
            round: 0,
            parent: None,
            told: VecDeque::new(),
        }
    }

    /// Takes a call in that has ended; a step without a call is none.
    fn observe(&mut self, id: i64, log: &DecisionLog) -> Vec<Finding> {
        if log.action.tool_call.as_deref().is_none_or(str::is_empty) {
            return Vec::new();
        }
        // Calls of one round share a parent: they were asked for together, and do not repeat each other.
        let parent = log.meta.parent_step_id;
        if parent.is_none() || parent != self.parent {
            self.round += 1;
        }
        self.parent = parent;
        if self.steps.len() >= Self::KEPT {
            self.steps.pop_front();
            self.before += 1;
        }
        self.steps.push_back(Seen { id, trace: log.meta.trace_id, marked: false });
        let mut findings = self.detector.observe(&as_step(log).in_round(self.round));
        if parent.is_none() {
            findings.extend(self.detector.end_round());
        }
        findings
    }

    fn seen(&self, index: usize) -> Option<Seen> {
        self.steps.get(index.checked_sub(self.before)?).copied()
    }

    /// Those of some steps that were not marked before, which they are from now on.
    fn mark(&mut self, steps: impl Iterator<Item = usize>) -> Vec<i64> {
        let places = steps.filter_map(|index| index.checked_sub(self.before));
        let mut new = Vec::new();
        for place in places {
            if let Some(seen) = self.steps.get_mut(place).filter(|seen| !seen.marked) {
                seen.marked = true;
                new.push(seen.id);
            }
        }
        new
    }

    /// Whether this loop has not been told yet.
    fn is_news(&mut self, finding: &Finding) -> bool {
        if self.told.contains(&finding.identity) {
            return false;
        }
        if self.told.len() >= Self::MAX_TOLD {
            self.told.pop_front();
        }
        self.told.push_back(finding.identity);
        true
    }
}

/// A decision as detectors see it.
pub(crate) fn as_step(log: &DecisionLog) -> Step<'_> {
    Step {
        role: loopbreaker::Role::Agent(&log.identity.agent_id),
        tool: log.action.tool_call.as_deref().filter(|tool| !tool.is_empty()),
        args: log.action.tool_input.as_deref(),
        result: log.action.tool_output_summary.as_deref(),
        status: Some(log.action.status.into()),
        ..Step::default()
    }
}

impl Scribe<'_> {
    /// Takes in a call that has ended, as it came and before its words were masked. What it repeats in vain is marked;
    /// what that amounts to is told where nobody else does.
    pub(crate) fn watch(&mut self, session: i64, step: i64, log: &DecisionLog, tells: bool) -> Stored<()> {
        let (rules, generation) = self.shared.thresholds.redundancy();
        let known = self.watches.get(&session).is_some_and(|watch| watch.generation == generation);
        if !known {
            let mut watch = Watch::new(&rules, generation);
            // Hashes do not say what a call did, so what is kept without words is not read again.
            if self.shared.keep_prompts && self.live(session)?.row.steps > 1 {
                let earlier = self.last_logs(session, Watch::READ_AGAIN)?;
                for (id, log) in earlier.iter().filter(|(id, _)| *id < step) {
                    for finding in watch.observe(*id, log) {
                        watch.is_news(&finding);
                    }
                }
            }
            self.watches.put(session, watch);
        }
        let Some(watch) = self.watches.get_mut(&session) else { return Ok(()) };
        let findings = watch.observe(step, log);
        let mut wasted = Vec::new();
        let mut told = Vec::new();
        for finding in findings.iter().filter(|finding| finding.severity == Severity::Loop) {
            // All but the first occurrence.
            wasted.extend(watch.mark(finding.evidence.iter().copied().skip(finding.period)));
            let news = watch.is_news(finding);
            if tells {
                let evidence = finding.evidence.iter().filter_map(|index| watch.seen(*index));
                let traces: Vec<TraceId> = evidence.map(|seen| seen.trace).collect();
                told.push((news, own_finding(finding, &traces)));
            }
        }
        for step in wasted {
            if let Some((tokens, cost)) = self.store.mark_wasted(step)? {
                self.change(session)?.waste(tokens, cost);
            }
        }
        for (news, finding) in told {
            self.store.add_finding(session, self.now, &finding)?;
            if news {
                self.tell_finding(session, &finding)?;
            }
        }
        Ok(())
    }

    pub(crate) fn tell_finding(&mut self, session: i64, finding: &Value) -> Stored<()> {
        let row = &self.live(session)?.row;
        let (tenant, name) = (row.tenant_name.as_str().into(), row.name.clone());
        let body = json!({ "event_type": "finding", "session_id": name, "finding": finding });
        self.tell(Topic::Findings, "finding", &tenant, body);
        Ok(())
    }
}

/// A finding of our own: its evidence by the names of the steps, since places in a window mean nothing to others.
fn own_finding(finding: &Finding, traces: &[TraceId]) -> Value {
    let mut shown = finding_json(finding);
    shown["trace_id"] = json!(traces.last());
    shown["evidence"] = json!(traces);
    for place in ["onset", "step"] {
        shown[place] = Value::Null;
    }
    shown["key"] = loopbreaker_record::TraceId::derived(&[finding.identity.as_bytes()]).to_string().into();
    shown
}

/// A finding as the API and the events show it.
///
/// ```
/// use loopbreaker::{Redundancy, RedundancyConfig, Step};
///
/// let mut detector = Redundancy::new(&RedundancyConfig::default());
/// let step = Step::call("bash", r#"{"command":"ls"}"#).answered("a b", None);
/// let finding = (0..3).filter_map(|_| detector.observe(&step).pop()).last().expect("a loop");
/// assert_eq!(loopbreaker_observatory::finding_json(&finding)["kind"], "repeat");
/// ```
pub fn finding_json(finding: &Finding) -> Value {
    json!({
        "detector": finding.detector.as_str(),
        "kind": finding.kind.as_str(),
        "severity": finding.severity.as_str(),
        "score": finding.score,
        "count": finding.count,
        "period": finding.period,
        "onset": finding.onset,
        "step": finding.step,
        "evidence": finding.evidence,
        "message": finding.message,
        "prevented_by": finding.prevented_by,
    })
}
