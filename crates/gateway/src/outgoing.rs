//! The body of a request on its way to the provider.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};

use crate::inbound::{Inbound, Unread};
use crate::pauses::Sent;
use crate::timely::Timely;
use crate::upload::Upload;

/// What is sent upstream: bytes that were read before, what is still coming, or first the one and then the other.
pub(crate) struct Outgoing {
    ready: Option<Bytes>,
    coming: Option<Timely<Inbound>>,
    /// How that comes in, for whoever waits for an answer.
    upload: Option<Arc<Upload>>,
    /// What follows a body that was read whole; in a box, since hardly any has some.
    trailers: Option<Box<HeaderMap>>,
    /// Who is told when it has been given to a connection; in a box, since hardly anybody is.
    _sent: Option<Box<Sent>>,
}

impl Outgoing {
    /// A body that was read whole.
    pub(crate) fn whole(bytes: Bytes) -> Self {
        let ready = (!bytes.is_empty()).then_some(bytes);
        Self { ready, coming: None, upload: None, trailers: None, _sent: None }
    }

    /// A body of which only the start was read, or nothing at all.
    pub(crate) fn streamed(start: Bytes, coming: Inbound) -> Self {
        let upload = Some(Arc::new(Upload::new()));
        Self { coming: Some(Timely::of(coming)), upload, ..Self::whole(start) }
    }

    /// How what is still coming comes in.
    pub(crate) fn upload(&self) -> Option<Arc<Upload>> {
        self.upload.clone()
    }

    /// With somebody who is told when all of it has been given to a connection, which is when it is dropped.
    pub(crate) fn telling(self, sent: Option<Sent>) -> Self {
        Self { _sent: sent.map(Box::new), ..self }
    }

    /// With these trailers behind it.
    pub(crate) fn followed_by(self, trailers: HeaderMap) -> Self {
        Self { trailers: Some(Box::new(trailers)), ..self }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Unread;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Unread>>> {
        let this = self.get_mut();
        if let Some(bytes) = this.ready.take() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        match &mut this.coming {
            Some(coming) => {
                let polled = Pin::new(coming).poll_frame(context);
                if let Some(upload) = &this.upload {
                    upload.polled(polled.is_ready());
                }
                polled
            }
            None => Poll::Ready(this.trailers.take().map(|trailers| Ok(Frame::trailers(*trailers)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_none()
            && self.coming.as_ref().is_none_or(Body::is_end_stream)
            && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let ready = self.ready.as_ref().map_or(0, |bytes| bytes.len() as u64);
        let coming = self.coming.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(ready + coming.lower());
        // Who knows the length of a body sends nothing behind it.
        if let Some(upper) = coming.upper().filter(|_| self.trailers.is_none()) {
            hint.set_upper(ready + upper);
        }
        hint
    }
}
