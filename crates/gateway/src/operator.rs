//! The operator's hand on a session: pause, resume, reject, inject.
//!
//! The observatory keeps such orders and tells us of them. A session that it does not know, since nothing is kept or
//! nothing was said yet, obeys all the same: whoever wants to stop an agent must be able to.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use loopbreaker_observatory::Order;
use serde::Deserialize;
use serde_json::json;

use crate::access::Visitor;
use crate::control::{SESSIONS, json_error};
use crate::pipeline::Worker;
use crate::reply::{Reply, with};
use crate::sessions::RunName;
use crate::timely::Timely;

#[derive(Default, Deserialize)]
struct Asked {
    message: Option<String>,
}

impl Worker {
    /// `POST /api/v1/sessions/{id}/{pause|resume|reject|inject}`.
    pub(crate) async fn operate(&self, request: Request<Incoming>, visitor: Visitor) -> Response<Reply> {
        let Some(operator) = visitor.caller.operator.clone() else {
            return json_error(403, "forbidden", "this needs the role `operator`");
        };
        let (parts, body) = request.into_parts();
        let body = match Limited::new(Timely::of(body), MAX_ORDER).collect().await {
            Ok(body) => body.to_bytes(),
            Err(problem) if problem.is::<LengthLimitError>() => {
                return json_error(413, "too_large", "an order has at most 64 KiB");
            }
            Err(_) => return json_error(408, "too_slow", "the order stopped before its end; send it again"),
        };
        self.shared.observing.catch_up().await;
        if let Some(running) = self.shared.observing.running() {
            let asked = Request::from_parts(parts.clone(), Full::new(body.clone()));
            let response = running.answer(asked, visitor.caller).await;
            let is_decided = !parts.uri.path().ends_with(INJECT);
            if response.status() != 404 {
                if is_decided
                    && response.status().is_success()
                    && self.shared.obedience.must_be_told_elsewhere()
                {
                    // The session may be held by a process whose log this one cannot read.
                    self.operate_here(parts.uri.path(), &operator, &body).await;
                }
                return response;
            }
        }
        if parts.method != Method::POST {
            return json_error(405, "method_not_allowed", "use POST");
        }
        self.operate_here(parts.uri.path(), &operator, &body).await
    }

    async fn operate_here(&self, path: &str, operator: &str, body: &Bytes) -> Response<Reply> {
        let order = path.strip_prefix(SESSIONS).and_then(|rest| rest.rsplit_once('/'));
        let Some((session, action)) = order else {
            return json_error(404, "not_found", "there is no such endpoint");
        };
        let asked: Asked = match serde_json::from_slice(body) {
            Ok(asked) => asked,
            Err(_) if body.trim_ascii().is_empty() => Asked::default(),
            Err(error) => return json_error(400, "bad_request", &format!("the order is not JSON: {error}")),
        };
        let runs = self.named(session).await;
        let run = match runs[..] {
            [run] => run,
            [] => return json_error(404, "not_found", "no session of that id has been seen"),
            _ => return json_error(409, "conflict", "several tenants have a session of that id"),
        };
        let (state, order, note) = match action {
            "pause" => ("paused", Order::Pause { reason: String::new() }, "it is paused already"),
            "resume" => ("active", Order::Resume, "it is not paused"),
            "inject" => {
                let Some(message) = asked.message.filter(|message| !message.is_empty()) else {
                    return json_error(422, "schema_violation", "`message` says what the agent is told");
                };
                let state = if self.shared.pauses.is_paused(run) { "paused" } else { "active" };
                (state, Order::Inject { message }, "")
            }
            _ => {
                let message = asked.message.as_deref().unwrap_or("an operator has stopped this session");
                ("active", Order::Reject { message: message.to_owned() }, "it is not paused")
            }
        };
        let changed = self.shared.obedience.order(run, session, operator, order);
        let mut answer = json!({ "session_id": session, "state": state });
        // With several processes, it may be another one that knows of the pause.
        if !changed && self.shared.fleet.is_none() {
            answer["note"] = note.into();
        }
        with(200, "application/json", answer.to_string())
    }

    /// The sessions that are called so, at this process or at any other.
    async fn named(&self, session: &str) -> Vec<RunName> {
        let mut runs = self.shared.sessions.named(session);
        if let Some(fleet) = &self.shared.fleet {
            let tenants = fleet.tenants_of(RunName::hash(session)).await;
            let elsewhere = tenants.into_iter().map(|tenant| RunName::tagged(tenant, session));
            runs.extend(elsewhere.filter(|run| !runs.contains(run)).collect::<Vec<_>>());
        }
        runs
    }
}

const MAX_ORDER: usize = 64 << 10;
/// The order that decides nothing about calls that are held.
const INJECT: &str = "/inject";
