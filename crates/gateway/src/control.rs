//! Endpoints of our own: health, metrics, and the operator's hand on a session.

use hyper::body::Incoming;
use hyper::header::{HOST, HeaderMap, ORIGIN};
use hyper::{Request, Response};
use loopbreaker_config::State;
use loopbreaker_telemetry::Part;
use serde_json::json;

use crate::decision;
use crate::pipeline::Worker;
use crate::reply::{Reply, with};

/// Whether a path is one of ours, which no provider sees.
pub(crate) fn is_own(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz" | "/metrics")
        || path.starts_with("/api/v1/")
        || decision::is_asked(path)
}

impl Worker {
    /// Answers a request to one of our own endpoints.
    pub(crate) async fn control(&self, request: Request<Incoming>) -> Response<Reply> {
        let path = request.uri().path();
        if decision::is_asked(path) {
            return self.decide(request).await;
        }
        match path {
            "/livez" => with(200, "text/plain; charset=utf-8", "ok\n"),
            "/readyz" => self.readiness(),
            "/metrics" => {
                let metrics = &self.shared.telemetry.metrics;
                metrics.set_sessions(self.shared.sessions.len() as u64);
                with(200, "text/plain; version=0.0.4; charset=utf-8", metrics.render())
            }
            _ => self.operate(request).await,
        }
    }

    /// Each part with its state. Requests can be served unless the gateway is on its way out.
    fn readiness(&self) -> Response<Reply> {
        let shared = &self.shared;
        let settings = shared.settings();
        let degraded: Vec<&str> = shared.telemetry.metrics.degraded().map(Part::as_str).collect();
        let open = shared.open_breakers();
        let status = if shared.is_draining() {
            "draining"
        } else if degraded.is_empty() && open.is_empty() {
            "ready"
        } else {
            "degraded"
        };
        let state = match &settings.config.state {
            State::Memory => "memory",
            _ => "redis",
        };
        let body = json!({
            "status": status,
            "degraded": degraded,
            "parts": {
                "gateway": if shared.is_draining() { "draining" } else { "ok" },
                "policies": settings.policies.len(),
                "state": state,
                "sessions": shared.sessions.len(),
                "open_breakers": open,
            },
        });
        with(if shared.is_draining() { 503 } else { 200 }, "application/json", format!("{body}\n"))
    }
}

/// Whether a request to the API comes from this machine and was not made by a foreign web page.
///
/// A page that resolves its own name to 127.0.0.1 still sends that name as `Host`, and its own origin.
pub(crate) fn is_local(headers: &HeaderMap) -> bool {
    let name_of = |value: &str| {
        let value = value.trim_start_matches("http://").trim_start_matches("https://");
        let host = value.strip_prefix('[').and_then(|rest| rest.split(']').next());
        host.unwrap_or_else(|| value.split(':').next().unwrap_or_default()).to_ascii_lowercase()
    };
    let is_loopback = |name: &str| name == "localhost" || name == "::1" || name.starts_with("127.");
    let text =
        |name| headers.get(name).map(|value: &hyper::header::HeaderValue| value.to_str().unwrap_or("?"));
    text(HOST).is_none_or(|host| is_loopback(&name_of(host)))
        && text(ORIGIN).is_none_or(|origin| is_loopback(&name_of(origin)))
}

pub(crate) fn json_error(status: u16, code: &str, message: &str) -> Response<Reply> {
    with(status, "application/json", json!({ "error": code, "message": message }).to_string())
}
