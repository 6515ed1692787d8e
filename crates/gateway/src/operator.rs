//! The operator's hand on a session: pause, resume, reject.
//!
//! The observatory keeps such orders and tells us of them. A session that it does not know, since nothing is kept or
//! nothing was said yet, obeys all the same: whoever wants to stop an agent must be able to.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use serde::Deserialize;
use serde_json::json;

use crate::access::Visitor;
use crate::control::json_error;
use crate::pipeline::Worker;
use crate::reply::{Reply, with};

#[derive(Default, Deserialize)]
struct Order {
    message: Option<String>,
}

impl Worker {
    /// `POST /api/v1/sessions/{id}/{pause|resume|reject}`.
    pub(crate) async fn operate(&self, request: Request<Incoming>, visitor: Visitor) -> Response<Reply> {
        if visitor.caller.operator.is_none() {
            return json_error(403, "forbidden", "this needs the role `operator`");
        }
        let (parts, body) = request.into_parts();
        let Ok(body) = Limited::new(body, MAX_ORDER).collect().await else {
            return json_error(413, "too_large", "an order has at most 64 KiB");
        };
        let body = body.to_bytes();
        if let Some(running) = self.shared.observing.running() {
            // What was seen of the session a moment ago is known there by then.
            running.catch_up(CATCH_UP).await;
            let asked = Request::from_parts(parts.clone(), Full::new(body.clone()));
            let response = running.answer(asked, visitor.caller).await;
            if response.status() != 404 {
                return response;
            }
        }
        if parts.method != Method::POST {
            return json_error(405, "method_not_allowed", "use POST");
        }
        self.operate_here(parts.uri.path(), &body)
    }

    fn operate_here(&self, path: &str, body: &Bytes) -> Response<Reply> {
        let order = path.strip_prefix("/api/v1/sessions/").and_then(|rest| rest.rsplit_once('/'));
        let Some((session, action)) = order else {
            return json_error(404, "not_found", "there is no such endpoint");
        };
        let order: Order = match serde_json::from_slice(body) {
            Ok(order) => order,
            Err(_) if body.trim_ascii().is_empty() => Order::default(),
            Err(error) => return json_error(400, "bad_request", &format!("the order is not JSON: {error}")),
        };
        let runs = self.shared.sessions.named(session);
        let run = match runs[..] {
            [run] => run,
            [] => return json_error(404, "not_found", "no session of that id has been seen"),
            _ => return json_error(409, "conflict", "several tenants have a session of that id"),
        };
        let pauses = &self.shared.pauses;
        let (state, changed, note) = match action {
            "pause" => ("paused", pauses.pause(run, self.shared.now()), "it is paused already"),
            "resume" => ("active", pauses.resume(run), "it is not paused"),
            _ => {
                let message = order.message.as_deref().unwrap_or("an operator has stopped this session");
                ("active", pauses.reject(run, message), "it is not paused")
            }
        };
        let mut answer = json!({ "session_id": session, "state": state });
        if !changed {
            answer["note"] = note.into();
        }
        with(200, "application/json", answer.to_string())
    }
}

const MAX_ORDER: usize = 64 << 10;
/// An order does not wait for longer than this for what is on its way into the log.
const CATCH_UP: Duration = Duration::from_millis(500);
