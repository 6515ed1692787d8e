use proptest::prelude::*;

use super::Guard;
use crate::{Action, DetectorName, DetectorsConfig, Kind, SentinelConfig, SentinelLimit, Step, ToolPattern};

const LS: &str = r#"{"command":"ls"}"#;

fn guard() -> Guard {
    Guard::new(&DetectorsConfig::default())
}

#[test]
fn without_outcomes_the_sentinel_decides() {
    let session = guard().session("s");
    for _ in 0..3 {
        assert!(session.check("bash", Some(LS)).allowed);
    }
    let verdict = session.check("bash", Some(LS));
    assert!(!verdict.allowed);
    assert_eq!((verdict.detector, verdict.count, verdict.threshold), (Some(DetectorName::Sentinel), 3, 3));
    assert_eq!((verdict.strikes, session.check("bash", Some(LS)).strikes), (1, 2));
    assert!(verdict.feedback.unwrap().contains("`bash`"));
}

#[test]
fn a_poll_that_moves_is_allowed_and_reported() {
    let session = guard().session("s");
    let call = r#"{"job":7}"#;
    for percent in 0..6 {
        let verdict = session.check("job_state", Some(call));
        assert!(verdict.allowed, "{percent}");
        assert_eq!(verdict.detector.is_some(), percent >= 3, "the sentinel's hit is reported");
        session.outcome(&Step::call("job_state", call).answered(&format!("{percent}0% there"), None));
    }
}

#[test]
fn an_unchanged_answer_is_blocked_by_redundancy() {
    let session = guard().session("s");
    for _ in 0..3 {
        assert!(session.check("bash", Some(LS)).allowed);
        session.outcome(&Step::call("bash", LS).answered("a b", None));
    }
    let verdict = session.check("bash", Some(LS));
    assert!(!verdict.allowed);
    assert_eq!((verdict.detector, verdict.kind), (Some(DetectorName::Redundancy), Some(Kind::Repeat)));
}

#[test]
fn an_edit_makes_the_next_test_run_worth_while() {
    let session = guard().session("s");
    let (test, edit) = (r#"{"command":"cargo test"}"#, r#"{"path":"a.rs","old":"x","new":"y"}"#);
    for _ in 0..3 {
        session.check("bash", Some(test));
        session.outcome(&Step::call("bash", test).answered("1 failed", None));
    }
    assert!(!session.peek("bash", Some(test)).allowed);
    session.outcome(&Step::call("edit_file", edit).answered("ok", None));
    assert!(session.check("bash", Some(test)).allowed);
}

#[test]
fn the_next_call_of_a_cycle_is_blocked() {
    let session = guard().session("s");
    let calls = [("read_file", r#"{"path":"a"}"#, "A"), ("grep", r#"{"pattern":"x"}"#, "no match here")];
    for _ in 0..3 {
        for (tool, args, result) in calls {
            session.outcome(&Step::call(tool, args).answered(result, None));
        }
    }
    assert!(!session.peek("read_file", Some(r#"{"path":"a"}"#)).allowed);
    assert!(session.peek("read_file", Some(r#"{"path":"b"}"#)).allowed);
}

#[test]
fn a_tools_own_limit_always_blocks() {
    let limit = SentinelLimit::new(2, 5).unwrap();
    let sentinel = SentinelConfig::default().with_override(ToolPattern::new("search"), limit);
    let session = Guard::new(&DetectorsConfig { sentinel, ..DetectorsConfig::default() }).session("s");
    for page in 0..2 {
        session.check("search", None);
        session.outcome(&Step::call("search", "").answered(&format!("news {page}"), None));
    }
    assert!(!session.check("search", None).allowed);
}

#[test]
fn an_outcome_that_closes_a_loop_brings_a_hint() {
    let session = guard().session("s");
    let step = Step::call("bash", LS).answered("a b", None);
    let actions: Vec<Action> = (0..6).map(|_| session.outcome(&step).action).collect();
    let expected =
        [Action::Allow, Action::Warn, Action::Hint, Action::Hint, Action::Throttle, Action::Reject];
    assert_eq!(actions, expected);
    assert!(session.outcome(&step).hint.unwrap().contains("round in circles"));
}

#[test]
fn sessions_and_scopes_never_influence_each_other() {
    let guard = guard();
    for _ in 0..4 {
        guard.session("a").check("bash", Some(LS));
    }
    assert!(guard.session("b").check("bash", Some(LS)).allowed);
    assert!(guard.session("a").scope("item").check("bash", Some(LS)).allowed);
    assert!(!guard.session("a").check("bash", Some(LS)).allowed);
}

#[test]
fn reset_forgets_the_session() {
    let session = guard().session("s");
    for _ in 0..4 {
        session.check("bash", Some(LS));
        session.outcome(&Step::call("bash", LS).answered("a b", None));
    }
    session.reset();
    assert!(session.check("bash", Some(LS)).allowed);
}

#[test]
fn the_number_of_sessions_is_bounded() {
    let guard = Guard::with_max_sessions(&DetectorsConfig::default(), 640);
    for id in 0..5_000 {
        guard.session(&id.to_string()).check("bash", None);
    }
    assert!(guard.sessions() <= 640);
}

#[test]
fn many_threads_share_one_handle() {
    let guard = guard();
    let allowed: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let session = guard.session("shared");
                scope.spawn(move || (0..100).filter(|_| session.check("bash", Some(LS)).allowed).count())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(allowed, 3, "however the threads interleave");
}

proptest! {
    #[test]
    fn blocked_calls_never_change_what_others_get(calls in proptest::collection::vec(0_u8..3, 0..40)) {
        // Asking again for what is blocked must leave no trace in the answers to other calls.
        let (quiet, noisy) = (guard().session("s"), guard().session("s"));
        for call in calls {
            let args = call.to_string();
            let verdict = quiet.check("tool", Some(&args));
            prop_assert_eq!(noisy.check("tool", Some(&args)).allowed, verdict.allowed);
            for _ in 0..if verdict.allowed { 0 } else { 5 } {
                prop_assert!(!noisy.check("tool", Some(&args)).allowed);
            }
        }
    }

    #[test]
    fn arbitrary_calls_and_results_never_panic(steps in proptest::collection::vec((".{0,8}", ".{0,20}", ".{0,30}"), 0..30)) {
        let session = guard().session("s");
        for (tool, args, result) in &steps {
            session.check(tool, Some(args));
            session.outcome(&Step::call(tool, args).answered(result, None));
        }
    }
}
