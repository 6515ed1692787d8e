//! Requests of agents at work: transcripts that grow turn by turn, and in which nothing repeats.

use std::fmt::Write as _;
use std::rc::Rc;

/// How long the transcripts of a scenario are, in bytes.
#[derive(Debug)]
pub struct Shape {
    /// The system prompt, which all sessions share.
    pub system: usize,
    /// The user's first message, beside its number.
    pub task: usize,
    /// The result of a tool call, on average.
    pub result: usize,
    /// The tools that the client offers; they stand behind the messages, as the common clients write them.
    pub tools: usize,
    /// How many requests a run has.
    pub turns: usize,
}

/// Runs that go on side by side, each a turn further whenever it is its turn.
///
/// Sessions start at different turns, so that requests of every length are always under way; a run that is over is
/// followed by another, with other numbers in its task and in every result, so that no body comes twice.
#[derive(Debug)]
pub struct Workload {
    lead: Rc<[u8]>,
    tail: Rc<[u8]>,
    sessions: Vec<Session>,
    turns: usize,
    next: usize,
    /// How many runs have begun.
    runs: u64,
    /// How many requests were made.
    made: u64,
    /// Whether each request changes a byte near its start, so that nothing known can be taken up.
    changes_early: bool,
}

/// One session's present run.
#[derive(Debug)]
struct Session {
    /// Everything behind the number in the user's first message, up to the last turn.
    text: Rc<Vec<u8>>,
    /// Where the messages of each turn end in it.
    ends: Vec<usize>,
    /// Where the run's number stands in it.
    numbers: Vec<usize>,
    turn: usize,
    run: u64,
}

/// One request, in pieces that are sent as one.
#[derive(Debug)]
pub struct Request {
    head: Vec<u8>,
    lead: Rc<[u8]>,
    number: Number,
    text: Rc<Vec<u8>>,
    end: usize,
    tail: Rc<[u8]>,
}

/// A number that is always of the same length.
type Number = [u8; 12];

impl Request {
    /// Its bytes.
    pub fn pieces(&self) -> [&[u8]; 5] {
        [&self.head, &self.lead, &self.number, &self.text[..self.end], &self.tail]
    }

    /// The bytes of its body.
    pub fn body_len(&self) -> usize {
        self.lead.len() + self.number.len() + self.end + self.tail.len()
    }
}

impl Workload {
    /// So many runs side by side.
    pub fn new(shape: &Shape, sessions: usize, streamed: bool, changes_early: bool) -> Self {
        let mut words = Words(0x9e37_79b9_7f4a_7c15);
        let system = words.text(shape.system);
        let lead = format!(
            r#"{{"messages":[{{"role":"system","content":"{system}"}},{{"role":"user","content":"Task "#
        );
        let mut tail = String::from(r#"],"model":"gpt-4o-mini","#);
        tail.push_str(if streamed { r#""stream":true,"# } else { "" });
        let about = words.text(shape.tools);
        let parameters = r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}"#;
        write_to(
            &mut tail,
            format_args!(
                r#""tools":[{{"type":"function","function":{{"name":"read","description":"{about}","parameters":{parameters}}}}}]}}"#
            ),
        );
        let mut workload = Self {
            lead: lead.into_bytes().into(),
            tail: tail.into_bytes().into(),
            sessions: (0..sessions).map(|index| Session::new(shape, index, &mut words)).collect(),
            turns: shape.turns,
            next: 0,
            runs: 0,
            made: 0,
            changes_early,
        };
        for session in &mut workload.sessions {
            session.begin(workload.runs);
            workload.runs += 1;
        }
        workload
    }

    /// The next request: the next turn of the session that has waited longest.
    pub fn next_request(&mut self) -> Request {
        let at = self.next;
        self.next = (at + 1) % self.sessions.len();
        let session = &mut self.sessions[at];
        if session.turn == self.turns {
            session.begin(self.runs);
            session.turn = 0;
            self.runs += 1;
        }
        let end = session.ends[session.turn];
        session.turn += 1;
        self.made += 1;
        // Numbers of runs and of requests never meet.
        let number = number(if self.changes_early { 500_000_000_000 + self.made } else { session.run });
        let text = Rc::clone(&session.text);
        let (lead, tail) = (Rc::clone(&self.lead), Rc::clone(&self.tail));
        let mut request = Request { head: Vec::new(), lead, number, text, end, tail };
        request.head = head(request.body_len());
        request
    }
}

impl Session {
    fn new(shape: &Shape, index: usize, words: &mut Words) -> Self {
        let (mut text, mut ends, mut numbers) = (String::new(), Vec::new(), Vec::new());
        write_to(&mut text, format_args!(r#": {}"}}"#, words.text(shape.task)));
        ends.push(text.len());
        for turn in 1..shape.turns {
            let (path, id) = (words.path(turn), words.id());
            write_to(
                &mut text,
                format_args!(
                    r#",{{"role":"assistant","tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"read","arguments":"{{\"path\":\"{path}\"}}"}}}}]}},{{"role":"tool","tool_call_id":"{id}","content":""#
                ),
            );
            numbers.push(text.len());
            // Results differ in length, as those of tools do.
            let bytes = shape.result / 2 + words.below(shape.result.max(1));
            write_to(&mut text, format_args!(r#"{:012} {}"}}"#, 0, words.text(bytes)));
            ends.push(text.len());
        }
        Self { text: Rc::new(text.into_bytes()), ends, numbers, turn: index % shape.turns, run: 0 }
    }

    /// Begins another run. A request that is still being sent keeps the bytes it has.
    fn begin(&mut self, run: u64) {
        self.run = run;
        let text = Rc::make_mut(&mut self.text);
        for at in &self.numbers {
            text[*at..*at + size_of::<Number>()].copy_from_slice(&number(run));
        }
    }
}

/// What the common client for Python sends before its body.
pub(crate) fn head(body: usize) -> Vec<u8> {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip, deflate\r\n\
         Connection: keep-alive\r\nAccept: application/json\r\nContent-Type: application/json\r\n\
         User-Agent: OpenAI/Python 2.54.0\r\nX-Stainless-Lang: python\r\nX-Stainless-Package-Version: 2.54.0\r\n\
         X-Stainless-OS: Linux\r\nX-Stainless-Arch: x64\r\nX-Stainless-Runtime: CPython\r\n\
         X-Stainless-Runtime-Version: 3.12.4\r\nAuthorization: Bearer sk-benchmark\r\nX-Stainless-Async: false\r\n\
         x-stainless-retry-count: 0\r\nx-stainless-read-timeout: 600\r\nContent-Length: {body}\r\n\r\n"
    )
    .into_bytes()
}

fn number(mut value: u64) -> Number {
    let mut digits = *b"000000000000";
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
    digits
}

/// Writing into a `String` never fails.
fn write_to(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).unwrap_or_default();
}

/// Words in no order that means anything, always the same ones.
struct Words(u64);

impl Words {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len())]
    }

    /// About so many bytes, as they stand in a JSON text: lines with numbers, quotes and line ends.
    fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 16);
        let mut words = 0;
        while text.len() < bytes {
            words += 1;
            match words % 12 {
                0 => write_to(&mut text, format_args!("\\n{}: ", self.below(2_000))),
                5 => write_to(&mut text, format_args!("\\\"{}\\\" ", self.word())),
                _ => write_to(&mut text, format_args!("{} ", self.word())),
            }
        }
        text
    }

    fn path(&mut self, turn: usize) -> String {
        format!("{}_{turn}.rs", self.word())
    }

    fn id(&mut self) -> String {
        format!("call_{:04x}", self.below(1 << 16))
    }
}

const WORDS: [&str; 64] = [
    "account", "adapter", "answer", "array", "assert", "balance", "batch", "bounds", "branch", "buffer",
    "bytes", "cache", "channel", "cluster", "column", "commit", "config", "connection", "cursor", "decode",
    "default", "deploy", "digest", "driver", "encode", "entry", "export", "fallback", "field", "filter",
    "folder", "format", "gateway", "handler", "header", "index", "insert", "invoice", "iterate", "kernel",
    "ledger", "length", "lookup", "method", "migrate", "module", "number", "offset", "option", "packet",
    "parser", "payload", "policy", "query", "record", "region", "report", "schema", "server", "socket",
    "status", "stream", "table", "tenant",
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::Value;

    use super::{Shape, Workload};

    const SHAPE: Shape = Shape { system: 80, task: 40, result: 60, tools: 20, turns: 20 };

    fn body(workload: &mut Workload) -> Vec<u8> {
        let request = workload.next_request();
        let body = request.pieces()[1..].concat();
        assert_eq!(body.len(), request.body_len());
        body
    }

    #[test]
    fn every_body_is_json_and_none_comes_twice() {
        let mut workload = Workload::new(&SHAPE, 7, false, false);
        let mut seen = HashSet::new();
        for _ in 0..1_000 {
            let body = body(&mut workload);
            serde_json::from_slice::<Value>(&body).unwrap();
            assert!(seen.insert(body));
        }
    }

    #[test]
    fn each_request_of_a_run_begins_with_the_messages_of_the_one_before() {
        let mut workload = Workload::new(&SHAPE, 3, false, false);
        let messages = |workload: &mut Workload| {
            let body = body(workload);
            body[..body.len() - workload.tail.len()].to_vec()
        };
        let first: Vec<_> = (0..3).map(|_| messages(&mut workload)).collect();
        for before in first {
            assert!(messages(&mut workload).starts_with(&before));
        }
    }

    #[test]
    fn a_run_that_is_over_is_followed_by_another_task() {
        let mut workload = Workload::new(&SHAPE, 1, false, false);
        let tasks: HashSet<_> = (0..60).map(|_| workload.next_request().number).collect();
        assert_eq!(tasks.len(), 3);
    }

    #[test]
    fn requests_that_change_early_share_only_what_all_share() {
        let mut workload = Workload::new(&SHAPE, 1, false, true);
        let (one, two) = (body(&mut workload), body(&mut workload));
        let common = one.iter().zip(&two).take_while(|(one, two)| one == two).count();
        assert!(common < workload.lead.len() + 12);
    }
}
