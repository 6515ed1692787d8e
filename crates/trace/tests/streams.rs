//! Inputs that are larger than what may be held of them.

use std::io::{self, BufReader, Read};

use loopbreaker::Step;
use loopbreaker_trace::{Error, Format, Options, Problem, Sink, read};

/// An input that is made while it is read: `line` over and over, with its number in place of `#`.
struct Endless {
    line: &'static str,
    bytes_left: u64,
    number: u64,
    buffer: Vec<u8>,
    at: usize,
}

impl Endless {
    fn new(line: &'static str, bytes: u64) -> Self {
        Self { line, bytes_left: bytes, number: 0, buffer: Vec::new(), at: 0 }
    }
}

impl Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.buffer.len() {
            self.buffer.clear();
            self.at = 0;
            while self.buffer.len() < 60_000 && self.bytes_left > 0 {
                self.number += 1;
                let line = self.line.replace('#', &self.number.to_string());
                self.bytes_left = self.bytes_left.saturating_sub(line.len() as u64 + 1);
                self.buffer.extend_from_slice(line.as_bytes());
                self.buffer.push(b'\n');
            }
        }
        let count = (&self.buffer[self.at..]).read(out)?;
        self.at += count;
        Ok(count)
    }
}

#[derive(Default)]
struct Count {
    steps: u64,
    ends: u64,
    problems: Vec<Problem>,
    bytes: u64,
}

impl Sink for Count {
    fn step(&mut self, _run: &str, _step: &Step<'_>) {
        self.steps += 1;
    }

    fn end(&mut self, _run: &str) {
        self.ends += 1;
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    fn progress(&mut self, bytes: u64) {
        assert!(bytes >= self.bytes, "progress never goes back");
        self.bytes = bytes;
    }
}

/// The most memory that this process has had so far, where the system tells.
#[expect(
    clippy::disallowed_methods,
    reason = "the crate reads no files, but only a file tells what memory it took"
)]
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}

const MEGABYTE: u64 = 1_000_000;

#[test]
fn two_hundred_megabytes_of_runs_are_read_in_flat_memory() {
    let line = concat!(
        r#"{"id":"run-#","steps":[{"tool":"bash","args":{"command":"cargo test"},"result":"ok \u00e4","#,
        r#""status":"success","time":"2026-03-01T08:00:00Z","tokens":12},{"thought":"and now for something else entirely, "#,
        r#"which takes a few more words to say than to do, as it is with most things that agents write to each other"}]}"#
    );
    let mut count = Count::default();
    let input = BufReader::new(Endless::new(line, 200 * MEGABYTE));
    let summary = read(input, &Options::named("big"), &mut count).unwrap();
    assert_eq!((summary.format, summary.problems), (Format::Trace, 0));
    assert_eq!((count.steps, count.ends), (summary.runs * 2, summary.runs));
    assert!(summary.bytes >= 200 * MEGABYTE && count.bytes == summary.bytes);
    assert!(peak_memory() < 120 * MEGABYTE, "{} bytes", peak_memory());
}

#[test]
fn calls_that_are_never_answered_are_not_kept() {
    let line = concat!(
        r#"{"type":"assistant","sessionId":"s","isSidechain":true,"agentId":"a#","message":{"id":"m","content":"#,
        r#"[{"type":"tool_use","id":"t#","name":"Bash","input":{"command":"a command of some length, to be kept or not"}}]}}"#
    );
    let mut count = Count::default();
    let input = BufReader::new(Endless::new(line, 10 * MEGABYTE));
    let summary = read(input, &Options::named("big"), &mut count).unwrap();
    assert_eq!((summary.format, count.steps, count.ends), (Format::ClaudeCode, summary.runs, summary.runs));
    assert!(peak_memory() < 120 * MEGABYTE, "{} bytes", peak_memory());
}

#[test]
fn a_line_of_a_hundred_megabytes_is_skipped_with_its_number() {
    let before = &b"{\"id\":\"a\",\"steps\":[]}\n\n"[..];
    let long = io::repeat(b'[').take(100 * MEGABYTE);
    let after = &b"\n{\"id\":\"b\",\"steps\":[{\"thought\":\"x\"}]}\nnothing\n"[..];
    let mut count = Count::default();
    let options = Options { max_line: 1 << 20, ..Options::named("long") };
    let summary = read(BufReader::new(before.chain(long).chain(after)), &options, &mut count).unwrap();
    assert_eq!((summary.runs, count.steps), (2, 1));
    assert_eq!(count.problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [3, 5]);
    assert!(count.problems[0].message.contains("1048576 bytes"), "{}", count.problems[0].message);
    assert!(peak_memory() < 120 * MEGABYTE, "{} bytes", peak_memory());
}

#[test]
fn a_document_above_the_limit_says_so() {
    let mut count = Count::default();
    let options = Options { max_line: 1 << 16, ..Options::named("large") };
    let text = format!("[\n{}{{}}\n]\n", "{\"role\":\"user\",\"content\":\"x\"},\n".repeat(10_000));
    let outcome = read(text.as_bytes(), &options, &mut count);
    assert!(matches!(outcome, Err(Error::UnknownFormat { .. })));
    assert!(count.problems[0].message.contains("larger than 65536 bytes"), "{}", count.problems[0].message);
}

#[test]
fn nothing_is_an_error_of_its_own() {
    for input in ["", "\n\n \r\n", "\u{feff}"] {
        let outcome = read(input.as_bytes(), &Options::named("x"), &mut Count::default());
        assert!(matches!(outcome, Err(Error::Empty)), "{input:?} {outcome:?}");
    }
}

#[test]
fn a_text_that_is_no_recording_is_refused_before_all_of_it_is_read() {
    let mut count = Count::default();
    let outcome = read(
        BufReader::new(Endless::new("line # of a novel", 50 * MEGABYTE)),
        &Options::named("x"),
        &mut count,
    );
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("--format") && error.contains("claude-code"), "{error}");
    assert!(count.bytes < MEGABYTE);
}

#[test]
fn a_reader_that_fails_is_an_error() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let outcome = read(BufReader::new(Failing), &Options::named("x"), &mut Count::default());
    assert!(outcome.unwrap_err().to_string().contains("the disk is gone"));
}
