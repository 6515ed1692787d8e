//! The way to the providers: pooled HTTP/1.1 connections, one pool per worker.
//!
//! Providers limit the streams of one HTTP/2 connection to about a hundred, so a pool of HTTP/1.1 connections is both
//! simpler and wider.

mod coming;
mod connect;
mod direct;
mod line;

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use hyper::{Request, Response};

pub(crate) use coming::Coming;
pub(crate) use connect::{Connector, Origin};
pub(crate) use direct::Message;
use direct::{Direct, Failed};

use crate::broken::BrokenOff;
use crate::outgoing::Outgoing;
use crate::upload::within_of_others;
use crate::wire::AnswerHead;

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
    Broken(Box<str>, BrokenOff),
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
    connection: Direct,
    since: Instant,
}

impl Pool {
    /// Providers close connections that idle for about a minute, so ours go earlier.
    const MAX_IDLE: Duration = Duration::from_secs(50);
    /// More idle connections than this to one origin are closed.
    const MAX_IDLE_PER_ORIGIN: usize = 512;

    /// An empty pool.
    pub(crate) fn new(connector: Arc<Connector>) -> Self {
        Self { connector, idle: Arc::default() }
    }

    /// Sends a request that is there whole, and waits until its answer begins. It is sent once more when a kept
    /// connection turns out to be dead: providers close idle ones at any moment, and that is no failure of theirs.
    pub(crate) async fn ask(
        &self,
        origin: &Origin,
        mut message: Message,
        limit: Duration,
    ) -> Result<Response<Coming>, Unreachable> {
        after_you().await;
        if let Some(mut kept) = self.take(origin) {
            match kept.ask(&mut message, limit).await {
                Err(Failed::Dead(_)) => {}
                asked => return self.answer(origin, kept, asked, limit),
            }
        }
        // Most requests find a connection, and need not carry the room for a handshake.
        let mut new = Box::pin(self.connector.direct(origin)).await?;
        let asked = new.ask(&mut message, limit).await;
        self.answer(origin, new, asked, limit)
    }

    /// Sends a request that comes in while it is passed on, or that wants another protocol, on a connection of its own.
    /// It could not be sent again, so that has to be one that is surely alive.
    pub(crate) async fn pass(
        &self,
        origin: &Origin,
        request: Request<Outgoing>,
        limit: Duration,
    ) -> Result<Response<Coming>, Unreachable> {
        let mut line = self.connector.line(origin).await?;
        let upload = request.body().upload();
        let sent = {
            let sending = pin!(line.send(request));
            within_of_others(limit, upload.as_deref(), sending).await
        };
        match sent {
            Ok(Ok(response)) => Ok(response.map(|body| Coming::Line(Box::new(line), body))),
            Ok(Err(error)) => Err(Unreachable::Broken(origin.to_string().into(), error.into())),
            Err(_) => Err(Unreachable::TimedOut(origin.to_string().into(), limit)),
        }
    }

    fn answer(
        &self,
        origin: &Origin,
        connection: Direct,
        asked: Result<AnswerHead, Failed>,
        limit: Duration,
    ) -> Result<Response<Coming>, Unreachable> {
        match asked {
            Ok(AnswerHead { response, framing, keeps_alive }) => {
                let home = (self.clone(), origin.clone());
                Ok(response.map(|()| Coming::direct(connection, framing, keeps_alive, home)))
            }
            Err(Failed::TimedOut) => Err(Unreachable::TimedOut(origin.to_string().into(), limit)),
            Err(Failed::Dead(error) | Failed::Broken(error)) => {
                Err(Unreachable::Broken(origin.to_string().into(), error))
            }
        }
    }

    /// Closes connections that nobody has used for long.
    pub(crate) fn sweep(&self) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        for Waiting { connections, .. } in &mut *idle {
            connections.retain_mut(|idle| idle.since.elapsed() < Self::MAX_IDLE && idle.connection.is_open());
        }
        idle.retain(|waiting| !waiting.connections.is_empty());
    }

    /// A connection that can be used at once.
    fn take(&self, origin: &Origin) -> Option<Direct> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = idle.iter_mut().find(|waiting| waiting.origin == *origin)?;
        while let Some(mut last) = waiting.connections.pop() {
            // The newest comes first, so the others are older still; they are closed when it is time to.
            if last.since.elapsed() >= Self::MAX_IDLE {
                return None;
            }
            if last.connection.is_open() {
                return Some(last.connection);
            }
        }
        None
    }

    /// Keeps a connection that is free for the next request.
    fn keep(&self, origin: &Origin, connection: Direct) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let free = Idle { connection, since: Instant::now() };
        match idle.iter_mut().find(|waiting| waiting.origin == *origin) {
            None => idle.push(Waiting { origin: origin.clone(), connections: vec![free] }),
            Some(Waiting { connections, .. }) if connections.len() < Self::MAX_IDLE_PER_ORIGIN => {
                connections.push(free);
            }
            Some(_) => {}
        }
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
