//! Transcripts that are made to confuse whoever reads them, or to keep him busy.

use std::time::{Duration, Instant};

use crate::lab::Lab;
use crate::talk::{Chat, looping, looping_in_every_dialect, question};

#[test]
fn the_same_transcript_in_other_bytes_is_the_same_transcript() {
    let lab = Lab::new();
    // The system text is no part of a transcript, so each of these has the same messages at another place.
    let with_system = |length: usize, times: usize| {
        let body = looping("fix it", times);
        format!(r#"{{"model":"gpt-4o","system":"{}",{}"#, "s".repeat(length), &body[1..])
    };
    for times in 1..=5 {
        for length in [300, 20, 3_000, 600, 200, 1_500, 0] {
            lab.chat(&[("x-session-id", "s")], with_system(length, times));
        }
    }
    assert_eq!(lab.metric("loopbreaker_panics_total"), 0.0);
    assert_eq!(lab.verdict(&[("x-session-id", "s")], with_system(777, 6)), (429, "reject".into()));
}

#[test]
fn the_same_transcript_in_every_dialect_confuses_nobody() {
    let lab = Lab::new();
    for times in 1..=6 {
        for (path, body) in looping_in_every_dialect(times) {
            lab.post(path, &[], body);
        }
    }
    assert_eq!(lab.metric("loopbreaker_panics_total"), 0.0);
}

#[test]
fn transcripts_that_are_cut_mixed_and_repeated_never_panic() {
    let lab = Lab::new();
    let whole = Chat::new("task").again(4).user("and now?").again(3).body();
    let mut bodies: Vec<Vec<u8>> =
        (0..whole.len()).step_by(37).map(|end| whole.as_bytes()[..end].to_vec()).collect();
    for (path, body) in looping_in_every_dialect(3) {
        for other in looping_in_every_dialect(2) {
            lab.post(path, &[], &other.1);
            lab.post(other.0, &[], &body);
        }
    }
    for at in (0..whole.len()).step_by(53) {
        let mut bytes = whole.clone().into_bytes();
        bytes[at] = b"\"\\{}[],:\0\xff"[at % 10];
        bodies.push(bytes);
    }
    for body in bodies {
        lab.chat(&[], &body);
    }
    assert_eq!(lab.metric("loopbreaker_panics_total"), 0.0);
}

#[test]
fn words_that_are_no_unicode_do_not_hide_a_loop() {
    let lab = Lab::new();
    for times in 1..=6 {
        let body = looping("fix it", times).replace("a.txt b.txt", r"\ud800 half \udfff\u0000");
        lab.chat(&[("x-session-id", "s")], body);
    }
    let body = looping("fix it", 7).replace("a.txt b.txt", r"\ud800 half \udfff\u0000");
    assert_eq!(lab.chat(&[("x-session-id", "s")], body).status, 429);
    assert_eq!(lab.metric("loopbreaker_panics_total"), 0.0);
}

#[test]
fn of_two_lists_of_messages_the_last_one_counts() {
    let lab = Lab::new();
    let (looping, healthy) = (looping("fix it", 6), question("hello"));
    let twice = |first: &str, last: &str| {
        let first = first.strip_suffix(r#","model":"gpt-4o"}"#).unwrap();
        format!("{first},{}", &last[1..])
    };
    assert_eq!(lab.verdict(&[("x-session-id", "a")], twice(&healthy, &looping)).1, "hint");
    let told: serde_json::Value = serde_json::from_slice(&lab.mock.requests()[0].body).unwrap();
    assert!(
        told["messages"][0]["content"].as_str().unwrap().contains("[Loopbreaker]"),
        "where the model reads it"
    );
    assert_eq!(lab.verdict(&[("x-session-id", "b")], twice(&looping, &healthy)).1, "allow");
}

#[test]
fn names_that_are_written_with_escapes_hide_nothing() {
    let lab = Lab::new();
    let plain = looping("fix it", 3);
    let escaped = [
        plain.replace(r#""messages""#, r#""m\u0065ssages""#),
        plain.replace(r#""role""#, r#""r\u006fle""#),
        plain.replace(r#""tool""#, r#""t\u006fol""#),
        plain.replace(r#""content""#, r#""c\u006fntent""#),
        plain.replace(r#""tool_calls""#, r#""tool\u005fcalls""#),
        plain.replace(r#""arguments""#, r#""argument\u0073""#),
        plain.replace(r#""assistant""#, r#""assist\u0061nt""#),
    ];
    for (index, body) in escaped.iter().enumerate() {
        assert_ne!(body, &plain);
        let session = format!("s{index}");
        assert_eq!(lab.verdict(&[("x-session-id", &session)], body), (200, "hint".into()), "{body}");
        let told: serde_json::Value = serde_json::from_slice(&lab.mock.requests()[index].body).unwrap();
        assert!(told["messages"][0]["content"].as_str().unwrap().contains("[Loopbreaker]"), "{told}");
    }
}

/// How long one request takes, and the slowest of quick ones beside it.
fn beside(lab: &Lab, body: &str) -> (Duration, Duration) {
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| {
            let began = Instant::now();
            lab.chat(&[("x-session-id", "slow")], body);
            began.elapsed()
        });
        let mut slowest = Duration::ZERO;
        let mut index = 0;
        while !slow.is_finished() {
            index += 1;
            let began = Instant::now();
            assert_eq!(lab.chat(&[], question(&format!("quick {index}"))).status, 200);
            slowest = slowest.max(began.elapsed());
        }
        (slow.join().unwrap(), slowest)
    })
}

#[test]
fn a_transcript_of_a_million_messages_takes_a_bounded_time() {
    let lab = Lab::new();
    let messages = vec![r#"{"role":"user","content":"x"}"#; 1_000_000].join(",");
    let (took, slowest) = beside(&lab, &format!(r#"{{"model":"gpt-4o","messages":[{messages}]}}"#));
    assert!(took < Duration::from_secs(15) && slowest < Duration::from_secs(10), "{took:?} {slowest:?}");
}

#[test]
fn a_transcript_of_a_hundred_thousand_calls_takes_a_bounded_time() {
    let lab = Lab::new();
    let mut chat = Chat::new("much work");
    for index in 0..80_000 {
        chat = chat.call(&format!("cat {}", index % 97), &format!("words {}", index % 89));
    }
    let (took, slowest) = beside(&lab, &chat.body());
    assert!(took < Duration::from_secs(15) && slowest < Duration::from_secs(10), "{took:?} {slowest:?}");
}
