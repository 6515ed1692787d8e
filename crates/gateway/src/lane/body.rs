//! The body of a request on a lane, read by whoever wants it.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::Client;
use crate::broken::BrokenOff;

/// A body with a length that is known.
#[derive(Debug)]
pub(crate) struct LaneBody {
    client: Arc<Mutex<Client>>,
}

/// Room is made for what a client says that it will send as far as it costs little, and then as it comes.
const MAX_ROOM: u64 = 256 << 10;

impl LaneBody {
    pub(super) const fn new(client: Arc<Mutex<Client>>) -> Self {
        Self { client }
    }

    /// Reads what has come of the body, and gives all of it when all of it is there.
    pub(crate) fn poll_whole(&self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BrokenOff>> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let left = client.left.saturating_sub(client.pipe.ahead.len() as u64);
        if left > 0 {
            let room = left.min(MAX_ROOM.max(client.pipe.ahead.len() as u64));
            let read = ready!(client.pipe.poll_fill_for(context, room as usize))?;
            if read == 0 {
                return Poll::Ready(Err(BrokenOff::early_end()));
            }
        }
        if client.left > client.pipe.ahead.len() as u64 {
            return Poll::Ready(Ok(None));
        }
        Poll::Ready(Ok(Some(client.take_of_body())))
    }
}

impl Body for LaneBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if client.left == 0 {
            return Poll::Ready(None);
        }
        if client.pipe.ahead.is_empty() && ready!(client.pipe.poll_fill(context))? == 0 {
            return Poll::Ready(Some(Err(BrokenOff::early_end())));
        }
        Poll::Ready(Some(Ok(Frame::data(client.take_of_body()))))
    }

    fn is_end_stream(&self) -> bool {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.client.lock().unwrap_or_else(PoisonError::into_inner).left)
    }
}
