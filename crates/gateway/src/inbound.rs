//! The body of a request on its way in: read with a limit in bytes and in time.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::broken::BrokenOff;
use crate::lane::LaneBody;
use crate::within::within;

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// It is longer than what is read.
    #[error("the body is larger than {} MiB, which is the most that is read on this path", MAX_BODY >> 20)]
    TooLarge,
    /// No byte came for a long time.
    #[error("no byte of the body came for {} seconds", SLOWEST.as_secs())]
    TooSlow,
    /// The client went away or broke the framing.
    #[error("the body broke off: {0}")]
    Broken(#[from] BrokenOff),
}

impl From<hyper::Error> for Unread {
    fn from(error: hyper::Error) -> Self {
        Self::Broken(error.into())
    }
}

/// The body of a request as it comes from its client.
#[derive(Debug)]
pub(crate) enum Inbound {
    /// On a connection that hyper serves.
    Hyper(Incoming),
    /// On a lane, with a length that is known.
    Lane(LaneBody),
}

impl Body for Inbound {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            Self::Hyper(body) => Pin::new(body)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map_err(BrokenOff::from))),
            Self::Lane(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Hyper(body) => body.is_end_stream(),
            Self::Lane(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Hyper(body) => body.size_hint(),
            Self::Lane(body) => body.size_hint(),
        }
    }
}

/// The start of a body, and the rest of it if there is more.
pub(crate) struct Start {
    pub(crate) bytes: Bytes,
    pub(crate) rest: Option<Inbound>,
    /// What came behind a body that was read to its end; in a box, since hardly any has some.
    pub(crate) trailers: Option<Box<HeaderMap>>,
}

/// A body that is being read, and what came behind it.
struct Reading {
    body: Inbound,
    /// Its end was seen, which one that comes in chunks does not tell by itself.
    ended: bool,
    trailers: Option<Box<HeaderMap>>,
}

/// The longest body that is read whole.
pub(crate) const MAX_BODY: usize = 32 << 20;

/// As much of a body as is fingerprinted where it is not read.
pub(crate) const MAX_FINGERPRINTED: usize = 1 << 20;

/// A longer body is not waited for.
const MAX_AT_HAND: u64 = 64 << 10;

/// What was sent together with the headers is there within this time.
const AT_ONCE: Duration = Duration::from_millis(50);

/// More than this is not even thrown away.
const MAX_THROWN_AWAY: usize = 256 << 20;

/// A client that sends nothing for so long is not coming back.
pub(crate) const SLOWEST: Duration = Duration::from_secs(60);

/// Reads a whole body. Of one that is too large the rest is read and thrown away, for many clients look at the answer
/// only when they have sent everything; not so where the client `waits` to be asked for its body.
pub(crate) async fn whole(body: Inbound, waits: bool) -> Result<Start, Unread> {
    let mut reading = Reading::of(body);
    match reading.within_limit().await {
        Ok(bytes) => Ok(Start { bytes, rest: None, trailers: reading.trailers }),
        Err(unread) => {
            if !waits && matches!(unread, Unread::TooLarge) {
                tokio::spawn(reading.throw_away());
            }
            Err(unread)
        }
    }
}

/// Reads a body until it ends or is longer than `limit`.
pub(crate) async fn beginning(body: Inbound, limit: usize) -> Result<Start, Unread> {
    let mut reading = Reading::of(body);
    let bytes = reading.start(limit).await?;
    Ok(reading.stops_after(bytes))
}

/// Takes what is there at once of a body that nobody looks at. One that is there whole can be sent again when a kept
/// connection turns out to be dead; everything else passes as it comes.
pub(crate) async fn at_hand(body: Inbound) -> Result<Start, Unread> {
    let mut bytes = BytesMut::new();
    let is_small = body.size_hint().exact().is_some_and(|length| length <= MAX_AT_HAND);
    let mut reading = Reading::of(body);
    while is_small && !reading.is_over() {
        match within(AT_ONCE, reading.next()).await {
            Ok(read) => bytes.extend_from_slice(&read?.unwrap_or_default()),
            Err(_) => break,
        }
    }
    Ok(reading.stops_after(bytes.freeze()))
}

impl Reading {
    const fn of(body: Inbound) -> Self {
        Self { body, ended: false, trailers: None }
    }

    /// What was read, and what was not.
    fn stops_after(self, bytes: Bytes) -> Start {
        let is_over = self.is_over();
        Start { bytes, rest: (!is_over).then_some(self.body), trailers: self.trailers }
    }

    fn is_over(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }

    async fn within_limit(&mut self) -> Result<Bytes, Unread> {
        if self.body.size_hint().lower() > MAX_BODY as u64 {
            return Err(Unread::TooLarge);
        }
        if let Inbound::Lane(body) = &self.body {
            return at_its_place(body).await;
        }
        let start = self.start(MAX_BODY).await?;
        let is_whole = self.is_over() || self.next().await?.is_none();
        if is_whole { Ok(start) } else { Err(Unread::TooLarge) }
    }

    async fn throw_away(mut self) {
        let reading = async {
            let mut thrown = 0;
            while thrown < MAX_THROWN_AWAY
                && let Ok(Some(bytes)) = self.next().await
            {
                thrown += bytes.len();
            }
        };
        // A client that has not ended by then loses its connection.
        drop(within(SLOWEST, reading).await);
    }

    /// Reads frames until the body ends or more than `limit` bytes are there.
    async fn start(&mut self, limit: usize) -> Result<Bytes, Unread> {
        let Some(first) = self.next().await? else { return Ok(Bytes::new()) };
        if self.is_over() {
            return if first.len() > limit { Err(Unread::TooLarge) } else { Ok(first) };
        }
        // The length that a client claims is only believed as far as it costs nothing.
        let expected = first.len() + self.body.size_hint().lower() as usize;
        let mut bytes = BytesMut::with_capacity(expected.clamp(first.len(), (256 << 10).max(first.len())));
        bytes.extend_from_slice(&first);
        while bytes.len() < limit {
            match self.next().await? {
                Some(more) => bytes.extend_from_slice(&more),
                None => break,
            }
        }
        Ok(bytes.freeze())
    }

    /// The next bytes; trailers are kept.
    async fn next(&mut self) -> Result<Option<Bytes>, Unread> {
        loop {
            match within(SLOWEST, self.body.frame()).await.map_err(|_| Unread::TooSlow)? {
                None => {
                    self.ended = true;
                    return Ok(None);
                }
                Some(frame) => match frame?.into_data() {
                    Ok(bytes) => return Ok(Some(bytes)),
                    Err(frame) => self.trailers = frame.into_trailers().ok().map(Box::new),
                },
            }
        }
    }
}

/// Reads a whole body where it comes in, without copying it from pieces.
async fn at_its_place(body: &LaneBody) -> Result<Bytes, Unread> {
    loop {
        let read = poll_fn(|context| body.poll_whole(context));
        if let Some(whole) = within(SLOWEST, read).await.map_err(|_| Unread::TooSlow)?? {
            return Ok(whole);
        }
    }
}
