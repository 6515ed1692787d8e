//! Endpoints of our own: health, metrics, the API and the dashboard.

use std::net::IpAddr;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, ETAG, HOST, HeaderMap, HeaderName, HeaderValue,
    IF_NONE_MATCH, ORIGIN,
};
use hyper::{Method, Request, Response};
use loopbreaker_dashboard::Asset;
use loopbreaker_observatory::{Caller, LoneGuard};
use loopbreaker_telemetry::Part;
use serde_json::json;

use crate::access::{Asked, Visitor};
use crate::decision;
use crate::observe::Observing;
use crate::pipeline::Worker;
use crate::reply::{Reply, with};
use crate::sessions::RunName;
use crate::timely::Timely;

/// Whether a path is one of ours, which no provider sees.
pub(crate) fn is_own(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz" | "/metrics")
        || path.starts_with("/api/v1/")
        || decision::is_asked(path)
        || loopbreaker_dashboard::asset(path).is_some()
}

impl Worker {
    /// Answers a request to one of our own endpoints, on a port that only this machine can reach or on another.
    pub(crate) async fn control(&self, request: Request<Incoming>, is_local: bool) -> Response<Reply> {
        let path = request.uri().path();
        if decision::is_asked(path) {
            return self.decide(request).await;
        }
        if let Some(asset) = loopbreaker_dashboard::asset(path) {
            let admin = &self.shared.settings().config.admin;
            if Visitor::is_stranger(admin, request.headers(), is_local) {
                let message = "without tokens the dashboard is for this machine only; set `admin.tokens`\n";
                return with(403, "text/plain; charset=utf-8", message);
            }
            return page(&request, asset);
        }
        match path {
            "/livez" => with(200, "text/plain; charset=utf-8", "ok\n"),
            "/readyz" => self.readiness(),
            "/metrics" => {
                let metrics = &self.shared.telemetry.metrics;
                metrics.set_sessions(self.shared.sessions.len() as u64);
                metrics.set_degraded(Part::Store, self.shared.observing.failure().is_some());
                let mut page = metrics.render();
                if let Some(meaning) = self.shared.meaning() {
                    page += &meaning.checker.counters().now().prometheus("loopbreaker_semantic");
                }
                with(200, "text/plain; version=0.0.4; charset=utf-8", page)
            }
            "/api/v1/login" => self.log_in(request).await,
            "/api/v1/logout" => self.log_out(),
            _ => self.serve_api(request, is_local).await,
        }
    }

    async fn serve_api(&self, request: Request<Incoming>, is_local: bool) -> Response<Reply> {
        let settings = self.shared.settings();
        let asked = Asked { method: request.method(), headers: request.headers(), is_local };
        let visitor = match Visitor::of(&settings.config.admin, &self.shared.secret, asked) {
            Ok(visitor) => visitor,
            Err(refusal) => return *refusal,
        };
        if request.uri().path() == "/api/v1/whoami" {
            return self.who_am_i(&visitor);
        }
        if request.uri().path() == "/api/v1/probe" {
            return match (request.method(), &visitor.caller.operator) {
                (&Method::POST, Some(_)) => self.probe(),
                (&Method::POST, None) => json_error(403, "forbidden", "this needs the role `operator`"),
                _ => json_error(405, "method_not_allowed", "use POST"),
            };
        }
        if is_order(request.uri().path()) {
            return self.operate(request, visitor).await;
        }
        if self.shared.observing.running().is_none() && LoneGuard::is_asked(&request) {
            return self.guard_alone(request, &visitor.caller).await;
        }
        // Whoever asks sees what has just passed; whoever listens hears of it when it is written down.
        let path = request.uri().path();
        let asks =
            request.method() == Method::GET && path != EVENTS && self.shared.observing.failure().is_none();
        if asks || (request.method() == Method::POST && path.starts_with(SESSIONS)) {
            self.shared.observing.catch_up().await;
        }
        self.shared.observing.answer(request.map(Timely::of), visitor.caller).await
    }

    /// Answers an agent that asks the guard, for as long as nothing is kept: a log that is off or away stops no agent
    /// and lets no loop go on.
    async fn guard_alone(&self, request: Request<Incoming>, caller: &Caller) -> Response<Reply> {
        let shared = &self.shared;
        let is_paused = |session: &str| {
            // To look a name up in all sessions takes long, and hardly ever is one of them paused.
            if shared.pauses.is_empty() {
                return false;
            }
            let named = match &caller.tenant {
                Some(tenant) => vec![RunName::of(tenant, session)],
                None => shared.sessions.named(session),
            };
            matches!(named[..], [run] if shared.pauses.is_paused(run))
        };
        shared.observing.guard(request.map(Timely::of), caller, is_paused).await
    }

    /// Each part with its state. Requests can be served unless the gateway is on its way out.
    fn readiness(&self) -> Response<Reply> {
        let shared = &self.shared;
        let settings = shared.settings();
        let ailing = shared.ailing();
        let degraded: Vec<&str> = ailing.iter().map(|ailing| ailing.part).collect();
        let status = if shared.is_draining() {
            "draining"
        } else if degraded.is_empty() {
            "ready"
        } else {
            "degraded"
        };
        // What the config says of it takes a restart.
        let state = if shared.fleet.is_some() { "redis" } else { "memory" };
        let body = json!({
            "status": status,
            "degraded": degraded,
            "parts": {
                "gateway": if shared.is_draining() { "draining" } else { "ok" },
                "policies": settings.policies.len(),
                "state": state,
                "sessions": shared.sessions.len(),
                "open_breakers": shared.open_breakers(),
                "store": store_state(&shared.observing, shared.observing.failure().as_deref()),
            },
        });
        with(if shared.is_draining() { 503 } else { 200 }, "application/json", format!("{body}\n"))
    }
}

/// A file of the dashboard. It holds no data, so whoever may log in gets it.
fn page(request: &Request<Incoming>, asset: Asset) -> Response<Reply> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return json_error(405, "method_not_allowed", "use GET");
    }
    let header = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let is_known =
        header(IF_NONE_MATCH).is_some_and(|known| known.split(',').any(|tag| tag.trim() == asset.etag));
    let (body, encoding) = asset.encoded(header(ACCEPT_ENCODING).unwrap_or_default());
    let mut response = if is_known {
        with(304, asset.content_type, Bytes::new())
    } else {
        with(200, asset.content_type, Bytes::from_static(body))
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, HeaderValue::from_static(asset.etag));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(asset.cache_control()));
    if let Some(encoding) = encoding {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    for (name, value) in loopbreaker_dashboard::HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

/// How the decision log is doing.
fn store_state(observing: &Observing, failure: Option<&str>) -> serde_json::Value {
    let Some(running) = observing.running() else {
        let state = if failure.is_some() { "failed" } else { "off" };
        return json!({ "state": state, "problem": failure, "unwritten": observing.missed() });
    };
    let health = running.observatory.health();
    json!({
        "state": if failure.is_some() { "failing" } else { "ok" },
        "problem": failure,
        "unwritten": health.unwritten() + health.dropped() + running.journal.dropped() + observing.missed(),
    })
}

/// Where sessions are.
pub(crate) const SESSIONS: &str = "/api/v1/sessions/";
const EVENTS: &str = "/api/v1/events";

/// Whether it is an order that holds without a log as well.
fn is_order(path: &str) -> bool {
    path.starts_with(SESSIONS)
        && ["/pause", "/resume", "/reject", "/inject"].iter().any(|order| path.ends_with(order))
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
