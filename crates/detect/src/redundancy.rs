//! `redundancy`: no progress. The detector that fires on redundancy, never on mere repetition.
//!
//! One step comes in, its print is compared with the prints of the last 64, and what repeats without progress goes
//! out as a finding. Each kind of loop is a file of its own; this one is the path of a step through them.

mod carried;
mod chant;
mod churn;
mod cycle;
mod frame;
mod label;
mod message;
mod monologue;
mod oscillation;
pub(crate) mod patience;
mod print;
mod repeat;
pub(crate) mod rules;
mod sighting;
mod standstill;
mod vocabulary;
mod window;

use std::sync::Arc;

pub use chant::Chant;
pub use rules::RedundancyRules;

use crate::config::{Effect, RedundancyConfig};
use crate::finding::{Finding, Kind, Severity};
use crate::fingerprint::{Fingerprint, with_call};
use crate::outcome::{Compared, Outcome};
use crate::step::Step;
use frame::{Edges, Frame};
use print::{Form, Print};
use rules::{Rules, what_counts};
use sighting::{Rule, Sighting};
use window::Window;

/// Sees when the same call gives the same outcome again and nothing that it reads was changed in between.
///
/// ```
/// use loopbreaker::{Kind, Redundancy, RedundancyConfig, Severity, Step};
///
/// let mut detector = Redundancy::new(&RedundancyConfig::default());
/// let test = Step::call("bash", r#"{"command":"cargo test"}"#).answered("1 failed", None);
/// let edit = Step::call("edit_file", r#"{"path":"a.rs","old":"x","new":"y"}"#).answered("ok", None);
///
/// assert!(detector.observe(&test).is_empty());
/// assert!(detector.observe(&edit).is_empty());
/// assert!(detector.observe(&test).is_empty(), "running the tests after an edit is work");
/// detector.observe(&test);
/// let findings = detector.observe(&test);
/// assert_eq!(findings[0].severity, Severity::Loop, "running them again with no edit is a loop");
/// ```
#[derive(Debug, Clone)]
pub struct Redundancy {
    rules: Arc<Rules>,
    window: Window,
    /// What stands around every result.
    frame: Frame,
    /// Index of the next step.
    next: usize,
    /// The last round that was seen, counted by ourselves: steps without a round have one too.
    round: u64,
    /// What the caller calls it.
    named_round: Option<u64>,
    /// Whether the agent has done something in it that was not looked at as a sequence yet.
    acted: bool,
    /// Whether a text of it was answered with new words.
    heard: bool,
    /// What was seen of the steps of the round so far.
    seen: Vec<Finding>,
    /// How bad the repeat was that was told of the steps of a cycle under way.
    told: Option<Severity>,
}

impl Redundancy {
    /// A detector for one session.
    pub fn new(config: &RedundancyConfig) -> Self {
        Self::with_rules(Rules::compile(config))
    }

    /// A detector for one session, with settings that were compiled before.
    pub(crate) fn with_rules(rules: Arc<Rules>) -> Self {
        Self {
            rules,
            window: Window::default(),
            frame: Frame::default(),
            next: 0,
            round: 0,
            named_round: None,
            acted: false,
            heard: false,
            seen: Vec::new(),
            told: None,
        }
    }

    /// Takes one step in and says what became certain with it.
    ///
    /// Steps of one round come one after the other, and are judged together when the next round starts (or
    /// [`end_round`](Self::end_round) says so); a step without a round is one of its own. A round number that was seen
    /// before rolls back to it, since the provider plays it again.
    pub fn observe(&mut self, step: &Step<'_>) -> Vec<Finding> {
        self.observe_and_tell(step).0
    }

    /// [`observe`](Self::observe), and what was read of the step's result, for whoever would have to read it again.
    ///
    /// ```
    /// use loopbreaker::{Redundancy, RedundancyConfig, Step};
    ///
    /// let mut detector = Redundancy::new(&RedundancyConfig::default());
    /// let step = Step::call("cat", r#"{"path":"a"}"#).answered("Error: no such file or directory", None);
    /// let (_, outcome) = detector.observe_and_tell(&step);
    /// assert!(outcome.failed());
    /// ```
    pub fn observe_and_tell(&mut self, step: &Step<'_>) -> (Vec<Finding>, Outcome) {
        // All of a round is read by what the rounds before it have taught.
        if !self.goes_on(step) {
            self.frame.learn(&mut self.window, self.next);
        }
        let mut edges = Edges::default();
        let outcome = self.read_with_edges(step, &mut edges);
        (self.take_in(step, outcome, &edges), outcome)
    }

    /// Reads a step's result: the part of the work that grows with its length, which may be done elsewhere.
    pub fn read(&self, step: &Step<'_>) -> Outcome {
        self.read_with_edges(step, &mut Edges::default())
    }

    /// [`observe`](Self::observe) with the result already read. What stands around results is learnt by `observe` alone.
    pub fn observe_read(&mut self, step: &Step<'_>, outcome: Outcome) -> Vec<Finding> {
        self.take_in(step, outcome, &Edges::default())
    }

    /// Reads a step's result, and notes the lines at both ends of it.
    fn read_with_edges(&self, step: &Step<'_>, edges: &mut Edges) -> Outcome {
        Outcome::read(step, self.rules.normaliser(step.tool), |normal| match step.tool {
            Some(_) => self.frame.take_off(normal, edges),
            None => Compared::default(),
        })
    }

    fn take_in(&mut self, step: &Step<'_>, outcome: Outcome, edges: &Edges) -> Vec<Finding> {
        let index = self.next;
        self.next += 1;
        let mut findings = Vec::new();
        // A call that never ran taught the agent nothing, and one that we blocked must not feed its own alarm.
        if outcome.facts.prevented && step.tool.is_some() {
            return findings;
        }
        self.enter_round(step, &mut findings);
        let (mut print, words) = Print::of(step, outcome, &self.rules);
        print.index = index;
        (print.round, print.named_round) = (self.round, self.named_round);
        match print.form {
            Form::Outside => {
                self.told = None;
                let heard = self.window.has_heard(&print);
                self.window.ask_again(heard);
                if !heard {
                    self.window.start_afresh(index);
                }
                self.window.push(print, self.rules.window());
            }
            Form::Compaction => self.window.start_afresh(index),
            Form::Call | Form::Text => {
                print.words = self.window.vocabulary.keep(&words);
                self.frame.note(&print, step.args.unwrap_or_default(), edges);
                if print.form == Form::Text {
                    print.answers = self.window.says_to(&print);
                }
                self.judge(&mut print, step, &mut findings);
                // What answers a text comes from outside.
                let reply =
                    (print.form == Form::Text && print.outcome.result != 0).then_some(print.outcome.result);
                let is_news = |reply| !self.window.has_reply(reply) && !self.window.is_only_refusal(&print);
                let heard = reply.is_some_and(is_news);
                self.window.push(print, self.rules.window());
                self.acted = true;
                self.heard |= heard;
                if step.round.is_none() {
                    self.close_round(&mut findings);
                }
            }
        }
        findings
    }

    /// What is known of a call before it is made: whether it would be one more redundant repeat.
    pub fn foresee(&self, tool: &str, args: Option<&str>) -> Option<Foresight> {
        let keep = what_counts(self.rules.profile(tool));
        self.foresee_call(&with_call(tool, args, keep, |call, _| call))
    }

    /// [`foresee`](Self::foresee) with the fingerprint of the call at hand, which is the one that counts where the call says
    /// nothing about itself and its tool has no loop key.
    pub(crate) fn foresee_known(
        &self,
        tool: &str,
        args: Option<&str>,
        (call, has_remarks): (&Fingerprint, bool),
    ) -> Option<Foresight> {
        let keyed = self.rules.profile(tool).is_some_and(|profile| !profile.loop_key.is_empty());
        if keyed || has_remarks { self.foresee(tool, args) } else { self.foresee_call(call) }
    }

    fn foresee_call(&self, call: &Fingerprint) -> Option<Foresight> {
        // The rules look back from the last time that it was made; a change since then cuts their counts short.
        let last =
            self.window.newest_first().find(|print| print.call == *call && print.form == Form::Call)?;
        let next_in_cycle = || {
            let cycle = cycle::cycle(&self.window)?;
            let next = self.window.sequence().nth(cycle.period - 1)?;
            (next.call == *call).then_some(cycle)
        };
        let again =
            [repeat::repeat(&self.window, last), repeat::failing_repeat(&self.window, last), next_in_cycle()];
        let loops = again.into_iter().flatten().filter(|sighting| sighting.severity == Severity::Loop);
        let sighting = Sighting::strongest(loops)?;
        Some(Foresight {
            kind: sighting.rule.kind,
            count: sighting.count as u32,
            threshold: sighting.rule.looping as u32,
        })
    }

    /// The round is complete, says a caller who knows: what was seen in it comes now, and not with the next round.
    ///
    /// ```
    /// use loopbreaker::{Redundancy, RedundancyConfig, Step};
    ///
    /// let mut detector = Redundancy::new(&RedundancyConfig::default());
    /// let step = Step::call("bash", r#"{"command":"ls"}"#).answered("a b", None);
    /// for round in 0..2 {
    ///     assert!(detector.observe(&step.in_round(round)).is_empty(), "more of this round may come");
    ///     assert_eq!(detector.end_round().len(), round as usize);
    /// }
    /// ```
    pub fn end_round(&mut self) -> Vec<Finding> {
        let mut findings = Vec::new();
        self.close_round(&mut findings);
        findings
    }

    /// No more steps will come: says what was only waiting for the end of a round.
    pub fn finish(&mut self) -> Vec<Finding> {
        let mut findings = Vec::new();
        self.close_round(&mut findings);
        findings
    }

    /// Forgets everything, as for a new session.
    pub fn reset(&mut self) {
        self.window.clear();
        self.frame.clear();
        self.acted = false;
        self.heard = false;
        self.seen.clear();
        self.told = None;
    }

    /// How many steps it has taken in.
    pub const fn steps(&self) -> usize {
        self.next
    }

    /// Whether new words from outside, or a compaction, came after this step: what was found there is past.
    ///
    /// ```
    /// use loopbreaker::{Redundancy, RedundancyConfig, Step};
    ///
    /// let mut detector = Redundancy::new(&RedundancyConfig::default());
    /// detector.observe(&Step::call("bash", r#"{"command":"ls"}"#).answered("a b", None));
    /// assert!(!detector.has_news_since(0));
    /// detector.observe(&Step::heard("Look at the other folder."));
    /// assert!(detector.has_news_since(0));
    /// ```
    pub const fn has_news_since(&self, step: usize) -> bool {
        self.window.fresh_from() > step
    }

    /// How many bytes it holds, itself included.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.window.bytes() + self.frame.bytes()
    }

    /// Whether a step belongs to the round that is under way.
    fn goes_on(&self, step: &Step<'_>) -> bool {
        self.acted && step.round.is_some() && step.round == self.named_round
    }

    fn enter_round(&mut self, step: &Step<'_>, findings: &mut Vec<Finding>) {
        if self.goes_on(step) {
            return;
        }
        self.close_round(findings);
        let seen = |print: &&Print| step.round.is_some() && print.named_round == step.round;
        let played_again = self.window.newest_first().find(seen).map(|print| print.round);
        if let Some(round) = played_again {
            self.window.roll_back(round);
        }
        self.window.forget_beyond(self.rules.window());
        self.round += 1;
        self.named_round = step.round;
    }

    /// Compares a step with the rounds before its own.
    fn judge(&mut self, print: &mut Print, step: &Step<'_>, findings: &mut Vec<Finding>) {
        let window = &self.window;
        if let Some(chant) = step.thought.and_then(Chant::of) {
            let sighting = Sighting {
                rule: Rule::new("chant", Kind::Chant, chant.copies, chant.copies),
                severity: Severity::Loop,
                count: chant.copies,
                period: 1,
                identity: chant.identity,
                evidence: vec![print.index],
            };
            findings.push(sighting.into_finding(step, print.index));
        }
        print.outcome.facts.in_progress |= looks_after_a_wait(window, print) || window.is_asked_again(print);
        print.again = window.has_call(print);
        print.old = print.again && window.has_step(print);
        print.news = !print.again && is_answered_well(print);
        print.fresh_write = changes_something(window, print);
        print.returned = oscillation::returns(window, print);
        let exact = [
            repeat::repeat(window, print),
            repeat::failing_repeat(window, print),
            repeat::unknown_tool(window, print),
            cycle::sweep(window, print),
            oscillation::oscillation(window, print),
        ];
        let mut best = Sighting::strongest(exact.into_iter().flatten());
        if print.form == Form::Call && print.outcome.facts.transient {
            // Back-off is no loop, however alike its attempts are; only what was put aside again and again may be one.
            let waits = [repeat::retry(window, print), churn::put_aside(window, print)];
            best = Sighting::strongest(best.into_iter().chain(waits.into_iter().flatten()));
        } else if best.as_ref().is_none_or(|best| best.severity < Severity::Loop) {
            // What is near-equal names a loop less well, so it is looked for only where there is none yet.
            let near = [
                churn::failing(window, print),
                churn::one_answer(window, print),
                churn::whatever_asked(window, print),
                churn::same_question(window, print),
                churn::put_aside(window, print),
                churn::nothing_found(window, print),
                churn::plans_only(window, print),
                standstill::standstill(window, print),
                monologue::monologue(window, print),
            ];
            best = Sighting::strongest(best.into_iter().chain(near.into_iter().flatten()));
        }
        if let Some(best) = best.as_mut().filter(|_| print.outcome.facts.trimmed) {
            repeat::seen_within_a_frame(best, print);
        }
        print.talks = best
            .as_ref()
            .is_some_and(|best| best.rule.kind == Kind::Monologue && best.severity == Severity::Loop);
        self.seen.extend(best.map(|best| best.into_finding(step, print.index)));
    }

    /// The cycle that the last steps are.
    fn cycle(&self) -> Option<Finding> {
        let mut cycle = cycle::cycle(&self.window)?;
        if let Some(print) =
            self.window.sequence().take(cycle.period).find(|print| print.outcome.facts.trimmed)
        {
            repeat::seen_within_a_frame(&mut cycle, print);
        }
        let last = cycle.evidence.last().copied().unwrap_or_default();
        let tools = cycle::tools(&self.window, cycle.period);
        Some(cycle.into_finding(&Step { tool: Some(&tools), ..Step::default() }, last))
    }

    /// The last round is complete: looks at it as part of a sequence.
    ///
    /// The steps of a cycle are no loops of their own, or one loop would have many names. While a cycle is under way,
    /// one of its repeats is told, which need not wait for the cycle to be complete; then the cycle itself.
    fn close_round(&mut self, findings: &mut Vec<Finding>) {
        if !std::mem::take(&mut self.acted) {
            return;
        }
        if std::mem::take(&mut self.heard) {
            self.window.start_afresh(self.window.end());
        }
        self.window.settle_last_round();
        self.frame.learn(&mut self.window, self.next);
        let mut seen = std::mem::take(&mut self.seen);
        // What an agent says beside a call is no answer without one.
        if self.window.called_in_last_round() {
            seen.retain(|finding| finding.kind != Kind::Monologue);
        }
        keep_one_of_each_identity(&mut seen);
        if let Some(cycle) = self.cycle() {
            // Between two copies, what else is told of the step says more.
            let is_told = |finding: &Finding| finding.severity == Severity::Loop && !is_told_once(finding);
            if !(cycle.is_between_copies() && seen.iter().any(is_told)) {
                seen.retain(|finding| !may_be_part_of_cycle(finding) || finding.severity > cycle.severity);
                findings.push(cycle);
            }
        }
        if cycle::is_under_way(&self.window) {
            // Of several, the strongest; the identity only settles which of equally strong ones it is.
            let weight = |finding: &&Finding| (finding.severity, finding.count, finding.identity);
            let strongest = seen.iter().filter(|finding| is_told_once(finding)).max_by_key(weight);
            let news = strongest.filter(|finding| Some(finding.severity) > self.told).cloned();
            seen.retain(|finding| !is_told_once(finding));
            self.told = news.as_ref().map(|finding| finding.severity).or(self.told);
            seen.extend(news);
        } else {
            self.told = None;
        }
        findings.append(&mut seen);
        // The buffer is kept, so that a round without findings allocates nothing.
        self.seen = seen;
    }
}

/// Calls of one round that are alike are one occurrence, so they are one finding: the strongest, whatever their order.
fn keep_one_of_each_identity(seen: &mut Vec<Finding>) {
    let weight = |finding: &Finding| (finding.severity, sighting::rank(finding.kind), finding.count);
    let mut at = 1;
    while at < seen.len() {
        match seen[..at].iter().position(|finding| finding.identity == seen[at].identity) {
            Some(known) => {
                let other = seen.remove(at);
                if weight(&other) > weight(&seen[known]) {
                    seen[known] = other;
                }
            }
            None => at += 1,
        }
    }
}

/// Whether a finding is about a step that a cycle may be made of.
const fn may_be_part_of_cycle(finding: &Finding) -> bool {
    matches!(finding.kind, Kind::Repeat | Kind::FailingRepeat | Kind::Churn)
}

/// Whether it is told only once while a cycle is under way, which names the loop better. A call that fails again is told
/// each time.
const fn is_told_once(finding: &Finding) -> bool {
    matches!(finding.kind, Kind::Repeat | Kind::Churn)
}

/// Whether the agent looks at something right after it waited: a wait and a look are a poll in two steps. A wait tells
/// next to nothing; what tells more is a look of its own.
fn looks_after_a_wait(window: &Window, print: &Print) -> bool {
    let looks = print.form == Form::Call && !print.is_write() && !print.does.moves && !print.does.notes;
    let waited = |last: &Print| {
        last.does.effect == Some(Effect::Poll) && last.outcome.facts.brief && last.call != print.call
    };
    looks && window.earlier(print).next().is_some_and(waited)
}

/// Whether a call was answered, and went well.
fn is_answered_well(print: &Print) -> bool {
    let facts = print.outcome.facts;
    print.form == Form::Call && facts.known && !facts.failed && !facts.maybe_failed
}

/// Whether a step changed something by a call that had not been made before: a known write, or one whose effect is
/// not known. A command that changes something and is answered in a new way has done it once more. Moving to another
/// place changes what is seen from there each time, unless it tells at length what the same move has told before.
fn changes_something(window: &Window, print: &Print) -> bool {
    let facts = print.outcome.facts;
    let may_write = matches!(print.does.effect, Some(Effect::Write) | None);
    let been_there = || !facts.brief && window.has_step(print);
    let goes_on = || {
        let command = print.does.command && print.is_write() && is_answered_well(print);
        command && !facts.empty && !facts.acknowledged && !window.has_step(print)
    };
    (print.news && may_write)
        || (print.again && goes_on())
        || (print.does.moves && !facts.failed && !been_there())
}

/// A call that would be one more redundant repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foresight {
    /// In which way.
    pub kind: Kind,
    /// How often it, or the cycle that it continues, has been seen already.
    pub count: u32,
    /// From how many on that is a loop.
    pub threshold: u32,
}

#[cfg(test)]
mod tests;
