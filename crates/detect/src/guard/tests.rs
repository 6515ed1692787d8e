use proptest::prelude::*;

use super::Guard;
use crate::{
    Action, DetectorName, DetectorsConfig, Kind, RedundancyConfig, SentinelConfig, SentinelLimit, Step,
    ToolPattern, ToolProfile,
};

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
fn what_is_kept_of_a_session_that_is_over_is_freed_and_nothing_is_made_for_that() {
    let guard = guard();
    let (session, item) = (guard.session("s"), guard.session("s").scope("item"));
    for _ in 0..4 {
        session.check("bash", Some(LS));
        item.check("bash", Some(LS));
    }
    session.free();
    guard.session("unknown").free();
    assert_eq!(guard.sessions(), 0);
    assert!(session.check("bash", Some(LS)).allowed && item.check("bash", Some(LS)).allowed);
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
fn words_for_the_model_come_with_the_first_hint_and_not_with_a_warning() {
    let session = guard().session("s");
    let step = Step::call("bash", LS).answered("a b", None);
    let words: Vec<bool> = (0..4).map(|_| session.outcome(&step).hint.is_some()).collect();
    assert_eq!(words, [false, false, true, true]);
}

#[test]
fn inside_of_a_scope_the_sentinel_decides() {
    let session = guard().session("s");
    for _ in 0..3 {
        session.outcome(&Step::call("bash", LS).answered("a b", None));
    }
    assert!(!session.peek("bash", Some(LS)).allowed);
    for _ in 0..3 {
        assert!(session.scope("item").check("bash", Some(LS)).allowed);
    }
    let verdict = session.scope("item").check("bash", Some(LS));
    assert_eq!((verdict.allowed, verdict.detector), (false, Some(DetectorName::Sentinel)));
}

#[test]
fn a_batch_item_that_is_reset_leaves_the_session_as_it_was() {
    let session = guard().session("s");
    for _ in 0..3 {
        session.scope("item").check("bash", Some(LS));
        session.outcome(&Step::call("bash", LS).answered("a b", None));
    }
    session.scope("item").reset();
    assert!(session.scope("item").check("bash", Some(LS)).allowed);
    assert!(!session.peek("bash", Some(LS)).allowed);
}

#[test]
fn a_call_that_fails_in_other_words_each_time_is_foreseen() {
    let session = guard().session("s");
    let make = r#"{"command":"make"}"#;
    for line in 3..6 {
        let result = format!("error: line {line}0: missing separator");
        session.outcome(&Step::call("bash", make).answered(&result, None));
    }
    assert_eq!(session.peek("bash", Some(make)).kind, Some(Kind::FailingRepeat));
}

#[test]
fn fields_that_do_not_count_are_left_out_before_the_call_too() {
    let profile = ToolProfile { loop_key: vec!["q".into()], ..ToolProfile::default() };
    let redundancy = RedundancyConfig::default().with_tool(ToolPattern::new("search"), profile).unwrap();
    let session = Guard::new(&DetectorsConfig { redundancy, ..DetectorsConfig::default() }).session("s");
    let args = |id: usize| format!(r#"{{"q":"rust","request_id":{id}}}"#);
    for id in 0..3 {
        session.outcome(&Step::call("search", &args(id)).answered("ten pages", None));
    }
    assert!(!session.peek("search", Some(&args(3))).allowed);
    assert!(session.peek("search", Some(r#"{"q":"loops"}"#)).allowed);
}

#[test]
fn two_copies_of_a_cycle_block_nothing_and_three_only_what_continues_it() {
    let session = guard().session("s");
    let other = Step::call("list_files", r#"{"path":"c"}"#).answered("d", None);
    session.outcome(&other);
    for copy in 0..3 {
        assert!(session.peek("read_file", Some(r#"{"path":"a"}"#)).allowed, "after {copy} copies");
        session.outcome(&Step::call("read_file", r#"{"path":"a"}"#).answered("A", None));
        session.outcome(&Step::call("grep", r#"{"pattern":"x"}"#).answered("x in two places", None));
    }
    assert!(!session.peek("read_file", Some(r#"{"path":"a"}"#)).allowed);
    assert!(session.peek("list_files", other.args).allowed);
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
fn a_known_session_pushes_no_other_one_out() {
    let guard = Guard::with_max_sessions(&DetectorsConfig::default(), 1);
    let session = guard.session("s");
    let allowed = [(); 4].map(|()| session.check("bash", Some(LS)).allowed);
    assert_eq!(allowed, [true, true, true, false]);
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

#[test]
fn the_sentinel_decides_about_a_call_whose_outcomes_nobody_reports() {
    let session = guard().session("s");
    assert!(session.check("t0", None).allowed);
    session.outcome(&Step::call("t0", "{}").answered("fine", None));
    let allowed = (0..6).filter(|_| session.check("bash", Some(r#"{"command":"ls"}"#)).allowed).count();
    assert_eq!(allowed, 3);
}

#[test]
fn a_block_names_the_loop_as_the_finding_does() {
    let session = guard().session("s");
    let call = r#"{"command":"make"}"#;
    for _ in 0..3 {
        session.outcome(&Step::call("bash", call).answered("error: no rule to make target", None));
    }
    assert_eq!(session.check("bash", Some(call)).kind, Some(Kind::FailingRepeat));
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
