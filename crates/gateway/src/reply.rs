//! What a client gets back: an answer that is passed on, or words of our own.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use loopbreaker_dialect::{Dialect, Refusal, refusal};

use crate::answer::Passing;
use crate::broken::BrokenOff;
use crate::cache::Replay;

/// The body of a reply.
pub(crate) enum Reply {
    /// Our own words.
    Own(Option<Bytes>),
    /// The provider's.
    Passed(Box<Passing>),
    /// The provider's, given again.
    Again(Replay),
    /// The observatory's.
    Observed(loopbreaker_observatory::Reply),
}

impl Reply {
    /// An empty body.
    pub(crate) const EMPTY: Self = Self::Own(None);
}

impl From<Bytes> for Reply {
    fn from(bytes: Bytes) -> Self {
        Self::Own((!bytes.is_empty()).then_some(bytes))
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            Self::Own(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Passed(passing) => Pin::new(&mut **passing).poll_frame(context),
            Self::Again(replay) => Poll::Ready(replay.next().map(|piece| Ok(Frame::data(piece)))),
            Self::Observed(reply) => {
                let polled = Pin::new(reply).poll_frame(context);
                polled.map(|frame| frame.map(|frame| frame.map_err(|never| match never {})))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(bytes) => bytes.is_none(),
            Self::Passed(passing) => passing.is_end_stream(),
            Self::Again(replay) => replay.is_over(),
            Self::Observed(reply) => reply.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Passed(passing) => passing.size_hint(),
            Self::Again(_) => SizeHint::new(),
            Self::Observed(reply) => reply.size_hint(),
        }
    }
}

/// A refusal in the client's own dialect.
pub(crate) fn refuse(dialect: Option<Dialect>, code: Refusal, status: u16, message: &str) -> Response<Reply> {
    let body = refusal(dialect, code, status, message);
    with(status, "application/json", body)
}

/// A reply of our own.
pub(crate) fn with(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Response<Reply> {
    let mut response = Response::new(Reply::from(body.into()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
