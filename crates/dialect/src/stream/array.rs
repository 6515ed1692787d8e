//! A list of chunks that grows, which is how Gemini streams without `alt=sse`.

use super::framing::MAX_EVENT;

/// Cuts a growing JSON list into its elements.
#[derive(Debug, Default)]
pub(crate) struct Elements {
    /// The beginning of an element whose end has not come.
    held: Vec<u8>,
    /// How many brackets are open, that of the list included.
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    is_skipping: bool,
}

impl Elements {
    /// Visits every element that ends in this frame, with the offset of its end; `None` for one that was too long.
    pub(super) fn feed(&mut self, frame: &[u8], visit: &mut dyn FnMut(Option<&[u8]>, usize) -> bool) {
        let mut start = 0;
        for (at, byte) in frame.iter().enumerate() {
            if self.in_string {
                self.in_string = self.is_escaped || *byte != b'"';
                self.is_escaped = !self.is_escaped && *byte == b'\\';
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => {
                    if self.depth == 1 {
                        start = at;
                        self.held.clear();
                    }
                    self.depth += 1;
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 1 {
                        self.hold(frame.get(start..=at).unwrap_or_default());
                        let is_skipping = std::mem::take(&mut self.is_skipping);
                        let element = (!is_skipping).then_some(self.held.as_slice());
                        let goes_on = visit(element, at + 1);
                        self.held.clear();
                        start = at + 1;
                        if !goes_on {
                            return;
                        }
                    }
                }
                _ => {}
            }
        }
        if self.depth > 1 {
            self.hold(frame.get(start..).unwrap_or_default());
        }
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.is_skipping || self.held.len() + bytes.len() > MAX_EVENT {
            self.is_skipping = true;
            self.held = Vec::new();
        } else {
            self.held.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(frames: &[&[u8]]) -> Vec<(Option<String>, usize)> {
        let mut elements = Elements::default();
        let (mut found, mut offset) = (Vec::new(), 0);
        for frame in frames {
            elements.feed(frame, &mut |element, end| {
                found.push((
                    element.map(|element| String::from_utf8_lossy(element).into_owned()),
                    offset + end,
                ));
                true
            });
            offset += frame.len();
        }
        found
    }

    #[test]
    fn every_cut_gives_the_same_elements() {
        let stream = br#" [{"a":"}]\"[{"},
            {"b":[{"c":1}]}
            ,{}]"#;
        let whole = elements(&[stream]);
        let texts: Vec<_> = whole.iter().filter_map(|(element, _)| element.as_deref()).collect();
        assert_eq!(texts, [r#"{"a":"}]\"[{"}"#, r#"{"b":[{"c":1}]}"#, "{}"]);
        for at in 0..=stream.len() {
            for to in at..=stream.len() {
                assert_eq!(elements(&[&stream[..at], &stream[at..to], &stream[to..]]), whole, "{at} {to}");
            }
        }
    }

    #[test]
    fn an_element_that_is_too_long_is_passed_over() {
        let long = "x".repeat(MAX_EVENT);
        let found = elements(&[b"[{\"a\":\"", long.as_bytes(), b"\"},{}]"]);
        let texts: Vec<_> = found.into_iter().map(|(element, _)| element).collect();
        assert_eq!(texts, [None, Some("{}".to_owned())]);
    }
}
