//! Endpoints of our own: health, metrics, and the operator's hand on a session.

use std::net::IpAddr;

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
    /// Answers a request to one of our own endpoints, on a port that only this machine can reach or on another.
    pub(crate) async fn control(&self, request: Request<Incoming>, is_local: bool) -> Response<Reply> {
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
            _ => self.operate(request, is_local).await,
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
    let text =
        |name| headers.get(name).map(|value: &hyper::header::HeaderValue| value.to_str().unwrap_or("?"));
    let of_origin = |origin: &str| {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        host.is_some_and(is_loopback)
    };
    text(HOST).is_none_or(is_loopback) && text(ORIGIN).is_none_or(of_origin)
}

/// Whether a host, with or without a port, is a name of this machine. `127.0.0.1.example.com` is none.
fn is_loopback(host: &str) -> bool {
    let without_port = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = without_port.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    without_port.eq_ignore_ascii_case("localhost")
        || address.unwrap_or(without_port).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

pub(crate) fn json_error(status: u16, code: &str, message: &str) -> Response<Reply> {
    with(status, "application/json", json!({ "error": code, "message": message }).to_string())
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn only_names_of_this_machine_are_local() {
        for host in ["localhost", "LocalHost:4141", "127.0.0.1", "127.0.0.53:80", "[::1]:4141", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "127.0.0.1.example.com",
            "127.evil",
            "localhost.evil",
            "evil:80",
            "[::1].evil",
            "",
            "0.0.0.0",
            "::",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
