//! The answer on its way to the client: passed on frame by frame, while a bounded reader beside it takes usage, tool
//! calls and chants.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, SizeHint};
use loopbreaker::Chant;
use loopbreaker_dialect::{Answer, Dialect, StreamReader, UsageFilter};

use crate::broken::BrokenOff;
use crate::cache::{Kept, Recording};
use crate::collected::Collected;
use crate::decode::StreamDecoder;
use crate::upstream::Coming;

/// How an answer ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The provider said all it had to say.
    Complete,
    /// The client went away.
    ClientGone,
    /// The provider broke off.
    Broken,
    /// We cut a chant.
    Cut(Chant),
}

/// What is known of an answer when it is over.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) end: End,
    /// What was read of it.
    pub(crate) answer: Option<Answer>,
    /// A chant that was seen and not cut.
    pub(crate) chant: Option<Chant>,
    pub(crate) first_chunk: Option<Instant>,
    /// What the client got, where it was recorded.
    pub(crate) kept: Option<Kept>,
}

/// Called once when an answer is over, however it ends.
pub(crate) type WhenOver = Box<dyn FnOnce(Ended) + Send + Sync>;

/// The body of an answer.
pub(crate) struct Passing {
    /// Dropping it is what makes the provider stop.
    inner: Option<Coming>,
    watch: Watch,
    when_over: Option<WhenOver>,
    first_chunk: Option<Instant>,
    /// What we say after the provider's last words.
    last_words: Option<Bytes>,
    /// Why the answer broke off, until that is told.
    broken: Option<BrokenOff>,
    chant: Option<Chant>,
    /// The answer so far, where it may be given again.
    recording: Option<Recording>,
}

/// What is looked for in an answer.
pub(crate) enum Watch {
    /// Nothing.
    Nothing,
    /// A whole JSON document.
    Document { dialect: Dialect, decoder: Option<Box<StreamDecoder>>, collected: Collected },
    /// A stream of events.
    Stream(Box<WatchedStream>),
}

/// A stream that is read on its way.
pub(crate) struct WatchedStream {
    pub(crate) reader: StreamReader,
    pub(crate) decoder: Option<Box<StreamDecoder>>,
    /// Takes out the usage chunk that only we asked for.
    pub(crate) filter: Option<UsageFilter>,
    /// Whether a chant is cut, and not only told of.
    pub(crate) cut: bool,
}

impl Watch {
    fn into_answer(self) -> Option<Answer> {
        match self {
            Self::Nothing => None,
            Self::Document { dialect, collected, .. } => collected.read(dialect),
            Self::Stream(stream) => Some(stream.reader.finish()),
        }
    }
}

impl Passing {
    /// Passes on an answer, recorded where it may be given again; `when_over` is called once, at its end or when the
    /// client goes.
    pub(crate) fn new(
        inner: Coming,
        watch: Watch,
        recording: Option<Recording>,
        when_over: WhenOver,
    ) -> Self {
        Self {
            inner: Some(inner),
            watch,
            when_over: Some(when_over),
            first_chunk: None,
            last_words: None,
            broken: None,
            chant: None,
            recording,
        }
    }

    /// Looks at a piece of the answer and says what is passed on of it.
    fn look_at(&mut self, piece: Bytes) -> Bytes {
        self.first_chunk.get_or_insert_with(Instant::now);
        match &mut self.watch {
            Watch::Nothing => piece,
            Watch::Document { decoder, collected, .. } => {
                match decoder {
                    Some(decoder) => collected.take(decoder.feed(&piece).into()),
                    None => collected.take(piece.clone()),
                }
                piece
            }
            Watch::Stream(stream) => {
                let decoded = stream.decoder.as_mut().map(|decoder| decoder.feed(&piece));
                let frame = decoded.as_deref().unwrap_or(&piece);
                // What is compressed can only be cut where the compression allows it, and nothing inside of a call: that is
                // only told of.
                let Some(cut) = stream.reader.feed(frame) else {
                    return filtered(stream.filter.as_mut(), piece);
                };
                if stream.decoder.is_some() || !stream.cut || !cut.can_end {
                    stream.reader.go_on(frame.get(cut.keep..).unwrap_or_default());
                    self.chant.get_or_insert(cut.chant);
                    return filtered(stream.filter.as_mut(), piece);
                }
                let kept = filtered(stream.filter.as_mut(), piece.slice(..cut.keep.min(piece.len())));
                let mut last = BytesMut::from(&*kept);
                last.extend_from_slice(&stream.reader.closing());
                self.inner = None;
                self.over(End::Cut(cut.chant));
                last.freeze()
            }
        }
    }

    /// The provider has said everything.
    fn complete(&mut self) {
        self.inner = None;
        if let Watch::Stream(stream) = &mut self.watch
            && let Some(filter) = &mut stream.filter
        {
            let mut rest = Vec::new();
            filter.finish(&mut rest);
            self.record(&rest);
            self.last_words = (!rest.is_empty()).then(|| rest.into());
        }
        self.over(End::Complete);
    }

    fn record(&mut self, passed: &[u8]) {
        if let Some(recording) = &mut self.recording {
            recording.take(passed);
        }
    }

    fn over(&mut self, end: End) {
        if let Some(when_over) = self.when_over.take() {
            let answer = std::mem::replace(&mut self.watch, Watch::Nothing).into_answer();
            let (chant, kept) = (self.chant.take(), self.recording.take().and_then(Recording::finish));
            when_over(Ended { end, answer, chant, first_chunk: self.first_chunk, kept });
        }
    }
}

impl Body for Passing {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = self.get_mut();
        loop {
            if let Some(error) = this.broken.take() {
                return Poll::Ready(Some(Err(error)));
            }
            let Some(inner) = &mut this.inner else {
                return Poll::Ready(this.last_words.take().map(|words| Ok(Frame::data(words))));
            };
            match ready!(Pin::new(inner).poll_frame(context)) {
                None => this.complete(),
                Some(Err(error)) => {
                    this.inner = None;
                    this.over(End::Broken);
                    // What came before the break goes out first: the head, perhaps, and the beginning.
                    this.broken = Some(error);
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => {
                        let passed = this.look_at(piece);
                        this.record(&passed);
                        // Whoever reads by length may not ask again after the last byte.
                        if this.inner.as_ref().is_some_and(Body::is_end_stream) {
                            this.complete();
                        }
                        // A piece of which nothing is left is no piece.
                        if !passed.is_empty() {
                            return Poll::Ready(Some(Ok(Frame::data(passed))));
                        }
                    }
                    Err(trailers) => {
                        // They are no part of what is given again.
                        this.recording.iter_mut().for_each(Recording::lose);
                        return Poll::Ready(Some(Ok(trailers)));
                    }
                },
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
            && self.last_words.is_none()
            && self.broken.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.watch, &self.inner) {
            // What may be taken out or added changes the length.
            (Watch::Stream(stream), _) if stream.filter.is_some() || stream.cut => SizeHint::new(),
            (_, Some(inner)) => inner.size_hint(),
            (_, None) => SizeHint::new(),
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        // Nobody asked for the rest, so the client has gone; the connection is dropped with what is still coming.
        self.over(End::ClientGone);
    }
}

fn filtered(filter: Option<&mut UsageFilter>, piece: Bytes) -> Bytes {
    let Some(filter) = filter else { return piece };
    let mut out = Vec::with_capacity(piece.len());
    filter.feed(&piece, &mut out);
    out.into()
}
