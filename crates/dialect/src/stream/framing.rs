//! The events of a stream, wherever its frames were cut.

use crate::Dialect;

use super::array::Elements;

/// Cuts a stream into the data of its events.
#[derive(Debug)]
pub(super) enum Framing {
    /// Gemini sends events or a list, which the first byte shows.
    Undecided,
    Events(Events),
    List(Elements),
}

/// An event beyond this is passed over. One with a picture in it has some megabytes, and often the usage, too.
pub(super) const MAX_EVENT: usize = 8 << 20;

impl Framing {
    pub(super) fn new(dialect: Dialect) -> Self {
        if dialect == Dialect::Gemini { Self::Undecided } else { Self::Events(Events::default()) }
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self, Self::List(_))
    }

    /// Visits the data of every event that ends in this frame, with the offset of its end; `None` for one that was too
    /// long. Ends early when `visit` says `false`.
    pub(super) fn feed(&mut self, frame: &[u8], visit: &mut dyn FnMut(Option<&[u8]>, usize) -> bool) {
        // White space before the first byte is no part of either, whichever frame it comes in.
        let mut lead = 0;
        if matches!(self, Self::Undecided) {
            let begun = frame.trim_ascii_start();
            lead = frame.len() - begun.len();
            match begun.first() {
                None => {}
                Some(b'[') => *self = Self::List(Elements::default()),
                Some(_) => *self = Self::Events(Events::default()),
            }
        }
        let frame = frame.get(lead..).unwrap_or_default();
        match self {
            Self::Undecided => {}
            Self::List(elements) => elements.feed(frame, &mut |element, end| visit(element, lead + end)),
            Self::Events(events) => events.feed(frame, &mut |event, end| match event {
                None => visit(None, lead + end),
                Some(event) => with_data(event, |data| visit(Some(data), lead + end)).unwrap_or(true),
            }),
        }
    }

    /// The data of an event that has no end: some servers leave out the blank line behind the last one.
    pub(super) fn rest(&self) -> Option<String> {
        let Self::Events(events) = self else { return None };
        let held = if events.is_skipping { &[] } else { events.held.as_slice() };
        with_data(held, |data| str::from_utf8(data).ok().map(str::to_owned))?
    }
}

/// Cuts a stream into server-sent events, each with the blank line that ends it.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The beginning of an event whose end has not come; of one that is too long, the last bytes.
    held: Vec<u8>,
    is_skipping: bool,
}

impl Events {
    /// Visits every event that ends in this frame, with the offset of its end; `None` for one that was too long.
    fn feed(&mut self, frame: &[u8], visit: &mut dyn FnMut(Option<&[u8]>, usize) -> bool) {
        let mut start = 0;
        if !self.held.is_empty() {
            let Some(end) = end_behind(&self.held, frame) else { return self.hold(frame) };
            let event = frame.get(..end).unwrap_or_default();
            let is_skipping = std::mem::take(&mut self.is_skipping) || self.held.len() + end > MAX_EVENT;
            let goes_on = if is_skipping {
                visit(None, end)
            } else {
                self.held.extend_from_slice(event);
                visit(Some(&self.held), end)
            };
            self.held.clear();
            if !goes_on {
                return;
            }
            start = end;
        }
        loop {
            let rest = frame.get(start..).unwrap_or_default();
            let Some(length) = end_in(rest) else { return self.hold(rest) };
            let event = rest.get(..length).filter(|event| event.len() <= MAX_EVENT);
            start += length;
            if !visit(event, start) {
                return;
            }
        }
    }

    fn hold(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        if self.held.len() > MAX_EVENT {
            self.is_skipping = true;
        }
        if self.is_skipping {
            // Enough to see the end of the event, when it comes.
            self.held.drain(..self.held.len().saturating_sub(2));
            self.held.shrink_to(KEPT_CAPACITY);
        }
    }
}

const KEPT_CAPACITY: usize = 64 << 10;

/// The offset behind the first blank line. Lines end with LF, CRLF or CR, which JSON holds none of.
pub(crate) fn end_in(bytes: &[u8]) -> Option<usize> {
    memchr::memchr2_iter(b'\n', b'\r', bytes).find_map(|at| {
        let behind = bytes.get(at + 1..).unwrap_or_default();
        match behind {
            // The first half of one line end.
            [b'\n', ..] if bytes.get(at) == Some(&b'\r') => None,
            [b'\r', b'\n', ..] => Some(at + 3),
            // Of another CR, which ends a line by itself already. Behind LF it may be the first half of one.
            [b'\r'] if bytes.get(at) == Some(&b'\n') => None,
            [b'\n' | b'\r', ..] => Some(at + 2),
            _ => None,
        }
    })
}

/// The same for bytes that come behind others, which may hold the first half of it.
pub(crate) fn end_behind(held: &[u8], bytes: &[u8]) -> Option<usize> {
    // Of what is held, the last two bytes can be the beginning of a blank line.
    let last = held.get(held.len().saturating_sub(2)..).unwrap_or_default();
    let in_seam = match (last, bytes) {
        ([b'\n', b'\r'] | [.., b'\n'], [b'\n', ..]) => Some(1),
        // It was a blank line already.
        ([b'\n', b'\r'], [_, ..]) => Some(0),
        ([.., b'\n' | b'\r'], [b'\r', b'\n', ..]) => Some(2),
        ([.., b'\r'], [b'\r', ..]) | ([.., b'\n'], [b'\r', _, ..]) => Some(1),
        _ => None,
    };
    in_seam.or_else(|| end_in(bytes))
}

/// Gives out the data of an event; `None` when it has none.
pub(crate) fn with_data<T>(event: &[u8], then: impl FnOnce(&[u8]) -> T) -> Option<T> {
    let mut lines = DataLines(event);
    let first = lines.next()?;
    let Some(second) = lines.next() else { return Some(then(first)) };
    // JSON has no raw line breaks in its strings, so it hardly ever takes more than one line.
    let mut all = [first, second].join(&b'\n');
    for line in lines {
        all.push(b'\n');
        all.extend_from_slice(line);
    }
    Some(then(&all))
}

/// What stands behind each `data:` of an event.
struct DataLines<'e>(&'e [u8]);

impl<'e> Iterator for DataLines<'e> {
    type Item = &'e [u8];

    fn next(&mut self) -> Option<&'e [u8]> {
        while !self.0.is_empty() {
            let end = memchr::memchr2(b'\n', b'\r', self.0).unwrap_or(self.0.len());
            let (line, rest) = self.0.split_at(end);
            let ending = if rest.starts_with(b"\r\n") { 2 } else { 1 };
            self.0 = rest.get(ending..).unwrap_or_default();
            if let Some(data) = line.strip_prefix(b"data:") {
                return Some(data.strip_prefix(b" ").unwrap_or(data));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a stream that comes in these frames, and where they end.
    fn events(frames: &[&[u8]]) -> Vec<(Option<String>, usize)> {
        let mut events = Events::default();
        let (mut found, mut offset) = (Vec::new(), 0);
        for frame in frames {
            events.feed(frame, &mut |event, end| {
                found.push((event.map(|event| String::from_utf8_lossy(event).into_owned()), offset + end));
                true
            });
            offset += frame.len();
        }
        found
    }

    #[test]
    fn every_cut_gives_the_same_events() {
        let stream = b"data: a\n\nevent: x\r\ndata: b\r\n\r\n\n\ndata: c\n\r\ndata: d";
        let whole = events(&[stream]);
        let texts: Vec<_> = whole.iter().filter_map(|(event, _)| event.as_deref()).collect();
        assert_eq!(texts, ["data: a\n\n", "event: x\r\ndata: b\r\n\r\n", "\n\n", "data: c\n\r\n"]);
        for at in 0..=stream.len() {
            for to in at..=stream.len() {
                assert_eq!(events(&[&stream[..at], &stream[at..to], &stream[to..]]), whole, "{at} {to}");
            }
        }
        let bytes: Vec<_> = stream.chunks(1).collect();
        assert_eq!(events(&bytes), whole);
    }

    #[test]
    fn lines_may_end_with_cr_alone() {
        let stream = b"event: x\rdata: a\rdata: b\r\rdata: c\r\r: d\r\r";
        let whole = events(&[stream]);
        let data: Vec<_> = whole
            .iter()
            .map(|(event, _)| with_data(event.as_ref().unwrap().as_bytes(), <[u8]>::to_vec))
            .collect();
        assert_eq!(data, [Some(b"a\nb".to_vec()), Some(b"c".to_vec()), None]);
        for at in 0..=stream.len() {
            for to in at..=stream.len() {
                assert_eq!(events(&[&stream[..at], &stream[at..to], &stream[to..]]), whole, "{at} {to}");
            }
        }
    }

    #[test]
    fn white_space_before_a_stream_of_gemini_belongs_to_nothing_wherever_it_is_cut() {
        let data = |frames: &[&[u8]]| {
            let mut framing = Framing::new(Dialect::Gemini);
            let (mut found, mut offset) = (Vec::new(), 0);
            for frame in frames {
                framing.feed(frame, &mut |data, end| {
                    found.push((data.map(<[u8]>::to_vec), offset + end));
                    true
                });
                offset += frame.len();
            }
            found
        };
        for stream in [b"\r\r\r data: {}\n\ndata: 1\n\n".as_slice(), b" \r\n [{},{}]"] {
            let whole = data(&[stream]);
            assert_eq!(whole.len(), 2);
            for at in 0..=stream.len() {
                assert_eq!(data(&[&stream[..at], &stream[at..]]), whole, "{at}");
            }
        }
    }

    #[test]
    fn an_event_that_is_too_long_is_passed_over_in_bounded_memory() {
        let long = vec![b'x'; 3 * MAX_EVENT];
        let mut events = Events::default();
        let mut found = Vec::new();
        for frame in [b"data: ".as_slice(), &long, b"\n\r", b"\ndata: a\n\n"] {
            events.feed(frame, &mut |event, _| {
                found.push(event.map(<[u8]>::to_vec));
                true
            });
            assert!(events.held.capacity() <= 4 * MAX_EVENT);
        }
        assert_eq!(found, [None, Some(b"data: a\n\n".to_vec())]);
        assert!(events.held.capacity() <= KEPT_CAPACITY.max(64));
    }

    #[test]
    fn data_may_take_several_lines() {
        let data = |event: &[u8]| with_data(event, |data| String::from_utf8_lossy(data).into_owned());
        assert_eq!(data(b": note\ndata:a\r\ndata: b\nid: 1\ndata:\n\n").as_deref(), Some("a\nb\n"));
        assert_eq!(data(b"event: ping\n\n"), None);
    }
}
