//! The operator's hand on a session: pause, resume, reject, inject.
//!
//! The observatory keeps such orders and tells us of them. A session that it does not know, since nothing is kept or
//! nothing was said yet, obeys all the same: whoever wants to stop an agent must be able to.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use loopbreaker_observatory::{Order, decoded};
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
    reason: Option<String>,
}

/// Who orders, and whose session is meant.
struct Ordering<'r> {
    operator: &'r str,
    session: String,
    action: &'r str,
    /// The tenant that the operator named, if one was.
    tenant: Option<String>,
    body: &'r Bytes,
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
        let path = parts.uri.path();
        let Some((session, action)) = path.strip_prefix(SESSIONS).and_then(|rest| rest.rsplit_once('/'))
        else {
            return json_error(404, "not_found", "there is no such endpoint");
        };
        let session = decoded(session);
        let of_header = visitor.caller.tenant.as_deref().map(str::to_owned);
        let of_query = || parts.uri.query().and_then(tenant_in);
        let mut ordering = Ordering {
            operator: &operator,
            tenant: of_header.or_else(of_query),
            session,
            action,
            body: &body,
        };
        if let Some(running) = self.shared.observing.running() {
            let ask = || {
                running.answer(
                    Request::from_parts(parts.clone(), Full::new(body.clone())),
                    visitor.caller.clone(),
                )
            };
            let mut response = ask().await;
            if response.status() == 404
                && let [tenant] = &self.tenants_elsewhere(&ordering).await[..]
            {
                running.observatory.expect(tenant, &ordering.session);
                response = ask().await;
            }
            if response.status() != 404 {
                if response.status().is_success() && ordering.action == "resume" {
                    // It may not be paused any more, and refused all the same.
                    for run in self.shared.sessions.named(&ordering.session) {
                        if ordering.tenant.as_ref().is_none_or(|tenant| run.tenant() == RunName::tag(tenant))
                        {
                            self.shared.pauses.refusals.lift(run);
                        }
                    }
                }
                let is_decided = response.status().is_success() && ordering.action != "inject";
                if is_decided && self.shared.obedience.must_be_told_elsewhere() {
                    // The session may be held by a process whose log does not know what this one knows.
                    let named = ordering.tenant.take();
                    ordering.tenant =
                        running.observatory.tenant_of(&ordering.session, named.as_deref()).await;
                    if ordering.tenant.is_some() {
                        self.operate_here(ordering).await;
                    }
                }
                return response;
            }
        }
        if parts.method != Method::POST {
            return json_error(405, "method_not_allowed", "use POST");
        }
        self.operate_here(ordering).await
    }

    async fn operate_here(&self, ordering: Ordering<'_>) -> Response<Reply> {
        let Ordering { operator, session, action, body, .. } = &ordering;
        let asked: Asked = match serde_json::from_slice(body) {
            Ok(asked) => asked,
            Err(_) if body.trim_ascii().is_empty() => Asked::default(),
            Err(error) => return json_error(400, "bad_request", &format!("the order is not JSON: {error}")),
        };
        let runs = self.named(&ordering).await;
        let run = match runs[..] {
            [run] => run,
            [] => return json_error(404, "not_found", "no session of that id has been seen"),
            _ => return json_error(409, "conflict", "several tenants have a session of that id"),
        };
        let (state, order, note) = match *action {
            "pause" => {
                let reason = asked.reason.unwrap_or_default();
                ("paused", Order::Pause { reason }, "it is paused already")
            }
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

    /// The sessions that are meant, at this process or at any other.
    async fn named(&self, ordering: &Ordering<'_>) -> Vec<RunName> {
        let mut runs = self.shared.sessions.named(&ordering.session);
        if let Some(tenant) = &ordering.tenant {
            runs.retain(|run| run.tenant() == RunName::tag(tenant));
        }
        for tenant in self.tenants_elsewhere(ordering).await {
            let run = RunName::of(&tenant, &ordering.session);
            if !runs.contains(&run) {
                runs.push(run);
            }
        }
        runs
    }

    /// Tenants whose session may be meant, as all processes know them.
    async fn tenants_elsewhere(&self, ordering: &Ordering<'_>) -> Vec<String> {
        let Some(fleet) = &self.shared.fleet else { return Vec::new() };
        let mut tenants = fleet.tenants_of(RunName::hash(&ordering.session)).await;
        tenants.retain(|tenant| ordering.tenant.as_ref().is_none_or(|meant| meant == tenant));
        tenants
    }
}

/// The tenant that a query names.
fn tenant_in(query: &str) -> Option<String> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix("tenant="))?;
    Some(decoded(value.replace('+', " "))).filter(|tenant| !tenant.is_empty())
}

const MAX_ORDER: usize = 64 << 10;
