//! The body of a request on its way in: read with a limit in bytes and in time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

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
    Broken(#[from] hyper::Error),
}

/// The start of a body, and the rest of it if there is more.
pub(crate) struct Start {
    pub(crate) bytes: Bytes,
    pub(crate) rest: Option<Incoming>,
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
pub(crate) async fn whole(mut body: Incoming, waits: bool) -> Result<Bytes, Unread> {
    let read = within_limit(&mut body).await;
    if !waits && matches!(read, Err(Unread::TooLarge)) {
        tokio::spawn(throw_away(body));
    }
    read
}

async fn within_limit(body: &mut Incoming) -> Result<Bytes, Unread> {
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(Unread::TooLarge);
    }
    let start = start(body, MAX_BODY).await?;
    if body.is_end_stream() || next(body).await?.is_none() { Ok(start) } else { Err(Unread::TooLarge) }
}

async fn throw_away(mut body: Incoming) {
    let reading = async {
        let mut thrown = 0;
        while thrown < MAX_THROWN_AWAY
            && let Ok(Some(bytes)) = next(&mut body).await
        {
            thrown += bytes.len();
        }
    };
    // A client that has not ended by then loses its connection.
    drop(within(SLOWEST, reading).await);
}

/// Reads a body until it ends or is longer than `limit`.
pub(crate) async fn beginning(mut body: Incoming, limit: usize) -> Result<Start, Unread> {
    let bytes = start(&mut body, limit).await?;
    let rest = (!body.is_end_stream()).then_some(body);
    Ok(Start { bytes, rest })
}

/// Takes what is there at once of a body that nobody looks at. One that is there whole can be sent again when a kept
/// connection turns out to be dead; everything else passes as it comes.
pub(crate) async fn at_hand(mut body: Incoming) -> Result<Start, Unread> {
    let mut bytes = BytesMut::new();
    let is_small = body.size_hint().exact().is_some_and(|length| length <= MAX_AT_HAND);
    while is_small && !body.is_end_stream() {
        match within(AT_ONCE, next(&mut body)).await {
            Ok(read) => bytes.extend_from_slice(&read?.unwrap_or_default()),
            Err(_) => break,
        }
    }
    let rest = (!body.is_end_stream()).then_some(body);
    Ok(Start { bytes: bytes.freeze(), rest })
}

/// Reads frames until the body ends or more than `limit` bytes are there.
async fn start(body: &mut Incoming, limit: usize) -> Result<Bytes, Unread> {
    let Some(first) = next(body).await? else { return Ok(Bytes::new()) };
    if body.is_end_stream() {
        return if first.len() > limit { Err(Unread::TooLarge) } else { Ok(first) };
    }
    // The length that a client claims is only believed as far as it costs nothing.
    let expected = first.len() + body.size_hint().lower() as usize;
    let mut bytes = BytesMut::with_capacity(expected.clamp(first.len(), (256 << 10).max(first.len())));
    bytes.extend_from_slice(&first);
    while bytes.len() < limit {
        match next(body).await? {
            Some(more) => bytes.extend_from_slice(&more),
            None => break,
        }
    }
    Ok(bytes.freeze())
}

/// The next bytes of a body; trailers of a request that is read whole are passed over.
async fn next(body: &mut Incoming) -> Result<Option<Bytes>, Unread> {
    loop {
        match within(SLOWEST, body.frame()).await.map_err(|_| Unread::TooSlow)? {
            None => return Ok(None),
            Some(frame) => {
                if let Ok(bytes) = frame?.into_data() {
                    return Ok(Some(bytes));
                }
            }
        }
    }
}
