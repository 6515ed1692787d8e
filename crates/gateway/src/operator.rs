//! The operator's hand on a session where no observatory is: pause, resume, reject, and nothing is kept of it.

use http_body_util::{BodyExt, Limited};
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
    pub(crate) async fn operate(&self, request: Request<Incoming>, visitor: &Visitor) -> Response<Reply> {
        if visitor.caller.operator.is_none() {
            return json_error(403, "forbidden", "this needs the role `operator`");
        }
        let path = request.uri().path().to_owned();
        let order = path.strip_prefix("/api/v1/sessions/").and_then(|rest| rest.rsplit_once('/'));
        let Some((session, action)) = order else {
            return json_error(404, "not_found", "there is no such endpoint");
        };
        if request.method() != Method::POST {
            return json_error(405, "method_not_allowed", "use POST");
        }
        let (session, action) = (session.to_owned(), action.to_owned());
        let Ok(body) = Limited::new(request.into_body(), MAX_ORDER).collect().await else {
            return json_error(413, "too_large", "an order has at most 64 KiB");
        };
        let body = body.to_bytes();
        let order: Order = match serde_json::from_slice(&body) {
            Ok(order) => order,
            Err(_) if body.trim_ascii().is_empty() => Order::default(),
            Err(error) => return json_error(400, "bad_request", &format!("the order is not JSON: {error}")),
        };
        let runs = self.shared.sessions.named(&session);
        let run = match runs[..] {
            [run] => run,
            [] => return json_error(404, "not_found", "no session of that id has been seen"),
            _ => return json_error(409, "conflict", "several tenants have a session of that id"),
        };
        let pauses = &self.shared.pauses;
        let (state, changed, note) = match action.as_str() {
            "pause" => ("paused", pauses.pause(run, self.shared.now()), "it is paused already"),
            "resume" => ("active", pauses.resume(run), "it is not paused"),
            "reject" => {
                let message = order.message.as_deref().unwrap_or("an operator has stopped this session");
                ("active", pauses.reject(run, message), "it is not paused")
            }
            _ => return json_error(404, "not_found", "orders are pause, resume and reject"),
        };
        let mut answer = json!({ "session_id": session, "state": state });
        if !changed {
            answer["note"] = note.into();
        }
        with(200, "application/json", answer.to_string())
    }
}

const MAX_ORDER: usize = 64 << 10;
