//! From a request to its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Response};

use crate::answer::{Answer, Rendered};
use crate::body::AnswerBody;
use crate::fixed::Fixed;
use crate::issued::Issued;
use crate::provider::{Dialect, Route};
use crate::question::{Delivery, Question, unpacked};
use crate::record::{Records, Ticket};
use crate::reply::{EVENT_STREAM, JSON, Reply};
use crate::script::Scripts;
use crate::turn::Turn;
use crate::{anthropic, chat, control, gemini, models, order, refusal, responses};

/// Everything the provider knows.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) scripts: Scripts,
    pub(crate) records: Records,
    pub(crate) settings: Settings,
    fixed: Fixed,
    issued: Issued,
    answers: AtomicU64,
}

/// What the provider was started with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) recording: bool,
    pub(crate) strict: bool,
    pub(crate) fixed: bool,
}

impl Service {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            scripts: Scripts::default(),
            records: Records::default(),
            settings,
            fixed: Fixed::new(),
            issued: Issued::default(),
            answers: AtomicU64::new(1),
        }
    }

    /// Answers one request.
    pub(crate) async fn answer(&self, request: hyper::Request<Incoming>) -> Response<AnswerBody> {
        let (parts, body) = request.into_parts();
        let (path, query) = (parts.uri.path(), parts.uri.query());
        let route = Route::of(&parts.method, path, query, &parts.headers);
        let Ok(body) = Limited::new(body, MAX_BODY_BYTES).collect().await else {
            let body = refusal::body(route.provider(), 413, None, 0);
            return Reply::json(413, body).send(Ticket::default());
        };
        let body = body.to_bytes();
        if path.starts_with("/mock/") {
            let (status, json) =
                control::answer(&parts.method, path, query, &body, &self.scripts, &self.records);
            return Reply::json(status, json.compact().into()).send(Ticket::default());
        }
        if let Route::Ask(dialect) = route
            && (self.settings.fixed || query.is_some_and(|query| query.contains("mock=fast")))
        {
            return self.fixed(dialect, &body);
        }
        let script = parts.headers.get("x-mock-script").and_then(|name| name.to_str().ok()).unwrap_or("");
        let ticket = if self.settings.recording {
            self.records.add(&parts, body.clone(), script)
        } else {
            Ticket::default()
        };
        let plain = unpacked(&parts.headers, &body);
        let turn = match route {
            Route::Ask(_) => self.scripts.next(script, &plain),
            _ => Turn::default(),
        };
        if turn.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(turn.delay_ms)).await;
        }
        self.reply(&parts, route, &plain, &turn).packed(turn.encoding).with(&turn.headers).send(ticket)
    }

    fn fixed(&self, dialect: Dialect, body: &[u8]) -> Response<AnswerBody> {
        let (chunks, streamed) = self.fixed.answer(dialect, body);
        let body = AnswerBody::streamed(chunks, Duration::ZERO, Ticket::default());
        let (body, kind) = if streamed { (body, EVENT_STREAM) } else { (body.sized(), JSON) };
        let mut response = Response::new(body);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    }

    fn reply(&self, parts: &Parts, route: Route, body: &[u8], turn: &Turn) -> Reply {
        let number = self.answers.fetch_add(1, Ordering::Relaxed);
        let provider = route.provider();
        let refuse = |status, message: Option<&str>| {
            Reply::json(status, refusal::body(provider, status, message, number))
        };
        let reply = match route {
            Route::Models(provider) => Reply::json(200, models::list(provider)),
            Route::Unknown(_) => {
                let unknown = format!("Invalid URL ({} {})", parts.method, parts.uri.path());
                refuse(404, Some(&unknown))
            }
            Route::Ask(dialect) => match self.ask(dialect, parts, body, turn, number) {
                Ok(reply) => reply,
                Err(Refused { status, message }) => refuse(status, message.as_deref()),
            },
        };
        reply.of(provider, number)
    }

    fn ask(
        &self,
        dialect: Dialect,
        parts: &Parts,
        body: &[u8],
        turn: &Turn,
        number: u64,
    ) -> Result<Reply, Refused> {
        if let Some(body) = &turn.body {
            return Ok(Reply::json(turn.status.unwrap_or(200), body.clone().into()));
        }
        if let Some(status @ 400..) = turn.status {
            return Err(Refused { status, message: None });
        }
        let question = Question::read(dialect, parts.uri.path(), body).map_err(Refused::malformed)?;
        if self.settings.strict {
            self.check_order(dialect, body, question.previous_response_id.as_deref())?;
        }
        let answer = Answer::new(turn, number, &question.model, body.len());
        if dialect == Dialect::Responses {
            self.issued.add(&answer);
        }
        let delivery = question.delivery(dialect, parts.uri.query());
        let rendered = render(dialect, delivery, &answer, &question);
        Ok(Reply {
            status: turn.status.unwrap_or(200),
            kind: content_type(dialect, delivery),
            headers: HeaderMap::new(),
            rendered,
            pace: Duration::from_millis(turn.chunk_delay_ms),
            break_after: turn.drop_after,
        })
    }

    fn check_order(&self, dialect: Dialect, body: &[u8], previous: Option<&str>) -> Result<(), Refused> {
        let not_found = |id| Refused::malformed(format!("Previous response with id '{id}' not found."));
        let waiting = match previous {
            Some(id) => self.issued.calls_of(id).ok_or_else(|| not_found(id))?,
            None => vec![],
        };
        order::problem(dialect, body, &waiting).map_or(Ok(()), |problem| Err(Refused::malformed(problem)))
    }
}

/// The largest body that is taken.
const MAX_BODY_BYTES: usize = 64 << 20;

/// Why a question gets no answer.
struct Refused {
    status: u16,
    message: Option<String>,
}

impl Refused {
    fn malformed(message: String) -> Self {
        Self { status: 400, message: Some(message) }
    }
}

fn render(dialect: Dialect, delivery: Delivery, answer: &Answer, question: &Question<'_>) -> Rendered {
    match (dialect, delivery) {
        (Dialect::Chat, Delivery::Whole) => Rendered::Whole(chat::whole(answer)),
        (Dialect::Chat, _) => Rendered::Chunks(chat::events(answer, question)),
        (Dialect::Responses, Delivery::Whole) => Rendered::Whole(responses::whole(answer, question)),
        (Dialect::Responses, _) => Rendered::Chunks(responses::events(answer, question)),
        (Dialect::Anthropic, Delivery::Whole) => Rendered::Whole(anthropic::whole(answer)),
        (Dialect::Anthropic, _) => Rendered::Chunks(anthropic::events(answer)),
        (Dialect::Gemini { .. }, Delivery::Whole) => Rendered::Whole(gemini::whole(answer)),
        (Dialect::Gemini { .. }, Delivery::Events) => Rendered::Chunks(gemini::events(answer)),
        (Dialect::Gemini { .. }, Delivery::Array) => Rendered::Chunks(gemini::array(answer)),
    }
}

fn content_type(dialect: Dialect, delivery: Delivery) -> &'static str {
    match (dialect, delivery) {
        (Dialect::Gemini { .. }, Delivery::Events) => "text/event-stream",
        (_, Delivery::Events) => EVENT_STREAM,
        (Dialect::Gemini { .. }, _) => "application/json; charset=UTF-8",
        _ => JSON,
    }
}

/// The service behind every connection.
pub(crate) type Shared = Arc<Service>;
