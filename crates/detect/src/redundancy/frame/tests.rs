//! What is taken off for a frame, and what stays.

use super::{Answer, Edges, Frame, WATCHED};
use crate::redundancy::window::Window;

/// A frame that has seen answers with these last lines, each to a call of another of so many kinds.
fn taught(last_lines: &[&str], kinds: u32, looks: bool) -> Frame {
    let mut frame = Frame::default();
    for (index, (line, kind)) in last_lines.iter().zip((1..=kinds).cycle()).enumerate() {
        let mut normal = format!("answer {}\n{line}", ["a", "b", "c", "d", "e", "f"][index % 6]).into_bytes();
        let mut edges = Edges::default();
        frame.take_off(&mut normal, &mut edges);
        frame.round.push(Answer { index, kind, call: kind, looks, edges });
        frame.learn(&mut Window::default(), index + 1);
    }
    frame
}

/// What is left of an answer.
fn left(frame: &Frame, answer: &str) -> String {
    let mut normal = answer.as_bytes().to_vec();
    frame.take_off(&mut normal, &mut Edges::default());
    String::from_utf8(normal).expect("as it came")
}

const COUNTER: [&str; 6] = ["[step 1]", "[step 2]", "[step 3]", "[step 4]", "[step 5]", "[step 6]"];

#[test]
fn what_changes_with_every_answer_to_all_kinds_of_calls_is_taken_off() {
    assert_eq!(left(&taught(&COUNTER, 3, true), "words\n[step 7]"), "words");
    assert_eq!(left(&taught(&COUNTER, 3, true), "words\n[step 7]\nmore words"), "words\nmore words");
    assert_eq!(left(&taught(&COUNTER, 3, true), "words\n[stop 7]"), "words\n[stop 7]");
}

#[test]
fn what_only_some_kinds_of_calls_are_answered_with_stays() {
    assert_eq!(left(&taught(&COUNTER, 2, true), "words\n[step 7]"), "words\n[step 7]");
}

#[test]
fn what_changes_only_when_something_was_done_stays() {
    assert_eq!(left(&taught(&COUNTER, 3, false), "words\n[step 7]"), "words\n[step 7]");
}

#[test]
fn what_goes_up_and_down_stays() {
    let prices = ["price: 10", "price: 14", "price: 12", "price: 17", "price: 11", "price: 15"];
    assert_eq!(left(&taught(&prices, 3, true), "words\nprice: 13"), "words\nprice: 13");
}

#[test]
fn what_changes_now_and_then_stays() {
    let scores = ["score: 3", "score: 3", "score: 4", "score: 4", "score: 5", "score: 6"];
    assert_eq!(left(&taught(&scores, 3, true), "words\nscore: 7"), "words\nscore: 7");
}

#[test]
fn how_a_call_went_stays() {
    let codes =
        ["exit code: 1", "exit code: 2", "exit code: 3", "exit code: 4", "exit code: 5", "exit code: 6"];
    assert_eq!(left(&taught(&codes, 3, true), "words\nexit code: 7"), "words\nexit code: 7");
}

#[test]
fn an_answer_that_is_nothing_but_its_frame_stays() {
    let clock = ["[at 10]", "[at 20]", "[at 30]", "[at 40]", "[at 50]", "[at 60]"];
    assert_eq!(left(&taught(&clock, 3, true), "words\n[at 70]"), "words");
    assert_eq!(left(&taught(&clock, 3, true), "[at 70]"), "[at 70]");
}

#[test]
fn an_answer_that_only_counts_the_answers_is_none() {
    assert_eq!(left(&taught(&COUNTER, 3, true), "[step 7]"), "");
}

#[test]
fn which_lines_are_watched_does_not_hang_on_which_answer_came_first() {
    let line = |at: usize| {
        let word: String = format!("{at:05}").bytes().map(|digit| char::from(digit + 49)).collect();
        format!("{word} {word}")
    };
    let watched = |order: [usize; 3]| {
        let mut frame = Frame::default();
        for index in order {
            let mut normal =
                (0..17).map(|at| line(index * 17 + at)).collect::<Vec<_>>().join("\n").into_bytes();
            let mut edges = Edges::default();
            frame.take_off(&mut normal, &mut edges);
            frame.round.push(Answer { index, kind: 1, call: 1, looks: true, edges });
        }
        frame.learn(&mut Window::default(), 3);
        frame.lines.iter().map(|line| line.shape).collect::<Vec<_>>()
    };
    assert_eq!(watched([0, 1, 2]).len(), WATCHED, "there are more than there is room for");
    assert_eq!(watched([0, 1, 2]), watched([2, 1, 0]));
}

#[test]
fn what_is_taken_off_leaves_answers_that_compare_as_equal() {
    let frame = taught(&COUNTER, 3, true);
    let compared =
        |answer: &str| frame.take_off(&mut answer.as_bytes().to_vec(), &mut Edges::default()).hashes;
    assert_eq!(compared("words\nand more\n[step 7]"), compared("words\nand more\n[step 8]"));
    assert_ne!(compared("words\nand more\n[step 7]"), compared("words\nand less\n[step 7]"));
    assert_ne!(compared("words\nand more"), compared("and more\nwords"));
}
