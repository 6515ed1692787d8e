//! The body of a request on its way to the provider.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::inbound::Unread;
use crate::timely::Timely;

/// What is sent upstream: bytes that were read before, what is still coming, or first the one and then the other.
pub(crate) struct Outgoing {
    ready: Option<Bytes>,
    coming: Option<Timely<Incoming>>,
}

impl Outgoing {
    /// A body that was read whole.
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self { ready: (!bytes.is_empty()).then_some(bytes), coming: None }
    }

    /// A body of which only the start was read, or nothing at all.
    pub(crate) fn streamed(start: Bytes, coming: Incoming) -> Self {
        Self { coming: Some(Timely::of(coming)), ..Self::whole(start) }
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
            Some(coming) => Pin::new(coming).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_none() && self.coming.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let ready = self.ready.as_ref().map_or(0, |bytes| bytes.len() as u64);
        let coming = self.coming.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(ready + coming.lower());
        if let Some(upper) = coming.upper() {
            hint.set_upper(ready + upper);
        }
        hint
    }
}
