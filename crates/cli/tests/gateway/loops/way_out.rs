//! What helps after a refusal, and what does not.

use crate::lab::Lab;
use crate::talk::{Chat, looping};

/// A lab in which a transcript that went round six times was just refused.
fn refused() -> Lab {
    let lab = Lab::new();
    for times in 1..=5 {
        assert_eq!(lab.chat(&[], looping("fix it", times)).status, 200);
    }
    assert_eq!(lab.verdict(&[], looping("fix it", 6)), (429, "reject".into()));
    lab
}

#[test]
fn an_unchanged_transcript_is_refused_and_told_how_long() {
    let lab = refused();
    for _ in 0..3 {
        let reply = lab.chat(&[], looping("fix it", 6));
        assert_eq!(reply.status, 429);
        let left: u64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!((50..=60).contains(&left), "{left}");
    }
    assert_eq!(lab.sent(), 5);
}

#[test]
fn new_words_of_the_user_are_a_way_out() {
    let lab = refused();
    let spoken = Chat::new("fix it").again(6).user("look into the other folder instead");
    assert_eq!(lab.verdict(&[], spoken.body()), (200, "allow".into()));
}

#[test]
fn another_call_is_a_way_out() {
    let lab = refused();
    let other = Chat::new("fix it").again(6).call("cat README", "how to build");
    assert_eq!(lab.verdict(&[], other.body()), (200, "allow".into()));
}

#[test]
fn dropped_history_is_a_way_out() {
    let lab = refused();
    let compacted = Chat::new("fix it").again(6).without_history(2);
    let (status, verdict) = lab.verdict(&[], compacted.body());
    assert_eq!(status, 200, "{verdict}");
}

#[test]
fn the_same_words_of_the_user_again_are_none() {
    let lab = refused();
    let same = Chat::new("fix it").again(6).user("fix it");
    assert_eq!(lab.chat(&[], same.again(1).body()).status, 429);
}

#[test]
fn going_round_once_more_is_none() {
    let lab = refused();
    assert_eq!(lab.verdict(&[], looping("fix it", 7)), (429, "reject".into()));
    assert_eq!(lab.verdict(&[], looping("fix it", 8)), (429, "reject".into()));
}

#[test]
fn after_new_words_another_loop_starts_at_the_bottom_of_the_ladder() {
    let lab = refused();
    let mut chat = Chat::new("fix it").again(6).user("try the tests");
    let mut verdicts = Vec::new();
    for _ in 0..4 {
        chat = chat.call("run tests", "all green");
        verdicts.push(lab.verdict(&[], chat.body()).1);
    }
    assert_eq!(verdicts, ["allow", "warn", "hint", "hint"]);
}

#[test]
fn another_transcript_of_the_same_tenant_is_not_refused() {
    let lab = refused();
    assert_eq!(lab.verdict(&[], looping("another task", 1)), (200, "allow".into()));
    let circle = lab.verdict(&[], looping("a third task", 6));
    assert_eq!(circle, (200, "hint".into()), "the same circle is no proof that it is the same run");
}

#[test]
fn a_retry_of_what_was_refused_does_not_spoil_a_new_beginning() {
    let lab = Lab::new();
    let session = [("x-session-id", "s")];
    for times in 1..=6 {
        lab.chat(&session, looping("fix it", times));
    }
    assert_eq!(lab.chat(&session, looping("fix it", 6)).status, 429);
    let again: Vec<_> = (1..=3).map(|times| lab.verdict(&session, looping("fix it", times))).collect();
    let afresh = [(200, "allow"), (200, "warn"), (200, "hint")];
    assert_eq!(again, afresh.map(|(status, verdict)| (status, verdict.to_owned())));
}
