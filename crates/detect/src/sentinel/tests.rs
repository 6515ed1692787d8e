use proptest::prelude::*;

use super::Sentinel;
use crate::{SentinelConfig, SentinelLimit, ToolPattern};

fn sentinel() -> Sentinel {
    Sentinel::new(&SentinelConfig::default())
}

fn limited(tools: &str, threshold: u32, window_size: u32) -> SentinelConfig {
    let limit = SentinelLimit::new(threshold, window_size).unwrap().because("converge quickly");
    SentinelConfig::default().with_override(ToolPattern::new(tools), limit)
}

#[test]
fn three_calls_pass_and_the_fourth_is_blocked() {
    let mut sentinel = sentinel();
    let answers: Vec<bool> = (0..5).map(|_| sentinel.check("a", Some("{}")).is_ok()).collect();
    assert_eq!(answers, [true, true, true, false, false]);
}

#[test]
fn calls_in_between_do_not_hide_a_repeat_inside_the_window() {
    let mut sentinel = sentinel();
    for other in ["b", "c", "d"] {
        sentinel.check("a", None).unwrap();
        sentinel.check(other, None).unwrap();
    }
    assert_eq!(sentinel.check("a", None).unwrap_err().count, 3);
}

#[test]
fn a_call_that_left_the_window_is_forgotten() {
    let mut sentinel = sentinel();
    for _ in 0..3 {
        sentinel.check("a", None).unwrap();
    }
    for other in 0..8 {
        sentinel.check("b", Some(&other.to_string())).unwrap();
    }
    assert!(sentinel.check("a", None).is_ok());
}

#[test]
fn blocked_calls_never_change_the_window() {
    let mut sentinel = sentinel();
    for _ in 0..3 {
        sentinel.check("a", None).unwrap();
    }
    for _ in 0..100 {
        assert_eq!(sentinel.check("a", None).unwrap_err().count, 3);
    }
    // Seven other calls leave two of the three in the ring of ten.
    for other in 0..8 {
        sentinel.check("b", Some(&other.to_string())).unwrap();
    }
    assert!(sentinel.check("a", None).is_ok());
}

#[test]
fn blocked_calls_count_as_strikes() {
    let mut sentinel = sentinel();
    for _ in 0..3 {
        sentinel.check("a", None).unwrap();
    }
    let strikes: Vec<u32> = (0..3).map(|_| sentinel.check("a", None).unwrap_err().strikes).collect();
    assert_eq!(strikes, [1, 2, 3]);
    assert_eq!(sentinel.strikes(), 3);
}

#[test]
fn peek_records_nothing() {
    let mut sentinel = sentinel();
    for _ in 0..10 {
        assert!(sentinel.peek("a", None).is_ok());
    }
    assert!(sentinel.check("a", None).is_ok());
}

#[test]
fn peek_answers_what_check_would() {
    let mut sentinel = sentinel();
    for _ in 0..6 {
        let foreseen = sentinel.peek("a", None);
        assert_eq!(foreseen, sentinel.check("a", None));
    }
}

#[test]
fn a_tool_with_a_limit_of_its_own_has_a_ring_of_its_own() {
    let mut sentinel = Sentinel::new(&limited("search_web", 2, 5));
    for _ in 0..2 {
        sentinel.check("search_web", None).unwrap();
    }
    for other in 0..20 {
        sentinel.check("other", Some(&other.to_string())).unwrap();
    }
    let block = sentinel.check("search_web", None).unwrap_err();
    assert_eq!((block.count, block.threshold, block.window_size, block.own_limit), (2, 2, 5, true));
    assert!(block.feedback("search_web").contains("converge quickly"));
}

#[test]
fn a_limit_of_its_own_has_a_window_of_its_own_size() {
    let mut sentinel = Sentinel::new(&limited("search_*", 2, 3));
    for _ in 0..2 {
        sentinel.check("search_web", None).unwrap();
    }
    for other in 0..2 {
        sentinel.check("search_mail", Some(&other.to_string())).unwrap();
    }
    assert!(sentinel.check("search_web", None).is_ok(), "one of the two has left the ring of three");
}

#[test]
fn a_plain_name_wins_over_a_glob() {
    let config = limited("search_*", 1, 5)
        .with_override(ToolPattern::new("search_web"), SentinelLimit::new(4, 5).unwrap());
    let mut sentinel = Sentinel::new(&config);
    sentinel.check("search_web", None).unwrap();
    assert!(sentinel.check("search_web", None).is_ok());
    sentinel.check("search_mail", None).unwrap();
    assert!(sentinel.check("search_mail", None).is_err());
}

#[test]
fn a_bypassed_tool_is_never_blocked() {
    let config = limited("poll_job", 1, 1).with_bypass(ToolPattern::new("poll_*"));
    let mut sentinel = Sentinel::new(&config);
    for _ in 0..100 {
        assert!(sentinel.check("poll_job", None).is_ok());
    }
}

#[test]
fn reset_forgets_everything() {
    let mut sentinel = sentinel();
    for _ in 0..4 {
        drop(sentinel.check("a", None));
        drop(sentinel.scope("x").check("a", None));
    }
    sentinel.reset();
    assert!(sentinel.check("a", None).is_ok());
    assert!(sentinel.scope("x").check("a", None).is_ok());
    assert_eq!(sentinel.strikes(), 0);
}

#[test]
fn a_loop_in_one_scope_does_not_block_another() {
    let mut sentinel = sentinel();
    for _ in 0..4 {
        drop(sentinel.scope("item-1").check("a", None));
    }
    assert!(sentinel.scope("item-1").peek("a", None).is_err());
    assert!(sentinel.scope("item-2").check("a", None).is_ok());
    sentinel.reset_scope("item-1");
    assert!(sentinel.scope("item-1").check("a", None).is_ok());
}

#[test]
fn scopes_are_bounded() {
    let mut sentinel = sentinel();
    for item in 0..10_000 {
        drop(sentinel.scope(&item.to_string()).check("a", None));
    }
    assert_eq!(sentinel.scopes.len(), Sentinel::MAX_SCOPES);
}

#[test]
fn scopes_in_turns_keep_their_own_rings() {
    let mut sentinel = sentinel();
    for _ in 0..3 {
        for item in ["item-1", "item-2"] {
            sentinel.scope(item).check("a", None).unwrap();
        }
    }
    for item in ["item-1", "item-2"] {
        assert_eq!(sentinel.scope(item).check("a", None).unwrap_err().count, 3);
    }
}

#[test]
fn the_scope_that_was_used_longest_ago_is_forgotten_first() {
    let mut sentinel = sentinel();
    let fill = |sentinel: &mut Sentinel, item: usize| {
        for _ in 0..3 {
            sentinel.scope(&item.to_string()).check("a", None).unwrap();
        }
    };
    for item in 0..Sentinel::MAX_SCOPES {
        fill(&mut sentinel, item);
    }
    // The first one is used again, so the second one makes room.
    assert!(sentinel.scope("0").peek("a", None).is_err());
    fill(&mut sentinel, Sentinel::MAX_SCOPES);
    assert!(sentinel.scope("0").peek("a", None).is_err());
    assert!(sentinel.scope("1").peek("a", None).is_ok());
}

proptest! {
    /// The ring against the plainest reading of the rule: a list of all admitted calls.
    #[test]
    fn the_ring_agrees_with_a_list(
        calls in proptest::collection::vec(0_u8..4, 0..60), threshold in 1_u32..5, spare in 0_u32..6,
    ) {
        let window = threshold + spare;
        let mut sentinel = Sentinel::new(&SentinelConfig {
            default: SentinelLimit::new(threshold, window).unwrap(),
            ..SentinelConfig::default()
        });
        let mut admitted: Vec<u8> = Vec::new();
        for call in calls {
            let recent = admitted.iter().rev().take(window as usize);
            let blocked = recent.filter(|earlier| **earlier == call).count() >= threshold as usize;
            prop_assert_eq!(sentinel.check("tool", Some(&call.to_string())).is_err(), blocked);
            if !blocked {
                admitted.push(call);
            }
        }
    }

    #[test]
    fn different_calls_are_never_blocked(calls in proptest::collection::hash_set("[a-z]{1,6}", 0..50)) {
        let mut sentinel = sentinel();
        for args in calls {
            prop_assert!(sentinel.check("tool", Some(&args)).is_ok());
        }
    }
}
