//! From the bytes of a request to its verdict: who calls, what the body says, what is thought of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderValue};
use loopbreaker::{Action, Step, Timestamp};
use loopbreaker_budget::{Family, estimate_tokens};
use loopbreaker_config::{Dialect as Provider, Subject};
use loopbreaker_dialect::{Dialect, Facts};
use loopbreaker_telemetry::{Degraded, Part, Record, Resume, TraceContext};

use crate::delta::Delta;
use crate::identical::Attempt;
use crate::identity::{Caller, Tenant};
use crate::inspect::{Inspection, Reader};
use crate::journal::{Entry, Heard, Journal, Judged, Thought, Who};
use crate::judge::{Judge, Question};
use crate::limits::{Charges, Estimate, Keys};
use crate::route::{is_streamed_by_path, model_in_path};
use crate::sessions::{Located, RunName, SessionKey};
use crate::settings::{Applied, Settings};
use crate::state::{Shared, today};
use crate::transcripts::Transcript;
use crate::verdict::Verdict;

/// A request as it is looked at.
pub(crate) struct Looked<'r> {
    pub(crate) method: &'r str,
    pub(crate) path: &'r str,
    pub(crate) query: &'r str,
    pub(crate) headers: &'r HeaderMap,
    /// Whose API it is for.
    pub(crate) provider: Provider,
    pub(crate) dialect: Option<Dialect>,
    /// The body, decoded; `None` when it cannot be read.
    pub(crate) body: Option<&'r Bytes>,
}

/// What is known and thought of a request.
pub(crate) struct Case<'s> {
    pub(crate) tenant: Tenant,
    pub(crate) agent: Arc<str>,
    /// The session's name, as it is told to everyone.
    pub(crate) session: Arc<str>,
    pub(crate) located: Located,
    /// The session as people name it, and the one whose pause and budget hold for it.
    pub(crate) run: RunName,
    pub(crate) account: RunName,
    pub(crate) account_name: Arc<str>,
    pub(crate) tip: u128,
    pub(crate) model: Option<Box<str>>,
    pub(crate) facts: Arc<Facts>,
    pub(crate) policies: Vec<Applied<'s>>,
    pub(crate) verdict: Verdict,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) charges: Charges<'s>,
    pub(crate) estimate: Estimate,
    pub(crate) degraded: Degraded,
    pub(crate) inspection: Option<Inspection>,
    /// The place in the transcript of what the answer will add.
    pub(crate) position: usize,
    /// Steps that were not known before, where they are written down.
    pub(crate) heard: Vec<Heard>,
    /// What is new, where it is compared with what was said before.
    pub(crate) delta: Delta,
    /// Whether the session is one in which loops are only observed.
    pub(crate) held_out: bool,
    /// The loop state of a client that will name this answer instead of repeating what led to it.
    pub(crate) thread: Option<Box<Transcript>>,
    pub(crate) now: Timestamp,
}

impl Case<'_> {
    /// Keeps the transcript: the next request goes on from it, whatever becomes of this one.
    pub(crate) fn keep_transcript(&mut self, shared: &Shared, dialect: Option<Dialect>) {
        if let Some(inspection) = self.inspection.take() {
            self.thread = inspection.keep(&shared.transcripts, dialect == Some(Dialect::Responses));
        }
    }

    /// Whose request it is.
    pub(crate) fn who(&self, dialect: Option<Dialect>, at: SystemTime) -> Who {
        Who {
            tenant: Arc::clone(&self.tenant.name),
            session: Arc::clone(&self.session),
            key: self.located.key,
            agent: Arc::clone(&self.agent),
            model: self.model.clone(),
            dialect,
            at,
        }
    }

    /// Writes down what the transcript shows that is new, and what was thought of it.
    pub(crate) fn write_down(&mut self, journal: &Journal, dialect: Option<Dialect>, at: SystemTime) {
        if dialect.is_none() {
            return;
        }
        let who = self.who(dialect, at);
        if !self.heard.is_empty() {
            journal.tell(Entry::Heard(who.clone(), std::mem::take(&mut self.heard)));
        }
        let verdict = &mut self.verdict;
        let thought = match &verdict.would {
            Some(would) if verdict.action == Action::Allow => Thought {
                action: would.action,
                enforced: false,
                policy: Some(Arc::clone(&would.policy)),
                kind: Some(would.kind.as_str()),
                message: None,
            },
            _ => Thought {
                action: verdict.action,
                enforced: true,
                policy: verdict.policy.clone(),
                kind: match (&verdict.seen, &verdict.refusal) {
                    (Some(seen), _) => Some(seen.kind.as_str()),
                    (None, Some(refused)) => Some(refused.code.code()),
                    (None, None) => None,
                },
                message: verdict.refusal.as_ref().map(|refused| refused.message.clone()),
            },
        };
        let findings = std::mem::take(&mut verdict.findings);
        journal.tell(Entry::Judged(who, Judged { findings, verdict: Some(thought) }));
    }

    /// What is told of the request, as far as it is known before it is sent.
    pub(crate) fn record(&self, looked: &Looked<'_>, at: SystemTime, upstream: &Arc<str>) -> Record {
        use loopbreaker_telemetry::Dialect as Told;
        let traceparent = looked.headers.get("traceparent").and_then(|value| value.to_str().ok());
        Record {
            at,
            tenant: Arc::clone(&self.tenant.name),
            tenant_class: self.tenant.class,
            agent: Arc::clone(&self.agent),
            session: Arc::clone(&self.session),
            dialect: match looked.dialect {
                Some(Dialect::Chat) => Told::Chat,
                Some(Dialect::Responses) => Told::Responses,
                Some(Dialect::Anthropic) => Told::Anthropic,
                Some(Dialect::Gemini) => Told::Gemini,
                None => Told::Other,
            },
            method: looked.method.to_owned().into(),
            path: looked.path.into(),
            model: self.model.clone(),
            upstream: Arc::clone(upstream),
            stream: self.facts.stream || is_streamed_by_path(looked.path),
            ids: traceparent.and_then(TraceContext::parse),
            ..Record::default()
        }
    }

    /// Whether the client may be told about the verdict: not when every policy that looks at it is in shadow.
    pub(crate) fn is_told(&self) -> bool {
        self.policies.is_empty() || self.policies.iter().any(|applied| applied.enforced)
    }
}

/// Looks at a request. Whatever fails in here, the request goes on: a bug of ours is no reason to stop an agent.
pub(crate) fn consider<'s>(shared: &Shared, settings: &'s Settings, looked: &Looked<'_>) -> Case<'s> {
    let trusted =
        shared.trusts_tenant_header.load(Ordering::Relaxed) || settings.config.admin.trust_tenant_header;
    let header = trusted.then_some(&*settings.config.admin.tenant_header);
    let caller = Caller::of(looked.headers, looked.query, header, looked.provider);
    let mut case = Case {
        tenant: shared.tenants.of(&caller),
        agent: caller.agent().into(),
        session: Arc::default(),
        located: Located { key: SessionKey(0), account: SessionKey(0), is_new: true },
        run: RunName::of("", ""),
        account: RunName::of("", ""),
        account_name: Arc::default(),
        tip: 0,
        model: model_in_path(looked.path).map(Into::into),
        facts: Arc::default(),
        policies: Vec::new(),
        verdict: Verdict::allow(),
        attempts: Vec::new(),
        charges: Charges::default(),
        estimate: Estimate::default(),
        degraded: Degraded::default(),
        inspection: None,
        position: 0,
        heard: Vec::new(),
        delta: Delta::default(),
        held_out: false,
        thread: None,
        now: shared.now(),
    };
    let looking = AssertUnwindSafe(|| look(shared, settings, looked, &caller, &mut case));
    if catch_unwind(looking).is_err() {
        shared.telemetry.metrics.panicked();
        case.degraded.insert(Part::Detector);
        case.verdict = Verdict::allow();
    }
    case
}

/// The path of a request through identity, detectors and limits, read top to bottom.
fn look<'s>(
    shared: &Shared,
    settings: &'s Settings,
    looked: &Looked<'_>,
    caller: &Caller<'_>,
    case: &mut Case<'s>,
) {
    // What does the body say?
    let reader = Reader {
        tenant: case.tenant.key,
        rules: &settings.rules,
        transcripts: &shared.transcripts,
        fingerprint: settings.counts_requests,
    };
    let (heard, delta, is_kept) = (&mut case.heard, &mut case.delta, shared.journal().is_some());
    let mut tell = |position: usize, step: &Step<'_>| {
        if is_kept {
            // Of a long transcript that is read for the first time, the newest steps are kept.
            if heard.len() >= Heard::MAX_STEPS {
                heard.drain(..Heard::MAX_STEPS / 2);
            }
            heard.push(Heard::of(position, step));
        }
        if settings.compares {
            delta.take(step);
        }
    };
    let read = looked.dialect.zip(looked.body).map(|(dialect, body)| reader.read(dialect, body, &mut tell));
    match read {
        Some(Ok(inspection)) => {
            let resume = if inspection.resumed { Resume::Hit } else { Resume::Miss };
            shared.telemetry.metrics.resumed(resume);
            case.facts = Arc::clone(&inspection.facts);
            case.model = case.facts.model.clone().or(case.model.take());
            case.tip = inspection.transcript.tip;
            case.position = inspection.transcript.loops.steps();
            case.inspection = Some(inspection);
        }
        Some(Err(_)) => case.degraded.insert(Part::Body),
        None if looked.dialect.is_some() => case.degraded.insert(Part::Body),
        None => {}
    }
    fault_injection(looked);

    // Whose run is it?
    locate(shared, caller, case);

    let account = if case.located.account == case.located.key {
        Arc::clone(&case.session)
    } else {
        session_name(case.located.account)
    };
    case.run = RunName::of(&case.tenant.name, &case.session);
    case.account = RunName::of(&case.tenant.name, &account);
    case.account_name = Arc::clone(&account);
    if case.located.is_new {
        shared.sessions.call(case.located.key, case.run);
    }

    // What is thought of it?
    let subject = Subject {
        method: looked.method,
        path: looked.path,
        is_dialect: looked.dialect.is_some(),
        host: looked.headers.get(hyper::header::HOST).and_then(|host| host.to_str().ok()),
        tenant: &case.tenant.name,
        model: case.model.as_deref(),
    };
    let today = today();
    case.policies = settings.applied(&subject, today);
    let keys = Keys {
        tenant: case.tenant.key,
        tenant_name: &case.tenant.name,
        session: &account,
        agent: &case.agent,
        model: case.model.as_deref(),
        headers: looked.headers,
        query: looked.query,
    };
    case.held_out = is_held_out(settings.config.holdout, case.located.key);
    let transcript = case.inspection.as_ref().map(|inspection| &inspection.transcript);
    let document = case.inspection.as_ref().and_then(|inspection| inspection.document.as_ref());
    let question = Question {
        method: looked.method,
        path: looked.path,
        query: looked.query,
        keys,
        document: document.map_or_else(|| looked.body.map_or(&[][..], |body| body), |document| &document[..]),
        located: case.located,
        tip: case.tip,
        rulings: transcript.map_or(&[][..], |transcript| transcript.loops.rulings()),
        is_kept: shared.journal().is_some(),
        held_out: case.held_out,
        now: case.now,
        today,
    };
    let judge = Judge { settings, sessions: &shared.sessions, identical: &shared.identical };
    let (mut verdict, attempts) = judge.judge(&case.policies, &question);

    // Does it fit into its budgets?
    let bytes = looked.body.map_or(0, |body| body.len() as u64);
    let tokens = estimate_tokens(bytes, case.facts.max_output_tokens, case.facts.choices);
    case.estimate = Estimate { input: tokens.input, tokens: tokens.total(), money_micros: 0 };
    let has_budgets = case.policies.iter().any(|applied| !applied.policy.budgets.is_empty());
    if let Some(dialect) = looked.dialect.filter(|_| has_budgets) {
        case.estimate.money_micros =
            settings.prices.cost(family(dialect), case.model.as_deref(), &tokens).micros;
    }
    let charges = Charges::of(&case.policies, &keys, case.estimate);
    charges.make_known(&shared.accounts, &keys);
    for proposal in charges.check(&shared.ledger, case.now) {
        verdict.combine(proposal);
    }
    (case.verdict, case.attempts, case.charges) = (verdict, attempts, charges);
}

fn locate(shared: &Shared, caller: &Caller<'_>, case: &mut Case<'_>) {
    let named = caller.session(&case.facts);
    let tenant = case.tenant.key;
    if let Some(name) = named {
        let key = SessionKey(shared.secret.hash("session", &[&tenant.to_le_bytes(), name.as_bytes()]));
        case.located = shared.sessions.by_name(key, case.tip, case.now);
        // A name that cannot stand in a header is not told, and neither is it lost.
        let can_be_told = HeaderValue::from_str(name).is_ok();
        case.session = if can_be_told { name.into() } else { session_name(key) };
        return;
    }
    case.located = match &case.inspection {
        Some(Inspection { transcript, chain, tails, .. }) if !chain.is_empty() => {
            let anchor = transcript.anchor.unwrap_or(transcript.tip);
            shared.sessions.by_transcript(anchor, chain, tails, case.now)
        }
        // Without words there is nothing to tell runs apart by; the agent is the next best.
        _ => {
            let key = shared.secret.hash("agent", &[&tenant.to_le_bytes(), case.agent.as_bytes()]);
            shared.sessions.by_name(SessionKey(key), case.tip, case.now)
        }
    };
    case.session = session_name(case.located.key);
}

/// What a session is called that its client has no name for.
fn session_name(key: SessionKey) -> Arc<str> {
    format!("lb-{:016x}", (key.0 >> 64) as u64).into()
}

/// Whether a session is one of the share in which loops are only observed: always the same ones.
fn is_held_out(share: f64, session: SessionKey) -> bool {
    share > 0.0 && ((session.0 >> 64) as u64 as f64 / u64::MAX as f64) < share
}

/// Whose prices hold for a dialect.
pub(crate) const fn family(dialect: Dialect) -> Family {
    match dialect {
        Dialect::Chat | Dialect::Responses => Family::OpenAi,
        Dialect::Anthropic => Family::Anthropic,
        Dialect::Gemini => Family::Gemini,
    }
}

/// Lets a test see that a bug in a detector stops no request. It does not exist in a release.
#[cfg(debug_assertions)]
fn fault_injection(looked: &Looked<'_>) {
    let asked = looked.headers.contains_key("x-test-detector-panic");
    assert!(!asked || std::env::var_os("LOOPBREAKER_TEST_FAULTS").is_none(), "a test asked for this");
}

#[cfg(not(debug_assertions))]
const fn fault_injection(_: &Looked<'_>) {}

#[cfg(test)]
mod tests;
