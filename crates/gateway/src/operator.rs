//! The operator's hand on a session: pause, resume, reject.

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderMap};
use hyper::{Method, Request, Response};
use loopbreaker_config::{Admin, Role};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::control::{is_local, json_error};
use crate::pipeline::Worker;
use crate::reply::{Reply, with};

#[derive(Default, Deserialize)]
struct Order {
    message: Option<String>,
}

impl Worker {
    /// `POST /api/v1/sessions/{id}/{pause|resume|reject}`.
    pub(crate) async fn operate(&self, request: Request<Incoming>, is_local: bool) -> Response<Reply> {
        let settings = self.shared.settings();
        if let Err(refusal) = may_operate(&settings.config.admin, request.headers(), is_local) {
            return *refusal;
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
        let accounts = self.shared.sessions.named(&session);
        let account = match accounts[..] {
            [account] => account,
            [] => return json_error(404, "not_found", "no session of that id has been seen"),
            _ => return json_error(409, "conflict", "several tenants have a session of that id"),
        };
        let pauses = &self.shared.pauses;
        let (state, changed, note) = match action.as_str() {
            "pause" => ("paused", pauses.pause(account, self.shared.now()), "it is paused already"),
            "resume" => ("active", pauses.resume(account), "it is not paused"),
            "reject" => {
                let message = order.message.as_deref().unwrap_or("an operator has stopped this session");
                ("active", pauses.reject(account, message), "it is not paused")
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

/// Whether the one who asks is an operator: by token where tokens are configured, else by asking from this machine.
fn may_operate(admin: &Admin, headers: &HeaderMap, is_local_port: bool) -> Result<(), Box<Response<Reply>>> {
    if admin.tokens.is_empty() {
        return if is_local_port && is_local(headers) {
            Ok(())
        } else {
            Err(Box::new(json_error(403, "forbidden", "without tokens the API answers this machine only")))
        };
    }
    let bearer = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    match bearer.and_then(|token| role_of(admin, token)) {
        Some(Role::Operator) => Ok(()),
        Some(_) => Err(Box::new(json_error(403, "forbidden", "this needs the role `operator`"))),
        None => Err(Box::new(json_error(401, "unauthorized", "send `Authorization: Bearer <token>`"))),
    }
}

/// The role of a token. Every token is compared, and each comparison takes the same time.
fn role_of(admin: &Admin, token: &[u8]) -> Option<Role> {
    let hash: [u8; 32] = Sha256::digest(token).into();
    let mut found = None;
    for known in &admin.tokens {
        let difference = known.sha256.iter().zip(&hash).fold(0, |difference, (a, b)| difference | (a ^ b));
        if difference == 0 {
            found = Some(known.role);
        }
    }
    found
}

const MAX_ORDER: usize = 64 << 10;
