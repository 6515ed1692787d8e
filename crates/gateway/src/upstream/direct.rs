//! A connection to a provider that carries whole requests, one after the other.
//!
//! Whoever waits for an answer moves the bytes as well: no task of its own has to be woken for each piece that goes or
//! comes.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;

use crate::broken::BrokenOff;
use crate::pauses::Sent;
use crate::wire::{AnswerHead, Patience, Pipe, Queue, Stream, read_answer_head};

/// A request as it is sent.
pub(crate) struct Message {
    pub(crate) head: Vec<u8>,
    pub(crate) body: Bytes,
    /// Whether its answer has no body, whatever its head says.
    pub(crate) asks_for_head: bool,
    /// Who is told when it is on its way; in a box, since hardly anybody is.
    pub(crate) sent: Option<Box<Sent>>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failed {
    /// The connection was closed before anything was answered.
    Dead(BrokenOff),
    /// It broke, or what came is no answer.
    Broken(BrokenOff),
    TimedOut,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Direct {
    pipe: Pipe,
    /// What of the request had not been sent when its answer began.
    unsent: Queue,
    patience: Patience,
}

impl Direct {
    pub(super) fn new(stream: Stream) -> Self {
        Self { pipe: Pipe::new(stream), unsent: Queue::default(), patience: Patience::of(Duration::ZERO) }
    }

    /// Whether an idle connection can be used. What was closed by the other side is seen only by looking.
    pub(super) fn is_open(&mut self) -> bool {
        // Whoever says something without being asked is no use either.
        self.pipe.poll_fill(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// Sends a request and waits until its answer begins.
    pub(super) async fn ask(&mut self, message: &mut Message, limit: Duration) -> Result<AnswerHead, Failed> {
        self.patience.begin(limit);
        let mut written = 0;
        let head = poll_fn(|context| self.poll_answer(context, message, &mut written)).await?;
        if let Some(rest) = message.head.get(written..) {
            self.unsent.push(Bytes::copy_from_slice(rest));
        }
        self.unsent.push(message.body.slice(written.saturating_sub(message.head.len())..));
        Ok(head)
    }

    fn poll_answer(
        &mut self,
        context: &mut Context<'_>,
        message: &mut Message,
        written: &mut usize,
    ) -> Poll<Result<AnswerHead, Failed>> {
        // A provider that does not take all of it may have answered all the same.
        let failed = match self.pipe.poll_send_both(context, [&message.head, &message.body], written) {
            Poll::Ready(sent) => {
                message.sent = None;
                sent.err()
            }
            Poll::Pending => None,
        };
        loop {
            match self.pipe.poll_fill(context) {
                Poll::Ready(Ok(1..)) => match read_answer_head(&mut self.pipe.ahead, message.asks_for_head) {
                    Ok(None) => {}
                    Ok(Some(head)) => return Poll::Ready(Ok(head)),
                    Err(error) => return Poll::Ready(Err(Failed::Broken(error))),
                },
                Poll::Ready(ended) => {
                    let why = failed.or(ended.err()).map_or_else(BrokenOff::early_end, BrokenOff::from);
                    let is_silent = self.pipe.ahead.is_empty();
                    return Poll::Ready(Err(if is_silent { Failed::Dead(why) } else { Failed::Broken(why) }));
                }
                Poll::Pending => break,
            }
        }
        match failed {
            Some(error) => Poll::Ready(Err(Failed::Dead(error.into()))),
            None => self.patience.poll_over(context).map(|()| Err(Failed::TimedOut)),
        }
    }

    /// Sends what had not been sent when the answer began.
    pub(super) fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pipe.poll_send(context, &mut self.unsent)
    }

    /// What has come of the answer.
    pub(super) fn pipe(&mut self) -> &mut Pipe {
        &mut self.pipe
    }

    /// Whether nothing of this request or its answer is left over.
    pub(super) fn is_clean(&self) -> bool {
        self.unsent.is_empty() && self.pipe.ahead.is_empty()
    }
}
