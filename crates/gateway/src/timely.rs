//! A body whose sender must not stop in the middle of it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::inbound::{SLOWEST, Unread};

/// A body that breaks when nothing of it comes for a while. Otherwise a client that announces a body and sends none
/// keeps its connection, and whoever waits for it, for ever.
pub(crate) struct Timely<B> {
    body: B,
    limit: Duration,
    /// Runs while something is waited for.
    patience: Option<Pin<Box<Sleep>>>,
}

impl<B> Timely<B> {
    /// With as much patience as there is for requests to providers.
    pub(crate) const fn of(body: B) -> Self {
        Self { body, limit: SLOWEST, patience: None }
    }
}

impl<B: Body<Data = Bytes, Error: Into<Unread>> + Unpin> Body for Timely<B> {
    type Data = Bytes;
    type Error = Unread;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Unread>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.patience = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let limit = self.limit;
        let patience = self.patience.get_or_insert_with(|| Box::pin(sleep(limit)));
        patience.as_mut().poll(context).map(|()| Some(Err(Unread::TooSlow)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use bytes::Bytes;
    use http_body_util::BodyExt;
    use hyper::body::{Body, Frame};

    use super::Timely;
    use crate::inbound::Unread;

    /// Sends a few bytes, each after a moment, and then nothing more, without an end.
    struct Stalling(VecDeque<Option<&'static str>>);

    impl Body for Stalling {
        type Data = Bytes;
        type Error = hyper::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
            match self.0.pop_front() {
                Some(Some(text)) => Poll::Ready(Some(Ok(Frame::data(text.into())))),
                Some(None) => {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                None => Poll::Pending,
            }
        }
    }

    #[tokio::test]
    async fn a_body_that_stops_in_its_middle_is_given_up() {
        let stalling = Stalling([Some("a"), None, Some("b")].into());
        let mut body = Timely { limit: Duration::from_millis(3), ..Timely::of(stalling) };
        for expected in ["a", "b"] {
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), expected);
        }
        assert!(matches!(body.frame().await, Some(Err(Unread::TooSlow))));
    }
}
