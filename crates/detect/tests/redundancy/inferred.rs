//! What is only inferred is told at once and refused later than what is seen.

use loopbreaker::{Action, DetectorsConfig, ReplayRules};

use crate::script::{Line, call, sh};

/// What the default ladder does with each step that it does something about.
fn actions(lines: &[Line]) -> Vec<(usize, Action)> {
    let mut run = ReplayRules::new(&DetectorsConfig::default()).start();
    for line in lines {
        run.observe(&line.step());
    }
    run.finish().actions
}

fn refused_at(lines: &[Line]) -> Option<usize> {
    actions(lines).iter().find(|(_, action)| *action == Action::Reject).map(|(step, _)| *step)
}

#[test]
fn a_question_in_other_words_is_told_at_once_and_refused_later() {
    let words =
        ["really", "now", "please", "again", "still", "then", "just", "also", "yet", "too", "even", "well"];
    let ask = |word: &&str| {
        let order =
            format!(r#"{{"order":"find out how many birds there are in the videos of the archive {word}"}}"#);
        call(
            "video_agent",
            &order,
            "There are seven birds in the videos of the archive, most of them in the third.",
        )
    };
    let run: Vec<Line> = words.iter().map(ask).collect();
    let told = actions(&run).iter().find(|(_, action)| *action == Action::Hint).map(|(step, _)| *step);
    assert_eq!((told, refused_at(&run)), (Some(3), Some(7)));
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
