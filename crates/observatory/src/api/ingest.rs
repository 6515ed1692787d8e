//! Logs that come over HTTP: one, an array, or one per line.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Body;
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Request, Response};
use loopbreaker_record::{DecisionLog, Rejection};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::orders::violations;
use super::reply::{Reply, error, json_reply, store_error};
use super::results::{Answer, Results};
use super::{Caller, unread};
use crate::error::StoreError;
use crate::ingest::{Accepted, Arrival, Refusal};
use crate::observatory::Observatory;
use crate::polite::after_you;
use crate::redact::redacted_answer;
use crate::writer::Pending;

/// An array: more than this in one request should be NDJSON.
const MAX_ARRAY_BYTES: usize = 16 << 20;
const MAX_ARRAY: usize = 1_000;
/// What some programs write before a text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// Logs of one request that wait for their commit at a time.
const MAX_UNDER_WAY: usize = 256;

/// What became of one log, or will.
enum Outcome {
    Refused(u16, Value),
    Failed(StoreError),
    UnderWay(Pending<Result<Accepted, Refusal>>),
}

impl Observatory {
    pub(super) async fn take_logs<B>(&self, request: Request<B>, caller: &Caller) -> Response<Reply>
    where
        B: Body<Data = Bytes> + Send + Unpin,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        if let Some(encoding) = encoding_of(request.headers()) {
            return not_decoded(request, &encoding).await;
        }
        let session = match named_session(request.headers()) {
            Ok(session) => session,
            Err(problem) => return violations(&[("X-Session-ID".to_owned(), problem)]),
        };
        let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let kind = kind.unwrap_or_default().to_ascii_lowercase();
        if kind.contains("ndjson") || kind.contains("jsonl") {
            return self.take_lines(request.into_body(), session, caller).await;
        }
        let body = match Limited::new(request.into_body(), MAX_ARRAY_BYTES).collect().await {
            Ok(body) => without_mark(body.to_bytes()),
            Err(problem) => return unread(problem.as_ref(), "an array has at most 16 MiB; send NDJSON"),
        };
        if body.trim_ascii_start().first() == Some(&b'[') {
            return self.take_array(&body, session, caller).await;
        }
        if holds_lines(&body) {
            return self.take_lines(Full::new(body), session, caller).await;
        }
        match decided(self.submit(&body, session, caller).await).await {
            Ok(answer) => answer.reply(),
            Err(problem) => store_error(&problem),
        }
    }

    async fn take_array(&self, body: &[u8], session: Option<String>, caller: &Caller) -> Response<Reply> {
        let logs: Vec<&RawValue> = match serde_json::from_slice(body) {
            Ok(logs) => logs,
            Err(problem) => {
                let rejection = Rejection::NotJson(problem.to_string());
                return json_reply(rejection.status(), &redacted_answer(&rejection));
            }
        };
        if logs.len() > MAX_ARRAY {
            return error(413, "too_large", "an array has at most 1000 logs; send NDJSON");
        }
        let mut results = Results::default();
        let mut under_way = VecDeque::with_capacity(logs.len());
        for log in logs {
            under_way.push_back(self.submit(log.get().as_bytes(), session.clone(), caller).await);
        }
        for outcome in under_way {
            results.add(decided(outcome).await);
        }
        results.reply()
    }

    async fn take_lines<B>(&self, mut body: B, session: Option<String>, caller: &Caller) -> Response<Reply>
    where
        B: Body<Data = Bytes> + Send + Unpin,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let mut lines = Lines::default();
        let mut results = Results::default();
        let mut under_way = VecDeque::new();
        loop {
            let ended = match body.frame().await {
                Some(Ok(frame)) => {
                    lines.add(frame.data_ref().map(AsRef::as_ref).unwrap_or_default());
                    false
                }
                // A client that went away in the middle of a line has not sent that line.
                Some(Err(_)) => break,
                None => {
                    lines.end();
                    true
                }
            };
            while let Some(line) = lines.next() {
                under_way.push_back(match line {
                    Ok(line) => self.submit(&line, session.clone(), caller).await,
                    Err(rejection) => Outcome::Refused(rejection.status(), redacted_answer(&rejection)),
                });
                if under_way.len() >= MAX_UNDER_WAY
                    && let Some(first) = under_way.pop_front()
                {
                    results.add(decided(first).await);
                }
            }
            if ended {
                break;
            }
        }
        for outcome in under_way {
            results.add(decided(outcome).await);
        }
        results.reply()
    }

    /// Reads one log and hands it to the writer.
    async fn submit(&self, bytes: &[u8], session: Option<String>, caller: &Caller) -> Outcome {
        // Many may come at a time, and to read them all would be a long while for a model call that waits.
        after_you();
        let tenant = caller.writes_as();
        let log = match DecisionLog::parse(bytes) {
            Ok(log) => log,
            Err(rejection) => {
                self.refused(&tenant, bytes, &rejection);
                return Outcome::Refused(rejection.status(), redacted_answer(&rejection));
            }
        };
        match self.enqueue(Arrival { tenant, session, log }, caller.tenant.is_some()).await {
            Ok(pending) => Outcome::UnderWay(pending),
            Err(problem) => Outcome::Failed(problem),
        }
    }
}

/// How a body is encoded, when it is not sent as it is.
fn encoding_of(headers: &HeaderMap) -> Option<String> {
    let named =
        headers.get_all(CONTENT_ENCODING).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    let named: Vec<String> =
        named.flat_map(|list| list.split(',').map(str::to_owned).collect::<Vec<_>>()).collect();
    let mut named = named.iter().map(|name| name.trim());
    named.find(|name| !name.is_empty() && !name.eq_ignore_ascii_case("identity")).map(str::to_owned)
}

/// Refuses a body that would have to be decoded. It is read as far as a body may be long, since many clients hear of
/// nothing before they have sent it.
async fn not_decoded<B>(request: Request<B>, encoding: &str) -> Response<Reply>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    drop(Limited::new(request.into_body(), MAX_ARRAY_BYTES).collect().await);
    let message = format!("the body has the content-encoding {encoding}: send it as it is");
    let mut reply = error(415, "unsupported_encoding", &message);
    reply.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    reply
}

fn without_mark(body: Bytes) -> Bytes {
    if body.starts_with(BYTE_ORDER_MARK) { body.slice(BYTE_ORDER_MARK.len()..) } else { body }
}

/// The session that a request names for its logs; one that cannot be kept as it is would be another.
fn named_session(headers: &HeaderMap) -> Result<Option<String>, String> {
    let Some(value) = headers.get("x-session-id") else { return Ok(None) };
    let Ok(text) = std::str::from_utf8(value.as_bytes()) else { return Err("must be UTF-8".to_owned()) };
    let name = text.trim();
    if name.len() > DecisionLog::MAX_SESSION_ID {
        return Err(format!("must have at most {} bytes", DecisionLog::MAX_SESSION_ID));
    }
    Ok(Some(name.to_owned()).filter(|name| !name.is_empty()))
}

/// Whether a body that is not said to be NDJSON is it all the same: its first line is a whole document, and more follows.
fn holds_lines(body: &[u8]) -> bool {
    let body = body.trim_ascii();
    let Some(end) = body.iter().position(|byte| *byte == b'\n') else { return false };
    serde_json::from_slice::<IgnoredAny>(&body[..end]).is_ok()
}

async fn decided(outcome: Outcome) -> Result<Answer, StoreError> {
    let answer = match outcome {
        Outcome::Refused(status, why) => return Ok(Answer::Refused(status, why)),
        Outcome::Failed(problem) => return Err(problem),
        Outcome::UnderWay(pending) => pending.answer().await?,
    };
    Ok(match answer {
        Ok(accepted) => Answer::Kept(Box::new(accepted)),
        Err(refusal) => {
            Answer::Refused(409, json!({ "error": refusal.code(), "message": refusal.to_string() }))
        }
    })
}

/// Lines out of chunks. A line that is longer than a log may be is dropped as it comes.
#[derive(Default)]
struct Lines {
    buffer: BytesMut,
    /// Length of a line that is too long already.
    dropped: usize,
    whole: VecDeque<Result<Bytes, Rejection>>,
    has_begun: bool,
}

impl Lines {
    fn add(&mut self, mut chunk: &[u8]) {
        while let Some(at) = chunk.iter().position(|byte| *byte == b'\n') {
            self.extend(&chunk[..at]);
            self.end();
            chunk = &chunk[at + 1..];
        }
        self.extend(chunk);
    }

    fn extend(&mut self, part: &[u8]) {
        if self.dropped > 0 || self.buffer.len() + part.len() > DecisionLog::MAX_BYTES {
            self.dropped += self.buffer.len() + part.len();
            self.buffer.clear();
        } else {
            self.buffer.extend_from_slice(part);
        }
    }

    fn end(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) && self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.buffer.advance(BYTE_ORDER_MARK.len());
        }
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            self.whole.push_back(Err(Rejection::TooLarge { bytes: dropped, max: DecisionLog::MAX_BYTES }));
        } else if !self.buffer.trim_ascii().is_empty() {
            self.whole.push_back(Ok(self.buffer.split().freeze()));
        } else {
            self.buffer.clear();
        }
    }

    fn next(&mut self) -> Option<Result<Bytes, Rejection>> {
        self.whole.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use loopbreaker_record::DecisionLog;
    use proptest::prelude::*;

    use super::Lines;

    fn lines(chunks: &[&[u8]]) -> Vec<Option<String>> {
        let mut lines = Lines::default();
        for chunk in chunks {
            lines.add(chunk);
        }
        lines.end();
        std::iter::from_fn(|| lines.next())
            .map(|line| line.ok().map(|line| String::from_utf8_lossy(&line).into_owned()))
            .collect()
    }

    #[test]
    fn empty_lines_are_no_lines_and_the_last_needs_no_end() {
        assert_eq!(lines(&[b"a\n\n \r\nb"]), [Some("a".to_owned()), Some("b".to_owned())]);
    }

    #[test]
    fn the_mark_before_the_first_line_is_no_part_of_it() {
        assert_eq!(
            lines(&[b"\xef", b"\xbb\xbfa\n\xef\xbb\xbfb"]),
            [Some("a".to_owned()), Some("\u{feff}b".to_owned())]
        );
        assert_eq!(lines(&[b"\xef\xbb\xbf\n"]), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_refused_and_the_next_one_is_read() {
        let long = vec![b'x'; DecisionLog::MAX_BYTES];
        assert_eq!(lines(&[&long, b"x", &long, b"\nb"]), [None, Some("b".to_owned())]);
    }

    proptest! {
        #[test]
        fn the_same_lines_come_however_they_are_cut(text in "[ab\\n]{0,60}", size in 1_usize..8) {
            let cut: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            prop_assert_eq!(lines(&cut), lines(&[text.as_bytes()]));
        }
    }
}
