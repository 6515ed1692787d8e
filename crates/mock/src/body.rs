//! The body of an answer: chunks that are flushed one by one.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::record::{Outcome, Ticket};

/// Chunks, with a pause between them.
#[derive(Debug)]
pub(crate) struct AnswerBody {
    chunks: Arc<[Bytes]>,
    next: usize,
    /// The size that the answer's head tells; that of a stream is never known.
    size: Option<u64>,
    pace: Duration,
    /// The pause before the next chunk, while it lasts.
    pause: Option<Pin<Box<Sleep>>>,
    /// Whether the pause before the next chunk is over.
    rested: bool,
    break_after: Option<usize>,
    ticket: Ticket,
}

impl AnswerBody {
    /// All in one piece.
    pub(crate) fn whole(body: Bytes, ticket: Ticket) -> Self {
        Self::streamed(Arc::from([body]), Duration::ZERO, ticket).sized()
    }

    /// Piece by piece.
    pub(crate) fn streamed(chunks: Arc<[Bytes]>, pace: Duration, ticket: Ticket) -> Self {
        Self { chunks, next: 0, size: None, pace, pause: None, rested: true, break_after: None, ticket }
    }

    /// With the size of all chunks told before they come.
    #[must_use]
    pub(crate) fn sized(mut self) -> Self {
        self.size = Some(self.chunks.iter().map(|chunk| chunk.len() as u64).sum());
        self
    }

    /// Broken off after this many chunks.
    #[must_use]
    pub(crate) fn broken_after(mut self, chunks: Option<usize>) -> Self {
        self.break_after = chunks;
        self
    }

    /// A body that is always ready would be sent in as few writes as possible. So there is a moment between two
    /// chunks in which nothing is ready, and hyper flushes what it has.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.rested {
            return Poll::Ready(());
        }
        if self.pace.is_zero() {
            self.rested = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let pace = self.pace;
        let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(pace)));
        if pause.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.pause = None;
        self.rested = true;
        Poll::Ready(())
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.poll_rest(cx).is_pending() {
            return Poll::Pending;
        }
        if self.break_after.is_some_and(|after| self.next >= after) {
            self.ticket.end(Outcome::Broken);
            return Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())));
        }
        let Some(chunk) = self.chunks.get(self.next).cloned() else { return Poll::Ready(None) };
        self.next += 1;
        self.rested = false;
        self.ticket.chunk();
        if self.is_end_stream() {
            self.ticket.end(Outcome::Answered);
        }
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.next >= self.chunks.len() && self.break_after.is_none_or(|after| after > self.next)
    }

    fn size_hint(&self) -> SizeHint {
        self.size.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use bytes::Bytes;
    use hyper::body::Body;

    use super::AnswerBody;
    use crate::record::Ticket;

    fn poll(body: &mut AnswerBody) -> Poll<Option<Bytes>> {
        let frame = Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop()));
        frame.map(|frame| frame.map(|frame| frame.unwrap().into_data().unwrap()))
    }

    #[test]
    fn there_is_a_moment_to_flush_between_two_chunks() {
        let chunks = ["a", "b"].map(Bytes::from);
        let mut body = AnswerBody::streamed(chunks.clone().into(), Duration::ZERO, Ticket::default());
        assert_eq!(poll(&mut body), Poll::Ready(Some(chunks[0].clone())));
        assert_eq!(poll(&mut body), Poll::Pending);
        assert_eq!(poll(&mut body), Poll::Ready(Some(chunks[1].clone())));
        assert!(body.is_end_stream());
    }

    #[test]
    fn only_a_whole_body_has_a_known_size() {
        let whole = AnswerBody::whole(Bytes::from_static(b"abc"), Ticket::default());
        assert_eq!(whole.size_hint().exact(), Some(3));
        let only = [Bytes::from_static(b"abc")];
        let streamed = AnswerBody::streamed(only.into(), Duration::ZERO, Ticket::default());
        assert_eq!(streamed.size_hint().exact(), None);
    }
}
