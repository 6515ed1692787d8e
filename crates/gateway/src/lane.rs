//! A client's connection as long as it brings plain requests: each is read, answered and followed by the next, all by
//! one task.
//!
//! What is out of the ordinary is not read here: the connection then goes on at hyper, from the first byte of the
//! request that is.

mod body;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use hyper::body::Body as _;

use crate::inbound::{Inbound, MAX_BODY};
use crate::reply::Reply;
use crate::wire::{
    Encoding, Most, Patience, Pipe, Queue, ReplyHead, RequestHead, Rewound, Seen, Stream, chunk_end,
    chunk_start, last_chunk, read_request_head,
};
use crate::within::within;

pub(crate) use body::LaneBody;

/// One connection.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Shared with the body that is being read.
    client: Arc<Mutex<Client>>,
    unsent: Queue,
    patience: Patience,
}

/// The other end.
#[derive(Debug)]
struct Client {
    pipe: Pipe,
    /// How long the body of its request is, and what of it was not taken yet.
    length: u64,
    left: u64,
}

/// What comes next on a lane.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly always it is the large one, and it is moved out at once"
)]
pub(crate) enum Next {
    Request(RequestHead),
    /// Something that hyper has to look at.
    Other,
    /// Nothing: the client has gone, or takes too long.
    Nothing,
}

/// What a client sends before it has its answer is read up to here.
const MAX_AHEAD: usize = 16 << 10;

/// So much of a body that nobody wants is read all the same, since another request may follow it.
const MAX_UNWANTED: u64 = 256 << 10;

/// How long the rest of a body is waited for that nobody wanted. A connection that is closed before could take the
/// answer with it.
const SLOWEST_REST: Duration = Duration::from_secs(2);

impl Lane {
    pub(crate) fn new(stream: Stream) -> Self {
        let client = Client { pipe: Pipe::new(stream), length: 0, left: 0 };
        Self {
            client: Arc::new(Mutex::new(client)),
            unsent: Queue::default(),
            patience: Patience::of(Duration::ZERO),
        }
    }

    /// Waits for the next request, whose head comes in this time and is at most so long.
    pub(crate) async fn next(&mut self, limit: Duration, longest: usize) -> Next {
        // A body that is too large is answered by hyper, which knows what to do with the rest of it.
        let most = Most { head: longest, body: MAX_BODY as u64 };
        self.patience.begin(limit);
        poll_fn(|context| {
            let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
            let mut has_come = !client.pipe.ahead.is_empty();
            loop {
                if has_come {
                    match read_request_head(&mut client.pipe.ahead, most) {
                        Seen::Part => {}
                        Seen::Plain(head) => {
                            (client.length, client.left) = (head.length, head.length);
                            return Poll::Ready(Next::Request(head));
                        }
                        Seen::Other => return Poll::Ready(Next::Other),
                    }
                }
                match client.pipe.poll_fill(context) {
                    Poll::Ready(Ok(1..)) => has_come = true,
                    Poll::Ready(_) => return Poll::Ready(Next::Nothing),
                    Poll::Pending => break,
                }
            }
            self.patience.poll_over(context).map(|()| Next::Nothing)
        })
        .await
    }

    /// The body of the request that came last.
    pub(crate) fn body(&self) -> Inbound {
        Inbound::Lane(LaneBody::new(Arc::clone(&self.client)))
    }

    /// Waits for what is done for the client; `None` when it has gone before.
    pub(crate) async fn unless_gone<T>(&mut self, mut work: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => self.poll_gone(context).map(|()| None),
        })
        .await
    }

    /// Sends an answer. Whether another request can follow.
    pub(crate) async fn reply(&mut self, response: Response<Reply>, closes: bool) -> bool {
        let (parts, body) = response.into_parts();
        // Whoever might still read the rest of the request is in the body of its answer.
        let is_wanted = Arc::strong_count(&self.client) > 1;
        let closes = closes || (!is_wanted && self.client().left > MAX_UNWANTED);
        let head = ReplyHead { parts: &parts, length: body.size_hint().exact(), closes };
        let (head, encoding) = head.write();
        self.unsent.push(head);
        let mut passing = Passing { body, encoding, is_over: false, is_broken: false };
        let is_sent = poll_fn(|context| self.poll_reply(context, &mut passing)).await.is_ok();
        drop(passing);
        if !is_sent {
            return false;
        }
        let is_read = self.client().left == 0 || matches!(within(SLOWEST_REST, self.rest()).await, Ok(true));
        if closes || !is_read {
            // The client may have gone already.
            drop(poll_fn(|context| self.client().pipe.poll_close(context)).await);
            return false;
        }
        self.client().rest();
        true
    }

    /// The connection as it was before the request that stands next on it.
    pub(crate) fn into_rewound(self) -> Option<Rewound> {
        let client = Arc::into_inner(self.client)?.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (stream, ahead) = client.pipe.into_parts();
        Some(Rewound::new(ahead, stream))
    }

    fn poll_reply(&mut self, context: &mut Context<'_>, passing: &mut Passing) -> Poll<Result<(), Gone>> {
        loop {
            // What is there together is sent together.
            while !passing.is_over && !self.unsent.is_full() && passing.poll_piece(context, &mut self.unsent)
            {
            }
            match self
                .client
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pipe
                .poll_send(context, &mut self.unsent)
            {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => return Poll::Ready(Err(Gone)),
                Poll::Ready(Ok(())) if passing.is_broken => return Poll::Ready(Err(Gone)),
                Poll::Ready(Ok(())) if passing.is_over => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) => {}
            }
            if !passing.poll_piece(context, &mut self.unsent) {
                return self.poll_gone(context).map(|()| Err(Gone));
            }
        }
    }

    /// Reads and forgets what is left of a body. Whether its end came.
    async fn rest(&mut self) -> bool {
        poll_fn(|context| {
            let mut client = self.client();
            while client.left > 0 {
                drop(client.take_of_body());
                if client.left == 0 {
                    break;
                }
                match client.pipe.poll_fill(context) {
                    Poll::Ready(Ok(1..)) => {}
                    Poll::Ready(_) => return Poll::Ready(false),
                    Poll::Pending => return Poll::Pending,
                }
            }
            Poll::Ready(true)
        })
        .await
    }

    /// Ready when the client has closed its connection, as far as can be seen: what it has sent meanwhile is kept.
    fn poll_gone(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut client = self.client();
        // Whoever reads its body sees its end, too.
        while client.left == 0 && client.pipe.ahead.len() < MAX_AHEAD {
            match client.pipe.poll_fill(context) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        Poll::Pending
    }

    fn client(&self) -> MutexGuard<'_, Client> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client {
    /// The request is answered.
    fn rest(&mut self) {
        self.pipe.rest(usize::try_from(self.length).unwrap_or(usize::MAX));
    }

    /// Takes what has come of the body.
    fn take_of_body(&mut self) -> Bytes {
        let taken = self.pipe.take(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= taken.len() as u64;
        taken
    }
}

/// The client does not get all of its answer.
struct Gone;

/// The body of an answer on its way.
struct Passing {
    body: Reply,
    encoding: Encoding,
    is_over: bool,
    /// It ended before its end.
    is_broken: bool,
}

impl Passing {
    /// Takes the next piece into the queue; whether there was one, or the end.
    fn poll_piece(&mut self, context: &mut Context<'_>, queue: &mut Queue) -> bool {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else {
            // Where nothing is to come nothing is waited for.
            self.is_over = matches!(self.encoding, Encoding::Length(0) | Encoding::Nothing);
            return self.is_over;
        };
        match (frame, &mut self.encoding) {
            (None, Encoding::Chunked) => {
                queue.push(last_chunk());
                self.is_over = true;
            }
            (None, encoding) => {
                self.is_over = true;
                self.is_broken = matches!(encoding, Encoding::Length(1..));
            }
            (Some(Err(_)), _) => (self.is_over, self.is_broken) = (true, true),
            (Some(Ok(frame)), encoding) => {
                // Trailers are for those who ask for them, and these are served by hyper.
                let Ok(data) = frame.into_data() else { return true };
                match encoding {
                    Encoding::Nothing => self.is_over = true,
                    Encoding::Length(left) => {
                        if let Some(less) = left.checked_sub(data.len() as u64) {
                            *left = less;
                            self.is_over = less == 0;
                            queue.push(data);
                        } else {
                            (self.is_over, self.is_broken) = (true, true);
                        }
                    }
                    Encoding::Chunked if data.is_empty() => {}
                    Encoding::Chunked => {
                        queue.push(chunk_start(data.len()));
                        queue.push(data);
                        queue.push(chunk_end());
                    }
                }
            }
        }
        true
    }
}
