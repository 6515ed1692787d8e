//! Logs that come over HTTP: one, an array, or one per line.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Limited};
use hyper::body::Body;
use hyper::header::CONTENT_TYPE;
use hyper::{Request, Response};
use loopbreaker_record::{DecisionLog, Rejection};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Caller;
use super::reply::{Reply, error, json_reply, store_error};
use crate::error::StoreError;
use crate::ingest::{Accepted, Arrival, Refusal};
use crate::observatory::Observatory;
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
    Decided(u16, Value),
    Failed(StoreError),
    UnderWay(Pending<Result<Accepted, Refusal>>),
}

impl Observatory {
    pub(super) async fn take_logs<B>(&self, request: Request<B>, caller: &Caller) -> Response<Reply>
    where
        B: Body<Data = Bytes> + Send + Unpin,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        let session = header("x-session-id")
            .map(str::trim)
            .filter(|id| !id.is_empty() && id.len() <= DecisionLog::MAX_SESSION_ID);
        let session = session.map(str::to_owned);
        let kind = header(CONTENT_TYPE.as_str()).unwrap_or_default().to_ascii_lowercase();
        if kind.contains("ndjson") || kind.contains("jsonl") {
            return self.take_lines(request.into_body(), session, caller).await;
        }
        let Ok(body) = Limited::new(request.into_body(), MAX_ARRAY_BYTES).collect().await else {
            return error(413, "too_large", "an array has at most 16 MiB; send NDJSON");
        };
        let body = body.to_bytes();
        if body.trim_ascii_start().first() == Some(&b'[') {
            return self.take_array(&body, session, caller).await;
        }
        match self.submit(&body, session, caller).await {
            Outcome::Failed(problem) => store_error(&problem),
            outcome => match decided(outcome).await {
                Ok((status, answer)) => json_reply(status, &answer),
                Err(problem) => store_error(&problem),
            },
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
                    under_way.push_back(Outcome::Decided(413, answer));
                    return Box::pin(results.finish(under_way)).await;
                }
                count += 1;
                under_way.push_back(match line {
                    Ok(line) => self.submit(&line, session.clone(), caller).await,
                    Err(rejection) => Outcome::Decided(rejection.status(), rejection.answer()),
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
        let tenant = caller.writes_as();
        let log = match DecisionLog::parse(bytes) {
            Ok(log) => log,
            Err(rejection) => {
                self.refused(&tenant, bytes, &rejection);
                return Outcome::Decided(rejection.status(), rejection.answer());
            }
        };
        match self.enqueue(Arrival { tenant, session, log }).await {
            Ok(pending) => Outcome::UnderWay(pending),
            Err(problem) => Outcome::Failed(problem),
        }
    }
}

async fn decided(outcome: Outcome) -> Result<(u16, Value), StoreError> {
    let answer = match outcome {
        Outcome::Decided(status, answer) => return Ok((status, answer)),
        Outcome::Failed(problem) => return Err(problem),
        Outcome::UnderWay(pending) => pending.answer().await?,
    };
    Ok(match answer {
        Ok(accepted) => {
            let status = if accepted.duplicate { 200 } else { 201 };
            let answer = json!({
                "session_id": accepted.session_id,
                "duplicate": accepted.duplicate,
                "severity": accepted.severity,
                "log": accepted.log,
                "control": accepted.control,
            });
            (status, answer)
        }
        Err(refusal) => (409, json!({ "error": refusal.code(), "message": refusal.to_string() })),
    })
}

#[derive(Default)]
struct Results {
    accepted: u64,
    rejected: u64,
    answers: Vec<Value>,
}

impl Results {
    async fn add(&mut self, outcome: Outcome) {
        let (status, mut answer) = decided(outcome).await.unwrap_or_else(|problem| {
            (503, json!({ "error": "store_unavailable", "reason": problem.code() }))
        });
        if status < 300 {
            self.accepted += 1;
        } else {
            self.rejected += 1;
        }
        answer["index"] = self.answers.len().into();
        answer["status"] = status.into();
        self.answers.push(answer);
    }

    async fn finish(mut self, rest: VecDeque<Outcome>) -> Response<Reply> {
        for outcome in rest {
            self.add(outcome).await;
        }
        self.reply()
    }

    fn reply(self) -> Response<Reply> {
        let Self { accepted, rejected, answers } = self;
        json_reply(200, &json!({ "accepted": accepted, "rejected": rejected, "results": answers }))
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
