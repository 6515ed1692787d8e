//! What clients put behind the newest result, and what hides no loop by that.

use crate::lab::Lab;
use crate::talk::{Chat, looping_in_every_dialect};

/// What a request is sent as: where to, and what.
type Sent = (&'static str, String);

/// The verdicts while a loop goes on, each request as `written`.
fn verdicts(written: impl Fn(usize) -> Sent) -> Vec<String> {
    let lab = Lab::new();
    let verdict = |times| {
        let (path, body) = written(times);
        let reply = lab.post(path, &[], body);
        reply.header("x-loopbreaker-verdict").unwrap_or_default().to_owned()
    };
    (1..=6).map(verdict).collect()
}

/// What the same loop gets without anything behind it.
const CLIMB: [&str; 6] = ["allow", "warn", "hint", "hint", "throttle", "reject"];

/// The dialect's loop with a message behind the last one.
fn ending_with(dialect: usize, message: &str, times: usize) -> Sent {
    let (path, body) = looping_in_every_dialect(times).swap_remove(dialect);
    let end = body.rfind(']').expect("a list of messages");
    (path, format!("{},{message}{}", &body[..end], &body[end..]))
}

#[test]
fn the_beginning_of_an_answer_hides_no_loop_in_any_dialect() {
    for (dialect, begun) in [
        r#"{"role":"assistant","content":"I'll"}"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"I'll"}]}"#,
        r#"{"role":"model","parts":[{"text":"I'll"}]}"#,
        r#"{"role":"assistant","type":"message","content":[{"type":"output_text","text":"I'll"}]}"#,
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(verdicts(|times| ending_with(dialect, begun, times)), CLIMB, "{dialect}");
    }
}

#[test]
fn a_refused_transcript_is_refused_again_with_the_beginning_of_an_answer() {
    let lab = Lab::new();
    for times in 3..=6 {
        lab.chat(&[], Chat::new("fix it").again(times).body());
    }
    let refused = Chat::new("fix it").again(6);
    assert_eq!(lab.chat(&[], refused.body()).status, 429);
    assert_eq!(lab.chat(&[], refused.begun("I'll").body()).status, 429);
}

#[test]
fn a_reminder_that_moves_to_the_end_hides_a_loop_no_longer_than_it_is_new() {
    let reminder = "Answer with a tool call.";
    let chat = |times| ("/v1/chat/completions", Chat::new("fix it").again(times).user(reminder).body());
    assert_eq!(verdicts(chat), CLIMB);
    // Beside the newest result alone, as a block.
    let beside = |times| {
        let (path, body) = looping_in_every_dialect(times).swap_remove(1);
        let end = body.rfind("]}]").expect("the blocks of the last message");
        (path, format!(r#"{},{{"type":"text","text":"{reminder}"}}{}"#, &body[..end], &body[end..]))
    };
    assert_eq!(verdicts(beside), CLIMB);
}

#[test]
fn a_harness_that_tells_the_time_with_each_result_hides_no_loop() {
    let told = |times: usize| {
        let rounds = (0..times).fold(Chat::new("fix it"), |chat, minute| {
            chat.again(1)
                .user(&format!("<environment>Current time: 2026-11-18T10:{minute:02}:00Z</environment>"))
        });
        ("/v1/chat/completions", rounds.body())
    };
    let seen = verdicts(told);
    // The first time that it speaks, it may have something to say.
    assert_eq!(seen[3..], CLIMB[2..5], "{seen:?}");
}

#[test]
fn new_words_behind_a_loop_are_news() {
    let lab = Lab::new();
    for times in 1..=4 {
        lab.chat(&[], Chat::new("fix it").again(times).body());
    }
    let told = Chat::new("fix it").again(4).user("Look into the other folder.").body();
    for _ in 0..2 {
        assert_eq!(lab.verdict(&[], &told), (200, "allow".into()), "also when it is sent once more");
    }
}
