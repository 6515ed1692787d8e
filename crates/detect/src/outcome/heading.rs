//! Words of a harness that only introduce what a tool said.

/// So long is a label, or a tag.
const LONGEST: usize = 60;

/// What a harness writes before an answer, on the same line.
const LABELS: &[&str] =
    &["observation", "output", "result", "response", "tool output", "tool result", "tool response", "stdout"];

/// So many lines of a header may stand before what the tool said.
const HEADER: usize = 6;

/// How many lines at the start of a result only tell how the call went, and end with a line that introduces what the tool
/// said: `Wall time: 1 s`, `Process exited with code 0`, `Output:`. 0 when there is no such line.
pub(super) fn header(result: &[u8]) -> usize {
    let first = || result.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).take(HEADER);
    match first().position(is_heading) {
        Some(at) if first().take(at).all(tells_of_the_run) => at + 1,
        _ => 0,
    }
}

/// Whether a line tells one thing about a call, in words of a harness: a label and a value, or how a process ended.
fn tells_of_the_run(line: &[u8]) -> bool {
    let has_label = || {
        let value = memchr::memmem::find(line, b": ");
        value.is_some_and(|at| line[..at].iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b' '))
    };
    line.len() <= LONGEST && (line.starts_with(b"Process exited with ") || has_label())
}

/// Whether a line only introduces the next one: `<output>`, `<result id="1">`, `Observation:`. A heading of any other name is
/// the tool's own, and what follows it need not be how the call went.
pub(super) fn is_heading(line: &[u8]) -> bool {
    let name = match line {
        [b'<', tag @ .., b'>'] if line.len() <= LONGEST => {
            tag.split(|byte| *byte == b' ').next().unwrap_or_default()
        }
        [name @ .., b':'] if line.len() <= LONGEST => name,
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
    use super::{header, is_heading, without_label};
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
        assert!(is_heading(b"<result id=\"call_1\">"));
        for line in ["<output> 3", "", ":", "Issue details:", "<page>", "Observation", "<page id=\"1\">"] {
            assert!(!is_heading(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn what_tells_of_the_run_is_a_header() {
        let runs = "Chunk ID: <call>\nWall time: <duration>\nProcess exited with code 0\nOutput:\n3 files";
        assert_eq!(header(runs.as_bytes()), 4);
        assert_eq!(header(b"Output:\n3 files"), 1);
        for text in [
            "3 files",
            "",
            "Input\n3\nOutput:\n4",
            "It went: well\nand more\nOutput:\n4",
            "a\nb\nc\nd\ne\nf\nOutput:",
        ] {
            assert_eq!(header(text.as_bytes()), 0, "{text}");
        }
    }

    #[test]
    fn a_failure_is_one_whatever_introduces_it() {
        // Long answers quote what failed elsewhere, so only their first words are believed.
        let rest = "The page goes on with many other words. ".repeat(20);
        let header = "Wall time: 1.2 seconds\nProcess exited with code 2\nOutput:\n";
        let tag = "<result id=\"call_a1b2c3d4\">\n";
        for before in
            ["", "Observation: ", "Observation:\n", "<tool_response>\n", "Output:\n<stdout>\n", header, tag]
        {
            assert!(Outcome::of(&format!("{before}Error: the page is gone.\n{rest}")).failed(), "{before}");
        }
        for before in ["It went well.\n", "Chapter one.\n", "Issue details:\n", "<page>\n"] {
            assert!(!Outcome::of(&format!("{before}Error: the page is gone.\n{rest}")).failed(), "{before}");
        }
    }
}
