//! The decision endpoint: what would be done with a request, for proxies that send their traffic themselves.

use std::time::{Instant, SystemTime};

use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};
use loopbreaker::Action;
use loopbreaker_config::Dialect as Provider;
use loopbreaker_dialect::Dialect;
use loopbreaker_telemetry::{Part, Record};

use crate::consider::{Case, Looked};
use crate::credentials;
use crate::decode::{Encoding, decode};
use crate::inbound::{self, Inbound, Start};
use crate::limits::query_value;
use crate::pipeline::{Worker, add_verdict, loop_detected, nobody_decided, still_paused};
use crate::reply::{Reply, refuse, with};
use crate::route;
use crate::settings::Settings;
use crate::verdict::Refused;

/// The path of the endpoint; what stands behind it is the original path.
pub(crate) const PATH: &str = "/v1/decision";

/// Whether a request is one for a decision.
pub(crate) fn is_asked(path: &str) -> bool {
    path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Worker {
    /// 200 to allow, 429 (or what `?deny=` asks for) to refuse, with the same headers as the gateway itself.
    pub(crate) async fn decide(&self, request: Request<Incoming>) -> Response<Reply> {
        let (at, arrived) = (SystemTime::now(), Instant::now());
        let settings = self.shared.settings();
        let (parts, body) = request.into_parts();
        let denied_with = denied_with(parts.uri.query().unwrap_or_default());
        let original = Original::of(&parts.headers, &parts.uri, parts.method.as_str());
        let dialect = route::dialect(original.path());
        let came = match inbound::beginning(Inbound::Hyper(body), inbound::MAX_BODY).await {
            Ok(Start { bytes, rest: None, .. }) => Some(bytes),
            Ok(Start { rest: Some(_), .. }) | Err(_) => None,
        };
        let body = came.clone().unwrap_or_default();
        let decoded = match Encoding::of(&parts.headers) {
            Encoding::Plain => Some(body),
            Encoding::Coded(coding) => decode(coding, &body, inbound::MAX_BODY).map(bytes::Bytes::from),
            Encoding::Unknown => None,
        };
        let read = Instant::now();
        // A proxy that asks without the body, as nginx does, gets what can be said without it.
        let has_body = decoded.as_ref().is_some_and(|body| !body.is_empty());
        let mut headers = parts.headers;
        let destination = route::destination(&original.path_and_query, &headers, &settings.config.upstreams);
        if let Some(destination) = &destination {
            credentials::leave_foreign_out(&mut headers, destination, &settings.config.upstreams);
        }
        if let (false, Some(host)) = (original.is_in_path, headers.get("x-original-host").cloned()) {
            headers.insert(hyper::header::HOST, host);
        }
        let looked = Looked {
            method: &original.method,
            path: original.path(),
            query: original.query(),
            headers: &headers,
            provider: destination.as_ref().map_or(Provider::OpenAi, |to| to.provider),
            dialect: dialect.filter(|_| has_body),
            body: decoded.as_ref().filter(|_| has_body),
            came: came.as_ref(),
        };
        let mut case = self.consider(&settings, &looked).await;
        case.keep_transcript(&self.shared, dialect);
        self.compare(&settings, &mut case, &looked).await;
        case.write_down(&self.shared, dialect, at);

        let refused = self.refusal(&settings, &mut case, dialect);
        let mut response = if let Some(refused) = &refused {
            let mut response = refuse(dialect, refused.code, refused.status, &refused.message);
            refused.add_headers(response.headers_mut());
            response
        } else {
            case.ticket.keep();
            with(200, "application/json", r#"{"decision":"allow"}"#)
        };
        add_verdict(response.headers_mut(), &case);
        if let Some((owner, ending)) = case.ending.take().filter(|_| refused.is_none()) {
            // Whoever asks here sends it by itself.
            self.shared.reminders.remember(owner, &ending);
        }
        if let Some(Ok(hint)) = case.verdict.hint.as_deref().map(header_text) {
            response.headers_mut().insert(HINT, hint);
        }
        if !has_body && case.is_told() {
            response.headers_mut().insert(DEGRADED, HeaderValue::from_static(Part::Body.as_str()));
        }
        if let (Some(_), Some(status)) = (&refused, denied_with) {
            let real = response.status().as_u16();
            response.headers_mut().insert(STATUS, real.into());
            *response.status_mut() = status;
        }
        let asked = case.record(&looked, at, &"".into());
        self.shared.telemetry.record(Record {
            status: response.status().as_u16(),
            verdict: case.verdict.action,
            findings: std::mem::take(&mut case.verdict.notes),
            refusal: refused.map(|refused| refused.code.code()),
            overhead: read.elapsed(),
            duration: arrived.elapsed(),
            degraded: case.degraded,
            ..asked
        });
        response
    }

    /// Why a request would go no further. Nobody waits here: one that would be held is refused.
    fn refusal(&self, settings: &Settings, case: &mut Case<'_>, dialect: Option<Dialect>) -> Option<Refused> {
        if case.verdict.action == Action::Reject {
            return Some(case.verdict.refusal.clone().unwrap_or_else(loop_detected));
        }
        if let Some(refused) = self.still_rejected(case) {
            return Some(refused);
        }
        if let Some(pause) = self.pause(case, dialect) {
            if let Some(words) = pause.rejection() {
                return Some(self.rejected(case, &words));
            }
            let is_over = pause.is_over(settings.config.pause.timeout, self.shared.now());
            case.verdict.action = if is_over { Action::Reject } else { Action::Pause };
            let refusal = case.verdict.refusal.clone();
            return Some(if is_over { refusal.unwrap_or_else(nobody_decided) } else { still_paused() });
        }
        let refused = self.reserve(case).err()?;
        case.verdict.action = Action::Reject;
        Some(*refused)
    }
}

/// What a proxy tells of its client's request. Proxies hand on bytes that stand in no URI as they came; were they not read,
/// whoever adds one would be judged as another request.
fn written(value: &HeaderValue) -> String {
    let mut text = String::with_capacity(value.len());
    for &byte in value.as_bytes() {
        if byte.is_ascii() {
            text.push(char::from(byte));
        } else {
            let digits =
                [byte >> 4, byte & 15].map(|digit| char::from(b"0123456789ABCDEF"[usize::from(digit)]));
            text.push('%');
            text.extend(digits);
        }
    }
    text
}

/// Path and query of a target, which may come with the host before it or a fragment behind it.
fn in_origin_form(target: &str) -> &str {
    let target = target.split('#').next().unwrap_or_default();
    match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains(['/', '?']) => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => target,
    }
}

/// The request that is asked about.
struct Original {
    method: String,
    path_and_query: String,
    /// Whether it is told by the path, so that headers say nothing about it.
    is_in_path: bool,
}

impl Original {
    /// From what stands behind the endpoint's own path, else from the headers that proxies set. A proxy that uses the
    /// path sets no such headers, so those that are there are its client's, who would like to be judged as another.
    fn of(headers: &HeaderMap, uri: &hyper::Uri, method: &str) -> Self {
        let behind = uri.path().strip_prefix(PATH).filter(|rest| !rest.is_empty()).map(|path| {
            let others = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.starts_with("deny="));
            let query = others.collect::<Vec<_>>().join("&");
            if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
        });
        let is_in_path = behind.is_some();
        let header = |name| headers.get(name).filter(|_| !is_in_path).map(written);
        let target = || header("x-original-uri").map(|uri| in_origin_form(&uri).to_owned());
        Self {
            method: header("x-original-method").unwrap_or_else(|| method.to_owned()),
            path_and_query: behind.or_else(target).unwrap_or_else(|| "/".to_owned()),
            is_in_path,
        }
    }

    fn path(&self) -> &str {
        self.path_and_query.split('?').next().unwrap_or_default()
    }

    fn query(&self) -> &str {
        self.path_and_query.split_once('?').map_or("", |(_, query)| query)
    }
}

/// The status that a refusal shall have. Where the original path stands behind the endpoint, its client may write this
/// too, so it is one that no proxy takes for a permission, nor for a failure of ours that it should overlook.
fn denied_with(query: &str) -> Option<StatusCode> {
    query_value(query, "deny").parse().ok().filter(StatusCode::is_client_error)
}

/// A text as it can stand in a header: on one line, and without what is no ASCII.
fn header_text(text: &str) -> Result<HeaderValue, hyper::header::InvalidHeaderValue> {
    let line: String = text.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect();
    HeaderValue::from_str(&line)
}

const HINT: HeaderName = HeaderName::from_static("x-loopbreaker-hint");
const DEGRADED: HeaderName = HeaderName::from_static("x-loopbreaker-degraded");
const STATUS: HeaderName = HeaderName::from_static("x-loopbreaker-status");

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderMap, HeaderValue};

    use super::{Original, denied_with, header_text, is_asked};

    #[test]
    fn only_the_endpoint_itself_and_what_is_below_it_is_a_question() {
        assert!(is_asked("/v1/decision"));
        assert!(is_asked("/v1/decision/v1/chat/completions"));
        assert!(!is_asked("/v1/decisions"));
    }

    #[test]
    fn what_a_client_adds_to_the_original_target_does_not_hide_its_path() {
        for (target, path, query) in [
            (&b"/v1/responses?x=\xfc"[..], "/v1/responses", "x=%FC"),
            (b"/v1/responses#part", "/v1/responses", ""),
            (b"/v1/responses?a=b#\xff", "/v1/responses", "a=b"),
            (b"http://api.example.com/v1/responses?a=b", "/v1/responses", "a=b"),
            (b"http://api.example.com", "/", ""),
            (b"/v1/responses?to=http://api.example.com/x", "/v1/responses", "to=http://api.example.com/x"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("x-original-uri", HeaderValue::from_bytes(target).unwrap());
            let original = Original::of(&headers, &"/v1/decision".parse().unwrap(), "POST");
            assert_eq!((original.path(), original.query()), (path, query), "{:?}", target.escape_ascii());
        }
    }

    #[test]
    fn the_original_request_is_told_by_headers_or_by_the_path() {
        let mut headers = HeaderMap::new();
        let uri = "/v1/decision/v1/messages?beta=true".parse().unwrap();
        let original = Original::of(&headers, &uri, "POST");
        assert_eq!((original.path(), original.method.as_str()), ("/v1/messages", "POST"));
        assert_eq!(original.query(), "beta=true");
        let denying = "/v1/decision/v1/messages?deny=403".parse().unwrap();
        assert_eq!(Original::of(&headers, &denying, "POST").query(), "", "that one is for us");
        headers.insert("x-original-uri", HeaderValue::from_static("/v1/responses?a=b"));
        headers.insert("x-original-method", HeaderValue::from_static("PUT"));
        let original = Original::of(&headers, &"/v1/decision".parse().unwrap(), "GET");
        assert_eq!(
            (original.path(), original.query(), original.method.as_str()),
            ("/v1/responses", "a=b", "PUT")
        );
        let original = Original::of(&headers, &uri, "POST");
        assert_eq!(
            (original.path(), original.method.as_str()),
            ("/v1/messages", "POST"),
            "headers of a client do not change what its proxy said"
        );
    }

    #[test]
    fn a_refusal_cannot_be_asked_to_look_like_a_permission_or_a_failure() {
        for query in
            ["deny=200", "deny=204", "deny=101", "deny=302", "deny=500", "deny=503", "deny=999", "deny="]
        {
            assert_eq!(denied_with(query), None, "{query}");
        }
        assert_eq!(denied_with("a=b&deny=403"), Some(hyper::StatusCode::FORBIDDEN));
    }

    #[test]
    fn a_hint_in_a_header_stays_on_one_line() {
        assert_eq!(header_text("a\r\nX-Evil: b \u{e9}").unwrap(), "a??X-Evil: b ?");
    }
}
