//! `traceparent`: where a request belongs in its caller's trace.

use std::fmt;

/// A caller's span, as W3C Trace Context names it.
///
/// ```
/// use loopbreaker_telemetry::TraceContext;
///
/// let header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// let context = TraceContext::parse(header).expect("a well-formed header");
/// assert!(context.sampled);
/// assert_eq!(context.to_string(), header);
/// assert_eq!(TraceContext::parse("00-00000000000000000000000000000000-b7ad6b7169203331-01"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace that all spans of one transaction share.
    pub trace_id: [u8; 16],
    /// The caller's span.
    pub span_id: [u8; 8],
    /// Whether the caller keeps this trace.
    pub sampled: bool,
}

impl TraceContext {
    /// Reads the header `traceparent`; `None` when it is malformed, since a broken trace must not break a request.
    pub fn parse(header: &str) -> Option<Self> {
        let mut fields = header.trim_matches([' ', '\t']).split('-');
        let [version] = hex(fields.next()?)?;
        let (trace_id, span_id) = (hex(fields.next()?)?, hex(fields.next()?)?);
        let [flags] = hex(fields.next()?)?;
        // Version 0 has four fields; later ones may add some, and ff will never be one.
        if version == 0xff || (version == 0 && fields.next().is_some()) {
            return None;
        }
        if trace_id == [0; 16] || span_id == [0; 8] {
            return None;
        }
        Some(Self { trace_id, span_id, sampled: flags & 1 == 1 })
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (Hex(&self.trace_id), Hex(&self.span_id));
        write!(f, "00-{trace}-{span}-0{}", u8::from(self.sampled))
    }
}

/// Bytes as lower-case hex digits.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Exactly `N` bytes in lower-case hex digits: the standard knows no others.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

const fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::TraceContext;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    #[test]
    fn a_later_version_may_have_more_fields_but_version_0_may_not() {
        assert!(TraceContext::parse(&format!("01-{TRACE}-{SPAN}-01-more")).is_some());
        assert_eq!(TraceContext::parse(&format!("00-{TRACE}-{SPAN}-01-more")), None);
        assert_eq!(TraceContext::parse(&format!("ff-{TRACE}-{SPAN}-01")), None);
    }

    #[test]
    fn only_the_first_flag_says_sampled() {
        let sampled = |flags| TraceContext::parse(&format!("00-{TRACE}-{SPAN}-{flags}")).unwrap().sampled;
        assert_eq!(["00", "01", "02", "ff"].map(sampled), [false, true, false, true]);
    }

    #[test]
    fn malformed_headers_are_no_context() {
        let upper = TRACE.to_uppercase();
        for header in [
            String::new(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{upper}-{SPAN}-01"),
            format!("00-{TRACE}-0000000000000000-01"),
            format!("00-{TRACE}0-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}-1"),
        ] {
            assert_eq!(TraceContext::parse(&header), None, "{header}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_context_or_none_and_what_is_read_is_written_back(text in ".{0,80}") {
            if let Some(context) = TraceContext::parse(&text) {
                prop_assert_eq!(TraceContext::parse(&context.to_string()), Some(context));
            }
        }

        #[test]
        fn every_context_survives_its_header(trace_id: [u8; 16], span_id: [u8; 8], sampled: bool) {
            prop_assume!(trace_id != [0; 16] && span_id != [0; 8]);
            let context = TraceContext { trace_id, span_id, sampled };
            prop_assert_eq!(TraceContext::parse(&context.to_string()), Some(context));
        }
    }
}
