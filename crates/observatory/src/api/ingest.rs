//! Logs that come over HTTP: one, an array, or one per line.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Body;
use hyper::header::CONTENT_TYPE;
use hyper::{HeaderMap, Request, Response};
use loopbreaker_record::{DecisionLog, Rejection};
use serde::de::IgnoredAny;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::orders::violations;
use super::reply::{Reply, error, json_reply, store_error};
use super::{Caller, unread};
use crate::error::StoreError;
use crate::ingest::{Accepted, Arrival, Refusal};
use crate::observatory::Observatory;
use crate::polite::after_you;
use crate::writer::Pending;

/// An array: more than this in one request should be NDJSON.
const MAX_ARRAY_BYTES: usize = 16 << 20;
const MAX_ARRAY: usize = 1_000;
/// Lines of one request, since each of them has a place in the answer.
const MAX_LINES: usize = 10_000;
/// Logs of one request that wait for their commit at a time.
const MAX_UNDER_WAY: usize = 256;

/// What became of one log, or will.
enum Outcome {
    Refused(u16, Value),
    Failed(StoreError),
    UnderWay(Pending<Result<Accepted, Refusal>>),
}

/// What is answered about one log.
enum Answer {
    Kept(Box<Accepted>),
    Refused(u16, Value),
}

impl Answer {
    fn status(&self) -> u16 {
        match self {
            Self::Kept(accepted) if accepted.duplicate => 200,
            Self::Kept(_) => 201,
            Self::Refused(status, _) => *status,
        }
    }
}

/// An answer as it is written: the log in it as it was kept, without being read and written again.
struct Written<'a> {
    answer: &'a Answer,
    /// Its place among the answers to one request.
    index: Option<usize>,
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        if let Some(index) = self.index {
            fields.serialize_entry("index", &index)?;
            fields.serialize_entry("status", &self.answer.status())?;
        }
        match self.answer {
            Answer::Kept(accepted) => {
                fields.serialize_entry("session_id", &accepted.session_id)?;
                fields.serialize_entry("duplicate", &accepted.duplicate)?;
                fields.serialize_entry("severity", &accepted.severity)?;
                fields.serialize_entry("log", &accepted.log)?;
                fields.serialize_entry("control", &accepted.control)?;
            }
            Answer::Refused(_, why) => {
                for (name, value) in why.as_object().into_iter().flatten() {
                    fields.serialize_entry(name, value)?;
                }
            }
        }
        fields.end()
    }
}

impl Observatory {
    pub(super) async fn take_logs<B>(&self, request: Request<B>, caller: &Caller) -> Response<Reply>
    where
        B: Body<Data = Bytes> + Send + Unpin,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
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
            Ok(body) => body.to_bytes(),
            Err(problem) => return unread(problem.as_ref(), "an array has at most 16 MiB; send NDJSON"),
        };
        if body.trim_ascii_start().first() == Some(&b'[') {
            return self.take_array(&body, session, caller).await;
        }
        if holds_lines(&body) {
            return self.take_lines(Full::new(body), session, caller).await;
        }
        match decided(self.submit(&body, session, caller).await).await {
            Ok(answer) => json_reply(answer.status(), &Written { answer: &answer, index: None }),
            Err(problem) => store_error(&problem),
        }
    }

    async fn take_array(&self, body: &[u8], session: Option<String>, caller: &Caller) -> Response<Reply> {
        let logs: Vec<&RawValue> = match serde_json::from_slice(body) {
            Ok(logs) => logs,
            Err(problem) => {
                let rejection = Rejection::NotJson(problem.to_string());
                return json_reply(rejection.status(), &rejection.answer());
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
            results.add(outcome).await;
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
        let mut count = 0;
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
                if count == MAX_LINES {
                    let message = "one request has at most 10000 lines: send the rest in another";
                    let answer = json!({ "error": "too_many_lines", "message": message });
                    under_way.push_back(Outcome::Refused(413, answer));
                    return Box::pin(results.finish(under_way)).await;
                }
                count += 1;
                under_way.push_back(match line {
                    Ok(line) => self.submit(&line, session.clone(), caller).await,
                    Err(rejection) => Outcome::Refused(rejection.status(), rejection.answer()),
                });
                if under_way.len() >= MAX_UNDER_WAY
                    && let Some(first) = under_way.pop_front()
                {
                    results.add(first).await;
                }
            }
            if ended {
                break;
            }
        }
        results.finish(under_way).await
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
                return Outcome::Refused(rejection.status(), rejection.answer());
            }
        };
        match self.enqueue(Arrival { tenant, session, log }, caller.tenant.is_some()).await {
            Ok(pending) => Outcome::UnderWay(pending),
            Err(problem) => Outcome::Failed(problem),
        }
    }
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

#[derive(Default)]
struct Results {
    accepted: u64,
    rejected: u64,
    answers: Vec<Answer>,
}

impl Results {
    async fn add(&mut self, outcome: Outcome) {
        let answer = decided(outcome).await.unwrap_or_else(|problem| {
            Answer::Refused(503, json!({ "error": "store_unavailable", "reason": problem.code() }))
        });
        match &answer {
            Answer::Kept(_) => self.accepted += 1,
            Answer::Refused(..) => self.rejected += 1,
        }
        self.answers.push(answer);
    }

    async fn finish(mut self, rest: VecDeque<Outcome>) -> Response<Reply> {
        for outcome in rest {
            self.add(outcome).await;
        }
        self.reply()
    }

    fn reply(&self) -> Response<Reply> {
        #[derive(Serialize)]
        struct All<'a> {
            accepted: u64,
            rejected: u64,
            results: Vec<Written<'a>>,
        }
        let written = |(index, answer)| Written { answer, index: Some(index) };
        let results = self.answers.iter().enumerate().map(written).collect();
        json_reply(200, &All { accepted: self.accepted, rejected: self.rejected, results })
    }
}

/// Lines out of chunks. A line that is longer than a log may be is dropped as it comes.
#[derive(Default)]
struct Lines {
    buffer: BytesMut,
    /// Length of a line that is too long already.
    dropped: usize,
    whole: VecDeque<Result<Bytes, Rejection>>,
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
