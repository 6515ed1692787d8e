//! The way to the providers: pooled HTTP/1.1 connections, one pool per worker.
//!
//! Providers limit the streams of one HTTP/2 connection to about a hundred, so a pool of HTTP/1.1 connections is both
//! simpler and wider.

mod connect;
mod line;

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::{Request, Response};

pub(crate) use connect::{Connector, Origin};
use line::Line;

use crate::outgoing::Outgoing;
use crate::upload::within_of_others;
use crate::within::within;

/// Why no answer came.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreachable {
    /// No connection could be made.
    #[error("cannot connect to {0}: {1}")]
    Connect(Box<str>, Box<str>),
    /// The answer did not begin in time.
    #[error("{0} did not answer within {1:?}")]
    TimedOut(Box<str>, Duration),
    /// The connection broke before an answer began.
    #[error("the connection to {0} broke: {1}")]
    Broken(Box<str>, hyper::Error),
}

/// Connections to every origin that is in use.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    connector: Arc<Connector>,
    /// There are a handful of origins, so they are looked through faster than hashed.
    idle: Arc<Mutex<Vec<Waiting>>>,
}

/// Connections to one origin that nobody uses, the newest last.
#[derive(Debug)]
struct Waiting {
    origin: Origin,
    connections: Vec<Idle>,
}

#[derive(Debug)]
struct Idle {
    line: Line,
    since: Instant,
}

/// A connection that is busy with an answer. Giving it back lets another request use it.
#[derive(Debug)]
pub(crate) struct Lease {
    line: Line,
    origin: Origin,
    pool: Pool,
}

impl Pool {
    /// Providers close connections that idle for about a minute, so ours go earlier.
    const MAX_IDLE: Duration = Duration::from_secs(50);
    /// A connection that is not ready for the next request by then is still busy with its last one.
    const SLOWEST_READY: Duration = Duration::from_millis(20);
    /// More idle connections than this to one origin are closed.
    const MAX_IDLE_PER_ORIGIN: usize = 512;

    /// An empty pool.
    pub(crate) fn new(connector: Arc<Connector>) -> Self {
        Self { connector, idle: Arc::default() }
    }

    /// Sends a request and waits until its answer begins.
    ///
    /// `again` makes the request once more when a kept connection turns out to be dead: providers close idle ones at
    /// any moment, and that is no failure of theirs.
    pub(crate) async fn send(
        &self,
        origin: &Origin,
        mut request: Request<Outgoing>,
        limit: Duration,
        again: Option<&dyn AnotherRequest>,
    ) -> Result<(Response<Incoming>, Lease), Unreachable> {
        after_you().await;
        // What cannot be sent again, for it comes from the client as it goes, gets a connection that is surely alive.
        while let Some(mut line) = again.and_then(|_| self.take(origin)) {
            // One whose last request is still being uploaded, for its answer came early, is of no use to anyone.
            if !matches!(within(Self::SLOWEST_READY, line.ready()).await, Ok(Ok(()))) {
                continue;
            }
            // It is pinned where it is made: as an argument it would be carried along twice.
            let sent = {
                let sending = pin!(line.send(request));
                within(limit, sending).await
            };
            let mut failed = match sent {
                Ok(Ok(response)) => return Ok((response, self.lease(origin, line))),
                Ok(Err(failed)) => failed,
                Err(_) => return Err(Unreachable::TimedOut(origin.to_string().into(), limit)),
            };
            match (failed.take_message(), again) {
                (Some(unsent), _) => request = unsent,
                (None, Some(again)) if is_dead(failed.error()) => {
                    request = again.request();
                    break;
                }
                _ => return Err(Unreachable::Broken(origin.to_string().into(), failed.into_error())),
            }
        }
        // Most requests find a connection, and need not carry the room for a handshake.
        let mut line = Box::pin(self.connector.connect(origin)).await?;
        let upload = request.body().upload();
        let sent = {
            let sending = pin!(line.send(request));
            within_of_others(limit, upload.as_deref(), sending).await
        };
        match sent {
            Ok(Ok(response)) => Ok((response, self.lease(origin, line))),
            Ok(Err(failed)) => Err(Unreachable::Broken(origin.to_string().into(), failed.into_error())),
            Err(_) => Err(Unreachable::TimedOut(origin.to_string().into(), limit)),
        }
    }

    /// Closes connections that nobody has used for long.
    pub(crate) fn sweep(&self) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        for Waiting { connections, .. } in &mut *idle {
            connections.retain_mut(|idle| idle.since.elapsed() < Self::MAX_IDLE && idle.line.is_open());
        }
        idle.retain(|waiting| !waiting.connections.is_empty());
    }

    fn take(&self, origin: &Origin) -> Option<Line> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let last = idle.iter_mut().find(|waiting| waiting.origin == *origin)?.connections.pop()?;
        // The newest comes first, so the others are older still; they are closed when it is time to.
        (last.since.elapsed() < Self::MAX_IDLE).then_some(last.line)
    }

    fn lease(&self, origin: &Origin, line: Line) -> Lease {
        Lease { line, origin: origin.clone(), pool: self.clone() }
    }
}

impl Lease {
    /// Polls what comes on this connection, and moves its bytes.
    pub(crate) fn poll<T>(
        &mut self,
        context: &Context<'_>,
        mut work: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.line.poll(context, |_, context| work(context))
    }

    /// The answer was read to its end: the connection is free again.
    pub(crate) fn give_back(self) {
        self.line.rest();
        let mut idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let free = Idle { line: self.line, since: Instant::now() };
        match idle.iter_mut().find(|waiting| waiting.origin == self.origin) {
            None => idle.push(Waiting { origin: self.origin, connections: vec![free] }),
            Some(Waiting { connections, .. }) if connections.len() < Pool::MAX_IDLE_PER_ORIGIN => {
                connections.push(free);
            }
            Some(_) => {}
        }
    }

    /// The connection changes its protocol: it goes on by itself.
    pub(crate) fn let_go(self) {
        self.line.run_by_itself();
    }
}

/// Lets everyone go first who is ready now, so that what is sent is sent together: whoever receives it is woken once
/// and not for each request, and the processor goes on with instructions that it has at hand.
async fn after_you() {
    let mut waited = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Makes the same request again.
pub(crate) trait AnotherRequest: Sync {
    /// A new copy of the request.
    fn request(&self) -> Request<Outgoing>;
}

/// Whether the other side had closed the connection before it read the request.
fn is_dead(error: &hyper::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
    let io = std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    let is_reset = |error: &std::io::Error| {
        matches!(
            error.kind(),
            BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof
        )
    };
    error.is_canceled() || error.is_incomplete_message() || error.is_closed() || io.is_some_and(is_reset)
}
