//! Answers and their bodies.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::Response;
use hyper::body::{Body, Frame};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc;

use crate::error::StoreError;

/// The body of an answer, whole or streamed.
pub type Reply = UnsyncBoxBody<Bytes, Infallible>;

pub(crate) fn json_reply(status: u16, value: &impl Serialize) -> Response<Reply> {
    // What is answered has text keys and finite numbers only, which can always be written.
    json_bytes(status, serde_json::to_vec(value).unwrap_or_default())
}

/// JSON that is written already.
pub(crate) fn json_bytes(status: u16, body: Vec<u8>) -> Response<Reply> {
    with(status, "application/json", Full::new(Bytes::from(body)).boxed_unsync())
}

pub(crate) fn error(status: u16, code: &str, message: &str) -> Response<Reply> {
    json_reply(status, &json!({ "error": code, "message": message }))
}

/// The store could not do it; the client may try again.
pub(crate) fn store_error(problem: &StoreError) -> Response<Reply> {
    let mut reply = json_reply(
        503,
        &json!({ "error": "store_unavailable", "reason": problem.code(), "message": problem.to_string() }),
    );
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    reply
}

impl From<StoreError> for Box<Response<Reply>> {
    fn from(problem: StoreError) -> Self {
        Self::new(store_error(&problem))
    }
}

/// An answer whose body comes bit by bit.
pub(crate) fn streamed(kind: &'static str, chunks: mpsc::Receiver<Bytes>) -> Response<Reply> {
    with(200, kind, Chunks(chunks).boxed_unsync())
}

fn with(status: u16, kind: &'static str, body: Reply) -> Response<Reply> {
    let mut reply = Response::new(body);
    *reply.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

struct Chunks(mpsc::Receiver<Bytes>);

impl Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}
