//! What loops burn: every redundant repeat after the first occurrence is marked in its step and summed up in its session.
//!
//! Where a gateway has looked for loops in its traffic, only the sessions in which it saw one are looked at again, and those
//! that decide the same again.

use std::collections::VecDeque;

use loopbreaker::{Finding, Fingerprint, Kind, Redundancy, RedundancyRules, Severity, Step};
use loopbreaker_record::{DecisionLog, Status, TraceId};
use serde_json::{Value, json};

use crate::concern::level_of;
use crate::error::Stored;
use crate::events::Topic;
use crate::redact::redact_text;
use crate::store::KeptLog;
use crate::writer::Scribe;

/// Looks at the steps of one session.
#[derive(Debug)]
pub(crate) struct Watch {
    detector: Redundancy,
    /// Which settings it was made with.
    generation: u64,
    /// The last steps that it took in, by their places in the store; words from outside have none.
    steps: VecDeque<Option<Seen>>,
    /// How many it took in before them.
    before: usize,
    round: u64,
    parent: Option<TraceId>,
    /// The last round is over: what comes now is another, whoever its parent is.
    is_closed: bool,
    /// A hash of what the agent was asked last, as far as its answers say so.
    asked: Option<Fingerprint>,
    /// Loops that were told, and how bad they were then.
    told: VecDeque<(Fingerprint, Kind, Severity)>,
}

/// What is found with one more step.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    pub(crate) findings: Vec<Finding>,
    /// It is a call that was made: without a finding, it is progress.
    pub(crate) is_judged: bool,
    /// The steps that were redundant repeats and are not marked as such, by their places in the store.
    wasted: Vec<i64>,
}

impl Watched {
    /// Whether the step itself is one of them, which has no place yet.
    pub(crate) fn is_wasted(&self) -> bool {
        self.wasted.contains(&0)
    }

    /// `loop`, `warning` or `normal`.
    pub(crate) fn level(&self) -> &'static str {
        level_of(&self.findings)
    }
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    /// Its place in the store and in its session; both are 0 until it is stored.
    id: i64,
    number: u64,
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
            is_closed: false,
            asked: None,
            told: VecDeque::new(),
        }
    }

    /// Takes a call in that has ended, and the words of an answer that a gateway passed on.
    ///
    /// `tells` says that its agent wrote the log itself. A gateway says when a round is over; of others nobody knows
    /// whether a sibling comes, so the first child of a step is judged at once, and its siblings are a round behind it.
    fn observe(&mut self, log: &DecisionLog, tells: bool) -> Vec<Finding> {
        let calls = calls(log);
        let has_ended = log.action.status != Status::Pending;
        let step = match answer(log) {
            _ if tells && is_blank(log) => return Vec::new(),
            _ if calls && has_ended => as_step(log),
            Some(answer) if !calls && !tells => answer,
            _ => return Vec::new(),
        };
        let mut findings = Vec::new();
        if !calls {
            findings = self.hear(log);
        }
        // Calls of one round share a parent: they were asked for together, and do not repeat each other.
        let parent = log.meta.parent_step_id;
        let is_first = parent.is_none() || parent != self.parent;
        if is_first || self.is_closed {
            self.round += 1;
        }
        self.parent = parent;
        self.push(Some(Seen { id: 0, number: 0, trace: log.meta.trace_id, marked: false }));
        findings.extend(self.detector.observe(&step.in_round(self.round)));
        self.is_closed = false;
        // An answer without a call is a round of its own.
        if !calls || parent.is_none() || (is_first && tells) {
            findings.extend(self.end_round());
        }
        findings
    }

    /// An answer says what it was asked. New words are no part of a loop: what follows them is not in vain.
    fn hear(&mut self, log: &DecisionLog) -> Vec<Finding> {
        let asked = &log.cognition.intent;
        let says_itself = log.action.tool_output_summary.as_ref().is_some_and(|said| said.starts_with(asked));
        let name = Some(Fingerprint::of_document(asked.as_bytes()));
        if says_itself || name == self.asked {
            return Vec::new();
        }
        self.asked = name;
        self.push(None);
        self.detector.observe(&Step::heard(asked))
    }

    /// Nothing more comes of the last round.
    fn end_round(&mut self) -> Vec<Finding> {
        self.is_closed = true;
        self.detector.end_round()
    }

    fn push(&mut self, seen: Option<Seen>) {
        if self.steps.len() >= Self::KEPT {
            self.steps.pop_front();
            self.before += 1;
        }
        self.steps.push_back(seen);
    }

    /// The last step is stored, and has its places.
    fn stored(&mut self, id: i64, number: u64) {
        if let Some(Some(seen)) = self.steps.back_mut().filter(|seen| seen.is_some_and(|seen| seen.id == 0)) {
            (seen.id, seen.number) = (id, number);
        }
    }

    fn seen(&self, index: usize) -> Option<Seen> {
        self.steps.get(index.checked_sub(self.before)?).copied().flatten()
    }

    /// The steps that loops have repeated in vain and that were not marked before, which they are from now on.
    fn mark(&mut self, findings: &[Finding]) -> Vec<i64> {
        let loops = findings.iter().filter(|finding| finding.severity == Severity::Loop);
        // All but the first occurrence.
        let steps = loops.flat_map(|finding| finding.evidence.iter().copied().skip(finding.period));
        let places = steps.filter_map(|index| index.checked_sub(self.before));
        let mut new = Vec::new();
        for place in places {
            let seen = self.steps.get_mut(place).and_then(Option::as_mut);
            if let Some(seen) = seen.filter(|seen| !seen.marked) {
                seen.marked = true;
                new.push(seen.id);
            }
        }
        new
    }

    /// Whether this loop has not been told yet, or was only a warning.
    fn is_news(&mut self, finding: &Finding) -> bool {
        let Finding { identity, kind, severity, .. } = *finding;
        let known = self.told.iter_mut().find(|told| told.0 == identity && told.1 == kind);
        if let Some((_, _, told)) = known {
            let is_worse = severity > *told;
            *told = severity.max(*told);
            return is_worse;
        }
        if self.told.len() >= Self::MAX_TOLD {
            self.told.pop_front();
        }
        self.told.push_back((identity, kind, severity));
        true
    }

    /// A finding with its steps by their names and by their places in the session: those in a window mean nothing to
    /// others.
    fn named(&self, finding: &Finding) -> Value {
        let steps: Vec<Seen> = finding.evidence.iter().filter_map(|index| self.seen(*index)).collect();
        let place = |index: usize| self.seen(index).map(|seen| seen.number);
        let mut shown = finding_json(finding);
        shown["trace_id"] = json!(steps.last().map(|seen| seen.trace));
        shown["evidence"] = steps.iter().map(|seen| json!(seen.trace)).collect();
        shown["onset"] = json!(place(finding.onset).or(steps.first().map(|seen| seen.number)));
        shown["step"] = json!(place(finding.step));
        let numbers: Vec<u64> = steps.iter().map(|seen| seen.number).collect();
        shown["message"] = redact_text(&with_places(&finding.message, &numbers), true).into();
        // One call may fail again and again and then succeed again and again: these are two.
        let key = TraceId::derived(&[finding.identity.as_bytes(), finding.kind.as_str().as_bytes()]);
        shown["key"] = key.to_string().into();
        shown
    }
}

fn calls(log: &DecisionLog) -> bool {
    log.action.tool_call.as_deref().is_some_and(|tool| !tool.is_empty())
}

/// Whether an agent says nothing of a call but that it went well: who knows whether it was the same as the last.
fn is_blank(log: &DecisionLog) -> bool {
    let is_none = |text: &Option<String>| text.as_deref().is_none_or(|text| text.trim_ascii().is_empty());
    let action = &log.action;
    action.status == Status::Success && is_none(&action.tool_input) && is_none(&action.tool_output_summary)
}

/// A decision as detectors see it.
pub(crate) fn as_step(log: &DecisionLog) -> Step<'_> {
    Step {
        role: loopbreaker::Role::Agent(&log.identity.agent_id),
        tool: log.action.tool_call.as_deref().filter(|tool| !tool.is_empty()),
        args: log.action.tool_input.as_deref(),
        result: result(log),
        status: Some(log.action.status.into()),
        ..Step::default()
    }
}

/// What came of a call. A failure without words is told from a success without words by its status.
fn result(log: &DecisionLog) -> Option<&str> {
    let text = log.action.tool_output_summary.as_deref();
    let is_silent = text.is_none_or(|text| text.trim_ascii().is_empty());
    if is_silent && log.action.status == Status::Failure { Some(log.action.status.as_str()) } else { text }
}

/// The words of an answer without a call, which a gateway writes down as what came of it.
fn answer(log: &DecisionLog) -> Option<Step<'_>> {
    let said = log.action.tool_output_summary.as_deref().filter(|_| log.action.status == Status::Success)?;
    Some(Step { role: loopbreaker::Role::Agent(&log.identity.agent_id), ..Step::said(said) })
}

impl Scribe<'_> {
    /// Takes in a call that has ended, as it came and before its words were masked. Steps that are stored from `behind`
    /// on are not before it.
    pub(crate) fn observe(
        &mut self,
        session: i64,
        behind: i64,
        log: &DecisionLog,
        tells: bool,
    ) -> Stored<Watched> {
        if !tells && self.shared.traffic_is_judged && !self.watches.contains(&session) {
            return Ok(Watched::default());
        }
        if !self.is_watched(session) {
            self.watch(session, behind, Watch::READ_AGAIN, tells)?;
        }
        let Some(watch) = self.watches.get_mut(&session) else { return Ok(Watched::default()) };
        let has_run = matches!(log.action.status, Status::Success | Status::Failure);
        let is_judged = calls(log) && has_run && !is_blank(log);
        let findings = watch.observe(log, tells);
        let wasted = watch.mark(&findings);
        Ok(Watched { findings, is_judged, wasted })
    }

    /// There may be a loop in the traffic of a gateway: what was in vain before the step `behind` is marked, and what comes
    /// is looked at.
    pub(crate) fn look_back(&mut self, session: i64, behind: i64) -> Stored<()> {
        if !self.shared.traffic_is_judged || self.is_watched(session) {
            return Ok(());
        }
        let findings = self.watch(session, behind, Watch::KEPT as u32, false)?;
        let Some(watch) = self.watches.get_mut(&session) else { return Ok(()) };
        let wasted = watch.mark(&findings);
        self.note_waste(session, wasted.into_iter())
    }

    /// Whether a session is looked at, with the settings of now.
    fn is_watched(&mut self, session: i64) -> bool {
        let generation = self.shared.thresholds.redundancy().1;
        self.watches.get(&session).is_some_and(|watch| watch.generation == generation)
    }

    /// Begins to look at a session, as if its last steps before `behind` had just been taken; says what is found there.
    fn watch(&mut self, session: i64, behind: i64, last: u32, tells: bool) -> Stored<Vec<Finding>> {
        let (rules, generation) = self.shared.thresholds.redundancy();
        let mut watch = Watch::new(&rules, generation);
        let mut found = Vec::new();
        // Hashes do not say what a call did, so what is kept without words is not read again.
        if self.shared.keep_prompts && self.live(session)?.row.steps > 0 {
            let earlier = self.last_logs(session, last)?;
            for KeptLog { id, number, log } in earlier.into_iter().filter(|kept| kept.id < behind) {
                let findings = watch.observe(&log, tells);
                watch.stored(id, number);
                for finding in &findings {
                    watch.is_news(finding);
                }
                found.extend(findings);
            }
        }
        self.watches.put(session, watch);
        Ok(found)
    }

    /// What was found with a step that is stored by now: what it shows to have been in vain is marked, and what that
    /// amounts to is told where nobody else does.
    pub(crate) fn note_found(
        &mut self,
        session: i64,
        (step, number): (i64, u64),
        watched: &Watched,
        tells: bool,
    ) -> Stored<()> {
        if let Some(watch) = self.watches.get_mut(&session) {
            watch.stored(step, number);
        }
        self.note_waste(session, watched.wasted.iter().copied().filter(|step| *step != 0))?;
        self.tell_found(session, &watched.findings, tells)
    }

    /// A step that is not looked at, since it has no result yet or was refused: what it does not stand beside is over.
    pub(crate) fn leave_round(&mut self, session: i64, next: &DecisionLog, tells: bool) -> Stored<()> {
        let Some(watch) = self.watches.get(&session) else { return Ok(()) };
        let may_be_beside = next.action.status == Status::Pending && next.meta.parent_step_id.is_some();
        if may_be_beside && next.meta.parent_step_id == watch.parent {
            return Ok(());
        }
        self.end_round(session, tells)
    }

    /// Judges the last round of a session, of which nothing more comes.
    pub(crate) fn end_round(&mut self, session: i64, tells: bool) -> Stored<()> {
        let Some(watch) = self.watches.get_mut(&session) else { return Ok(()) };
        let findings = watch.end_round();
        let wasted = watch.mark(&findings);
        self.note_waste(session, wasted.into_iter())?;
        self.tell_found(session, &findings, tells)
    }

    /// Marks steps as redundant repeats, and adds up what they burned.
    pub(crate) fn note_waste(&mut self, session: i64, steps: impl Iterator<Item = i64>) -> Stored<()> {
        for step in steps {
            if let Some((tokens, cost)) = self.store.mark_wasted(step)? {
                self.change(session)?.waste(tokens, cost);
            }
        }
        Ok(())
    }

    fn tell_found(&mut self, session: i64, findings: &[Finding], tells: bool) -> Stored<()> {
        let Some(watch) = self.watches.get_mut(&session) else { return Ok(()) };
        let mut told = Vec::new();
        for finding in findings {
            let news = watch.is_news(finding);
            if tells {
                told.push((news, watch.named(finding)));
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
        self.tell(Topic::Findings, "finding", &tenant, &body);
        Ok(())
    }
}

/// A message with its steps as the session counts them; a detector counts those that it took in, from 0 on.
fn with_places(message: &str, steps: &[u64]) -> String {
    /// Of more than these the first and the last are named.
    const SHOWN: usize = 8;
    let Some((what, listed)) = message.rsplit_once(" (steps ") else { return message.to_owned() };
    if !listed.ends_with(')') || steps.is_empty() {
        return message.to_owned();
    }
    let listed = |steps: &[u64]| steps.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let steps = if steps.len() > SHOWN {
        format!("{}, …, {}", listed(&steps[..4]), listed(&steps[steps.len() - 3..]))
    } else {
        listed(steps)
    };
    format!("{what} (steps {steps})")
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
        // As `replay` and the library write it: whoever compares two of them need not know who said which.
        "identity": finding.identity.to_string(),
        "message": finding.message,
        "prevented_by": finding.prevented_by,
    })
}

#[cfg(test)]
mod tests {
    use loopbreaker::{Redundancy, RedundancyConfig, Step};

    use super::{finding_json, with_places};

    #[test]
    fn a_loop_has_the_identity_that_the_library_gives_it() {
        let mut detector = Redundancy::new(&RedundancyConfig::default());
        let step = Step::call("read", r#"{"p":1}"#).answered("same", None);
        let finding = (0..3).filter_map(|_| detector.observe(&step).pop()).last().unwrap();
        assert_eq!(finding_json(&finding)["identity"], finding.identity.to_string());
    }

    #[test]
    fn the_steps_of_a_message_are_those_of_the_session() {
        assert_eq!(
            with_places("`a (steps b` again (steps 0, 1)", &[4, 6]),
            "`a (steps b` again (steps 4, 6)"
        );
        let many: Vec<u64> = (1..=9).collect();
        assert_eq!(with_places("x (steps 0, …)", &many), "x (steps 1, 2, 3, 4, …, 7, 8, 9)");
        assert_eq!(with_places("a chant", &[1]), "a chant");
    }
}
