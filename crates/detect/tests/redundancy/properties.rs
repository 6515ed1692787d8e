//! What holds for every run.

use std::collections::HashSet;

use loopbreaker::{
    DetectorsConfig, Finding, Kind, Redundancy, RedundancyConfig, ReplayRules, Severity, Status,
};
use proptest::prelude::*;

use crate::script::{Line, call, findings, says, times, user, word};

/// A step out of a small world, so that repeats, cycles and writes really come about.
fn step() -> impl Strategy<Value = Line> {
    let path = "[ab]\\.rs";
    let status =
        prop_oneof![3 => Just(None), 1 => Just(Some(Status::Success)), 1 => Just(Some(Status::Failure))];
    prop_oneof![
        4 => (path, "[xy]").prop_map(|(path, result)| call("read_file", &format!("{{\"path\":\"{path}\"}}"), &result)),
        3 => ("(ls|cargo test|python x\\.py|sleep 1|cd src)", "(|ok|error: bad|running)")
            .prop_map(|(command, result)| call("bash", &format!("{{\"command\":\"{command}\"}}"), &result)),
        2 => (path, "[xy]", "[xy]").prop_map(|(path, old, new)| {
            call("edit_file", &format!("{{\"path\":\"{path}\",\"old\":\"{old}\",\"new\":\"{new}\"}}"), "ok")
        }),
        1 => "(I will try again now please|done with that|[a-z]{3})".prop_map(|text| says(&text)),
        1 => "(go on|stop it|why)".prop_map(|text| user(&text)),
    ]
    .prop_flat_map(move |line| (Just(line), status.clone()).prop_map(|(line, status)| Line { status, ..line }))
}

fn run() -> impl Strategy<Value = Vec<Line>> {
    prop::collection::vec(step(), 0..60)
}

/// The run in rounds of up to `size` calls; texts and words from outside are rounds of their own.
fn in_rounds(lines: &[Line], size: usize) -> Vec<Vec<Line>> {
    let mut rounds: Vec<Vec<Line>> = Vec::new();
    for line in lines {
        let joins = |round: &Vec<Line>| round.len() < size && round.iter().all(|other| other.tool.is_some());
        match rounds.last_mut().filter(|round| line.tool.is_some() && joins(round)) {
            Some(round) => round.push(line.clone()),
            None => rounds.push(vec![line.clone()]),
        }
    }
    for (number, round) in rounds.iter_mut().enumerate() {
        for line in round {
            line.round = Some(number as u64);
        }
    }
    rounds
}

/// Findings without what may differ when the steps of a round are in another order.
fn loops_found(lines: &[Line]) -> HashSet<(Kind, Severity, String, usize)> {
    findings(lines)
        .into_iter()
        .map(|finding| (finding.kind, finding.severity, finding.identity.to_string(), finding.count))
        .collect()
}

proptest! {
    #[test]
    fn arbitrary_texts_never_panic(lines in prop::collection::vec((".{0,9}", ".{0,40}", ".{0,60}", any::<bool>()), 0..40)) {
        let lines: Vec<Line> = lines.into_iter().map(|(tool, args, result, text)| {
            if text { says(&args) } else { call(&tool, &args, &result) }
        }).collect();
        findings(&lines);
    }

    #[test]
    fn replay_of_the_same_steps_gives_the_same_findings(lines in run()) {
        prop_assert_eq!(findings(&lines), findings(&lines));
    }

    #[test]
    fn findings_use_only_steps_up_to_them(lines in run(), cut in 0_usize..60) {
        let cut = cut.min(lines.len());
        let mut detector = Redundancy::new(&RedundancyConfig::default());
        let early: Vec<Finding> = lines[..cut].iter().flat_map(|line| detector.observe(&line.step())).collect();
        let mut whole = Redundancy::new(&RedundancyConfig::default());
        let all: Vec<Finding> = lines.iter().flat_map(|line| whole.observe(&line.step())).collect();
        prop_assert_eq!(&all[..early.len()], &early[..]);
    }

    #[test]
    fn unique_outcomes_never_fire(count in 1_usize..120) {
        let lines: Vec<Line> = (0..count)
            .map(|n| call("read_file", &format!("{{\"path\":\"{}\"}}", word(n)), &format!("{} is {}", word(n), word(n * 7 + 1))))
            .collect();
        prop_assert_eq!(findings(&lines), []);
    }

    #[test]
    fn key_order_and_white_space_never_matter(lines in run()) {
        let spread: Vec<Line> = lines.iter().cloned().map(|line| {
            let args = line.args.as_deref().map(|args| {
                let value: serde_json::Value = serde_json::from_str(args).unwrap();
                let members = value.as_object().unwrap();
                let turned: Vec<String> = members.iter().rev().map(|(key, value)| format!("\n {key:?} :\t{value}")).collect();
                format!("{{{} }}", turned.join(" ,"))
            });
            Line { args, ..line }
        }).collect();
        prop_assert_eq!(findings(&spread), findings(&lines));
    }

    #[test]
    fn order_inside_a_round_never_matters(lines in run(), size in 1_usize..4, turn in 0_usize..4) {
        let rounds = in_rounds(&lines, size);
        let turned: Vec<Line> = rounds.iter().cloned().flat_map(|mut round| {
            let by = turn % round.len();
            round.rotate_left(by);
            round
        }).collect();
        prop_assert_eq!(loops_found(&turned), loops_found(&rounds.concat()));
    }

    #[test]
    fn a_cycle_is_one_loop_from_any_rotation(period in 2_usize..=8, start in 0_usize..8) {
        let unit: Vec<Line> = (0..period).map(|n| call("look_at", &format!("{{\"it\":\"{}\"}}", word(n)), &word(n + 50))).collect();
        let identity = |from: usize| {
            let mut turned = unit.clone();
            turned.rotate_left(from % period);
            let mut found = findings(&times(3, &turned)).into_iter().filter(|finding| finding.severity == Severity::Loop);
            found.find(|finding| finding.kind == Kind::Cycle).map(|finding| (finding.period, finding.identity))
        };
        prop_assert!(matches!(identity(0), Some((found, _)) if found == period));
        prop_assert_eq!(identity(start), identity(0));
    }

    #[test]
    fn calls_that_never_ran_change_nothing(lines in run(), blocked in run()) {
        let mut mixed = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            mixed.push(line.clone());
            if let Some(other) = blocked.get(at).filter(|other| other.tool.is_some()) {
                mixed.push(Line { result: Some(String::new()), status: Some(Status::Skipped), ..other.clone() });
            }
        }
        let kinds = |lines: &[Line]| findings(lines).into_iter().map(|finding| (finding.kind, finding.severity, finding.identity, finding.count)).collect::<Vec<_>>();
        prop_assert_eq!(kinds(&mixed), kinds(&lines));
    }

    #[test]
    fn evidence_stays_within_the_window(lines in prop::collection::vec(step(), 0..300)) {
        for finding in findings(&lines) {
            prop_assert!(finding.evidence.len() <= 65);
            prop_assert!(finding.step - finding.evidence[0] <= 65, "nothing older than the window is kept");
        }
    }

    #[test]
    fn actions_climb_the_ladder_and_end_with_a_reject(lines in run()) {
        let mut replay = ReplayRules::new(&DetectorsConfig::default()).start();
        for line in &lines {
            replay.observe(&line.step());
        }
        let report = replay.finish();
        let rejects = report.actions.iter().filter(|(_, action)| action.as_str() == "reject").count();
        prop_assert!(rejects <= 1);
        prop_assert!(report.wasted.steps <= lines.len());
        prop_assert_eq!(report.actions.is_empty(), report.verdict() != "loop");
    }
}
