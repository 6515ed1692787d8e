//! What clients put behind the newest result, and what hides no loop by that.

use loopbreaker_mock::Turn;

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
fn a_reminder_that_counts_hides_no_loop_either() {
    let chat = |times| {
        let reminder = format!("[system] Step {times} of 50, {}/200000 tokens used.", 1_000 * times);
        ("/v1/chat/completions", Chat::new("fix it").again(times).user(&reminder).body())
    };
    assert_eq!(verdicts(chat), CLIMB);
}

/// The loop, and at its end what somebody says now.
fn interrupted(times: usize) -> String {
    Chat::new("fix it").again(times).user("Use grep instead.").body()
}

#[test]
fn what_was_said_in_another_session_is_news_in_this_one() {
    let lab = Lab::new();
    let (one, other) = ([("x-session-id", "a")], [("x-session-id", "b")]);
    for times in 1..=3 {
        lab.chat(&one, interrupted(times));
    }
    for times in 1..=5 {
        lab.chat(&other, Chat::new("fix it").again(times).body());
    }
    assert_eq!(lab.verdict(&other, interrupted(6)), (200, "allow".into()));
}

#[test]
fn words_that_nobody_has_answered_are_news_when_they_come_again() {
    let lab = Lab::new();
    for times in 1..=4 {
        lab.chat(&[], Chat::new("fix it").again(times).body());
    }
    lab.mock.script([Turn::status(500)]);
    assert_eq!(lab.chat(&[], interrupted(5)).status, 500);
    lab.mock.script([Turn::text("fine")]);
    assert_eq!(lab.verdict(&[], interrupted(6)), (200, "allow".into()));
}

#[test]
fn people_mean_each_number_they_say() {
    let asks: [fn(usize) -> String; 4] = [
        |at| format!("Where is my order 3f2504e0-4f89-41d3-9a0c-0305e82c33{at:02}?"),
        |at| format!("Do you have a table for two at {at}:30 pm tonight?"),
        |at| format!("Is room 4 free on 2026-12-{at:02} 14:00?"),
        |at| format!("Is it safe to boil an egg for {at} minutes?"),
    ];
    for ask in asks {
        let lab = Lab::new();
        // A polite answer each time, and the same look-up behind each question.
        let mut chat = Chat::new("You serve our guests.");
        for at in 1..=9 {
            chat = chat.user(&ask(at)).again(1);
            let (status, verdict) = lab.verdict(&[], chat.body());
            assert_eq!((status, verdict.as_str()), (200, "allow"), "{}", ask(at));
            chat = chat.begun("Let me find out.");
        }
    }
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
