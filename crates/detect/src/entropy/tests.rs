use proptest::prelude::*;

use super::{Decision, Entropy, EntropyEvent, EntropyLevel};
use crate::{EntropyConfig, Status};

fn decision<'a>(intent: &'a str, tool_call: &'a str, tool_input: Option<&'a str>) -> Decision<'a> {
    Decision { intent, tool_call, status: Status::Failure, tool_input, reported: None }
}

#[test]
fn five_equal_decisions_give_one_alert() {
    let (mut entropy, config) = (Entropy::default(), EntropyConfig::default());
    let same = decision("fix", "edit", None);
    let readings: Vec<_> = (0..8).map(|_| entropy.observe(&same, &config)).collect();
    let scores: Vec<f64> = readings.iter().map(|reading| reading.score).collect();
    assert_eq!(scores, [1.0, 0.5, 0.3333, 0.25, 0.2, 0.2, 0.2, 0.2]);
    let alerts: Vec<usize> = (0..8).filter(|at| readings[*at].event.is_some()).collect();
    assert_eq!(alerts, [4], "one when it enters, not one per message");
    let alert = readings[4].open.as_ref().unwrap();
    assert_eq!((alert.window_size, alert.occurrence_count), (5, 5));
    assert_eq!((&*alert.repeated_pattern.intent, &*alert.repeated_pattern.tool_call), ("fix", "edit"));
}

#[test]
fn the_borders_are_where_the_design_puts_them() {
    let config = EntropyConfig { window_size: 4, ..EntropyConfig::default() };
    let level = |tools: [&str; 4]| {
        let mut entropy = Entropy::default();
        tools
            .map(|tool| entropy.observe(&decision("i", tool, None), &config))
            .last()
            .map(|reading| reading.level)
    };
    assert_eq!(level(["a", "a", "a", "a"]), Some(EntropyLevel::Warning), "0.25 is not below 0.25");
    assert_eq!(level(["a", "b", "a", "b"]), Some(EntropyLevel::Warning), "0.5 is still a warning");
    assert_eq!(level(["a", "b", "c", "a"]), Some(EntropyLevel::Normal));
}

#[test]
fn recovery_is_announced_once() {
    let (mut entropy, config) = (Entropy::default(), EntropyConfig::default());
    for _ in 0..5 {
        entropy.observe(&decision("fix", "edit", None), &config);
    }
    let events: Vec<_> =
        ["a", "b", "c"].map(|tool| entropy.observe(&decision("fix", tool, None), &config).event).into();
    assert_eq!(events, [Some(EntropyEvent::Recovered(0.4)), None, None]);
}

#[test]
fn thresholds_take_effect_on_the_next_message() {
    let mut entropy = Entropy::default();
    let strict = EntropyConfig::new(5, 0.4, 0.5).unwrap();
    for _ in 0..2 {
        entropy.observe(&decision("fix", "edit", None), &EntropyConfig::default());
    }
    assert_eq!(entropy.observe(&decision("fix", "edit", None), &strict).level, EntropyLevel::Loop);
    let narrow = EntropyConfig { window_size: 1, ..strict };
    assert_eq!(entropy.observe(&decision("fix", "edit", None), &narrow).score.to_string(), "1");
}

#[test]
fn five_files_with_one_intent_are_no_loop_unless_the_input_is_left_out() {
    let literal = EntropyConfig { include_input: false, ..EntropyConfig::default() };
    let last = |config| {
        let mut entropy = Entropy::default();
        let files = ["a", "b", "c", "d", "e"].map(|file| format!("{{\"path\":\"{file}\"}}"));
        let readings =
            files.map(|input| entropy.observe(&decision("read all", "read", Some(&input)), &config));
        readings.last().map(|reading| reading.level)
    };
    assert_eq!(last(EntropyConfig::default()), Some(EntropyLevel::Normal));
    assert_eq!(last(literal), Some(EntropyLevel::Loop));
}

#[test]
fn a_status_that_changes_is_another_decision() {
    let (mut entropy, config) = (Entropy::default(), EntropyConfig::default());
    entropy.observe(&decision("fix", "edit", None), &config);
    let done = Decision { status: Status::Success, ..decision("fix", "edit", None) };
    assert_eq!(entropy.observe(&done, &config).score.to_string(), "1");
}

#[test]
fn an_intent_that_changes_is_another_decision() {
    let (mut entropy, config) = (Entropy::default(), EntropyConfig::default());
    entropy.observe(&decision("fix", "edit", None), &config);
    assert_eq!(entropy.observe(&decision("test", "edit", None), &config).score.to_string(), "1");
}

#[test]
fn the_alert_names_the_decision_that_stands_most_often_in_the_window() {
    let (mut entropy, config) = (Entropy::default(), EntropyConfig::new(10, 0.25, 0.5).unwrap());
    let mut last = None;
    for tool in ["b", "a", "a", "a", "a", "a", "a", "a", "a", "b"] {
        last = entropy.observe(&decision("fix", tool, None), &config).open;
    }
    let alert = last.unwrap();
    assert_eq!((&*alert.repeated_pattern.tool_call, alert.occurrence_count), ("a", 8));
}

#[test]
fn an_agents_own_score_is_doubted_only_when_it_is_far_off() {
    let (mut entropy, config) = (Entropy::default(), EntropyConfig::default());
    let mut reported = |score| {
        let own = Decision { reported: Some(score), ..decision("fix", "edit", None) };
        entropy.observe(&own, &config).discrepancy
    };
    assert_eq!(reported(0.7), None, "1.0 and 0.7 differ by just 0.3");
    assert_eq!(reported(0.9), Some(0.9));
    assert_eq!(reported(0.0), Some(0.0), "too low is as far off as too high");
}

proptest! {
    #[test]
    fn the_score_is_the_share_of_different_decisions(tools in proptest::collection::vec(0_u8..5, 1..30)) {
        let (mut entropy, config) = (Entropy::default(), EntropyConfig::default());
        for at in 0..tools.len() {
            let name = tools[at].to_string();
            let reading = entropy.observe(&decision("i", &name, None), &config);
            let window = &tools[at.saturating_sub(4)..=at];
            let unique = window.iter().collect::<std::collections::HashSet<_>>().len();
            prop_assert!((reading.score - unique as f64 / window.len() as f64).abs() < 0.0001);
        }
    }

    #[test]
    fn alerts_and_recoveries_take_turns(tools in proptest::collection::vec(0_u8..2, 1..60)) {
        let (mut entropy, config) = (Entropy::default(), EntropyConfig::default());
        let mut looping = false;
        for tool in tools {
            match entropy.observe(&decision("i", &tool.to_string(), None), &config).event {
                Some(EntropyEvent::Alert(_)) => { prop_assert!(!looping); looping = true; }
                Some(EntropyEvent::Recovered(_)) => { prop_assert!(looping); looping = false; }
                None => {}
            }
        }
    }
}
