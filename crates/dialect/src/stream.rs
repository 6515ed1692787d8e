//! Reading an answer while it streams.

mod anthropic;
mod array;
mod chat;
mod framing;
mod gemini;
mod responses;
mod template;
mod watch;

pub(crate) use framing::{end_behind, end_in, with_data};
pub(crate) use watch::Watch;

use framing::Framing;
use loopbreaker::Chant;

use crate::answer::Scribe;
use crate::{Answer, Dialect};

/// Reads a stream of server-sent events, or Gemini's list of chunks, beside the client that gets it.
///
/// Memory is bounded: an event of more than 8 MiB is passed over, and of the words only what is needed is kept.
///
/// ```
/// use loopbreaker_dialect::{Dialect, StreamReader};
/// let mut reader = StreamReader::new(Dialect::Chat, true);
/// for frame in ["data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"con", "tent\":\"Hi\"}}]}\n\ndata: [DO", "NE]\n\n"] {
///     assert!(reader.feed(frame.as_bytes()).is_none());
/// }
/// assert!(reader.complete());
/// let answer = reader.finish();
/// assert_eq!((answer.id.as_deref(), answer.text.as_str()), (Some("c1"), "Hi"));
/// ```
#[derive(Debug)]
pub struct StreamReader {
    framing: Framing,
    scribe: Scribe,
    voice: Voice,
    /// Events that were too long to be read.
    skipped: u64,
    /// Whether the stream was cut: what still comes is not read any more.
    cut: bool,
}

/// A stream that goes round in circles and should end here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// How many bytes of the frame that was fed last are still passed on; they end with a whole event.
    pub keep: usize,
    /// What was repeated.
    pub chant: Chant,
    /// Whether the stream can end there. Where it cannot, inside of a call above all, the chant is only to be told of.
    pub can_end: bool,
}

/// What a dialect's stream is remembered by.
#[derive(Debug)]
enum Voice {
    Chat(chat::Stream),
    Responses(Box<responses::Stream>),
    Anthropic(anthropic::Stream),
    Gemini(gemini::Stream),
}

impl StreamReader {
    /// A reader; with `watch_chant` it also listens for a text that repeats itself without end.
    pub fn new(dialect: Dialect, watch_chant: bool) -> Self {
        Self {
            framing: Framing::new(dialect),
            scribe: Scribe::new(watch_chant.then(Watch::default)),
            voice: match dialect {
                Dialect::Chat => Voice::Chat(chat::Stream::default()),
                Dialect::Responses => Voice::Responses(Box::default()),
                Dialect::Anthropic => Voice::Anthropic(anthropic::Stream::default()),
                Dialect::Gemini => Voice::Gemini(gemini::Stream::default()),
            },
            skipped: 0,
            cut: false,
        }
    }

    /// Takes one frame of any size, wherever it was cut. With a [`Cut`] that can end, the stream is to be ended there
    /// with [`closing`](Self::closing); with any other it is to [`go_on`](Self::go_on).
    pub fn feed(&mut self, frame: &[u8]) -> Option<Cut> {
        if self.cut {
            return None;
        }
        let Self { framing, scribe, voice, skipped, .. } = self;
        let mut found = None;
        framing.feed(frame, &mut |event, keep| {
            match event.and_then(|data| str::from_utf8(data).ok()) {
                Some(data) => voice.hear(data, scribe),
                None => *skipped += 1,
            }
            found = scribe.heard().map(|(chant, can_end)| Cut { keep, chant, can_end });
            found.is_none()
        });
        self.cut = found.is_some();
        found
    }

    /// The chant is only told of: reads the rest of the frame that it was found in, and what still comes, and listens for
    /// no more of them. Usage and calls come at the end, whatever was said before.
    pub fn go_on(&mut self, rest: &[u8]) {
        self.cut = false;
        self.scribe.watch = None;
        // Without a watch nothing is found.
        self.feed(rest);
    }

    /// What ends the stream validly when it is cut, so that a client gets a final message out of what it has seen.
    pub fn closing(&mut self) -> Vec<u8> {
        let answer = &self.scribe.answer;
        let closing = match &self.voice {
            Voice::Chat(stream) => stream.closing(answer),
            Voice::Responses(stream) => stream.closing(answer),
            Voice::Anthropic(stream) => stream.closing(answer),
            Voice::Gemini(stream) => stream.closing(answer, self.framing.is_list()),
        };
        closing.into_bytes()
    }

    /// What the stream said.
    pub fn finish(mut self) -> Answer {
        if let Some(data) = self.framing.rest().filter(|_| !self.cut) {
            self.voice.hear(&data, &mut self.scribe);
        }
        if let Voice::Gemini(stream) = &self.voice {
            self.scribe.answer.usage = stream.usage();
        }
        self.scribe.finish()
    }

    /// Whether the event that ends a stream has come.
    pub fn complete(&self) -> bool {
        match &self.voice {
            Voice::Chat(stream) => {
                stream.complete || self.framing.rest().is_some_and(|data| data == "[DONE]")
            }
            Voice::Responses(stream) => stream.complete,
            Voice::Anthropic(stream) => stream.complete,
            Voice::Gemini(_) => self.scribe.answer.finish.is_some(),
        }
    }

    /// How many events could not be read: too long, or no text.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

impl Voice {
    /// Takes the data of one event. What cannot be understood is for the client to complain about.
    fn hear(&mut self, data: &str, scribe: &mut Scribe) {
        match self {
            Self::Chat(stream) => stream.hear(data, scribe),
            Self::Responses(stream) => stream.hear(data, scribe),
            Self::Anthropic(stream) => stream.hear(data, scribe),
            Self::Gemini(stream) => stream.hear(data, scribe),
        }
    }
}
