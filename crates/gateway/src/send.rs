//! A request on its way to the provider, and the answer on its way back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::body::Body as _;
use hyper::ext::ReasonPhrase;
use hyper::header::{ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Uri};
use loopbreaker::Action;
use loopbreaker_config::ChantAction;
use loopbreaker_dialect::{Dialect, Placement, Refusal, StreamReader, UsageFilter};
use loopbreaker_telemetry::{Part, Record, UpstreamError};

use crate::answer::{End, Ended, Passing, Watch, WatchedStream, WhenOver};
use crate::cache::{Asked, Keeping};
use crate::collected::Collected;
use crate::consider::Case;
use crate::decode::{Encoding, StreamDecoder};
use crate::headers;
use crate::inbound::Start;
use crate::journal::{Entry, Refused};
use crate::outgoing::Outgoing;
use crate::pauses::Turn;
use crate::pipeline::{Times, Worker, add_verdict};
use crate::reply::{Reply, refuse};
use crate::route::Destination;
use crate::settings::{Settings, Upstream};
use crate::settle::{Settling, watching_for_chants};
use crate::tunnel;
use crate::upstream::{Coming, Message, Unreachable};
use crate::wire::RequestLine;

/// What was changed in a body.
#[derive(Default)]
pub(crate) struct Editing {
    /// The changed body; `None`: it goes as it came.
    pub(crate) body: Option<Vec<u8>>,
    /// Where the hint stands, if there is one.
    pub(crate) hinted: Option<Placement>,
    /// Whether an operator's words stand in place of the client's.
    pub(crate) rewritten: bool,
    /// Whether we asked for usage, so that the client must not see the answer to it.
    pub(crate) asked_for_usage: bool,
}

/// A request that may go.
pub(crate) struct Sending<'r> {
    pub(crate) worker: &'r Worker,
    pub(crate) settings: &'r Arc<Settings>,
    pub(crate) destination: &'r Destination,
    pub(crate) method: &'r Method,
    pub(crate) uri: &'r Uri,
    pub(crate) headers: &'r HeaderMap,
    /// What the client sent behind its body.
    pub(crate) trailers: Option<Box<HeaderMap>>,
    pub(crate) case: Box<Case<'r>>,
    pub(crate) times: Times,
    pub(crate) record: Record,
    pub(crate) dialect: Option<Dialect>,
    /// The client's side of a connection that is to become a web socket.
    pub(crate) web_socket: Option<OnUpgrade>,
    /// Where the answer may be kept and given again.
    pub(crate) asked: Option<Asked>,
}

impl Sending<'_> {
    /// Sends it and passes its answer on.
    pub(crate) async fn send(mut self: Box<Self>, start: Start, mut editing: Editing) -> Response<Reply> {
        let shared = &self.worker.shared;
        let upstream = self.settings.upstream(self.destination.provider, self.destination.route);
        let breaker = shared.breaker(&upstream.origin, self.settings);
        let now = Instant::now();
        let permit = match breaker.allow(shared.at(now)) {
            Ok(permit) => permit,
            Err(open) => {
                shared.telemetry.metrics.upstream_error(UpstreamError::BreakerOpen);
                return self.unavailable(503, &open.to_string(), Some(open.retry_after_secs));
            }
        };
        self.record.overhead = now.duration_since(self.times.read).saturating_sub(self.times.held);

        let mut waiting = Waiting { sending: &mut self, is_answered: false };
        let asked = waiting.sending.ask(upstream, start, &mut editing).await;
        waiting.is_answered = true;
        drop(waiting);
        match asked {
            Ok(response) => {
                let status = response.status().as_u16();
                match status {
                    429 => breaker.release(permit, shared.now()),
                    500.. => breaker.failure(permit, shared.now()),
                    _ => breaker.success(permit, shared.now()),
                }
                if status == 101 { self.tunnel(response) } else { self.pass_on(response, &editing) }
            }
            // The client broke its own body off, which is no failure of the provider.
            Err(Unreachable::Broken(_, error)) if error.is_of_the_client() => {
                breaker.release(permit, shared.now());
                self.unavailable(400, "the body broke off before its end", None)
            }
            Err(unreachable) => {
                breaker.failure(permit, shared.now());
                shared.telemetry.metrics.upstream_error(match unreachable {
                    Unreachable::Connect(..) => UpstreamError::Connect,
                    Unreachable::TimedOut(..) => UpstreamError::Timeout,
                    Unreachable::Broken(..) => UpstreamError::Broken,
                });
                self.unavailable(502, &unreachable.to_string(), None)
            }
        }
    }

    /// Asks the provider, and once more with the original where it does not like what we changed.
    async fn ask(
        &mut self,
        upstream: &Upstream,
        start: Start,
        editing: &mut Editing,
    ) -> Result<Response<Coming>, Unreachable> {
        let original = start.bytes.clone();
        let asked = match (editing.body.take(), start.rest) {
            (Some(edited), _) => {
                self.exchange(upstream, Bytes::from(edited), true, editing.asked_for_usage).await
            }
            (None, None) => self.exchange(upstream, start.bytes, false, false).await,
            (None, Some(rest)) => {
                let request = self.request(upstream, Outgoing::streamed(start.bytes, rest), false, false);
                self.pass(upstream, request).await
            }
        };
        let edited = editing.hinted.is_some() || editing.rewritten || editing.asked_for_usage;
        let is_refused = |response: &Response<Coming>| matches!(response.status().as_u16(), 400 | 422);
        match asked {
            Ok(response) if edited && is_refused(&response) => {
                let again = self.exchange(upstream, original, false, false).await;
                // A request that is refused as it came, too, says nothing about what we changed.
                if again.as_ref().is_ok_and(|response| !is_refused(response)) {
                    self.learn(upstream, editing);
                }
                editing.asked_for_usage = false;
                again
            }
            asked => asked,
        }
    }

    /// The provider did not like what we changed. Where that is two things, it is the question for usage first, which
    /// the model does without; the hint is to blame when it is refused alone.
    fn learn(&mut self, upstream: &Upstream, editing: &Editing) {
        let placements = &self.worker.shared.placements;
        let model = self.case.model.as_deref();
        if editing.asked_for_usage {
            placements.usage_refused(&upstream.name, model);
        }
        let Some(placement) = editing.hinted else { return };
        if !editing.asked_for_usage {
            placements.refused(&upstream.name, model, placement);
        }
        self.case.degraded.insert(Part::Hint);
        if self.case.verdict.action == Action::Hint {
            // The model has not heard it.
            self.case.verdict.action = Action::Warn;
        }
        let has_no_place = placements.have_run_out(self.settings.config.hint.placement);
        self.worker.shared.telemetry.metrics.set_degraded(Part::Hint, has_no_place);
    }

    /// Sends a body that is there whole.
    async fn exchange(
        &self,
        upstream: &Upstream,
        body: Bytes,
        edited: bool,
        asked_for_usage: bool,
    ) -> Result<Response<Coming>, Unreachable> {
        if self.web_socket.is_some() || self.trailers.is_some() {
            let request = self.request(upstream, Outgoing::whole(body), edited, asked_for_usage);
            return self.pass(upstream, request).await;
        }
        let message = self.message(upstream, body, edited, asked_for_usage);
        self.worker.pool.ask(&upstream.origin, message, self.limit()).await
    }

    /// Sends what is out of the ordinary; few requests are, and the others need not carry the room for it.
    async fn pass(
        &self,
        upstream: &Upstream,
        request: Request<Outgoing>,
    ) -> Result<Response<Coming>, Unreachable> {
        Box::pin(self.worker.pool.pass(&upstream.origin, request, self.limit())).await
    }

    fn message(&self, upstream: &Upstream, body: Bytes, edited: bool, asked_for_usage: bool) -> Message {
        let target = self.target(upstream);
        let target = target.as_ref().and_then(Uri::path_and_query).map_or("/", PathAndQuery::as_str);
        let line = RequestLine { method: self.method, target };
        // What we asked for must be taken out of the answer again, which compression would prevent.
        let without = if asked_for_usage { &[ACCEPT_ENCODING][..] } else { &[] };
        Message {
            head: headers::head_to_upstream(line, self.headers, &upstream.host, edited, without, body.len()),
            body,
            asks_for_head: self.method == Method::HEAD,
            sent: self.case.turn.as_ref().map(|turn| Box::new(turn.when_sent())),
        }
    }

    fn request(
        &self,
        upstream: &Upstream,
        body: Outgoing,
        edited: bool,
        asked_for_usage: bool,
    ) -> Request<Outgoing> {
        let mut request = Request::new(body.telling(self.case.turn.as_ref().map(Turn::when_sent)));
        *request.method_mut() = self.method.clone();
        *request.headers_mut() = headers::to_upstream(self.headers, &upstream.host, edited);
        if asked_for_usage {
            // What we asked for must be taken out of the answer again, which compression would prevent.
            headers::leave_out(request.headers_mut(), &[ACCEPT_ENCODING]);
        }
        if self.web_socket.is_some() {
            headers::copy_upgrade(self.headers, request.headers_mut());
        }
        if let Some(trailers) = &self.trailers
            && let Some(trailers) = headers::trailers_to_upstream(trailers, request.headers_mut(), edited)
        {
            request = request.map(|body| body.followed_by(trailers));
        }
        if let Some(target) = self.target(upstream) {
            *request.uri_mut() = target;
        }
        request
    }

    /// Path and query at the provider.
    fn target(&self, upstream: &Upstream) -> Option<Uri> {
        let path = &self.destination.path_and_query;
        match self.uri.path_and_query() {
            // What goes on as it came need not be checked once more.
            Some(came) if upstream.base_path.is_empty() && came.as_str() == path => Some(came.clone().into()),
            _ => path_at(&upstream.base_path, path).parse().ok(),
        }
    }

    fn limit(&self) -> std::time::Duration {
        self.settings.config.upstreams.timeout
    }

    /// Passes an answer on, with our headers and a reader beside it.
    fn pass_on(mut self: Box<Self>, response: Response<Coming>, editing: &Editing) -> Response<Reply> {
        let (mut parts, body) = response.into_parts();
        let status = parts.status.as_u16();
        if status == 429 || status >= 500 {
            // Retries of an outage are no loop.
            self.case.ticket.take_back();
        }
        let watch = self.watch(status, &parts.headers, editing);
        let mut headers = headers::to_client(parts.headers);
        add_verdict(&mut headers, &self.case);
        if editing.asked_for_usage {
            headers::leave_out(&mut headers, &[CONTENT_LENGTH]);
        }
        // Only what the client said itself has an answer that may be given again.
        let is_own = (200..300).contains(&status) && editing.hinted.is_none() && !editing.rewritten;
        let asked = self.asked.take().filter(|_| is_own);
        let recording = asked.as_ref().map(|asked| asked.recording(body.size_hint().exact().is_none()));
        let keeping = asked.map(|asked| asked.keeping(parts.status, &headers));
        let when_over = self.settling_and_keeping(status, keeping);
        let passing = Passing::new(body, watch, recording, when_over);
        let mut reply = Response::new(Reply::Passed(Box::new(passing)));
        *reply.status_mut() = parts.status;
        *reply.headers_mut() = headers;
        // A status of the provider's own has no other words.
        if let Some(reason) = parts.extensions.remove::<ReasonPhrase>() {
            reply.extensions_mut().insert(reason);
        }
        reply
    }

    /// Joins both connections, since the provider agrees to a web socket.
    fn tunnel(mut self, response: Response<Coming>) -> Response<Reply> {
        let (parts, body) = response.into_parts();
        let Some((client, provider)) = self.web_socket.take().zip(body.into_upgrading()) else {
            return self.unavailable(
                502,
                "the provider changed the protocol although nobody had asked",
                None,
            );
        };
        let mut headers = headers::to_client(parts.headers.clone());
        headers::copy_upgrade(&parts.headers, &mut headers);
        add_verdict(&mut headers, &self.case);
        let when_over = self.settling(101);
        tunnel::join(client, Response::from_parts(parts, provider), when_over);
        let mut reply = Response::new(Reply::EMPTY);
        *reply.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *reply.headers_mut() = headers;
        reply
    }

    fn watch(&self, status: u16, headers: &HeaderMap, editing: &Editing) -> Watch {
        let Some(dialect) = self.dialect.filter(|_| (200..300).contains(&status)) else {
            return Watch::Nothing;
        };
        let decoder = match Encoding::of(headers) {
            Encoding::Plain => None,
            Encoding::Coded(coding) => Some(Box::new(StreamDecoder::new(coding))),
            Encoding::Unknown => return Watch::Nothing,
        };
        let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        let says_so = content_type
            .get(..EVENT_STREAM.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(EVENT_STREAM));
        let streamed = says_so || (dialect == Dialect::Gemini && self.record.stream);
        if !streamed {
            return Watch::Document { dialect, decoder, collected: Collected::default() };
        }
        let chants =
            self.case.policies.iter().filter_map(|applied| Some((applied, applied.policy.policy.chant?)));
        let (mut watched, mut cut) = (false, false);
        for (applied, action) in chants {
            watched = true;
            cut |= applied.enforced && !self.case.held_out && action == ChantAction::Cut;
        }
        // A provider that knows the length has said everything already: cutting would save nothing.
        cut &= !headers.contains_key(CONTENT_LENGTH);
        Watch::Stream(Box::new(WatchedStream {
            reader: StreamReader::new(dialect, watched),
            decoder,
            filter: editing.asked_for_usage.then(UsageFilter::default),
            cut,
        }))
    }

    pub(crate) fn settling(&mut self, status: u16) -> WhenOver {
        self.settling_and_keeping(status, None)
    }

    fn settling_and_keeping(&mut self, status: u16, keeping: Option<Keeping>) -> WhenOver {
        // It is large, and its place in memory is the only thing that is handed on.
        let settling = Box::new(Settling {
            shared: Arc::clone(&self.worker.shared),
            settings: Arc::clone(self.settings),
            record: Record {
                status,
                verdict: self.case.verdict.action,
                findings: std::mem::take(&mut self.case.verdict.notes),
                held: self.times.held,
                degraded: self.case.degraded,
                ..std::mem::take(&mut self.record)
            },
            arrived: self.times.arrived,
            dialect: self.dialect,
            ticket: std::mem::take(&mut self.case.ticket),
            estimate: self.case.estimate,
            tenant: self.case.tenant.key,
            who: self.worker.shared.journal().is_some().then(|| self.case.who(self.dialect, self.times.at)),
            position: self.case.position,
            located: self.case.located,
            thread: self.case.thread.take(),
            ending: self.case.ending.take(),
            conversation: self.case.facts.conversation.clone(),
            chants: watching_for_chants(&self.case.policies, self.case.held_out),
            keeping,
        });
        let shared = Arc::clone(&self.worker.shared);
        Box::new(move |ended| {
            // The client has its answer; a bug of ours in writing it down must not take the connection.
            if catch_unwind(AssertUnwindSafe(|| settling.settle(ended))).is_err() {
                shared.telemetry.metrics.panicked();
            }
        })
    }

    /// No answer came, or none was asked for.
    fn unavailable(mut self, status: u16, message: &str, retry_after: Option<u64>) -> Response<Reply> {
        let shared = &self.worker.shared;
        self.case.ticket.take_back();
        self.case.ticket.refund(&shared.ledger, shared.now());
        let mut response = refuse(self.dialect, Refusal::UpstreamUnavailable, status, message);
        add_verdict(response.headers_mut(), &self.case);
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(hyper::header::RETRY_AFTER, seconds.into());
        }
        if self.dialect.is_some() {
            // The verdict says what we think of it; that nobody answered has to be seen, too.
            shared.tell(|| {
                let why = Refused {
                    position: self.case.position,
                    code: Refusal::UpstreamUnavailable.code(),
                    message: message.to_owned(),
                };
                Entry::Failed(self.case.who(self.dialect, self.times.at), why)
            });
        }
        shared.telemetry.record(Record {
            status,
            verdict: self.case.verdict.action,
            findings: std::mem::take(&mut self.case.verdict.notes),
            refusal: Some(Refusal::UpstreamUnavailable.code()),
            held: self.times.held,
            duration: self.times.arrived.elapsed(),
            degraded: self.case.degraded,
            ..self.record
        });
        response
    }
}

/// A request whose answer has not begun. When it is dropped before that, its client has gone: it is settled and told of
/// all the same, for the provider may have worked on it.
struct Waiting<'w, 'r> {
    sending: &'w mut Sending<'r>,
    is_answered: bool,
}

impl Drop for Waiting<'_, '_> {
    fn drop(&mut self) {
        if !self.is_answered {
            let gone =
                Ended { end: End::ClientGone, answer: None, chant: None, first_chunk: None, kept: None };
            self.sending.settling(CLIENT_GONE)(gone);
        }
    }
}

/// The type of a stream of events, in any case and with any parameters.
const EVENT_STREAM: &[u8] = b"text/event-stream";

/// The status in the log of a request whose client did not wait for any.
pub(crate) const CLIENT_GONE: u16 = 499;

/// The path at an upstream. A base that ends in `/v1`, as clients write it, is not doubled.
pub(crate) fn path_at(base: &str, path: &str) -> String {
    match base.strip_suffix("/v1") {
        Some(before) if path.starts_with("/v1/") => format!("{before}{path}"),
        _ => format!("{base}{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::path_at;

    #[test]
    fn a_base_path_stands_before_the_path_and_a_version_is_not_doubled() {
        assert_eq!(path_at("", "/v1/models"), "/v1/models");
        assert_eq!(path_at("/openai", "/v1/models"), "/openai/v1/models");
        assert_eq!(path_at("/api/v1", "/v1/models?a=b"), "/api/v1/models?a=b");
        assert_eq!(path_at("/v1", "/v1beta/x"), "/v1/v1beta/x");
    }
}
