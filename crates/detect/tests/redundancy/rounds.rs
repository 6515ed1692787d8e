//! Calls of one model answer run side by side: which of them comes first is chance, and must not matter.

use loopbreaker::{Kind, Severity};
use proptest::prelude::*;

use crate::script::{Line, call, edit, findings, read, says, sh, times, user, word};

/// What is found, without what tells which step of a round came first.
fn found(lines: &[Line]) -> Vec<(String, Severity, String, usize)> {
    let mut found: Vec<_> = findings(lines)
        .into_iter()
        .map(|finding| {
            (finding.kind.to_string(), finding.severity, finding.identity.to_string(), finding.count)
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

/// The steps as rounds of this size.
fn in_rounds(lines: &[Line], size: usize) -> Vec<Line> {
    let numbered = |(at, line): (usize, &Line)| line.clone().round((at / size) as u64);
    lines.iter().enumerate().map(numbered).collect()
}

/// The same rounds with their steps the other way round.
fn turned(lines: &[Line]) -> Vec<Line> {
    let rounds = lines.chunk_by(|one, other| one.round == other.round);
    rounds.flat_map(|round| round.iter().rev().cloned()).collect()
}

fn page(number: usize) -> Line {
    call("list_items", &format!("{{\"page\":{number}}}"), &format!("items of page {number}"))
}

#[test]
fn pages_that_are_all_read_again_are_a_sweep_whatever_runs_beside_them() {
    let run = [
        page(1).round(0),
        page(2).round(1),
        page(1).round(2),
        page(2).round(3),
        sh("git status", "clean").round(3),
    ];
    let kinds = |lines: &[Line]| found(lines).into_iter().map(|(kind, ..)| kind).collect::<Vec<_>>();
    assert!(kinds(&run).contains(&Kind::Sweep.to_string()), "{:?}", kinds(&run));
    assert_eq!(found(&turned(&run)), found(&run));
}

#[test]
fn a_full_window_forgets_the_oldest_steps_when_a_round_is_over() {
    let other = |n: usize| read(&format!("part{}.rs", word(n)), &format!("the part {}", word(n * 7 + 1)));
    let long_ago = || sh("cat notes.txt", "nothing here yet");
    for distance in 55..66 {
        let others: Vec<Line> = (0..distance).map(other).collect();
        let run = [vec![long_ago(), other(400)], others, vec![long_ago(), other(401)]].concat();
        let run = in_rounds(&run[..run.len() & !1], 2);
        assert_eq!(found(&turned(&run)), found(&run), "{distance} steps between");
    }
}

/// A step of a world in which all kinds of loops come about.
fn step() -> impl Strategy<Value = Line> {
    let line = |tool: &'static str, args: String, result: String| call(tool, &args, &result);
    prop_oneof![
        4 => (1_usize..5).prop_map(page),
        2 => (1_usize..3, "[xy]").prop_map(move |(n, result)| line("list_items", format!("{{\"page\":{n}}}"), result)),
        3 => ("[ab]\\.rs", "[xy]").prop_map(|(path, result)| read(&path, &result)),
        2 => ("(ls|cargo test|sleep 1|cd src|tail log)", "(|ok|error: bad|still running|connection refused)")
            .prop_map(|(command, result)| sh(&command, &result)),
        2 => ("[ab]\\.rs", "[xy]", "[xy]").prop_map(|(path, old, new)| edit(&path, &old, &new)),
        2 => ("[ab]", "[xy]").prop_map(move |(at, result)| line("click", format!("{{\"at\":\"{at}\"}}"), result)),
        1 => "[ab]".prop_map(move |job| line("job_status", format!("{{\"job\":\"{job}\"}}"), "running".into())),
        1 => "(red|blue|green) (car|house)".prop_map(move |what| {
            line("search", format!("{{\"query\":\"where to find a {what} near here\"}}"), "no results".into())
        }),
    ]
}

/// Rounds of calls; what is said, and what comes from outside, are rounds of their own.
fn rounds() -> impl Strategy<Value = Vec<Line>> {
    let calls = prop::collection::vec(step(), 1..4);
    let words = "(I will try again now please|done with that)".prop_map(|text| vec![says(&text)]);
    let outside = "(go on|stop it|why)".prop_map(|text| vec![user(&text)]);
    let round = prop_oneof![12 => calls, 1 => words, 1 => outside];
    prop::collection::vec(round, 1..60).prop_map(|rounds| {
        let numbered = |(at, round): (usize, Vec<Line>)| {
            round.into_iter().map(move |line| line.round(at as u64)).collect::<Vec<_>>()
        };
        rounds.into_iter().enumerate().flat_map(numbered).collect()
    })
}

proptest! {
    #[test]
    fn what_comes_first_in_a_round_never_matters(run in rounds()) {
        prop_assert_eq!(found(&turned(&run)), found(&run));
    }

    #[test]
    fn a_few_things_done_for_long_are_the_same_in_any_order(unit in prop::collection::vec(step(), 2..6), size in 2_usize..4) {
        let run = in_rounds(&times(20, &unit), size);
        prop_assert_eq!(found(&turned(&run)), found(&run));
    }
}
