//! What was received, and what became of it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use hyper::Version;
use hyper::http::request::Parts;

/// One request as it came in.
#[derive(Debug, Clone)]
pub struct Request {
    /// `POST`, `GET`…
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query, without the question mark.
    pub query: Option<String>,
    /// `HTTP/1.1` or `HTTP/2.0`.
    pub version: &'static str,
    /// Names in lower case and values, in the order in which they came; values of one name stand together.
    pub headers: Vec<(String, String)>,
    /// The body, bit for bit.
    pub body: Bytes,
    /// The script it asked for, empty for the one without a name.
    pub script: String,
    /// The status it was answered with, 0 before that.
    pub status: u16,
    /// Chunks of the answer's body that were handed out so far.
    pub chunks: usize,
    /// What became of the answer.
    pub outcome: Outcome,
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is still being made or sent.
    Open,
    /// It was sent to its end.
    Answered,
    /// The client went away before its end.
    Dropped,
    /// It was broken off by us, as its script says.
    Broken,
}

impl Outcome {
    /// The outcome's name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answered => "answered",
            Self::Dropped => "dropped",
            Self::Broken => "broken",
        }
    }
}

impl Request {
    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// The requests so far, bounded by count and by bytes: beyond that the oldest are dropped and counted.
#[derive(Debug, Default)]
pub(crate) struct Records(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    requests: VecDeque<(Request, Arc<Progress>)>,
    bytes: usize,
    lost: u64,
}

impl Records {
    const MAX_REQUESTS: usize = 10_000;
    const MAX_BYTES: usize = 256 << 20;

    /// Keeps a request; the ticket says later what became of its answer.
    pub(crate) fn add(&self, parts: &Parts, body: Bytes, script: &str) -> Ticket {
        let request = received(parts, body, script);
        let progress = Arc::new(Progress::default());
        let mut kept = self.kept();
        kept.bytes += request.body.len();
        kept.requests.push_back((request, Arc::clone(&progress)));
        while kept.requests.len() > Self::MAX_REQUESTS || kept.bytes > Self::MAX_BYTES {
            let Some((oldest, _)) = kept.requests.pop_front() else { break };
            kept.bytes -= oldest.body.len();
            kept.lost += 1;
        }
        Ticket(Some(progress))
    }

    /// Everything that is kept, oldest first.
    pub(crate) fn all(&self) -> Vec<Request> {
        let with_progress = |(request, progress): &(Request, Arc<Progress>)| Request {
            status: progress.status.load(Ordering::Acquire),
            chunks: progress.chunks.load(Ordering::Acquire),
            outcome: progress.outcome.get().copied().unwrap_or(Outcome::Open),
            ..request.clone()
        };
        self.kept().requests.iter().map(with_progress).collect()
    }

    /// How many were dropped for want of room.
    pub(crate) fn lost(&self) -> u64 {
        self.kept().lost
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        *self.kept() = Kept::default();
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn received(parts: &Parts, body: Bytes, script: &str) -> Request {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    Request {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().map(ToOwned::to_owned),
        version: if parts.version == Version::HTTP_2 { "HTTP/2.0" } else { "HTTP/1.1" },
        headers: parts
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), text(value.as_bytes())))
            .collect(),
        body,
        script: script.to_owned(),
        status: 0,
        chunks: 0,
        outcome: Outcome::Open,
    }
}

#[derive(Debug, Default)]
struct Progress {
    status: AtomicU16,
    chunks: AtomicUsize,
    outcome: OnceLock<Outcome>,
}

/// Goes with an answer. An answer whose ticket is dropped before its end was not wanted any more.
#[derive(Debug, Default)]
pub(crate) struct Ticket(Option<Arc<Progress>>);

impl Ticket {
    pub(crate) fn status(&self, status: u16) {
        if let Some(progress) = &self.0 {
            progress.status.store(status, Ordering::Release);
        }
    }

    pub(crate) fn chunk(&self) {
        if let Some(progress) = &self.0 {
            progress.chunks.fetch_add(1, Ordering::AcqRel);
        }
    }

    pub(crate) fn end(&self, outcome: Outcome) {
        if let Some(progress) = &self.0 {
            // The first outcome stays.
            progress.outcome.get_or_init(|| outcome);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.end(Outcome::Dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Records};
    use bytes::Bytes;

    fn add(records: &Records, body: Bytes) -> super::Ticket {
        let (parts, ()) = hyper::Request::post("http://x/v1/messages?a=1").body(()).unwrap().into_parts();
        records.add(&parts, body, "s")
    }

    #[test]
    fn an_answer_that_is_not_ended_was_dropped() {
        let records = Records::default();
        let (ended, dropped, _open) =
            (add(&records, Bytes::new()), add(&records, Bytes::new()), add(&records, Bytes::new()));
        ended.end(Outcome::Answered);
        drop(ended);
        drop(dropped);
        let outcomes: Vec<_> = records.all().iter().map(|request| request.outcome).collect();
        assert_eq!(outcomes, [Outcome::Answered, Outcome::Dropped, Outcome::Open]);
    }

    #[test]
    fn the_oldest_requests_go_first_when_there_are_too_many_or_too_large() {
        let records = Records::default();
        for _ in 0..=Records::MAX_REQUESTS {
            add(&records, Bytes::new());
        }
        assert_eq!((records.all().len(), records.lost()), (Records::MAX_REQUESTS, 1));
        records.clear();
        let half = Bytes::from(vec![0; Records::MAX_BYTES / 2]);
        for _ in 0..3 {
            add(&records, half.clone());
        }
        assert_eq!((records.all().len(), records.lost()), (2, 1));
    }
}
