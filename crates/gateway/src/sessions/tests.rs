use loopbreaker::Timestamp;
use loopbreaker_fleet::Chance;

use super::{AfterRefusal, Located, Session, SessionKey, Sessions};

const NOW: Timestamp = Timestamp::from_secs(0);

/// Links of a chain over these messages, each of which is a letter.
fn chain(messages: &str) -> Vec<u128> {
    (1..=messages.len())
        .map(|end| u128::from(twox_hash::XxHash3_64::oneshot(&messages.as_bytes()[..end])))
        .collect()
}

/// Hashes of each four messages that follow each other.
fn tails(messages: &str) -> Vec<u128> {
    messages
        .as_bytes()
        .windows(4)
        .map(|few| 1 << 100 | u128::from(twox_hash::XxHash3_64::oneshot(few)))
        .collect()
}

fn locate(sessions: &Sessions, messages: &str) -> Located {
    let chain = chain(messages);
    sessions.by_transcript(chain[0], &chain, tails(messages).into_iter().rev(), NOW).0
}

#[test]
fn a_transcript_that_grows_stays_in_its_session() {
    let sessions = Sessions::new(1_000);
    let first = locate(&sessions, "u");
    assert!(first.is_new);
    for messages in ["uat", "uatat", "uatatu", "uatatuatat"] {
        let next = locate(&sessions, messages);
        assert_eq!((next.key, next.is_new), (first.key, false), "{messages}");
    }
}

#[test]
fn a_retry_belongs_to_the_same_session() {
    let sessions = Sessions::new(1_000);
    let first = locate(&sessions, "uat");
    assert_eq!(locate(&sessions, "uat").key, first.key);
    locate(&sessions, "uatat");
    assert_eq!(locate(&sessions, "uat").key, first.key, "dropping what was said last is no new run");
}

#[test]
fn a_fork_is_a_session_of_its_own_that_inherits_the_account() {
    let sessions = Sessions::new(1_000);
    let trunk = locate(&sessions, "uat");
    assert_eq!(locate(&sessions, "uatBt").key, trunk.key);
    let fork = locate(&sessions, "uatCt");
    assert_ne!(fork.key, trunk.key);
    assert_eq!(fork.account, trunk.account);
    assert_eq!(locate(&sessions, "uatCtat").key, fork.key, "and goes on as such");
    assert_eq!(locate(&sessions, "uatBtat").key, trunk.key);
}

#[test]
fn other_words_at_the_start_are_another_session() {
    let sessions = Sessions::new(1_000);
    assert_ne!(locate(&sessions, "uat").key, locate(&sessions, "vat").key);
}

#[test]
fn a_compacted_transcript_is_recognised_by_what_was_said_last() {
    let sessions = Sessions::new(1_000);
    let long = locate(&sessions, "uatbtct");
    let compacted = locate(&sessions, "Sbtctdt");
    assert_eq!(compacted.key, long.key);
    assert!(!compacted.is_new);
}

#[test]
fn a_summary_asked_for_before_compaction_does_not_hide_what_was_said_last() {
    let sessions = Sessions::new(1_000);
    let long = locate(&sessions, "uatbtct");
    assert_eq!(locate(&sessions, "uatbtctaQ").key, long.key, "the agent asks for a summary");
    assert_eq!(locate(&sessions, "Sbtctdt").key, long.key);
}

#[test]
fn a_long_run_leaves_no_more_behind_than_a_short_one() {
    let sessions = Sessions::new(1_000);
    let ends = || sessions.ends.iter().map(|table| super::lock(table).len()).sum::<usize>();
    let messages: String = ('a'..='z').chain('A'..='Z').collect();
    for length in (6..=10).step_by(2) {
        locate(&sessions, &messages[..length]);
    }
    let short = ends();
    for length in (12..=52).step_by(2) {
        locate(&sessions, &messages[..length]);
    }
    assert_eq!((short, ends(), sessions.len()), (Session::TIPS + Session::TAILS, short, 1));
}

#[test]
fn words_that_two_sessions_end_with_are_not_forgotten_with_one_of_them() {
    let sessions = Sessions::new(1_000);
    locate(&sessions, "xabcd");
    let other = locate(&sessions, "yabcd");
    for messages in ["xabcdef", "xabcdefgh", "xabcdefghij"] {
        locate(&sessions, messages);
    }
    assert_eq!(locate(&sessions, "Sabcd").key, other.key);
}

#[test]
fn a_restarted_gateway_gives_the_same_session_to_the_same_first_words() {
    assert_eq!(locate(&Sessions::new(10), "uat").key, locate(&Sessions::new(10), "uatatat").key);
}

#[test]
fn strikes_are_the_larger_of_what_is_shown_and_kept() {
    let mut session = Session::new(SessionKey(1), 1, NOW);
    assert_eq!([1, 3, 0, 2, 4].map(|shown| session.strike(7, shown)), [1, 3, 3, 3, 4]);
    assert_eq!(session.strike(8, 0), 0, "another loop starts at the bottom");
}

#[test]
fn strikes_of_the_oldest_loops_are_forgotten() {
    let mut session = Session::new(SessionKey(1), 1, NOW);
    for identity in 0..100 {
        session.strike(identity, 2);
    }
    assert_eq!(session.trouble.as_ref().unwrap().strikes.len(), Session::MAX_STRIKES);
    assert_eq!(session.strike(99, 0), 2);
    assert_eq!(session.strike(3, 0), 0);
}

#[test]
fn an_unchanged_transcript_is_refused_until_the_time_is_up_then_let_through_once() {
    let mut session = Session::new(SessionKey(1), 1, NOW);
    assert_eq!(session.after_refusal(5, NOW), AfterRefusal::Judge);
    session.refuse(5, Timestamp::from_secs(60));
    assert_eq!(session.after_refusal(5, Timestamp::from_millis(30_001)), AfterRefusal::Refuse(30));
    assert_eq!(session.after_refusal(6, Timestamp::from_secs(30)), AfterRefusal::Judge, "it changed");
    assert_eq!(session.after_refusal(5, Timestamp::from_secs(60)), AfterRefusal::LetThrough);
    assert_eq!(session.after_refusal(5, Timestamp::from_secs(61)), AfterRefusal::Judge, "only once");
}

#[test]
fn only_the_very_next_transcript_has_used_up_the_last_chance() {
    let mut session = Session::new(SessionKey(1), 1, NOW);
    session.tips = [5, 1, 0];
    session.refuse(5, Timestamp::from_secs(60));
    session.tips = [6, 5, 1];
    assert!(!session.goes_on_after_the_last_chance(6), "it has changed by itself");
    assert_eq!(session.after_refusal(5, Timestamp::from_secs(60)), AfterRefusal::LetThrough);
    assert!(session.goes_on_after_the_last_chance(6));
    session.tips = [7, 6, 5];
    assert!(!session.goes_on_after_the_last_chance(7), "something else came between");
}

#[test]
fn what_is_remembered_of_a_refusal_says_what_is_left_of_it_and_of_its_last_chance() {
    let mut session = Session::new(SessionKey(1), 1, NOW);
    let chance = |session: &Session, at| {
        let refused = session.remembered(|_| true, Timestamp::from_secs(at)).refused.unwrap();
        (refused.tip, refused.left_millis, refused.chance)
    };
    session.tips = [5, 1, 0];
    session.refuse(5, Timestamp::from_secs(60));
    assert_eq!(chance(&session, 20), (5, 40_000, Chance::Kept));
    session.let_through(5, Timestamp::from_secs(60));
    assert_eq!(chance(&session, 70), (5, 0, Chance::Newest));
    session.tips = [6, 5, 1];
    assert_eq!(chance(&session, 70), (5, 0, Chance::Past));
    // Another process has refused this one, and this process hears of it only now.
    session.let_through(6, Timestamp::from_secs(80));
    assert_eq!(chance(&session, 80), (6, 0, Chance::Newest));
}

#[test]
fn strikes_are_remembered_of_those_loops_that_are_asked_about() {
    let mut session = Session::new(SessionKey(1), 1, NOW);
    assert!(session.remembered(|_| true, NOW).strikes.is_empty());
    session.strike(7, 2);
    session.strike(8, 1);
    assert_eq!(session.remembered(|identity| identity == 8, NOW).strikes, [(8, 1)]);
    session.refuse(5, Timestamp::from_secs(60));
    assert!(session.remembered(|_| true, NOW).strikes.is_empty(), "it is judged afresh after that");
}

#[test]
fn a_name_that_was_given_once_stays_and_is_that_of_the_account_of_a_fork() {
    let sessions = Sessions::new(100);
    let called = |messages: &str| {
        let chain = chain(messages);
        sessions.by_transcript(chain[0], &chain, std::iter::empty(), NOW)
    };
    let name = "run-17".into();
    sessions.by_name(SessionKey(7), &name, *chain("ab").last().unwrap(), NOW);
    let (goes_on, given) = called("abc");
    assert_eq!((goes_on.key, given), (SessionKey(7), Some(name.clone())));
    let (fork, given) = called("abd");
    assert_eq!((fork.account, given), (SessionKey(7), Some(name)));
    assert_ne!(fork.key, fork.account);
    assert_eq!(called("xy").1, None);
}

#[test]
fn the_table_is_bounded() {
    let sessions = Sessions::new(64);
    for name in 0..10_000_u128 {
        sessions.by_name(SessionKey(name), &"run".into(), name << 32, NOW);
    }
    assert!(sessions.len() <= 64);
}

#[test]
fn a_session_without_a_name_is_called_by_the_first_half_of_its_key() {
    for half in [0, 1, 0xfedc_ba98_7654_3210, u64::MAX] {
        let key = SessionKey(u128::from(half) << 64 | 7);
        assert_eq!(*key.name(), format!("lb-{half:016x}"));
    }
}
