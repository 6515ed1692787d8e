//! From the bytes of a request to its verdict: who calls, what the body says, what is thought of it.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderValue};
use loopbreaker::{Action, RequestCount, Timestamp};
use loopbreaker_budget::{Family, Tokens};
use loopbreaker_config::{Dialect as Provider, Subject};
use loopbreaker_dialect::{Dialect, Facts};
use loopbreaker_embed::Delta;
use loopbreaker_fleet::Refused;
use loopbreaker_telemetry::{Check, Degraded, Part, Record, Resume, TraceContext};

use crate::few::Few;
use crate::fleet::Asked;
use crate::headers::TRACEPARENT;
use crate::identical::{Document, Sent};
use crate::identity::{Caller, Tenant};
use crate::inspect::Inspection;
use crate::journal::{Entry, Heard, Judged, Thought, Who};
use crate::judge::{Judge, Past, Question, RETRY_AFTER_SECONDS};
use crate::limits::{Charges, Estimate, Keys};
use crate::loops::Ruled;
use crate::pauses::Turn;
use crate::pipeline::Worker;
use crate::reading::{Reading, nothing_said, read_body};
use crate::recent::Tails;
use crate::reminders::Ending;
use crate::route::{is_streamed_by_path, model_in_path};
use crate::sessions::{AfterRefusal, Located, RunName, SessionKey};
use crate::settings::{Applied, Settings};
use crate::state::{Shared, today};
use crate::ticket::Ticket;
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
    /// The body as it came; `None` when not all of it is known.
    pub(crate) came: Option<&'r Bytes>,
}

/// What is known and thought of a request.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which may hold or not")]
pub(crate) struct Case<'s> {
    pub(crate) tenant: Tenant,
    pub(crate) agent: Arc<str>,
    /// The session's name, as it is told to everyone.
    pub(crate) session: Arc<str>,
    /// How its session is found.
    pub(crate) whose: Whose,
    pub(crate) located: Located,
    /// What other processes were asked about it, and what they said.
    pub(crate) asked: Option<Box<Asked>>,
    /// The session as people name it, and the one whose pause and budget hold for it.
    pub(crate) run: RunName,
    pub(crate) account: RunName,
    pub(crate) account_name: Arc<str>,
    pub(crate) tip: u128,
    /// How the conversation began that it belongs to.
    pub(crate) anchor: u128,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) facts: Arc<Facts>,
    pub(crate) policies: Few<Applied<'s>>,
    pub(crate) verdict: Verdict,
    pub(crate) ticket: Ticket,
    pub(crate) charges: Charges<'s>,
    pub(crate) estimate: Estimate,
    pub(crate) degraded: Degraded,
    pub(crate) inspection: Option<Inspection>,
    /// The place in the transcript of what the answer will add.
    pub(crate) position: usize,
    /// Whether the transcript shows a loop anywhere, over by now or not.
    pub(crate) has_looped: bool,
    /// Steps that were not known before, where they are written down.
    pub(crate) heard: Vec<Heard>,
    /// What is new, where it is compared with what was said before.
    pub(crate) delta: Delta,
    /// How the comparison went, where traces are kept.
    pub(crate) check: Option<Check>,
    /// Whether the session is one in which loops are only observed.
    pub(crate) held_out: bool,
    /// Whether a policy paused it, and an operator has let it go on: rules that pause stop it no more.
    pub(crate) is_let_go: bool,
    /// The loop state of a client that will name this answer instead of repeating what led to it.
    pub(crate) thread: Option<Box<Transcript>>,
    /// The words behind its newest result, and whose session they were said in: what is answered was heard.
    pub(crate) ending: Option<(u128, Ending)>,
    /// Its place among the calls that one pause has held and that go on now.
    pub(crate) turn: Option<Turn>,
    pub(crate) now: Timestamp,
    /// Time of day, for dates in the config.
    today: Timestamp,
    /// Whether nothing is enforced at all, whatever it concerns.
    all_in_shadow: bool,
}

/// How the session of a request is found.
pub(crate) enum Whose {
    /// By the client's name for it, else by who calls.
    Named { key: SessionKey, name: Arc<str> },
    /// By what was said: the transcript's links, oldest first, and the hashes of its last messages.
    Transcript { anchor: u128, chain: Vec<u128>, tails: Tails },
}

impl Case<'_> {
    /// The loops that its transcript shows in its newest round.
    pub(crate) fn loops(&self) -> impl Iterator<Item = &Ruled> {
        let transcript = self.inspection.as_ref().map(|inspection| &inspection.transcript);
        let rulings = transcript.map_or(&[][..], |transcript| transcript.loops.rulings());
        rulings.iter().filter(|ruled| ruled.is_loop())
    }

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
            anchor: self.anchor,
            agent: Arc::clone(&self.agent),
            model: self.model.clone(),
            dialect,
            history_elsewhere: self.facts.is_kept_by_provider(),
            at,
        }
    }

    /// Writes down what the transcript shows that is new, and what was thought of it.
    pub(crate) fn write_down(&mut self, shared: &Shared, dialect: Option<Dialect>, at: SystemTime) {
        if dialect.is_none() {
            return;
        }
        let Some(journal) = shared.journal() else {
            shared.observing.count_missed();
            return;
        };
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
        let judged = Judged { has_looped: self.has_looped, findings, verdict: Some(thought) };
        journal.tell(Entry::Judged(who, judged));
    }

    /// What is told of the request, as far as it is known before it is sent.
    pub(crate) fn record(&self, looked: &Looked<'_>, at: SystemTime, upstream: &Arc<str>) -> Record {
        use loopbreaker_telemetry::Dialect as Told;
        let traceparent = looked.headers.get(TRACEPARENT).and_then(|value| value.to_str().ok());
        Record {
            at,
            tenant_class: self.tenant.class,
            dialect: match looked.dialect {
                Some(Dialect::Chat) => Told::Chat,
                Some(Dialect::Responses) => Told::Responses,
                Some(Dialect::Anthropic) => Told::Anthropic,
                Some(Dialect::Gemini) => Told::Gemini,
                None => Told::Other,
            },
            method: method(looked.method),
            path: looked.path.into(),
            model: self.model.clone(),
            stream: self.facts.stream || is_streamed_by_path(looked.path),
            ids: traceparent.and_then(TraceContext::parse),
            check: self.check,
            ..Record::of(
                Arc::clone(&self.tenant.name),
                Arc::clone(&self.agent),
                Arc::clone(&self.session),
                Arc::clone(upstream),
            )
        }
    }

    /// Whether the client may be told about the verdict: not when every policy that looks at it is in shadow.
    pub(crate) fn is_told(&self) -> bool {
        let is_enforced = self.policies.iter().any(|applied| applied.enforced);
        is_enforced || (self.policies.is_empty() && !self.all_in_shadow)
    }
}

/// Looks at a request with what this process knows.
pub(crate) fn consider<'s>(shared: &Shared, settings: &'s Settings, looked: &Looked<'_>) -> Box<Case<'s>> {
    let mut case = read(shared, settings, looked);
    judge(shared, settings, looked, &mut case);
    case
}

impl Worker {
    /// Looks at a request with what all processes know, where they share it.
    pub(crate) async fn consider<'s>(&self, settings: &'s Settings, looked: &Looked<'_>) -> Box<Case<'s>> {
        let mut case = read(&self.shared, settings, looked);
        if let Some(link) = self.link.as_ref().filter(|_| !case.failed()) {
            let sent = sent(looked, &case, "");
            let windows = sent.windows(&case.policies);
            let mut asked = Box::new(Asked::of(&self.shared, link, &case, &windows));
            if !Box::pin(asked.put()).await {
                case.degraded.insert(Part::State);
            }
            if asked.take_over(&self.shared, &settings.rules) {
                case = read(&self.shared, settings, looked);
            }
            case.asked = Some(asked);
        }
        judge(&self.shared, settings, looked, &mut case);
        if let Some((link, refusal)) = self.link.as_ref().zip(case.ticket.take_refusal()) {
            Box::pin(link.write(refusal)).await;
        }
        case
    }
}

/// Reads what a request says. Whatever fails in here, the request goes on: a bug of ours is no reason to stop an agent.
fn read<'s>(shared: &Shared, settings: &'s Settings, looked: &Looked<'_>) -> Box<Case<'s>> {
    let trusted =
        shared.trusts_tenant_header.load(Ordering::Relaxed) || settings.config.admin.trust_tenant_header;
    let header = trusted.then_some(&*settings.config.admin.tenant_header);
    let caller = Caller::of(looked.headers, looked.query, header, looked.provider);
    let today = today();
    // It is boxed once: everything that handles it would carry it about otherwise.
    let mut case = Box::new(Case {
        tenant: shared.tenants.of(&caller),
        agent: caller.agent().into(),
        session: Arc::default(),
        whose: Whose::Transcript { anchor: 0, chain: Vec::new(), tails: Tails::default() },
        located: Located { key: SessionKey(0), account: SessionKey(0), is_new: true },
        asked: None,
        run: RunName::default(),
        account: RunName::default(),
        account_name: Arc::default(),
        tip: 0,
        anchor: 0,
        model: model_in_path(looked.path).map(Into::into),
        facts: nothing_said(),
        policies: Few::None,
        verdict: Verdict::allow(),
        ticket: Ticket::default(),
        charges: Charges::default(),
        estimate: Estimate::default(),
        degraded: Degraded::default(),
        inspection: None,
        position: 0,
        has_looped: false,
        heard: Vec::new(),
        delta: Delta::default(),
        check: None,
        held_out: false,
        is_let_go: false,
        thread: None,
        ending: None,
        turn: None,
        now: shared.now(),
        today,
        all_in_shadow: settings.all_in_shadow(today),
    });
    case.catching(shared, |case| hear(shared, settings, looked, &caller, case));
    case
}

/// Judges what was read.
fn judge<'s>(shared: &Shared, settings: &'s Settings, looked: &Looked<'_>, case: &mut Case<'s>) {
    if !case.failed() {
        case.catching(shared, |case| weigh(shared, settings, looked, case));
    }
}

impl Case<'_> {
    fn catching(&mut self, shared: &Shared, work: impl FnOnce(&mut Self)) {
        if catch_unwind(AssertUnwindSafe(|| work(self))).is_err() {
            shared.telemetry.metrics.panicked();
            self.degraded.insert(Part::Detector);
            self.verdict = Verdict::allow();
        }
    }

    /// Whether something of ours broke while it was looked at.
    fn failed(&self) -> bool {
        self.degraded.contains(Part::Detector)
    }
}

/// What the request says, whose it is, which rules concern it.
fn hear<'s>(
    shared: &Shared,
    settings: &'s Settings,
    looked: &Looked<'_>,
    caller: &Caller<'_>,
    case: &mut Case<'s>,
) {
    read_body(shared, settings, looked, case, Reading::GoesOn);
    let named = caller.session(&case.facts).map(|name| named_session(shared, case.tenant.key, name));
    let owner = named.map_or(0, |key| key.0);
    if case.inspection.as_ref().is_some_and(|inspection| inspection.is_of_another(owner)) {
        // Another session has said the same: to this one all of it is new.
        read_body(shared, settings, looked, case, Reading::Anew);
    }
    let has_moved = |inspection: &Inspection| {
        let ending = inspection.ending.as_ref();
        ending.is_some_and(|ending| shared.reminders.has_moved(owner, ending, &inspection.chain))
    };
    if case.inspection.as_ref().is_some_and(has_moved) {
        read_body(shared, settings, looked, case, Reading::WithoutTheEnd);
    }
    if let Some(inspection) = &mut case.inspection {
        inspection.transcript.owner = Some(owner);
        case.ending = inspection.ending.take().map(|ending| (owner, ending));
    }
    fault_injection(looked);
    case.whose = whose(shared, caller, named, case);

    // Which rules concern it, and what will it use?
    let subject = Subject {
        method: looked.method,
        path: looked.path,
        is_dialect: looked.dialect.is_some(),
        host: looked.headers.get(hyper::header::HOST).and_then(|host| host.to_str().ok()),
        tenant: &case.tenant.name,
        model: case.model.as_deref(),
    };
    case.policies = settings.applied(&subject, case.today);
    let bytes = looked.body.map_or(0, |body| body.len() as u64);
    let has_budgets = case.policies.iter().any(|applied| !applied.policy.budgets.is_empty());
    let priced = looked.dialect.filter(|_| has_budgets).map(family);
    let cost = |tokens: &Tokens| {
        priced.map_or(0, |family| settings.prices.cost(family, case.model.as_deref(), tokens).micros)
    };
    case.estimate = Estimate::of(bytes, &case.facts, cost);
    case.charges = Charges::of(&case.policies, &keys(looked, case, ""), case.estimate);
}

/// What is thought of the request, read top to bottom.
fn weigh<'s>(shared: &Shared, settings: &'s Settings, looked: &Looked<'_>, case: &mut Case<'s>) {
    if let Some(inspection) = &case.inspection {
        let resume = if inspection.resumed { Resume::Hit } else { Resume::Miss };
        shared.telemetry.metrics.resumed(resume);
    }
    locate(shared, case);
    case.charges.belong_to(&case.account_name);
    if let Some(asked) = &case.asked {
        asked.take_in(shared, case);
        case.ticket.common = Some(Box::new(asked.common(shared, case)));
    }

    // Has it looped, or been sent before?
    case.held_out = is_held_out(settings.config.holdout, case.located.key);
    let account = Arc::clone(&case.account_name);
    let sent = sent(looked, case, &account);
    let (mut counts, mut attempts) = (Few::None, Few::None);
    for applied in case.policies.iter() {
        if let Some(config) = &applied.policy.policy.loop_detection {
            let Some(fingerprint) = sent.fingerprint(applied) else {
                counts.push(RequestCount { count: 1, fires: false });
                continue;
            };
            let (own, attempt) =
                shared.identical.observe(fingerprint, config.config, config.once_in_flight, case.now);
            let told = case.asked.as_ref().and_then(|asked| asked.attempts(counts.len()));
            let count = match told {
                // What they have lost is counted here; what only overlaps with one of theirs is not.
                Some(told) if told.counts => told.times.max(own.count),
                Some(told) => told.times,
                None => own.count,
            };
            counts.push(RequestCount { count, fires: count >= config.config.threshold() });
            attempts.push(attempt);
        }
    }
    let is_enforced = |applied: &Applied<'_>| applied.enforced && applied.policy.policy.tool_loops.is_some();
    let past = if case.held_out || !case.policies.iter().any(is_enforced) || case.loops().next().is_none() {
        Past::NONE
    } else {
        let told = case.asked.as_ref().and_then(|asked| asked.past(shared, case));
        told.or_else(|| {
            let own = |session: &mut crate::sessions::Session| session.past(case.tip, case.loops(), case.now);
            shared.sessions.with(case.located.key, own)
        })
        .unwrap_or(Past::NONE)
    };

    // What is thought of it?
    let transcript = case.inspection.as_ref().map(|inspection| &inspection.transcript);
    let question = Question {
        path: looked.path,
        keys: sent.keys,
        counts: &counts,
        rulings: transcript.map_or(&[][..], |transcript| transcript.loops.rulings()),
        past: &past,
        is_kept: shared.journal().is_some(),
        held_out: case.held_out,
        today: case.today,
    };
    let (mut verdict, refuses) = Judge { settings }.judge(&case.policies, &question);

    // Does it fit into its budgets?
    case.charges.make_known(&shared.accounts, &sent.keys);
    let standings = case.asked.as_deref().and_then(Asked::standings);
    let standings = standings.unwrap_or_else(|| case.charges.standings(&shared.ledger, case.now));
    for proposal in case.charges.check(&standings) {
        verdict.combine(proposal);
    }
    if refuses {
        refuse_for_a_while(shared, case);
    } else if let (AfterRefusal::Refuse(_), Some(over)) = (past.after, case.ticket.over()) {
        // What is refused again shows nothing new.
        over.strikes = None;
    }
    case.verdict = verdict;
    case.ticket.attempted(attempts);
}

/// The transcript is refused as long as it stays as it is.
fn refuse_for_a_while(shared: &Shared, case: &mut Case<'_>) {
    let millis = RETRY_AFTER_SECONDS * 1_000;
    let until = Timestamp::from_millis(case.now.as_millis() + millis);
    shared.sessions.with(case.located.key, |session| session.refuse(case.tip, until));
    if let Some(over) = case.ticket.over() {
        over.refused = Some(Refused {
            session: case.located.key.0,
            account: case.located.account.0,
            tip: case.tip,
            until: Instant::now() + Duration::from_millis(millis),
        });
        // What was kept of it is forgotten with that.
        over.strikes = None;
    }
}

pub(crate) fn keys<'r>(looked: &'r Looked<'_>, case: &'r Case<'_>, session: &'r str) -> Keys<'r> {
    Keys {
        tenant: case.tenant.key,
        tenant_name: &case.tenant.name,
        session,
        agent: &case.agent,
        model: case.model.as_deref(),
        headers: looked.headers,
        query: looked.query,
    }
}

/// The request as it is compared with others.
fn sent<'r>(looked: &'r Looked<'_>, case: &'r Case<'_>, session: &'r str) -> Sent<'r> {
    let read = case.inspection.as_ref().and_then(|inspection| inspection.document.as_ref());
    let document = match (read, looked.body, looked.came) {
        (Some(read), ..) => Document::Read(read),
        (None, _, None) => Document::Unknown,
        (None, Some(body), Some(_)) => Document::Written(body),
        (None, None, Some(came)) => Document::Came(came),
    };
    Sent {
        method: looked.method,
        path: looked.path,
        query: looked.query,
        keys: keys(looked, case, session),
        document,
    }
}

/// The session of a tenant that its client has this name for.
fn named_session(shared: &Shared, tenant: u128, name: &str) -> SessionKey {
    SessionKey(shared.secret.hash("session", &[&tenant.to_le_bytes(), name.as_bytes()]))
}

/// How the session is found: by the client's name for it, by what was said, else by who calls.
fn whose(shared: &Shared, caller: &Caller<'_>, named: Option<SessionKey>, case: &mut Case<'_>) -> Whose {
    let tenant = case.tenant.key;
    if let Some((key, name)) = named.zip(caller.session(&case.facts)) {
        // A name that cannot stand in a header is not told, and neither is it lost.
        let can_be_told = HeaderValue::from_bytes(name.as_bytes()).is_ok();
        return Whose::Named { key, name: if can_be_told { name.into() } else { key.name() } };
    }
    match &mut case.inspection {
        Some(Inspection { transcript, chain, tails, .. }) if !chain.is_empty() => Whose::Transcript {
            anchor: transcript.anchor.unwrap_or(transcript.tip),
            chain: std::mem::take(chain),
            tails: std::mem::take(tails),
        },
        // Without words there is nothing to tell runs apart by; the agent is the next best.
        _ => {
            let key = shared.secret.hash("agent", &[&tenant.to_le_bytes(), case.agent.as_bytes()]);
            Whose::Named { key: SessionKey(key), name: SessionKey(key).name() }
        }
    }
}

/// Finds the session, or takes over what the others have found.
fn locate(shared: &Shared, case: &mut Case<'_>) {
    let told = case.asked.as_ref().and_then(|asked| asked.told.as_ref());
    let (located, given) = match (&case.whose, told) {
        (Whose::Named { key, name }, None) => {
            (shared.sessions.by_name(*key, name, case.tip, case.now), Some(Arc::clone(name)))
        }
        (Whose::Transcript { anchor, chain, tails }, None) => {
            shared.sessions.by_transcript(*anchor, chain, tails.newest_first(), case.now)
        }
        (whose, Some(told)) => {
            let (key, account) = (SessionKey(told.key), SessionKey(told.account));
            let located = Located { key, account, is_new: told.is_new };
            let (given, tail) = match whose {
                Whose::Named { name, .. } => (Some(Arc::clone(name)), None),
                Whose::Transcript { tails, .. } => {
                    (told.name.as_deref().map(Into::into), tails.newest_first().next())
                }
            };
            shared.sessions.adopt(located, given.as_ref(), case.tip, tail, case.now);
            (located, given)
        }
    };
    case.located = located;
    case.account_name = given.unwrap_or_else(|| located.account.name());
    case.session =
        if located.account == located.key { Arc::clone(&case.account_name) } else { located.key.name() };
    case.run = RunName::tagged(case.tenant.tag, &case.session);
    case.account = if located.account == located.key {
        case.run
    } else {
        RunName::tagged(case.tenant.tag, &case.account_name)
    };
    if case.located.is_new {
        shared.sessions.call(case.located.key, case.run);
        if let Some(fleet) = &shared.fleet {
            fleet.call(RunName::hash(&case.session), &case.tenant.name);
        }
    }
}

/// The method as it is told, which nearly always is this one.
fn method(name: &str) -> Cow<'static, str> {
    if name == "POST" { Cow::Borrowed("POST") } else { Cow::Owned(name.to_owned()) }
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
