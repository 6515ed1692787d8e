//! Who may use the API and the dashboard: by token where tokens are configured, else by asking from this machine.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderValue, ORIGIN, SET_COOKIE};
use hyper::{Method, Request, Response};
use loopbreaker::Timestamp;
use loopbreaker_config::{Admin, Role, Token};
use loopbreaker_observatory::Caller;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::control::{is_local, json_error};
use crate::pipeline::Worker;
use crate::reply::{Reply, with};
use crate::secret::Secret;
use crate::state::today;
use crate::within::within;

/// Somebody who may ask, and what about.
#[derive(Debug)]
pub(crate) struct Visitor {
    pub(crate) role: Role,
    pub(crate) caller: Caller,
}

/// What is asked of a port, as far as it matters for who may ask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'r> {
    pub(crate) method: &'r Method,
    pub(crate) headers: &'r HeaderMap,
    /// Whether only this machine can reach the port.
    pub(crate) is_local: bool,
}

impl Visitor {
    /// Whether nobody can tell who asks, since there are no tokens, and it is not this machine.
    pub(crate) fn is_stranger(admin: &Admin, headers: &HeaderMap, is_local_port: bool) -> bool {
        admin.tokens.is_empty() && !(is_local_port && is_local(headers))
    }

    /// Who asks, or why they may not.
    pub(crate) fn of(admin: &Admin, secret: &Secret, asked: Asked<'_>) -> Result<Self, Box<Response<Reply>>> {
        let tenant = asked
            .headers
            .get(admin.tenant_header.as_str())
            .and_then(|name| std::str::from_utf8(name.as_bytes()).ok());
        let tenant = tenant.map(str::trim).filter(|name| !name.is_empty()).map(Arc::from);
        if Self::is_stranger(admin, asked.headers, asked.is_local) {
            let message = "without tokens the API answers this machine only; set `admin.tokens`";
            return Err(Box::new(json_error(403, "forbidden", message)));
        }
        if admin.tokens.is_empty() {
            // Another program on this machine may serve pages as well, and what they may read is not for them to change.
            if !asked.method.is_safe() && is_foreign(asked.headers) {
                let message = "a page of another origin may change nothing; set `admin.tokens` and send one";
                return Err(Box::new(json_error(403, "forbidden", message)));
            }
            return Ok(Self { role: Role::Operator, caller: Caller { tenant, ..Caller::local() } });
        }
        let token = match asked.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes) {
            Some(value) => bearer(value).and_then(|token| of_token(admin, token)),
            None => by_cookie(admin, secret, asked)?,
        };
        let Some(token) = token else {
            let message = "send `Authorization: Bearer <token>`, or log in at `/`";
            return Err(Box::new(json_error(401, "unauthorized", message)));
        };
        let operator = (token.role == Role::Operator).then(|| name_of(token));
        Ok(Self { role: token.role, caller: Caller { tenant, operator } })
    }
}

impl Worker {
    /// `POST /api/v1/login {token}`: a cookie in exchange for a token, so that a page never holds the token itself.
    pub(crate) async fn log_in(&self, request: Request<Incoming>) -> Response<Reply> {
        #[derive(Deserialize)]
        struct Login {
            token: String,
        }
        let settings = self.shared.settings();
        if request.method() != Method::POST {
            return json_error(405, "method_not_allowed", "use POST");
        }
        if is_foreign(request.headers()) {
            return json_error(403, "forbidden", "another site may not log you in");
        }
        // Whoever has no token yet may take little, of memory and of time.
        let reading = Limited::new(request.into_body(), MAX_LOGIN).collect();
        let Ok(read) = within(SLOWEST_LOGIN, reading).await else {
            return json_error(408, "too_slow", "send the token within ten seconds");
        };
        let Ok(body) = read else {
            return json_error(413, "too_large", "a token has at most 4 KiB");
        };
        let Ok(login) = serde_json::from_slice::<Login>(&body.to_bytes()) else {
            return json_error(400, "bad_request", "send {\"token\":\"…\"}");
        };
        let Some(token) = of_token(&settings.config.admin, login.token.trim().as_bytes()) else {
            return json_error(401, "unauthorized", "no such token is configured");
        };
        let expires = today().as_millis() / 1_000 + COOKIE_SECONDS;
        let value = format!("{expires:x}.{:032x}", seal(&self.shared.secret, token, expires));
        let mut response = with(
            200,
            "application/json",
            json!({ "role": role_name(token.role), "operator": operator_of(token).as_deref() }).to_string(),
        );
        let secure = settings.config.tls.is_some();
        set_cookie(&mut response, &value, COOKIE_SECONDS, secure);
        response
    }

    /// `POST /api/v1/logout`.
    pub(crate) fn log_out(&self) -> Response<Reply> {
        let mut response = with(200, "application/json", "{}");
        set_cookie(&mut response, "", 0, self.shared.settings().config.tls.is_some());
        response
    }

    /// `GET /api/v1/whoami`.
    pub(crate) fn who_am_i(&self, visitor: &Visitor) -> Response<Reply> {
        let needs_login = !self.shared.settings().config.admin.tokens.is_empty();
        let told = json!({
            "operator": visitor.caller.operator.as_deref(),
            "role": role_name(visitor.role),
            "tenant": visitor.caller.tenant.as_deref(),
            "login": needs_login,
            "version": env!("CARGO_PKG_VERSION"),
        });
        with(200, "application/json", told.to_string())
    }
}

/// What stands behind the name of the scheme, which may be written in any case.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"Bearer ";
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then_some(token)
}

/// The token of this text. Every token is compared, and each comparison takes the same time.
fn of_token(admin: &Admin, text: &[u8]) -> Option<Token> {
    let hash: [u8; 32] = Sha256::digest(text).into();
    let mut found = None;
    for known in &admin.tokens {
        if is_equal(&known.sha256, &hash) {
            found = Some(*known);
        }
    }
    found
}

/// The token that a cookie was given for, unless it is too old or its token is configured no more.
fn by_cookie(
    admin: &Admin,
    secret: &Secret,
    asked: Asked<'_>,
) -> Result<Option<Token>, Box<Response<Reply>>> {
    let cookies = asked.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).map(str::trim);
    let Some((expires, tag)) =
        pairs.find_map(|pair| pair.strip_prefix(LOGIN)?.strip_prefix('=')?.split_once('.'))
    else {
        return Ok(None);
    };
    // A browser sends the cookie by itself, so an order must come from our own page.
    if !asked.method.is_safe() && is_foreign(asked.headers) {
        return Err(Box::new(json_error(403, "forbidden", "another site may not use your login")));
    }
    let Ok(expires) = u64::from_str_radix(expires, 16) else { return Ok(None) };
    if Timestamp::from_secs(expires) <= today() {
        return Ok(None);
    }
    let mut found = None;
    for token in &admin.tokens {
        let sealed = format!("{:032x}", seal(secret, *token, expires));
        if is_equal(sealed.as_bytes(), tag.as_bytes()) {
            found = Some(*token);
        }
    }
    Ok(found)
}

fn seal(secret: &Secret, token: Token, expires: u64) -> u128 {
    secret.hash("login", &[&token.sha256, &expires.to_le_bytes()])
}

fn is_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// Whether a page of another origin asks. Host and port are those of the request; one port speaks one scheme, and what
/// stands before it may speak another, so either of the two is ours.
fn is_foreign(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?"));
    let Some(origin) = text(ORIGIN) else { return false };
    let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    !host.zip(text(HOST)).is_some_and(|(theirs, ours)| theirs.eq_ignore_ascii_case(ours))
}

fn set_cookie(response: &mut Response<Reply>, value: &str, seconds: u64, secure: bool) {
    let secure = if secure { "; Secure" } else { "" };
    let cookie = format!("{LOGIN}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}");
    if let Ok(cookie) = cookie.parse() {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
}

/// Operators are told apart in the audit log by the start of their token's hash, which gives nothing away.
fn name_of(token: Token) -> Arc<str> {
    let [a, b, c, d, ..] = token.sha256;
    format!("operator-{a:02x}{b:02x}{c:02x}{d:02x}").into()
}

fn operator_of(token: Token) -> Option<Arc<str>> {
    (token.role == Role::Operator).then(|| name_of(token))
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Operator => "operator",
        Role::Viewer => "viewer",
    }
}

pub(crate) const LOGIN: &str = "loopbreaker";
const COOKIE_SECONDS: u64 = 12 * 3_600;
const MAX_LOGIN: usize = 4 << 10;
const SLOWEST_LOGIN: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use hyper::Method;
    use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderValue, ORIGIN};
    use loopbreaker_config::{Admin, Config, Role};
    use sha2::{Digest, Sha256};

    use super::{Asked, Visitor, seal};
    use crate::secret::Secret;
    use crate::state::today;

    fn admin() -> Admin {
        let hash = |token: &str| {
            let [high, low] = [0, 16].map(|at| {
                let half = Sha256::digest(token)[at..at + 16].try_into().unwrap();
                u128::from_be_bytes(half)
            });
            format!("{high:032x}{low:032x}")
        };
        let text = format!(
            "admin: {{ tokens: [{{ role: operator, sha256: {} }}, {{ role: viewer, sha256: {} }}] }}",
            hash("op"),
            hash("view")
        );
        Config::parse(&text).unwrap().admin
    }

    fn headers(pairs: &[(hyper::header::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
    }

    fn ask(admin: &Admin, secret: &Secret, method: &Method, headers: &HeaderMap) -> Result<Visitor, u16> {
        let asked = Asked { method, headers, is_local: true };
        Visitor::of(admin, secret, asked).map_err(|refusal| refusal.status().as_u16())
    }

    #[test]
    fn without_tokens_only_this_machine_may_ask() {
        let (admin, secret) = (Config::default().admin, Secret::random().unwrap());
        let local = headers(&[(HOST, "127.0.0.1:4141")]);
        let visitor = ask(&admin, &secret, &Method::POST, &local).unwrap();
        assert_eq!(visitor.caller.operator.as_deref(), Some("local"));
        let rebound = headers(&[(HOST, "evil.example")]);
        assert_eq!(ask(&admin, &secret, &Method::GET, &rebound).unwrap_err(), 403);
        let foreign = headers(&[(HOST, "127.0.0.1:4141"), (ORIGIN, "https://evil.example")]);
        assert_eq!(ask(&admin, &secret, &Method::GET, &foreign).unwrap_err(), 403);
    }

    #[test]
    fn without_tokens_a_page_of_another_port_of_this_machine_changes_nothing() {
        let (admin, secret) = (Config::default().admin, Secret::random().unwrap());
        let from = |origin: &str| headers(&[(HOST, "localhost:4141"), (ORIGIN, origin)]);
        let own = from("http://localhost:4141");
        assert_eq!(ask(&admin, &secret, &Method::POST, &own).unwrap().role, Role::Operator);
        for other in ["http://localhost:3000", "http://127.0.0.1:4141", "http://localhost", "null"] {
            assert_eq!(ask(&admin, &secret, &Method::POST, &from(other)).unwrap_err(), 403, "{other}");
        }
        assert!(ask(&admin, &secret, &Method::GET, &from("http://localhost:3000")).is_ok());
    }

    #[test]
    fn a_token_gives_its_role_and_no_other_text_does() {
        let (admin, secret) = (admin(), Secret::random().unwrap());
        let with = |token: &str| headers(&[(AUTHORIZATION, token)]);
        let operator = ask(&admin, &secret, &Method::GET, &with("Bearer op")).unwrap();
        assert!(operator.caller.operator.is_some_and(|name| name.starts_with("operator-")));
        let viewer = ask(&admin, &secret, &Method::GET, &with("Bearer view")).unwrap();
        assert_eq!((viewer.role, viewer.caller.operator), (Role::Viewer, None));
        for scheme in ["bearer", "BEARER"] {
            let told = ask(&admin, &secret, &Method::GET, &with(&format!("{scheme} op"))).unwrap();
            assert_eq!(told.role, Role::Operator, "{scheme}");
        }
        for wrong in ["Bearer opp", "Bearer ", "op", "Basic op"] {
            assert_eq!(ask(&admin, &secret, &Method::GET, &with(wrong)).unwrap_err(), 401, "{wrong}");
        }
        assert_eq!(ask(&admin, &secret, &Method::GET, &HeaderMap::new()).unwrap_err(), 401);
    }

    #[test]
    fn a_cookie_stands_for_its_token_until_it_expires_and_for_no_foreign_page() {
        let (admin, secret) = (admin(), Secret::random().unwrap());
        let cookie = |expires: u64| {
            let tag = seal(&secret, admin.tokens[0], expires);
            format!("theme=dark; loopbreaker={expires:x}.{tag:032x}")
        };
        let later = today().as_millis() / 1_000 + 60;
        let own = headers(&[(COOKIE, &cookie(later)), (HOST, "box:4141"), (ORIGIN, "http://box:4141")]);
        assert_eq!(ask(&admin, &secret, &Method::POST, &own).unwrap().role, Role::Operator);
        let foreign = headers(&[(COOKIE, &cookie(later)), (HOST, "box:4141"), (ORIGIN, "http://evil")]);
        assert_eq!(ask(&admin, &secret, &Method::POST, &foreign).unwrap_err(), 403);
        let old = headers(&[(COOKIE, &cookie(later - 120))]);
        assert_eq!(ask(&admin, &secret, &Method::GET, &old).unwrap_err(), 401);
        let forged = headers(&[(COOKIE, &format!("loopbreaker={later:x}.{:032x}", 0))]);
        assert_eq!(ask(&admin, &secret, &Method::GET, &forged).unwrap_err(), 401);
        let others = Secret::random().unwrap();
        assert_eq!(ask(&admin, &others, &Method::GET, &own).unwrap_err(), 401);
    }
}
