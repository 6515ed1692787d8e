//! The semantic stage: is what is new the same as before in other words?
//!
//! It runs when nothing else has refused the request, waits for no longer than the config says, and whatever fails in
//! it lets the request through.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use loopbreaker::{Action, DetectorName, Kind, RequestCount, Severity};
use loopbreaker_config::{Config, Policy, SemanticHistory, SemanticScope, SemanticTiming, Similarity};
use loopbreaker_dialect::Refusal;
use loopbreaker_embed::{Checker, CheckerOptions, How, Question, Reading, Rule};
use loopbreaker_telemetry::{Check, FindingNote, Part, TraceContext};
use lru::LruCache;
use serde_json::json;

use crate::consider::{Case, Looked};
use crate::delta::everything_said;
use crate::headers::TRACEPARENT;
use crate::pipeline::Worker;
use crate::sessions::SessionKey;
use crate::settings::{Applied, Settings};
use crate::similar::by_meaning;
use crate::verdict::{Proposal, Refused, Seen};

/// Compares deltas, and remembers what was found beside requests that have gone on.
pub(crate) struct Meaning {
    pub(crate) checker: Checker,
    /// What was found out too late for the request that it is about.
    afterthoughts: Mutex<LruCache<SessionKey, Reading>>,
}

impl std::fmt::Debug for Meaning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meaning").finish_non_exhaustive()
    }
}

impl Meaning {
    const MAX_AFTERTHOUGHTS: usize = 10_000;

    /// What the config asks for; `None` when no policy compares anything.
    pub(crate) fn of(config: &Config) -> Result<Option<Self>, String> {
        if !config.policies_in_force().iter().any(compares) {
            return Ok(None);
        }
        let environment = |name: &str| std::env::var(name).ok();
        let options = CheckerOptions::from_config(&config.semantic, &config.detectors.semantic, environment);
        let checker = options.and_then(Checker::new).map_err(|error| error.to_string())?;
        let most = NonZeroUsize::new(Self::MAX_AFTERTHOUGHTS).unwrap_or(NonZeroUsize::MIN);
        Ok(Some(Self { checker, afterthoughts: Mutex::new(LruCache::new(most)) }))
    }

    fn take_afterthought(&self, session: SessionKey) -> Option<Reading> {
        self.afterthoughts.lock().unwrap_or_else(PoisonError::into_inner).pop(&session)
    }

    fn think_again(&self, session: SessionKey, reading: Reading) {
        if reading.severity.is_some() {
            self.afterthoughts.lock().unwrap_or_else(PoisonError::into_inner).put(session, reading);
        }
    }
}

impl Worker {
    /// Compares what a request adds with what was added before, where a policy wants that and nothing has refused the
    /// request yet.
    pub(crate) async fn compare(&self, settings: &Settings, case: &mut Case<'_>, looked: &Looked<'_>) {
        let Some(meaning) = self.shared.meaning() else { return };
        if case.policies.iter().any(|applied| by_meaning(applied).is_some()) {
            Box::pin(self.count_similar(settings, case, looked, &meaning)).await;
        }
        let comparing = case.policies.iter().filter_map(|applied| applied.policy.policy.semantic);
        let Some(threshold) = comparing.map(|policy| policy.threshold).reduce(f64::min) else { return };
        if case.verdict.action == Action::Reject || case.delta.text.is_empty() {
            return;
        }
        let service = &settings.config.semantic;
        let full = match (service.scope, looked.dialect, looked.body) {
            (SemanticScope::Full, Some(dialect), Some(body)) => Some(everything_said(dialect, body)),
            _ => None,
        };
        let is_literal = full.is_some() || service.history == SemanticHistory::Tenant;
        let traceparent = looked.headers.get(TRACEPARENT).and_then(|value| value.to_str().ok());
        let caller = traceparent.and_then(TraceContext::parse);
        let context = self.shared.telemetry.spans.check_context(caller.as_ref());
        let trace = context.map(|context| context.to_string());
        let question = Question {
            tenant: &case.tenant.name,
            session: if service.history == SemanticHistory::Tenant { "" } else { &case.session },
            text: full.as_ref().map_or(&case.delta.text, |full| &full.text),
            results: case.delta.results,
            threshold,
            rule: if is_literal { Rule::Literal } else { case.delta.rule() },
            trace: trace.as_deref(),
        };
        let reading = if service.timing == SemanticTiming::Background {
            beside(&meaning, case.located.key, &question);
            meaning.take_afterthought(case.located.key)
        } else {
            let (at, started) = (SystemTime::now(), Instant::now());
            let reading = Box::pin(meaning.checker.check(&question)).await;
            case.check = context.map(|context| told(context, at, started.elapsed(), &reading));
            Some(reading)
        };
        if let Some(reading) = reading {
            self.weigh(settings, case, &reading, is_literal);
        }
    }

    fn weigh(&self, settings: &Settings, case: &mut Case<'_>, reading: &Reading, is_literal: bool) {
        let metrics = &self.shared.telemetry.metrics;
        match reading.how {
            How::Degraded(_) => {
                case.degraded.insert(Part::Semantic);
                metrics.set_degraded(Part::Semantic, true);
            }
            How::Embedded => metrics.set_degraded(Part::Semantic, false),
            _ => {}
        }
        let count = reading.similar_count as u32 + 1;
        for applied in case.policies.iter() {
            let Some(policy) = applied.policy.policy.semantic else { continue };
            let has_redundancy = applied.policy.policy.tool_loops.is_some();
            let severity = if is_literal {
                // The literal rule asks for nothing but the similarity.
                reading.severity
            } else {
                case.delta.severity(reading, has_redundancy)
            };
            let Some(severity) = severity else { continue };
            if reading.max_similarity <= policy.threshold {
                continue;
            }
            let enforced = applied.enforced && !case.held_out;
            let action = if severity == Severity::Loop { policy.action } else { Action::Warn };
            let proposal = propose(settings, action, count);
            let note = note(applied, severity, count);
            if self.shared.journal().is_some() {
                case.verdict.findings.push(json!({
                    "key": format!("semantic/{}", note.policy),
                    "detector": "semantic", "kind": "semantic", "severity": severity.as_str(),
                    "count": count, "similarity": reading.max_similarity,
                    "message": message(count), "policy": &*note.policy, "mode": note.mode.as_str(),
                    "action": action.as_str(),
                }));
            }
            case.verdict.notes.push(note);
            case.verdict.hear(proposal, &applied.policy.id, enforced);
        }
    }
}

/// A check as spans tell it.
fn told(context: TraceContext, at: SystemTime, took: Duration, reading: &Reading) -> Check {
    let similarity = (reading.max_similarity > 0.0).then_some(reading.max_similarity);
    Check { context, at, took, result: reading.how.name(), reason: reading.how.reason(), similarity }
}

/// Whether a policy compares what is said: to find loops, to count requests, or to give an answer again.
pub(crate) fn compares(policy: &Policy) -> bool {
    let of_cache = policy.cache.as_ref().map(|cache| cache.similarity);
    let of_requests = policy.loop_detection.map(|config| config.similarity);
    policy.semantic.is_some() || [of_cache, of_requests].contains(&Some(Similarity::Semantic))
}

/// Finds out beside the request; the next one of its session hears of it.
fn beside(meaning: &Arc<Meaning>, session: SessionKey, question: &Question<'_>) {
    let meaning = Arc::clone(meaning);
    let (tenant, name, text) =
        (question.tenant.to_owned(), question.session.to_owned(), question.text.to_owned());
    let (results, threshold, rule) = (question.results, question.threshold, question.rule);
    tokio::spawn(async move {
        let (tenant, text) = (&*tenant, &*text);
        let question = Question { tenant, session: &name, text, results, threshold, rule, trace: None };
        let reading = meaning.checker.check_within(&question, BESIDE).await;
        meaning.think_again(session, reading);
    });
}

fn note(applied: &Applied<'_>, severity: Severity, count: u32) -> FindingNote {
    FindingNote {
        kind: Kind::Semantic,
        severity,
        mode: applied.mode(),
        detector: DetectorName::Semantic,
        count,
        period: 1,
        policy: Arc::clone(&applied.policy.id),
    }
}

fn propose(settings: &Settings, action: Action, count: u32) -> Proposal {
    let message = message(count);
    let sentence = settings.config.semantic.message.as_deref().unwrap_or(SENTENCE);
    let held = RequestCount { count, fires: true };
    Proposal {
        action,
        seen: Some(Seen { kind: Kind::Semantic, count: u64::from(count), period: 1 }),
        hint: (action >= Action::Hint).then(|| format!("[Loopbreaker] {sentence} ({message}.)")),
        delay: Duration::from_millis(if action == Action::Throttle { held.delay_millis() } else { 0 }),
        refusal: (action >= Action::Throttle).then(|| Refused {
            code: Refusal::LoopDetected,
            status: settings.config.reject.status,
            message: format!("{message}. Change the approach instead of repeating it."),
            retry_after: Some(60),
            retry: false,
            rate_limit: None,
        }),
    }
}

fn message(count: u32) -> String {
    format!("the same was said {count} times in other words, and nothing new came of it")
}

/// What the design document tells the model.
const SENTENCE: &str = "You seem to be repeating similar requests. Please take a different approach or consider that \
     the previous attempts may have already addressed your question.";
/// Nobody waits for a check beside a request, but it must end.
const BESIDE: Duration = Duration::from_secs(1);
