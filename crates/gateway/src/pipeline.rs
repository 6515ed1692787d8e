//! The path of a request, top to bottom: where to, what it says, what is thought of it, what is done, what comes back.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use hyper::header::{EXPECT, HOST, HeaderMap, HeaderValue};
use hyper::{Request, Response};
use loopbreaker::Action;
use loopbreaker_dialect::{Dialect, Refusal};
use loopbreaker_fleet::Link;
use loopbreaker_observatory::Order;
use loopbreaker_telemetry::{Part, Record};

use crate::consider::{Case, Looked};
use crate::credentials;
use crate::decode::{Encoding, decode};
use crate::fleet::pausing;
use crate::headers;
use crate::hints::{ToPlace, is_signed};
use crate::inbound::{self, Inbound, Start, Unread};
use crate::inspect::goes_through;
use crate::journal::{self, Entry};
use crate::orders::Edit;
use crate::pauses::{Decision, Wait};
use crate::reply::{Reply, refuse, with};
use crate::rewrite::rewritten;
use crate::route::{self, Destination};
use crate::send::{Editing, Sending};
use crate::settings::Settings;
use crate::state::Shared;
use crate::upstream::Pool;
use crate::verdict::{Refused, SESSION};

/// One worker's view of the gateway.
#[derive(Debug, Clone)]
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) pool: Pool,
    /// The way to what several processes share, where they do.
    pub(crate) link: Option<Arc<Link>>,
}

/// When a request came, and how much of the time since was not ours.
pub(crate) struct Times {
    pub(crate) at: SystemTime,
    pub(crate) arrived: Instant,
    /// When its body was there.
    pub(crate) read: Instant,
    pub(crate) held: Duration,
}

impl Worker {
    /// Takes a request to its provider, or refuses it.
    pub(crate) async fn handle(&self, request: Request<Inbound>) -> Response<Reply> {
        let (at, arrived) = (SystemTime::now(), Instant::now());
        let settings = self.shared.settings();
        let (mut parts, body) = request.into_parts();
        let web_socket =
            headers::wants_web_socket(&parts.headers).then(|| parts.extensions.remove()).flatten();
        let path_and_query = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let Some(destination) =
            route::destination(path_and_query, &parts.headers, &settings.config.upstreams)
        else {
            return unknown_path(parts.uri.path());
        };

        // They go no further, so they say nothing about who calls either.
        credentials::leave_foreign_out(&mut parts.headers, &destination, &settings.config.upstreams);

        // What is read of the body: all of it where it speaks a dialect, else as much as a fingerprint needs.
        let dialect = destination.dialect.filter(|_| parts.method == hyper::Method::POST);
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        let mut looked = Looked {
            method: parts.method.as_str(),
            path,
            query,
            headers: &parts.headers,
            provider: destination.provider,
            dialect,
            body: None,
            came: None,
        };
        let mut start = match read(&settings, &looked, body).await {
            Ok(start) => start,
            Err(unread) => return cannot_read(dialect, &unread),
        };
        if let Some(trailers) = &mut start.trailers {
            headers::leave_out(trailers, credentials::of_others(&destination));
        }
        let encoding = Encoding::of(&parts.headers);
        let decoded = match encoding {
            Encoding::Plain => Some(start.bytes.clone()),
            Encoding::Coded(coding) => decode(coding, &start.bytes, inbound::MAX_BODY).map(Bytes::from),
            Encoding::Unknown => None,
        };
        let mut times = Times { at, arrived, read: Instant::now(), held: Duration::ZERO };

        looked.body = decoded.as_ref();
        looked.came = Some(&start.bytes).filter(|_| start.rest.is_none());
        let mut case = self.consider(&settings, &looked).await;
        case.keep_transcript(&self.shared, dialect);
        self.compare(&settings, &mut case, &looked).await;
        case.write_down(&self.shared, dialect, at);
        let upstream = &settings.upstream(destination.provider, destination.route).name;
        let record = case.record(&looked, times.at, upstream);

        if let Err(refused) = self.hold(&settings, &mut case, dialect, &mut times).await {
            return self.refused(dialect, &mut case, &times, record, &refused);
        }
        let asked = self.asked(&settings, &case, &looked, upstream);
        let given_again = match &asked {
            Some(asked) => Box::pin(self.recall(&settings, asked)).await,
            None => None,
        };
        let mut editing = Editing::default();
        if given_again.is_some() {
            // An answer that is given again uses nothing.
            case.ticket.refund(&self.shared.ledger, self.shared.now());
        } else if let Err(refused) = self.reserve(&mut case) {
            case.verdict.action = Action::Reject;
            return self.refused(dialect, &mut case, &times, record, &refused);
        } else {
            editing = self.edit(&settings, &mut case, &looked, &destination);
        }
        let sending = Box::new(Sending {
            worker: self,
            settings: &settings,
            destination: &destination,
            method: &parts.method,
            uri: &parts.uri,
            headers: &parts.headers,
            trailers: start.trailers.take(),
            case,
            times,
            record,
            dialect,
            web_socket,
            asked,
        });
        match given_again {
            Some(stored) => sending.give_again(&stored),
            None => sending.send(start, editing).await,
        }
    }

    /// Reserves what the request will probably use, unless all processes have reserved it together already.
    pub(crate) fn reserve(&self, case: &mut Case<'_>) -> Result<(), Box<Refused>> {
        if let Some(asked) = &case.asked
            && let (Some(told), Some(standings)) = (&asked.told, asked.standings())
        {
            if told.is_reserved {
                case.verdict.warn_of(case.charges.stage_told(told));
                return Ok(());
            }
            let refusal = case.charges.refusal(&standings, case.is_let_go);
            if let Some(common) = case.ticket.common.as_mut().filter(|_| case.is_let_go && refusal.is_none())
            {
                // What it uses is counted when that is known.
                asked.charge(common, &case.charges, &case.account_name);
                return Ok(());
            }
            return Err(Box::new(refusal.unwrap_or_else(loop_detected)));
        }
        if case.charges.is_empty() {
            return Ok(());
        }
        let (ledger, now) = (&self.shared.ledger, self.shared.now());
        case.ticket.own = case.charges.reserve(ledger, now, case.is_let_go)?;
        case.verdict.warn_of(case.charges.stage(ledger, now));
        Ok(())
    }

    /// The pause that holds for a request: its session's, which begins here where the verdict says so.
    pub(crate) fn pause(&self, case: &mut Case<'_>, dialect: Option<Dialect>) -> Option<Wait> {
        let pauses = &self.shared.pauses;
        if case.verdict.action == Action::Pause {
            if pauses.is_approved([case.account, case.run], case.tip) {
                case.verdict.action = case.verdict.told();
                case.is_let_go = true;
            } else {
                self.begin_pause(case, dialect);
            }
        }
        self.standing_pause(case)
    }

    fn standing_pause(&self, case: &Case<'_>) -> Option<Wait> {
        let pauses = &self.shared.pauses;
        pauses.of(case.account, case.tip).or_else(|| pauses.of(case.run, case.tip))
    }

    fn begin_pause(&self, case: &Case<'_>, dialect: Option<Dialect>) {
        if !self.shared.pauses.pause_by_policy(case.account, case.now) {
            return;
        }
        if let Some(fleet) = &self.shared.fleet {
            fleet.decide(case.account.tenant(), &case.account_name, pausing(Some(case.tip), 0), None);
        }
        self.shared.tell(|| {
            let refusal = case.verdict.refusal.as_ref();
            let reason =
                refusal.map_or_else(|| "a policy pauses it".to_owned(), |refused| refused.message.clone());
            Entry::Paused(case.who(dialect, SystemTime::now()), Arc::clone(&case.account_name), reason)
        });
    }

    /// Holds a request as long as its verdict says, or says why it goes no further.
    async fn hold(
        &self,
        settings: &Settings,
        case: &mut Case<'_>,
        dialect: Option<Dialect>,
        times: &mut Times,
    ) -> Result<(), Refused> {
        if case.verdict.action == Action::Reject {
            return Err(case.verdict.refusal.clone().unwrap_or_else(loop_detected));
        }
        if let Some(refused) = self.still_rejected(case) {
            return Err(refused);
        }
        let pause = self.pause(case, dialect);
        let delay = if case.verdict.action == Action::Throttle { case.verdict.delay } else { Duration::ZERO };
        if pause.is_none() && delay.is_zero() {
            return Ok(());
        }
        // Few requests wait, and all others need not carry the room for it.
        Box::pin(self.wait(settings, case, pause, delay, times)).await
    }

    /// Waits until the delay is over and somebody has decided about the pause.
    async fn wait(
        &self,
        settings: &Settings,
        case: &mut Case<'_>,
        pause: Option<Wait>,
        delay: Duration,
        times: &mut Times,
    ) -> Result<(), Refused> {
        let since = Instant::now();
        let held = self.shared.holds.enter(settings.config.throttle.max_held);
        // Without room nobody waits, but whoever is paused is told so, and what was decided holds.
        let (delay_here, hold) =
            if held.is_some() { (delay, settings.config.pause.hold) } else { Default::default() };
        tokio::time::sleep(delay_here).await;
        // An operator may have paused the session while the call was slowed down.
        let mut decided = match pause.or_else(|| self.standing_pause(case)) {
            None => Ok(()),
            Some(pause) => self.decided(settings, case, pause, hold).await,
        };
        if decided.is_ok() && delay_here < delay {
            case.verdict.action = Action::Reject;
            let refusal = case.verdict.refusal.clone().unwrap_or_else(loop_detected);
            decided = Err(Refused { status: 429, ..refusal });
        }
        times.held = since.elapsed();
        decided
    }

    /// What somebody decides about a pause while the call is held. When its time is over it is a refusal like any
    /// other, whether the log notices that first or we do.
    async fn decided(
        &self,
        settings: &Settings,
        case: &mut Case<'_>,
        mut pause: Wait,
        hold: Duration,
    ) -> Result<(), Refused> {
        let timeout = settings.config.pause.timeout;
        let judged = case.verdict.action;
        let by_policy = judged == Action::Pause;
        case.verdict.action = Action::Pause;
        let decision = if pause.is_over(timeout, self.shared.now()) {
            Decision::Waiting
        } else {
            // Whoever is told to come back finds the next process, where the pause holds, too.
            tokio::select! {
                decision = pause.decision(hold) => decision,
                () = self.shared.drains() => Decision::Waiting,
            }
        };
        match decision {
            Decision::Resumed => {
                case.is_let_go = by_policy;
                let turn = pause.into_turn();
                turn.comes().await;
                // It keeps its place until it is on its way, or has gone.
                case.turn = Some(turn);
                Ok(())
            }
            // A policy paused it for what it had shown, nobody decided, and it shows that no more.
            Decision::Waiting | Decision::Rejected(_)
                if pause.is_over(timeout, self.shared.now()) && pause.is_by_policy() && !by_policy =>
            {
                case.verdict.action = judged;
                for run in [case.account, case.run] {
                    self.shared.pauses.forget(run);
                }
                Ok(())
            }
            Decision::Waiting | Decision::Rejected(_) if pause.is_over(timeout, self.shared.now()) => {
                case.verdict.action = Action::Reject;
                if !by_policy {
                    self.stays_rejected(case, NOBODY_DECIDED);
                }
                Err(case.verdict.refusal.clone().unwrap_or_else(nobody_decided))
            }
            Decision::Rejected(message) => Err(self.rejected(case, &message)),
            Decision::Waiting => Err(still_paused()),
        }
    }

    /// The refusal of an operator, who is told that the agent has heard it.
    pub(crate) fn rejected(&self, case: &mut Case<'_>, message: &str) -> Refused {
        case.verdict.action = Action::Reject;
        self.shared.handed_out(case, Order::Reject { message: message.to_owned() });
        self.stays_rejected(case, message);
        rejected_by_operator(message)
    }

    /// The same request is refused again: an operator's word is not told once and then forgotten.
    fn stays_rejected(&self, case: &Case<'_>, message: &str) {
        self.shared.obedience.refuse(case.account, &case.account_name, case.tip, message);
    }

    /// The refusal of a transcript that an operator has refused before, and that comes again as it was.
    pub(crate) fn still_rejected(&self, case: &mut Case<'_>) -> Option<Refused> {
        let refusals = &self.shared.pauses.refusals;
        let again = refusals.of([case.account, case.run], case.tip, || self.shared.now())?;
        if again.is_news {
            self.stays_rejected(case, &again.words);
        }
        case.verdict.action = Action::Reject;
        Some(rejected_by_operator(&again.words))
    }

    /// The body with the hint, and with the question for usage where a budget needs the answer to it.
    fn edit(
        &self,
        settings: &Settings,
        case: &mut Case<'_>,
        looked: &Looked<'_>,
        destination: &Destination,
    ) -> Editing {
        let mut editing = Editing::default();
        let (Some(dialect), Some(body)) = (looked.dialect, looked.body) else {
            if case.verdict.action == Action::Hint {
                // There is no model that could hear it.
                case.verdict.action = Action::Warn;
            }
            return editing;
        };
        let edits = self.edits(case, dialect, body);
        let is_signed = case.facts.signed || is_signed(looked.headers, looked.query);
        if !is_signed {
            editing.body = rewritten(dialect, body, (case.located.key, case.anchor), &edits);
        }
        editing.rewritten = editing.body.is_some();
        let upstream = settings.upstream(destination.provider, destination.route);
        if let Some(text) = told_to_the_model(case, &edits) {
            let placed = self.shared.placements.place(&ToPlace {
                dialect,
                body: editing.body.as_deref().unwrap_or(body),
                text: &text,
                facts: &case.facts,
                headers: looked.headers,
                query: looked.query,
                upstream: &upstream.name,
                model: case.model.as_deref(),
                configured: settings.config.hint.placement,
            });
            if let Some((placed, placement)) = placed {
                (editing.body, editing.hinted) = (Some(placed), Some(placement));
            }
            for edit in edits.iter().filter(|_| editing.hinted.is_some()) {
                if let Edit::Inject(message) = edit {
                    self.shared.handed_out(case, Order::Inject { message: message.to_string() });
                }
            }
            if editing.hinted.is_none() {
                case.degraded.insert(Part::Hint);
                if case.verdict.action == Action::Hint {
                    // A throttle does what it does without words, too.
                    case.verdict.action = Action::Warn;
                }
            }
        }
        let asks = dialect == Dialect::Chat && case.facts.stream && !case.facts.include_usage;
        let may_ask = || self.shared.placements.may_ask_for_usage(&upstream.name, case.model.as_deref());
        if asks && !is_signed && case.charges.need_usage() && may_ask() {
            let asking = loopbreaker_dialect::asking_for_usage(editing.body.as_deref().unwrap_or(body));
            editing.asked_for_usage = asking.is_some();
            editing.body = asking.or(editing.body);
        }
        editing
    }

    /// What operators have ordered for the session of this request.
    pub(crate) fn edits(&self, case: &Case<'_>, dialect: Dialect, body: &[u8]) -> Vec<Edit> {
        // What the provider keeps goes on from everything that was said before.
        let is_kept_there = case.facts.is_kept_by_provider();
        self.shared.orders.edits([case.run, case.account], case.tip, &mut |link| {
            is_kept_there || goes_through(dialect, case.tenant.key, body, link)
        })
    }

    /// Answers a refusal, and writes it down.
    fn refused(
        &self,
        dialect: Option<Dialect>,
        case: &mut Case<'_>,
        times: &Times,
        record: Record,
        refused: &Refused,
    ) -> Response<Reply> {
        // What goes no further uses nothing.
        case.ticket.refund(&self.shared.ledger, self.shared.now());
        let mut response = refuse(dialect, refused.code, refused.status, &refused.message);
        let headers = response.headers_mut();
        add_verdict(headers, case);
        refused.add_headers(headers);
        if dialect.is_some() {
            self.shared.tell(|| {
                let why = journal::Refused {
                    position: case.position,
                    code: refused.code.code(),
                    message: refused.message.clone(),
                };
                Entry::Refused(case.who(dialect, times.at), why)
            });
        }
        self.shared.telemetry.record(Record {
            status: refused.status,
            verdict: case.verdict.action,
            findings: case.verdict.notes.clone(),
            refusal: Some(refused.code.code()),
            overhead: times.read.elapsed().saturating_sub(times.held),
            held: times.held,
            duration: times.arrived.elapsed(),
            degraded: case.degraded,
            ..record
        });
        response
    }
}

/// What goes to the model beside what the client said: the hint of the verdict, and the words of operators.
fn told_to_the_model(case: &Case<'_>, edits: &[Edit]) -> Option<String> {
    let hints = case.verdict.action >= Action::Hint;
    let hint = case.verdict.hint.clone().filter(|_| hints);
    let injected = edits.iter().filter_map(|edit| match edit {
        Edit::Inject(message) => Some(format!("[Operator] {message}")),
        Edit::Rewrite(..) => None,
    });
    let told: Vec<String> = hint.into_iter().chain(injected).collect();
    (!told.is_empty()).then(|| told.join("\n\n"))
}

/// Reads a body whole where it speaks a dialect, and where it is only counted as much of it as a fingerprint needs.
async fn read(settings: &Settings, looked: &Looked<'_>, body: Inbound) -> Result<Start, Unread> {
    let header = |name| looked.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if looked.dialect.is_some() {
        let waits = header(EXPECT).is_some_and(|expected| expected.eq_ignore_ascii_case("100-continue"));
        return inbound::whole(body, waits).await;
    }
    if settings.may_count(looked.method, looked.path, header(HOST)) {
        return inbound::beginning(body, inbound::MAX_FINGERPRINTED).await;
    }
    inbound::at_hand(body).await
}

/// Tells the session, and the verdict where it may be told.
pub(crate) fn add_verdict(headers: &mut HeaderMap, case: &Case<'_>) {
    if let Ok(session) = HeaderValue::from_bytes(case.session.as_bytes()) {
        headers.insert(SESSION, session);
    }
    if case.is_told() {
        case.verdict.add_headers(headers);
    }
}

pub(crate) fn loop_detected() -> Refused {
    Refused {
        code: Refusal::LoopDetected,
        status: 429,
        message: "too many calls are held; try again later".to_owned(),
        retry_after: Some(30),
        retry: false,
        rate_limit: None,
    }
}

pub(crate) fn still_paused() -> Refused {
    Refused {
        code: Refusal::Paused,
        status: 429,
        message: "the session is paused, and nobody has decided yet; try again later".to_owned(),
        retry_after: Some(30),
        retry: true,
        rate_limit: None,
    }
}

/// An operator's pause whose time is over.
pub(crate) fn nobody_decided() -> Refused {
    rejected_by_operator(NOBODY_DECIDED)
}

const NOBODY_DECIDED: &str = "an operator paused this session, and nobody decided in time: it is refused";

fn rejected_by_operator(message: &str) -> Refused {
    Refused {
        code: Refusal::RejectedByOperator,
        status: 403,
        message: message.to_owned(),
        retry_after: None,
        retry: false,
        rate_limit: None,
    }
}

fn unknown_path(path: &str) -> Response<Reply> {
    let message = format!(
        "no provider serves {path}; use /v1/… (OpenAI, Anthropic), /v1beta/… (Gemini), or add a route under \
         `upstreams.routes`"
    );
    with(404, "application/json", serde_json::json!({ "error": { "message": message, "type": "not_found", "code": "not_found", "param": null } }).to_string())
}

fn cannot_read(dialect: Option<Dialect>, unread: &Unread) -> Response<Reply> {
    let (code, status) = match unread {
        Unread::TooLarge => (Refusal::TooLarge, 413),
        Unread::TooSlow => (Refusal::UpstreamUnavailable, 408),
        Unread::Broken(_) => (Refusal::UpstreamUnavailable, 400),
    };
    refuse(dialect, code, status, &unread.to_string())
}
