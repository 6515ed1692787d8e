//! An answer on its way out: status, headers, and the body as it is packed.

use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};

use crate::answer::Rendered;
use crate::body::AnswerBody;
use crate::provider::Provider;
use crate::record::Ticket;
use crate::turn::Encoding;

/// The type of whole answers.
pub(crate) const JSON: &str = "application/json";
/// The type of streamed answers.
pub(crate) const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

/// An answer on its way out.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) headers: HeaderMap,
    pub(crate) rendered: Rendered,
    pub(crate) pace: Duration,
    pub(crate) break_after: Option<usize>,
}

impl Reply {
    pub(crate) fn json(status: u16, body: Bytes) -> Self {
        let (headers, rendered) = (HeaderMap::new(), Rendered::Whole(body));
        Self { status, kind: JSON, headers, rendered, pace: Duration::ZERO, break_after: None }
    }

    /// With the headers that a provider's answers carry.
    pub(crate) fn of(mut self, provider: Provider, number: u64) -> Self {
        for (name, value) in provider.headers(number) {
            if let Ok(value) = HeaderValue::from_str(&value) {
                self.headers.insert(name, value);
            }
        }
        if matches!(self.rendered, Rendered::Chunks(_)) {
            self.headers.insert("cache-control", HeaderValue::from_static("no-cache"));
        }
        self
    }

    /// With the headers of a script in place of ours; what is no header is left out.
    pub(crate) fn with<'h>(mut self, headers: impl IntoIterator<Item = (&'h String, &'h String)>) -> Self {
        for (name, value) in headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                self.headers.insert(name, value);
            }
        }
        self
    }

    pub(crate) fn packed(mut self, encoding: Option<Encoding>) -> Self {
        if let Some(Encoding::Gzip) = encoding {
            self.rendered = match self.rendered {
                Rendered::Whole(body) => Rendered::Whole(gzip(&[body]).concat().into()),
                Rendered::Chunks(chunks) => {
                    Rendered::Chunks(gzip(&chunks).into_iter().map(Bytes::from).collect())
                }
            };
            self.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        self
    }

    pub(crate) fn send(self, ticket: Ticket) -> Response<AnswerBody> {
        ticket.status(self.status);
        let body = match self.rendered {
            Rendered::Whole(body) => AnswerBody::whole(body, ticket),
            Rendered::Chunks(chunks) => AnswerBody::streamed(chunks.into(), self.pace, ticket),
        };
        let mut response = Response::new(body.broken_after(self.break_after));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        response.headers_mut().extend(self.headers);
        response
    }
}

/// Each chunk in gzip so that it can be unpacked as soon as it is there.
fn gzip(chunks: &[Bytes]) -> Vec<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut packed = Vec::with_capacity(chunks.len() + 1);
    for chunk in chunks {
        // Writing to a vector does not fail.
        if encoder.write_all(chunk).and_then(|()| encoder.flush()).is_ok() {
            packed.push(std::mem::take(encoder.get_mut()));
        }
    }
    packed.extend(encoder.finish());
    packed
}
