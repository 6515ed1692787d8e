//! Takes the usage chunk out of a stream whose client did not ask for it.

use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::stream::{end_behind, end_in, with_data};

/// A report of usage is shorter.
const MAX_HELD: usize = 1 << 20;

/// Drops the usage chunk of a chat completion's stream: the one with `usage` and no choices. All other bytes pass as
/// they came.
///
/// Of an event whose end has not come, at most 1 MiB is held back; a longer one passes.
///
/// ```
/// use loopbreaker_dialect::UsageFilter;
/// let mut filter = UsageFilter::default();
/// let mut out = Vec::new();
/// filter.feed(b"data: {\"choices\":[{}]}\n\ndata: {\"choices\":[],\"usa", &mut out);
/// filter.feed(b"ge\":{\"prompt_tokens\":9}}\n\ndata: [DONE]\n\n", &mut out);
/// filter.finish(&mut out);
/// assert_eq!(out, b"data: {\"choices\":[{}]}\n\ndata: [DONE]\n\n");
/// ```
#[derive(Debug, Default)]
pub struct UsageFilter {
    /// The beginning of an event whose end has not come; of one that passes because it is too long, the last bytes.
    held: Vec<u8>,
    is_passing: bool,
}

impl UsageFilter {
    /// Takes one frame, wherever it was cut, and appends to `out` what the client gets.
    pub fn feed(&mut self, frame: &[u8], out: &mut Vec<u8>) {
        let mut rest = frame;
        if !self.held.is_empty() {
            let end = end_behind(&self.held, frame);
            let (event, behind) = frame.split_at(end.unwrap_or(frame.len()));
            self.hold(event, out);
            if end.is_none() {
                return;
            }
            self.release(out);
            rest = behind;
        }
        while let Some(end) = end_in(rest) {
            let (event, behind) = rest.split_at(end);
            if !is_usage(event) {
                out.extend_from_slice(event);
            }
            rest = behind;
        }
        self.hold(rest, out);
    }

    /// Appends what is left when the stream has ended.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.release(out);
    }

    fn hold(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.held.extend_from_slice(bytes);
        if self.is_passing {
            out.extend_from_slice(bytes);
        } else if self.held.len() > MAX_HELD {
            out.extend_from_slice(&self.held);
            self.is_passing = true;
        }
        if self.is_passing {
            // Enough to see the end of the event, when it comes.
            self.held.drain(..self.held.len().saturating_sub(2));
            self.held.shrink_to(KEPT_CAPACITY);
        }
    }

    fn release(&mut self, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.is_passing) && !is_usage(&self.held) {
            out.extend_from_slice(&self.held);
        }
        self.held.clear();
    }
}

const KEPT_CAPACITY: usize = 64 << 10;

/// Whether the event is a chunk with usage and without choices.
fn is_usage(event: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Chunk {
        choices: Option<Vec<IgnoredAny>>,
        usage: Option<IgnoredAny>,
    }
    // Nearly every chunk has no usage, or says that it has none.
    let says_usage = memmem::find(event, USAGE).is_some_and(|at| {
        let behind = event.get(at + USAGE.len()..).unwrap_or_default().trim_ascii_start();
        behind.strip_prefix(b":").is_some_and(|value| value.trim_ascii_start().starts_with(b"{"))
    });
    if !says_usage || event.len() > MAX_HELD {
        return false;
    }
    let chunk = with_data(event, |data| serde_json::from_slice::<Chunk>(data).ok()).flatten();
    chunk
        .is_some_and(|chunk| chunk.usage.is_some() && chunk.choices.is_some_and(|choices| choices.is_empty()))
}

const USAGE: &[u8] = b"\"usage\"";

#[cfg(test)]
mod tests {
    use super::*;

    const USAGE_CHUNK: &str = "data: {\"choices\": [], \"usage\" : {\"prompt_tokens\":3}}\r\n\r\n";

    fn filtered(frames: &[&[u8]]) -> Vec<u8> {
        let mut filter = UsageFilter::default();
        let mut out = Vec::new();
        for frame in frames {
            filter.feed(frame, &mut out);
        }
        filter.finish(&mut out);
        out
    }

    #[test]
    fn chunks_with_choices_and_chunks_that_say_they_have_no_usage_stay() {
        for chunk in [
            "data: {\"choices\":[{\"delta\":{}}],\"usage\":{\"prompt_tokens\":3}}\n\n",
            "data: {\"choices\":[],\"usage\":null}\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"usage\\\":{\"}}]}\n\n",
            "data: {\"usage\":{\"prompt_tokens\":3}}\n\n",
            ": keep-alive\n\n",
            "data: [DONE]\n\n",
        ] {
            assert_eq!(filtered(&[chunk.as_bytes()]), chunk.as_bytes());
        }
    }

    #[test]
    fn a_usage_chunk_goes_wherever_it_was_cut() {
        let stream = format!("data: {{\"choices\":[{{}}]}}\n\n{USAGE_CHUNK}data: [DONE]\n\n");
        for at in 0..=stream.len() {
            let (first, second) = stream.as_bytes().split_at(at);
            let out = filtered(&[first, second]);
            assert_eq!(out, b"data: {\"choices\":[{}]}\n\ndata: [DONE]\n\n", "{at}");
        }
    }

    #[test]
    fn a_usage_chunk_goes_whatever_its_lines_end_with() {
        let stream =
            format!("data: {{\"choices\":[{{}}]}}\n\n{USAGE_CHUNK}data: [DONE]\n\n").replace("\r\n", "\n");
        let stream = stream.replace('\n', "\r");
        for at in 0..=stream.len() {
            let (first, second) = stream.as_bytes().split_at(at);
            assert_eq!(filtered(&[first, second]), b"data: {\"choices\":[{}]}\r\rdata: [DONE]\r\r", "{at}");
        }
    }

    #[test]
    fn a_usage_chunk_without_its_blank_line_goes_too() {
        let stream = USAGE_CHUNK.trim_ascii_end();
        assert_eq!(filtered(&[stream.as_bytes()]), b"");
    }

    #[test]
    fn an_event_that_is_too_long_passes_in_bounded_memory() {
        let mut filter = UsageFilter::default();
        let mut out = Vec::new();
        let long = vec![b'x'; 64 << 10];
        for _ in 0..64 {
            filter.feed(&long, &mut out);
            assert!(filter.held.capacity() <= 4 * MAX_HELD);
        }
        filter.feed(b"\n", &mut out);
        filter.feed(b"\n", &mut out);
        filter.feed(USAGE_CHUNK.as_bytes(), &mut out);
        assert_eq!(out.len(), 64 * long.len() + 2);
    }
}
