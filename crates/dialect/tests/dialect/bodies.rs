//! Bodies of requests, read and written down.

use std::fmt::Write as _;

use loopbreaker::{Role, Step};
use loopbreaker_dialect::{Conversation, Dialect, Facts, Mark, Reading, Speaker, read_request};

/// A message as far as it can be compared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) speaker: Speaker,
    pub(crate) digest: u128,
    /// The events, in words.
    pub(crate) events: Vec<String>,
}

/// Reads a body.
pub(crate) fn read(dialect: Dialect, body: &[u8], from: Option<&Mark>) -> Option<(Reading, Vec<Seen>)> {
    let mut messages = Vec::new();
    let reading = read_request(dialect, body, from, &mut |message| {
        let mut events = Vec::new();
        message.events(&mut |event| events.push(format!("{event:?}")));
        let mut again = Vec::new();
        let digest = message.read(&mut |event| again.push(format!("{event:?}")));
        assert_eq!((digest, &again), (message.digest(), &events), "one pass or two");
        let (start, end) = (message.span.start, message.span.end);
        messages.push(Seen { start, end, speaker: message.speaker, digest, events });
    });
    reading.ok().map(|reading| (reading, messages))
}

/// The digests of all messages.
pub(crate) fn digests(dialect: Dialect, body: &str) -> Vec<u128> {
    let (_, messages) = read(dialect, body.as_bytes(), None).unwrap();
    messages.iter().map(|message| message.digest).collect()
}

/// The steps of a body, one per line.
pub(crate) fn steps(dialect: Dialect, body: &[u8]) -> String {
    let mut text = String::new();
    let mut conversation = Conversation::default();
    let mut emit = |step: &Step<'_>| {
        let round = step.round.map_or("-".to_owned(), |round| round.to_string());
        let role = match step.role {
            Role::Agent(name) => name,
            Role::Outside => "(outside)",
            Role::Compaction => "(compaction)",
        };
        write!(text, "step {round} {role}").unwrap();
        for (name, value) in
            [("thought", step.thought), ("tool", step.tool), ("args", step.args), ("result", step.result)]
        {
            if let Some(value) = value {
                write!(text, " | {name}={}", value.replace('\n', "\\n")).unwrap();
            }
        }
        writeln!(text, "{}", step.status.map_or(String::new(), |status| format!(" | {}", status.as_str())))
            .unwrap();
    };
    read_request(dialect, body, None, &mut |message| {
        message.events(&mut |event| conversation.take(event, &mut emit));
    })
    .unwrap();
    conversation.finish(&mut emit);
    text
}

/// The facts that are not what a request without any would have.
pub(crate) fn facts(facts: &Facts) -> String {
    let usual = format!("{:#?}", Facts::default());
    let lines = format!("{facts:#?}");
    // A value with its own lines is put on one.
    let lines = lines.replace("Some(\n        ", "Some(").replace(",\n    ),", "),");
    lines.lines().filter(|line| !usual.contains(line.trim())).fold(String::new(), |mut text, line| {
        writeln!(text, "{}", line.trim().trim_end_matches(',')).unwrap();
        text
    })
}
