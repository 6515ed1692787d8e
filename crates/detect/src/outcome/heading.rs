//! Words of a harness that only introduce what a tool said.

/// So long is a label, or a tag.
const LONGEST: usize = 60;

/// What a harness writes before an answer, on the same line.
const LABELS: &[&str] =
    &["observation", "output", "result", "response", "tool output", "tool result", "tool response", "stdout"];

/// Whether a line only introduces the next one: `<output>`, `Observation:`. A heading of any other name is the tool's own, and
/// what follows it need not be how the call went.
pub(super) fn is_heading(line: &[u8]) -> bool {
    let name = match line {
        [b'<', name @ .., b'>'] | [name @ .., b':'] if line.len() <= LONGEST => name,
        _ => return false,
    };
    let is_as = |label: &str| {
        let plain = |byte: u8| if matches!(byte, b'_' | b'-') { b' ' } else { byte.to_ascii_lowercase() };
        name.iter().map(|byte| plain(*byte)).eq(label.bytes())
    };
    LABELS.iter().any(|label| is_as(label))
}

/// A line without the label before it. No other word before a colon is one: `Warning: …` says something.
pub(super) fn without_label(line: &[u8]) -> &[u8] {
    let Some(colon) = line[..line.len().min(LONGEST)].iter().position(|byte| *byte == b':') else {
        return line;
    };
    let is_label = |label: &str| line[..colon].eq_ignore_ascii_case(label.as_bytes());
    let rest = line[colon + 1..].trim_ascii_start();
    if !rest.is_empty() && LABELS.iter().any(|label| is_label(label)) { rest } else { line }
}

#[cfg(test)]
mod tests {
    use super::{is_heading, without_label};
    use crate::Outcome;

    #[test]
    fn only_what_introduces_an_answer_is_no_answer() {
        assert_eq!(without_label(b"Observation: no such file"), b"no such file");
        assert_eq!(without_label(b"TOOL RESULT:  3 files"), b"3 files");
        for line in ["Warning: no such file", "Observation:", "a: b", "Observation", ""] {
            assert_eq!(without_label(line.as_bytes()), line.as_bytes());
        }
        assert!(is_heading(b"<output>") && is_heading(b"Observation:"));
        assert!(is_heading(b"<tool_response>") && is_heading(b"STDOUT:"));
        for line in ["<output> 3", "", ":", "Issue details:", "<page>", "Observation"] {
            assert!(!is_heading(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn a_failure_is_one_whatever_introduces_it() {
        // Long answers quote what failed elsewhere, so only their first words are believed.
        let rest = "The page goes on with many other words. ".repeat(20);
        for before in ["", "Observation: ", "Observation:\n", "<tool_response>\n", "Output:\n<stdout>\n"] {
            assert!(Outcome::of(&format!("{before}Error: the page is gone.\n{rest}")).failed(), "{before}");
        }
        for before in ["It went well.\n", "Chapter one.\n", "Issue details:\n", "<page>\n"] {
            assert!(!Outcome::of(&format!("{before}Error: the page is gone.\n{rest}")).failed(), "{before}");
        }
    }
}
