//! The guard for agents in any language.

use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body;
use hyper::{Request, Response};
use loopbreaker::{DetectorsConfig, GuardReport, GuardSession, GuardVerdict, Status, Step};
use serde_json::{Value, json};

use super::orders::violations;
use super::reply::json_reply;
use super::{Answered, Caller, Found, Reply, Route, body_of, find};
use crate::error::Stored;
use crate::hitl::Order;
use crate::observatory::{Observatory, Shared};
use crate::rewrite::Asked;
use crate::store::Session;
use crate::thresholds::Thresholds;
use crate::waste::finding_json;

/// An agent waits no longer than this for what the store has to say about its call.
const SOON: Duration = Duration::from_secs(1);

/// What the store answers, if it does and in time. The guard answers in any case; that the store fails is told on
/// `/readyz`.
async fn soon<T>(work: impl Future<Output = Stored<T>>) -> Option<T> {
    tokio::time::timeout(SOON, work).await.ok()?.ok()
}

/// What every call of the guard says.
struct Call {
    session_id: String,
    tool: String,
    args: Option<String>,
}

impl Observatory {
    pub(super) async fn guard_check(&self, body: &Value, caller: &Caller) -> Answered {
        let Call { session_id, tool, mut args } = read_call(body, true)?;
        let session = self.guarded(&session_id, body, caller);
        let mut answer = json!({ "paused": false });
        if !self.shared.hitl.is_quiet()
            // Whoever names no tenant means the session of that name, if there is only one.
            && let Some(known) = self.known_soon(&session_id, caller).await
        {
            if let Some(pause) = self.shared.hitl.pause_of(known.id) {
                return Ok(paused(&pause.reason));
            }
            let asked = Asked::new(&tool, args.as_deref(), self.shared.keep_prompts);
            let order = match self.order_for(known.id, &asked) {
                // What may not be called stays ordered: the answer says what is wrong with it.
                Some(Order::Rewrite { tool_input: Some(input), .. })
                    if !session.peek(&tool, Some(&input)).allowed =>
                {
                    args = Some(input);
                    None
                }
                // What the store cannot take now stays ordered.
                Some(_) => soon(self.hand_out(known.id, asked)).await.flatten(),
                None => None,
            };
            match order {
                Some(Order::Reject { message }) => {
                    let blocked = json!({
                        "allowed": false, "detector": null, "kind": null, "count": 0, "threshold": 0,
                        "strikes": 0, "feedback": message, "paused": false,
                    });
                    return Ok(json_reply(200, &blocked));
                }
                Some(Order::Rewrite { tool_input: Some(input), .. }) => {
                    answer["rewritten_args"] = json!(input);
                    // What will be called is what is judged.
                    args = Some(input);
                }
                _ => {}
            }
        }
        let verdict = session.check(&tool, args.as_deref());
        Ok(judged(answer, &verdict))
    }

    pub(super) async fn guard_outcome(&self, body: &Value, caller: &Caller) -> Answered {
        let call = read_call(body, true)?;
        let status = read_status(body)?;
        let report = reported(&self.guarded(&call.session_id, body, caller), &call, body, status);
        let Call { session_id, tool, args } = call;
        let has_run = !matches!(status, Some(Status::Pending | Status::Skipped));
        if has_run
            && !self.shared.hitl.is_quiet()
            && let Some(known) = self.known_soon(&session_id, caller).await
        {
            let ran = Asked::new(&tool, args.as_deref(), self.shared.keep_prompts);
            soon(self.has_run(known.id, &ran)).await;
        }
        if !report.findings.is_empty() {
            let known = self.known_soon(&session_id, caller).await;
            let tenant = known.map_or_else(|| caller.writes_as(), |known| known.tenant_name.into());
            for finding in &report.findings {
                soon(self.finding(&tenant, &session_id, finding_json(finding))).await;
            }
        }
        Ok(told(&report))
    }

    /// The session of this name, if there is one and the store can say so.
    async fn known_soon(&self, session_id: &str, caller: &Caller) -> Option<Session> {
        soon(self.find(session_id, caller.tenant.as_deref())).await?.ok()
    }

    pub(super) fn guard_reset(&self, body: &Value, caller: &Caller) -> Answered {
        let Call { session_id, .. } = read_call(body, false)?;
        self.guarded(&session_id, body, caller).reset();
        Ok(forgotten(&session_id))
    }

    /// The guard of a session, which belongs to its tenant.
    fn guarded(&self, session_id: &str, body: &Value, caller: &Caller) -> GuardSession {
        let tenant = caller.writes_as();
        self.shared.guarded.meet(&tenant, session_id);
        scoped(self.shared.guard_of(&tenant, session_id), body)
    }
}

/// The guard of a process that keeps no log, or not yet: agents are stopped all the same, and nothing is written down.
#[derive(Debug)]
pub struct LoneGuard(Thresholds);

impl LoneGuard {
    /// A guard with these thresholds.
    pub fn new(detectors: DetectorsConfig) -> Self {
        Self(Thresholds::new(detectors, json!({})))
    }

    /// The file says something else now.
    pub fn rewritten(&self, detectors: DetectorsConfig) {
        self.0.set_written(detectors);
    }

    /// Whether a request asks the guard.
    pub fn is_asked<B>(request: &Request<B>) -> bool {
        guarding(request).is_some()
    }

    /// Answers what the guard is asked. `is_paused` says whether an operator holds the session of this name.
    pub async fn answer<B>(
        &self,
        request: Request<B>,
        caller: &Caller,
        is_paused: impl FnOnce(&str) -> bool,
    ) -> Response<Reply>
    where
        B: Body<Data = Bytes> + Send + Unpin,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let route = guarding(&request).unwrap_or(Route::GuardCheck);
        let body = match body_of(request).await {
            Ok(body) => body,
            Err(refusal) => return *refusal,
        };
        self.asked(route, &body, caller, is_paused).unwrap_or_else(|refusal| *refusal)
    }

    fn asked(
        &self,
        route: Route,
        body: &Value,
        caller: &Caller,
        is_paused: impl FnOnce(&str) -> bool,
    ) -> Answered {
        let call = read_call(body, route != Route::GuardReset)?;
        let session = scoped(self.0.guard_of(&caller.writes_as(), &call.session_id), body);
        Ok(match route {
            Route::GuardReset => {
                session.reset();
                forgotten(&call.session_id)
            }
            Route::GuardOutcome => told(&reported(&session, &call, body, read_status(body)?)),
            _ if is_paused(&call.session_id) => paused(""),
            _ => judged(json!({ "paused": false }), &session.check(&call.tool, call.args.as_deref())),
        })
    }
}

/// Which of the guard's endpoints a request is for.
fn guarding<B>(request: &Request<B>) -> Option<Route> {
    match find(request.method(), request.uri().path()) {
        Found::Endpoint(route @ (Route::GuardCheck | Route::GuardOutcome | Route::GuardReset), _) => {
            Some(route)
        }
        _ => None,
    }
}

/// The guard of the session, or of a part of it that is named.
fn scoped(session: GuardSession, body: &Value) -> GuardSession {
    match body["scope"].as_str() {
        Some(scope) => session.scope(scope),
        None => session,
    }
}

/// What came of a call.
fn reported(session: &GuardSession, call: &Call, body: &Value, status: Option<Status>) -> GuardReport {
    let result = text_of(&body["result"]);
    session.outcome(&Step {
        tool: Some(&call.tool),
        args: call.args.as_deref(),
        result: result.as_deref(),
        status,
        ..Step::default()
    })
}

/// The answer about a call, beside what else there is to say.
fn judged(mut answer: Value, verdict: &GuardVerdict) -> Response<Reply> {
    answer["allowed"] = verdict.allowed.into();
    answer["detector"] = json!(verdict.detector.map(loopbreaker::DetectorName::as_str));
    answer["kind"] = json!(verdict.kind.map(loopbreaker::Kind::as_str));
    answer["count"] = verdict.count.into();
    answer["threshold"] = verdict.threshold.into();
    answer["strikes"] = verdict.strikes.into();
    answer["feedback"] = json!(verdict.feedback);
    // The answer that the agent has in its transcript still holds.
    if let Some(step) = verdict.unchanged_since {
        answer["unchanged_since"] = step.into();
    }
    json_reply(200, &answer)
}

/// The answer about a call of a session that an operator holds.
fn paused(reason: &str) -> Response<Reply> {
    let why = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
    let blocked = json!({
        "allowed": false, "detector": null, "kind": null, "count": 0, "threshold": 0, "strikes": 0,
        "feedback": format!("An operator has paused this session{why}. Wait, then ask again."), "paused": true,
    });
    json_reply(200, &blocked)
}

/// The answer to an outcome.
fn told(report: &GuardReport) -> Response<Reply> {
    let findings: Vec<Value> = report.findings.iter().map(finding_json).collect();
    json_reply(200, &json!({ "findings": findings, "action": report.action.as_str(), "hint": report.hint }))
}

/// The answer to a reset.
fn forgotten(session_id: &str) -> Response<Reply> {
    json_reply(200, &json!({ "session_id": session_id }))
}

impl Thresholds {
    /// The guard of a session of this tenant.
    fn guard_of(&self, tenant: &str, session_id: &str) -> GuardSession {
        self.guard().session(&format!("{tenant}\0{session_id}"))
    }
}

impl Shared {
    /// The guard of a session of this tenant.
    fn guard_of(&self, tenant: &str, session_id: &str) -> GuardSession {
        self.thresholds.guard_of(tenant, session_id)
    }

    /// The session is over: a later one of its name begins anew.
    pub(crate) fn free_guard(&self, tenant: &str, session_id: &str) {
        self.guard_of(tenant, session_id).free();
    }
}

fn read_status(body: &Value) -> Result<Option<Status>, Box<Response<Reply>>> {
    let status = body["status"].as_str().and_then(Status::parse);
    if body["status"].is_null() || status.is_some() {
        return Ok(status);
    }
    let message = "must be one of success, failure, pending, skipped";
    Err(Box::new(violations(&[("status".to_owned(), message.to_owned())])))
}

fn read_call(body: &Value, with_tool: bool) -> Result<Call, Box<Response<Reply>>> {
    let mut problems = Vec::new();
    let mut required = |field: &str| match &body[field] {
        Value::String(text) if !text.is_empty() => text.clone(),
        Value::Null => {
            problems.push((field.to_owned(), "is required".to_owned()));
            String::new()
        }
        _ => {
            problems.push((field.to_owned(), "must be a string that is not empty".to_owned()));
            String::new()
        }
    };
    let session_id = required("session_id");
    let tool = if with_tool { required("tool") } else { String::new() };
    if !matches!(body["scope"], Value::Null | Value::String(_)) {
        problems.push(("scope".to_owned(), "must be a string".to_owned()));
    }
    if problems.is_empty() {
        Ok(Call { session_id, tool, args: text_of(&body["args"]) })
    } else {
        Err(Box::new(violations(&problems)))
    }
}

/// JSON as text; a text is taken as it is.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
