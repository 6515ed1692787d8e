//! What is only inferred is told at once and refused later than what is seen.

use loopbreaker::{Action, DetectorsConfig, ReplayRules};

use crate::script::{Line, call, sh};

/// What the default ladder does with each step that it does something about.
fn actions(lines: &[Line]) -> Vec<(usize, Action)> {
    let mut run = ReplayRules::new(&DetectorsConfig::default()).start();
    lines.iter().for_each(|line| run.observe(&line.step()));
    run.finish().actions
}

fn refused_at(lines: &[Line]) -> Option<usize> {
    actions(lines).iter().find(|(_, action)| *action == Action::Reject).map(|(step, _)| *step)
}

#[test]
fn questions_that_find_nothing_are_hinted_before_they_are_refused_for_long() {
    let search = |turn: usize| call("search_catalog", &format!(r#"{{"name":"part {turn}"}}"#), "[]");
    let run: Vec<Line> = (0..40).map(search).collect();
    let told = actions(&run).iter().find(|(_, action)| *action == Action::Hint).map(|(step, _)| *step);
    if let (Some(told), Some(refused)) = (told, refused_at(&run)) {
        assert!(refused >= 2 * told, "told at {told}, refused at {refused}");
    }
}

#[test]
fn a_dead_button_is_refused_in_the_end() {
    let clicks: Vec<Line> = (0..30).map(|_| call("click", r#"{"id":"buy"}"#, "ok")).collect();
    assert_eq!(refused_at(&clicks), Some(11), "the sixth is a loop, and the twelfth one without doubt");
}

#[test]
fn what_is_seen_is_refused_at_the_fourth_strike() {
    let run: Vec<Line> = (0..10).map(|_| sh("cat a", "a line that says something")).collect();
    assert_eq!(refused_at(&run), Some(5));
}
