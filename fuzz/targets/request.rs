//! Requests in every dialect: read whole, read on from a mark, and edited.
//!
//! After the byte that names the dialect, an input is either a whole body or, behind a line break, one message per
//! line; those become the list of a body that grows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopbreaker_dialect::{
    Conversation, Dialect, Hint, Mark, Placement, asking_for_usage, read_request, with_hint, with_last_words,
    with_result,
};
use loopbreaker_fuzz::{is_json, spoken};

fuzz_target!(|data: &[u8]| {
    let Some((dialect, rest)) = spoken(data) else { return };
    match rest.strip_prefix(b"\n") {
        Some(lines) => grown(dialect, lines),
        None => whole(dialect, rest),
    }
});

/// What a body says, and where it can be taken up: speakers, hashes and steps of its messages.
fn read(dialect: Dialect, body: &[u8], from: Option<&Mark>) -> Option<(Vec<String>, Option<Mark>, String)> {
    let (mut said, mut steps) = (Vec::new(), Vec::new());
    let mut conversation = Conversation::default();
    let mut emit = |step: &loopbreaker::Step<'_>| steps.push(format!("{step:?}"));
    let reading = read_request(dialect, body, from, &mut |message| {
        said.push(format!("{:?} {:?}", message.speaker, message.digest()));
        message.events(&mut |event| conversation.take(event, &mut emit));
    });
    conversation.finish(&mut emit);
    let reading = reading.ok()?;
    let about = format!("{:?} {}", reading.facts, reading.messages);
    Some((said, reading.mark, about))
}

fn whole(dialect: Dialect, body: &[u8]) {
    let first = read(dialect, body, None);
    if let Some((_, Some(mark), about)) = &first {
        let (more, _, again) = read(dialect, body, Some(mark)).expect("what was read can be read on");
        assert_eq!((more.len(), &again), (0, about), "there is nothing behind the end");
    }
    let was_json = is_json(body);
    for placement in [Placement::Prepend, Placement::Extend, Placement::Append] {
        let hint = Hint { text: "stop \"here\"\n", placement, append_role: "user" };
        intact(was_json, with_hint(dialect, body, &hint));
    }
    for nth in 0..3 {
        intact(was_json, with_result(dialect, body, nth, "another \"result\""));
    }
    intact(was_json, with_last_words(dialect, body, "other \\ words"));
    if dialect == Dialect::Chat {
        intact(was_json, asking_for_usage(body));
    }
}

/// An edit breaks nothing.
fn intact(was_json: bool, edited: Option<Vec<u8>>) {
    if let Some(edited) = edited.filter(|_| was_json) {
        assert!(is_json(&edited), "{}", String::from_utf8_lossy(&edited));
    }
}

fn grown(dialect: Dialect, lines: &[u8]) {
    let list = match dialect {
        Dialect::Chat | Dialect::Anthropic => "messages",
        Dialect::Responses => "input",
        Dialect::Gemini => "contents",
    };
    let messages: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').filter(|line| is_json(line)).collect();
    let body = |count: usize| {
        let listed = messages[..count].join(&b","[..]);
        [format!(r#"{{"model":"m","{list}":["#).as_bytes(), &listed, b"]}"].concat()
    };
    let all = body(messages.len());
    let Some((said, _, about)) = read(dialect, &all, None) else { return };
    for count in 0..messages.len().min(6) {
        let Some((before, Some(mark), _)) = read(dialect, &body(count), None) else { continue };
        let (more, _, read_on) = read(dialect, &all, Some(&mark)).expect("what can be read can be read on");
        assert_eq!(read_on, about);
        // A mark that does not fit is passed over, and everything is read.
        if more.len() != said.len() {
            assert_eq!([before, more].concat(), said);
        }
    }
}
