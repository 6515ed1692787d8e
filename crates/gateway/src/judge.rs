//! What is thought of a request before it is sent on: every stage is evaluated, then all are combined.

use std::sync::Arc;
use std::time::Duration;

use loopbreaker::{Action, DetectorName, Finding, Kind, RequestCount, Severity, Timestamp};
use loopbreaker_config::{KillSwitch, LoopDetection, ToolLoops};
use loopbreaker_dialect::Refusal;
use loopbreaker_telemetry::{FindingNote, Mode};
use serde_json::{Value, json};

use crate::limits::Keys;
use crate::loops::Ruled;
use crate::route::other_spelling;
use crate::sessions::AfterRefusal;
use crate::settings::{Applied, Settings};
use crate::verdict::{Proposal, Refused, Seen, Verdict};

/// What is known of a request when it is judged.
pub(crate) struct Question<'r> {
    pub(crate) path: &'r str,
    pub(crate) keys: Keys<'r>,
    /// How often it was sent, for each policy that counts it.
    pub(crate) counts: &'r [RequestCount],
    /// What became certain in the newest round of its transcript.
    pub(crate) rulings: &'r [Ruled],
    /// What earlier requests of its session mean for it.
    pub(crate) past: &'r Past,
    /// Whether the session is one in which loops are only observed.
    pub(crate) held_out: bool,
    /// Whether findings are kept with their proof.
    pub(crate) is_kept: bool,
    /// Time of day, for dates in the config.
    pub(crate) today: Timestamp,
}

/// Kill switches and loops; budgets come after it.
pub(crate) struct Judge<'s> {
    pub(crate) settings: &'s Settings,
}

impl Judge<'_> {
    /// Evaluates every stage that needs no budget, and says whether the transcript is refused as it stands.
    pub(crate) fn judge(&self, policies: &[Applied<'_>], question: &Question<'_>) -> (Verdict, bool) {
        let mut verdict = Verdict::allow();
        if let Some(switch) =
            self.settings.config.kill_switches.iter().find(|switch| is_hit(switch, question))
        {
            verdict.combine(killed(switch));
        }
        let past = question.past;
        let mut counts = question.counts.iter().copied();
        let mut refuses = false;
        for applied in policies {
            if let Some(config) = &applied.policy.policy.loop_detection
                && let Some(count) = counts.next().filter(|count| count.fires)
            {
                hear_identical(&mut verdict, applied, config, count, question.held_out, question.is_kept);
            }
            if let Some(config) = &applied.policy.policy.tool_loops {
                let enforced = applied.enforced && !question.held_out;
                for ruled in question.rulings {
                    let proposal = self.rung(config, ruled, enforced.then_some(past));
                    refuses |=
                        enforced && proposal.action == Action::Reject && past.after == AfterRefusal::Judge;
                    let mode = if enforced { Mode::Enforce } else { Mode::Shadow };
                    let note = FindingNote::of(&ruled.finding, mode, Arc::clone(&applied.policy.id));
                    if question.is_kept {
                        verdict.findings.push(kept(&ruled.finding, &note, proposal.action));
                    }
                    verdict.notes.push(note);
                    verdict.hear(proposal, &applied.policy.id, enforced);
                }
            }
        }
        (verdict, refuses)
    }

    /// What the ladder does about one finding; without a past, what it would do.
    fn rung(&self, config: &ToolLoops, ruled: &Ruled, past: Option<&Past>) -> Proposal {
        let finding = &ruled.finding;
        let action = if finding.severity < Severity::Loop || finding.kind == Kind::Retry {
            Action::Warn
        } else if let Some(past) = past {
            past.temper(config.ladder.action(finding, past.strikes_of(ruled)))
        } else {
            config.ladder.action(finding, ruled.strikes)
        };
        let count = RequestCount { count: finding.count as u32, fires: true };
        let left = match past.map(|past| past.after) {
            Some(AfterRefusal::Refuse(left)) => left,
            _ => RETRY_AFTER_SECONDS,
        };
        Proposal {
            action,
            seen: Some(Seen::of(finding)),
            hint: (action >= Action::Hint).then(|| hint(self.settings, &finding.message)),
            delay: Duration::from_millis(if action == Action::Throttle { count.delay_millis() } else { 0 }),
            refusal: (action >= Action::Throttle).then(|| Refused {
                code: Refusal::LoopDetected,
                status: self.settings.config.reject.status,
                message: format!("{}. Change the approach instead of repeating it.", finding.message),
                retry_after: Some(left),
                retry: false,
                rate_limit: None,
            }),
        }
    }
}

/// What earlier requests of a session mean for this one.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    pub(crate) is_first: bool,
    pub(crate) after: AfterRefusal,
    /// Strikes that are kept, by the identity of their loop.
    pub(crate) strikes: Vec<(u128, u32)>,
}

impl Past {
    /// The past of a session that has none.
    pub(crate) const NONE: Self = Self { is_first: true, after: AfterRefusal::Judge, strikes: Vec::new() };

    /// The rung in the light of what came before.
    fn temper(&self, rung: Action) -> Action {
        match self.after {
            AfterRefusal::Refuse(_) => Action::Reject,
            AfterRefusal::LetThrough => rung.min(Action::Hint),
            // A session that was never seen before is hinted once before it is stopped. A throttled call carries the
            // hint and is not stopped.
            AfterRefusal::Judge if self.is_first && rung > Action::Throttle => Action::Hint,
            AfterRefusal::Judge => rung,
        }
    }

    /// The strikes of a loop: those that are kept, which are never fewer than what its transcript shows.
    fn strikes_of(&self, ruled: &Ruled) -> u32 {
        let identity = ruled.finding.identity.short();
        let kept = self.strikes.iter().find(|(known, _)| *known == identity);
        kept.map_or(ruled.strikes, |(_, strikes)| *strikes)
    }
}

/// How long an unchanged transcript is refused.
pub(crate) const RETRY_AFTER_SECONDS: u64 = 60;

/// What is told to the model: the config's own words, or what was seen and what to do instead.
fn hint(settings: &Settings, message: &str) -> String {
    match settings.config.hint.message.as_deref() {
        Some(own) => own.replace("{finding}", message),
        None => format!(
            "[Loopbreaker] You are repeating yourself without progress: {message}. Do not do it again: use what you \
             already know, try something different, or say what keeps you from going on."
        ),
    }
}

/// A finding with its proof, as it is kept. One that goes on stands in place of what it was before.
fn kept(finding: &Finding, note: &FindingNote, action: Action) -> Value {
    let mut kept = loopbreaker_observatory::finding_json(finding);
    kept["key"] = format!("{:032x}/{}", finding.identity.short(), note.policy).into();
    with_policy(kept, note, action)
}

/// A finding that has no more to it than its count.
fn kept_note(note: &FindingNote, action: Action) -> Value {
    let kept = json!({
        "key": format!("{}/{}", note.kind, note.policy),
        "detector": note.detector.as_str(),
        "kind": note.kind.as_str(),
        "severity": note.severity.as_str(),
        "count": note.count,
        "message": format!("the same request was sent {} times", note.count),
    });
    with_policy(kept, note, action)
}

fn with_policy(mut kept: Value, note: &FindingNote, action: Action) -> Value {
    kept["policy"] = (&*note.policy).into();
    kept["mode"] = note.mode.as_str().into();
    kept["action"] = action.as_str().into();
    kept
}

/// A request was sent too often for a policy.
pub(crate) fn hear_identical(
    verdict: &mut Verdict,
    applied: &Applied<'_>,
    config: &LoopDetection,
    count: RequestCount,
    held_out: bool,
    is_kept: bool,
) {
    let enforced = applied.enforced && !held_out;
    let proposal = identical(config, count);
    let note = identical_note(count, applied, enforced);
    if is_kept {
        verdict.findings.push(kept_note(&note, proposal.action));
    }
    verdict.notes.push(note);
    verdict.hear(proposal, &applied.policy.id, enforced);
}

fn identical_note(count: RequestCount, applied: &Applied<'_>, enforced: bool) -> FindingNote {
    FindingNote {
        kind: Kind::IdenticalRequest,
        severity: Severity::Loop,
        mode: if enforced { Mode::Enforce } else { Mode::Shadow },
        detector: DetectorName::IdenticalRequest,
        count: count.count,
        period: 1,
        policy: Arc::clone(&applied.policy.id),
    }
}

fn identical(config: &LoopDetection, count: RequestCount) -> Proposal {
    let seconds = config.config.window_seconds();
    let message = format!(
        "The same request was sent {} times within {seconds} s, and gets the same answer. Change it, or wait.",
        count.count
    );
    let action = config.action;
    Proposal {
        action,
        seen: Some(Seen { kind: Kind::IdenticalRequest, count: u64::from(count.count), period: 1 }),
        hint: (action >= Action::Hint).then(|| format!("[Loopbreaker] {message}")),
        delay: Duration::from_millis(if action == Action::Throttle { count.delay_millis() } else { 0 }),
        refusal: (action >= Action::Throttle).then(|| Refused {
            code: Refusal::LoopDetected,
            status: 429,
            message,
            retry_after: Some(u64::from(seconds)),
            retry: false,
            rate_limit: None,
        }),
    }
}

fn is_hit(switch: &KillSwitch, question: &Question<'_>) -> bool {
    let on_path = switch.path.as_deref().is_none_or(|path| {
        path == question.path || other_spelling(question.path).is_some_and(|other| path == other)
    });
    on_path && switch.is_on(question.today) && question.keys.is(&switch.key, &switch.value)
}

fn killed(switch: &KillSwitch) -> Proposal {
    let reason = switch.reason.as_deref().unwrap_or("no reason was given");
    Proposal {
        action: Action::Reject,
        seen: None,
        hint: None,
        delay: Duration::ZERO,
        refusal: Some(Refused {
            code: Refusal::KillSwitch,
            status: 403,
            message: format!("a kill switch stops this {}: {reason}", switch.key),
            retry_after: None,
            retry: false,
            rate_limit: None,
        }),
    }
}
