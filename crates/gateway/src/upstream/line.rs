//! A connection to a provider for what is sent as it comes in, or that is to change its protocol: hyper reads and writes
//! it, moved on by whoever uses it, and it carries one request.
//!
//! A task of its own would have to be woken for each piece that goes or comes, and would wake the one that waits for
//! it in turn. So whoever waits moves the bytes as well: pieces that have come together are passed on together.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::{Request, Response};

use crate::outgoing::Outgoing;

/// A connection, and what moves its bytes.
pub(crate) struct Line {
    sender: SendRequest<Outgoing>,
    /// `None` when the connection is over.
    connection: Option<Connection>,
    relay: Arc<Relay>,
    waker: Waker,
}

type Connection = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Line {
    /// A line whose bytes are moved by `connection`.
    pub(super) fn new(
        sender: SendRequest<Outgoing>,
        connection: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let relay = Arc::new(Relay::default());
        Self { sender, connection: Some(Box::pin(connection)), waker: Waker::from(Arc::clone(&relay)), relay }
    }

    /// Sends a request and waits until its answer begins.
    pub(super) async fn send(
        &mut self,
        request: Request<Outgoing>,
    ) -> Result<Response<Incoming>, hyper::Error> {
        let mut answer = pin!(self.sender.send_request(request));
        poll_fn(|context| self.poll(context, |context| answer.as_mut().poll(context))).await
    }

    /// Polls what depends on this line, and moves its bytes until neither gets any further.
    pub(super) fn poll<T>(
        &mut self,
        context: &Context<'_>,
        mut work: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.relay.listen(context.waker());
        let mut own = Context::from_waker(&self.waker);
        for _ in 0..MAX_TURNS {
            self.relay.begin();
            if self
                .connection
                .as_mut()
                .is_some_and(|connection| connection.as_mut().poll(&mut own).is_ready())
            {
                self.connection = None;
            }
            let done = work(&mut own);
            let woken = self.relay.end();
            if done.is_ready() || !woken {
                return done;
            }
        }
        // Others want their turn too.
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Lets a task of its own move the bytes from now on.
    pub(super) fn run_by_itself(self) {
        if let Some(connection) = self.connection {
            tokio::spawn(connection);
        }
    }
}
impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Line")
    }
}

/// A connection that is ready again and again is left after so many turns.
const MAX_TURNS: usize = 32;

/// Passes on that something happened on a line, but for what its user sees while polling it.
#[derive(Debug, Default)]
struct Relay {
    state: AtomicU8,
    listener: Mutex<Option<Waker>>,
}

/// Nobody polls the line.
const QUIET: u8 = 0;
/// Somebody does.
const POLLED: u8 = 1;
/// Something happened meanwhile.
const WOKEN: u8 = 2;

impl Relay {
    /// From now on, `waker` is told.
    fn listen(&self, waker: &Waker) {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if !listener.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *listener = Some(waker.clone());
        }
    }

    fn begin(&self) {
        self.state.store(POLLED, Ordering::Release);
    }

    /// Whether something happened since it began.
    fn end(&self) -> bool {
        self.state.swap(QUIET, Ordering::AcqRel) == WOKEN
    }
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let seen = self.state.compare_exchange(POLLED, WOKEN, Ordering::AcqRel, Ordering::Acquire);
        if seen == Err(QUIET) {
            let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner).clone();
            listener.into_iter().for_each(Waker::wake);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use super::Relay;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_happens_while_a_line_is_polled_wakes_nobody_else() {
        let (relay, count) = (Arc::new(Relay::default()), Arc::new(Count::default()));
        let waker = Waker::from(Arc::clone(&relay));
        relay.listen(&Waker::from(Arc::clone(&count)));
        relay.begin();
        waker.wake_by_ref();
        assert!(relay.end(), "its user polls it once more");
        relay.begin();
        assert!(!relay.end());
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        waker.wake_by_ref();
        assert_eq!(count.0.load(Ordering::Relaxed), 1, "afterwards it is told");
        relay.listen(Waker::noop());
        waker.wake_by_ref();
        assert_eq!(count.0.load(Ordering::Relaxed), 1, "who does not use it any more is not");
    }
}
