//! The HTTP API: one function from request to answer, to be mounted on any listener.

mod guard;
mod ingest;
mod lists;
mod openapi;
mod orders;
mod policies;
mod query;
mod reply;
mod results;
mod shapes;
mod stream;

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Body;
use hyper::header::{ALLOW, CONTENT_LENGTH, HeaderValue};
use hyper::{Method, Request, Response};
use serde_json::Value;

pub use guard::LoneGuard;
pub use reply::Reply;

use crate::observatory::Observatory;
use query::Query;
pub use query::decoded;
use reply::{error, json_reply};

/// Who asks, as the listener has found out.
///
/// ```
/// use loopbreaker_observatory::Caller;
/// assert_eq!(Caller::local().operator.as_deref(), Some("local"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// The tenant whose data is seen and written; `None` sees all of them, and writes as `anonymous`.
    pub tenant: Option<Arc<str>>,
    /// The operator's name, for those who may give orders and change settings.
    pub operator: Option<Arc<str>>,
}

impl Caller {
    /// Somebody on this machine, where no tokens are configured.
    pub fn local() -> Self {
        Self { tenant: None, operator: Some("local".into()) }
    }

    /// The tenant of what this caller writes.
    fn writes_as(&self) -> Arc<str> {
        self.tenant.clone().unwrap_or_else(|| "anonymous".into())
    }
}

/// What a path and a method ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Ingest,
    Sessions,
    Session,
    Steps,
    Graph,
    Findings,
    Order,
    Search,
    Cost,
    Topology,
    Violations,
    Export,
    Searches,
    SaveSearch,
    DropSearch,
    Overview,
    Policies,
    TryPolicy,
    PutPolicy,
    DropPolicy,
    Switches,
    PutSwitch,
    DropSwitch,
    Budgets,
    Audit,
    GuardCheck,
    GuardOutcome,
    GuardReset,
    Events,
    Config,
    PutDetectors,
    DropDetectors,
    Schema,
    OpenApi,
}

/// One call of the API. A part in braces stands for anything.
pub(crate) struct Endpoint {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) route: Route,
    pub(crate) does: &'static str,
}

const fn call(method: &'static str, path: &'static str, route: Route, does: &'static str) -> Endpoint {
    Endpoint { method, path, route, does }
}

/// Every call; the `OpenAPI` document is made from the same list.
pub(crate) const ENDPOINTS: &[Endpoint] = &[
    call("POST", "/decision-logs", Route::Ingest, "Take in one log, an array of logs, or NDJSON"),
    call("GET", "/sessions", Route::Sessions, "List sessions, the one that was active last first"),
    call("GET", "/sessions/{id}", Route::Session, "One session with its findings"),
    call("GET", "/sessions/{id}/steps", Route::Steps, "Its steps in order, or what was known at one of them"),
    call("GET", "/sessions/{id}/graph", Route::Graph, "Its causal graph"),
    call("GET", "/sessions/{id}/findings", Route::Findings, "What detectors found in it"),
    call("POST", "/sessions/{id}/pause", Route::Order, "Hold it until somebody decides"),
    call("POST", "/sessions/{id}/resume", Route::Order, "Let it go on"),
    call("POST", "/sessions/{id}/reject", Route::Order, "Refuse what is held, with a message"),
    call("POST", "/sessions/{id}/inject", Route::Order, "Give its agent a message"),
    call("POST", "/sessions/{id}/rewrite", Route::Order, "Replace a step's result or input"),
    call("GET", "/search", Route::Search, "Full text over intent, reasoning, tool, input and output"),
    call("GET", "/cost", Route::Cost, "Costs by agent, session, tool or model over time"),
    call("GET", "/topology", Route::Topology, "Agents, and who hands off to whom"),
    call("GET", "/violations", Route::Violations, "Logs that were refused, by their hashes"),
    call("GET", "/export", Route::Export, "Logs as NDJSON"),
    call("GET", "/searches", Route::Searches, "Saved searches"),
    call("POST", "/searches", Route::SaveSearch, "Save a search"),
    call("DELETE", "/searches", Route::DropSearch, "Forget a saved search"),
    call(
        "GET",
        "/overview",
        Route::Overview,
        "Sessions by state, rates, what loops burned, what does not work",
    ),
    call("GET", "/policies", Route::Policies, "Policies, and what they did and would have done"),
    call("POST", "/policies/try", Route::TryPolicy, "What a policy would have done with recorded sessions"),
    call("PUT", "/policies/{id}", Route::PutPolicy, "Keep a policy above the file"),
    call("DELETE", "/policies/{id}", Route::DropPolicy, "Go back to the policy of the file"),
    call("GET", "/kill-switches", Route::Switches, "Whose every request is refused"),
    call("PUT", "/kill-switches/{id}", Route::PutSwitch, "Throw a kill switch"),
    call("DELETE", "/kill-switches/{id}", Route::DropSwitch, "Release a kill switch"),
    call("GET", "/budgets", Route::Budgets, "Budgets against their limits"),
    call("GET", "/audit", Route::Audit, "Who did what and when, hash-chained"),
    call("POST", "/guard/check", Route::GuardCheck, "Ask before a tool call"),
    call("POST", "/guard/outcome", Route::GuardOutcome, "Report what a tool call gave"),
    call("POST", "/guard/reset", Route::GuardReset, "Forget a session's calls"),
    call("GET", "/events", Route::Events, "Server-sent events, resumable with Last-Event-ID"),
    call("GET", "/config", Route::Config, "The running thresholds"),
    call("PUT", "/config/detectors", Route::PutDetectors, "Change thresholds, whole or not at all"),
    call("DELETE", "/config/detectors", Route::DropDetectors, "Go back to the thresholds of the file"),
    call("GET", "/schema/decision-log", Route::Schema, "The JSON Schema of a log"),
    call("GET", "/openapi.json", Route::OpenApi, "This API as OpenAPI"),
];

/// Where the API stands.
const PREFIX: &str = "/api/v1";
/// The largest body that is not a log.
const MAX_ORDER: usize = 1 << 20;

impl Observatory {
    /// Answers one request to `/api/v1/…`. To `HEAD` it says what it would to `GET`, without the body.
    pub async fn handle<B>(&self, request: Request<B>, caller: &Caller) -> Response<Reply>
    where
        B: Body<Data = Bytes> + Send + Unpin,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let is_head = request.method() == Method::HEAD;
        let answer = self.answer(request, caller).await;
        if is_head { without_body(answer) } else { answer }
    }

    async fn answer<B>(&self, request: Request<B>, caller: &Caller) -> Response<Reply>
    where
        B: Body<Data = Bytes> + Send + Unpin,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let path = request.uri().path().to_owned();
        let (route, id) = match find(request.method(), &path) {
            Found::Endpoint(route, id) => (route, decoded(id)),
            Found::OtherMethod(allowed) => return other_method(&allowed),
            Found::Nothing => return error(404, "not_found", "there is no such endpoint"),
        };
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let answered = match route {
            Route::Ingest => return self.take_logs(request, caller).await,
            Route::Events => return self.stream_events(request.headers(), &query, caller),
            Route::Export => return self.stream_export(&query, caller).await,
            Route::Sessions => self.list_sessions(&query, caller).await,
            Route::Session => self.show_session(&id, &query, caller).await,
            Route::Steps => self.show_steps(&id, &query, caller).await,
            Route::Graph => self.show_graph(&id, &query, caller).await,
            Route::Findings => self.show_findings(&id, &query, caller).await,
            Route::Search => self.search(&query, caller).await,
            Route::Cost => self.sum_costs(&query, caller).await,
            Route::Topology => self.show_topology(&query, caller).await,
            Route::Violations => self.list_violations(&query, caller).await,
            Route::Searches => self.list_searches().await,
            Route::DropSearch => self.drop_search(&query, caller).await,
            Route::Overview => self.show_overview(&query, caller).await,
            Route::Policies => self.list_policies(caller).await,
            Route::DropPolicy => self.drop_policy(id, caller).await,
            Route::Switches => self.list_switches(caller),
            Route::DropSwitch => self.drop_switch(id, caller).await,
            Route::Budgets => self.list_budgets(caller),
            Route::Audit => self.list_audit(&query, caller).await,
            Route::Config => Ok(json_reply(200, &self.running_config())),
            Route::DropDetectors => self.put_detectors(None, caller).await,
            Route::Schema => openapi::schema(&query),
            Route::OpenApi => Ok(json_reply(200, &openapi::document())),
            Route::Order
            | Route::SaveSearch
            | Route::PutDetectors
            | Route::TryPolicy
            | Route::PutPolicy
            | Route::PutSwitch
            | Route::GuardCheck
            | Route::GuardOutcome
            | Route::GuardReset => {
                let body = match body_of(request).await {
                    Ok(body) => body,
                    Err(refusal) => return *refusal,
                };
                match route {
                    Route::Order => self.take_order(&path, &id, &query, body, caller).await,
                    Route::SaveSearch => self.save_search(body, caller).await,
                    Route::PutDetectors => self.put_detectors(Some(body), caller).await,
                    Route::TryPolicy => self.try_out_policy(&body, caller).await,
                    Route::PutPolicy => self.put_policy(id, body, caller).await,
                    Route::PutSwitch => self.put_switch(id, &body, caller).await,
                    Route::GuardCheck => self.guard_check(&body, caller).await,
                    Route::GuardOutcome => self.guard_outcome(&body, caller).await,
                    _ => self.guard_reset(&body, caller),
                }
            }
        };
        answered.unwrap_or_else(|refusal| *refusal)
    }
}

/// An answer, or the refusal that is given instead.
pub(crate) type Answered = Result<Response<Reply>, Box<Response<Reply>>>;

enum Found<'a> {
    Endpoint(Route, &'a str),
    /// Those that it has.
    OtherMethod(Vec<&'static str>),
    Nothing,
}

fn find<'a>(method: &Method, path: &'a str) -> Found<'a> {
    let Some(path) = path.strip_prefix(PREFIX) else { return Found::Nothing };
    let mut others = Vec::new();
    for endpoint in ENDPOINTS {
        if let Some(id) = fits(endpoint.path, path) {
            let is_it = endpoint.method == method.as_str();
            if is_it || (*method == Method::HEAD && endpoint.method == "GET") {
                return Found::Endpoint(endpoint.route, id);
            }
            others.push(endpoint.method);
        }
    }
    if others.is_empty() { Found::Nothing } else { Found::OtherMethod(others) }
}

/// The path is right and the method is not.
fn other_method(allowed: &[&str]) -> Response<Reply> {
    let mut reply = error(405, "method_not_allowed", &format!("use {}", allowed.join(" or ")));
    let mut listed = allowed.join(", ");
    if allowed.contains(&"GET") {
        listed.push_str(", HEAD");
    }
    if let Ok(listed) = HeaderValue::from_str(&listed) {
        reply.headers_mut().insert(ALLOW, listed);
    }
    reply
}

/// The head of an answer, with the length of what it would have said where that is known.
fn without_body(answer: Response<Reply>) -> Response<Reply> {
    let (mut head, body) = answer.into_parts();
    if let Some(length) = body.size_hint().exact() {
        head.headers.insert(CONTENT_LENGTH, length.into());
    }
    Response::from_parts(head, Full::new(Bytes::new()).boxed_unsync())
}

/// Whether a path is of this form; if so, what stands for its part in braces, empty when it has none.
fn fits<'a>(form: &str, path: &'a str) -> Option<&'a str> {
    let (mut form, mut path) = (form.split('/'), path.split('/'));
    let mut id = "";
    loop {
        match (form.next(), path.next()) {
            (None, None) => return Some(id),
            (Some(part), Some(given)) if part.starts_with('{') && !given.is_empty() => id = given,
            (Some(part), Some(given)) if part == given => {}
            _ => return None,
        }
    }
}

/// Why a body could not be read: it is larger than it may be, or it stopped coming.
fn unread(problem: &(dyn std::error::Error + 'static), too_large: &str) -> Response<Reply> {
    if problem.is::<LengthLimitError>() {
        return error(413, "too_large", too_large);
    }
    error(408, "too_slow", "the body stopped before its end; send it again")
}

/// A small JSON body; an empty one is an empty object.
async fn body_of<B>(request: Request<B>) -> Result<Value, Box<Response<Reply>>>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let body = match Limited::new(request.into_body(), MAX_ORDER).collect().await {
        Ok(body) => body.to_bytes(),
        Err(problem) => return Err(Box::new(unread(problem.as_ref(), "a body has at most 1 MiB"))),
    };
    if body.trim_ascii().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    match serde_json::from_slice(&body) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(Box::new(error(400, "bad_request", "the body must be a JSON object"))),
        Err(problem) => Err(Box::new(error(400, "not_json", &format!("the body is not JSON: {problem}")))),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use http_body_util::Full;
    use hyper::body::{Body, Frame};
    use hyper::{Method, Request};

    use super::{ENDPOINTS, Found, MAX_ORDER, Route, body_of, find};

    fn route(method: &Method, path: &str) -> Option<(Route, String)> {
        match find(method, path) {
            Found::Endpoint(route, id) => Some((route, id.to_owned())),
            _ => None,
        }
    }

    /// A body whose sender has gone.
    struct Broken;

    impl Body for Broken {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
            Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())))
        }
    }

    #[tokio::test]
    async fn a_body_that_stops_is_told_from_one_that_is_too_large() {
        let refused = body_of(Request::new(Broken)).await.unwrap_err();
        assert_eq!(refused.status(), 408);
        let large = Full::<Bytes>::from(vec![b' '; MAX_ORDER + 1]);
        let refused = body_of(Request::new(large)).await.unwrap_err();
        assert_eq!(refused.status(), 413);
    }

    #[test]
    fn a_path_leads_to_its_endpoint() {
        assert_eq!(
            route(&Method::GET, "/api/v1/sessions/run-17/graph"),
            Some((Route::Graph, "run-17".to_owned()))
        );
        assert_eq!(route(&Method::GET, "/api/v1/sessions"), Some((Route::Sessions, String::new())));
        for nowhere in ["/api/v1", "/api/v1/sessions/", "/api/v1/sessions/a/b/c", "/api/v2/sessions", "/"] {
            assert_eq!(route(&Method::GET, nowhere), None, "{nowhere}");
        }
    }

    #[test]
    fn another_method_is_told_which_one_to_use() {
        let Found::OtherMethod(allowed) = find(&Method::PATCH, "/api/v1/searches") else { panic!("no") };
        assert_eq!(allowed, ["GET", "POST", "DELETE"]);
    }

    #[test]
    fn every_endpoint_is_in_the_openapi_document() {
        let document = super::openapi::document();
        for endpoint in ENDPOINTS {
            let path = format!("/api/v1{}", endpoint.path);
            let described = &document["paths"][&path][endpoint.method.to_lowercase()];
            assert_eq!(described["summary"], endpoint.does, "{path}");
        }
        assert!(document["components"]["schemas"]["DecisionLog"]["properties"]["meta"].is_object());
    }
}
