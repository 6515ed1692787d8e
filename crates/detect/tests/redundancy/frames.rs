//! What a harness puts around each answer hides no loop, and what looks like it is still read.

use loopbreaker::{Kind, Severity};
use proptest::prelude::*;

use crate::script::{Line, call, edit, findings, loops, read, sh, times};

/// An agent that looks around, by calls of several kinds.
fn looks_around() -> Vec<Line> {
    vec![
        sh("ls", "Makefile src tests"),
        read("src/lib.rs", "pub mod parse;\npub mod print;"),
        sh("python check.py", "checked 3 modules"),
        read("src/parse.rs", "pub fn parse() {}\npub fn skip() {}"),
        sh("grep -rn todo .", "src/parse.rs:14: todo"),
    ]
}

/// The run with something around each answer.
fn framed(lines: &[Line], frame: impl Fn(usize, &str) -> String) -> Vec<Line> {
    let frame = |(at, line): (usize, &Line)| Line {
        result: line.result.as_deref().map(|result| frame(at, result)),
        ..line.clone()
    };
    lines.iter().enumerate().map(frame).collect()
}

/// What harnesses put around answers.
const FRAMES: &[fn(usize, &str) -> String] = &[
    |at, result| format!("{result}\n[Current step: {}/100]", at + 1),
    |at, result| format!("Observation {}:\n{result}", at + 1),
    |at, result| format!("<answer nr=\"x{}f{at}\">\n{result}\n</answer>", at * 7919 % 1009),
    |at, result| {
        let used = 12_731 + at * 811;
        format!(
            "{result}\n\n<environment>\nMode: act\nContext: {used} of 200000 tokens, {}%\n</environment>",
            used / 2000
        )
    },
    |at, result| format!("Command finished.\nGroup: {}\nOutput:\n{result}\nSignal: none", 4000 + at * 3),
];

#[test]
fn what_changes_with_every_answer_hides_no_loop() {
    for (which, frame) in FRAMES.iter().enumerate() {
        let stuck = times(3, &[sh("cat notes.txt", "nothing here yet")]);
        let run = framed(&[looks_around(), stuck].concat(), frame);
        assert_eq!(loops(&run), [Kind::Repeat], "frame {which}");
        assert_eq!(loops(&framed(&looks_around(), frame)), [], "frame {which}, at work");
    }
}

#[test]
fn what_was_answered_before_the_frame_was_known_counts() {
    let look = sh("cat notes.txt", "nothing here yet");
    let mut run = looks_around();
    run.insert(1, look.clone());
    run.insert(3, look.clone());
    run.push(look);
    for (which, frame) in FRAMES.iter().enumerate() {
        let found = findings(&framed(&run, frame));
        let repeat =
            found.iter().find(|finding| finding.kind == Kind::Repeat && finding.severity == Severity::Loop);
        assert_eq!(repeat.map(|repeat| repeat.evidence.clone()), Some(vec![1, 3, 7]), "frame {which}");
    }
}

#[test]
fn what_counts_with_calls_of_one_kind_is_what_they_brought() {
    let part = |n: usize| sh(&format!("cat part{n}.txt"), &format!("Part {n}\nsome words of it"));
    assert_eq!(findings(&(1..12).map(part).collect::<Vec<_>>()), []);
}

#[test]
fn the_progress_of_jobs_is_no_frame() {
    // They are all asked in one way, so nothing tells their progress from a frame; and it is what they are asked for.
    let ask = |at: usize, job: usize| {
        let progress = format!("name: job-{job}\nProgress: {} %", 10 + 7 * at);
        call("job_info", &format!("{{\"job\":{job}}}"), &progress)
    };
    let run: Vec<Line> = (0..15).map(|at| ask(at, at % 3)).collect();
    assert_eq!(loops(&run), []);
}

#[test]
fn a_score_that_changes_now_and_then_is_news() {
    let act = |tool: &str, score: usize| call(tool, "{}", &format!("The fire burns.\nScore: {score}"));
    let around = ["look", "take_wood", "inventory", "go_north", "look", "inventory"].map(|tool| act(tool, 3));
    let rest: Vec<Line> = (4..10).map(|score| act("feed_the_fire", score)).collect();
    let run = [around.to_vec(), rest].concat();
    let stopped = findings(&run).into_iter().any(|finding| {
        finding.severity == Severity::Loop && finding.kind == Kind::Repeat && finding.step >= around.len()
    });
    assert!(!stopped, "each time the score is another one");
}

#[test]
fn what_goes_up_and_down_is_news() {
    // A price that is looked at by other means moves each time, and is all that the looks are for.
    let look = |at: usize| {
        let tool = ["get_quote", "read_book", "list_orders"][at % 3];
        call(tool, "{}", &format!("symbol ABC\nLast price: {}", 40 + at * 11 % 19))
    };
    let run: Vec<Line> = (0..18).map(look).collect();
    assert_eq!(loops(&run), []);
}

#[test]
fn what_only_deeds_change_is_theirs() {
    let act = |tool: &str, at: usize| {
        call(tool, "{}", &format!("the pump runs\nlitres in the tank: {}", 10 + 3 * at))
    };
    let run: Vec<Line> =
        (0..14).map(|at| act(["start_pump", "open_valve", "pump_more"][(at % 5).min(2)], at)).collect();
    assert_eq!(loops(&run), []);
}

#[test]
fn what_an_answer_says_for_the_first_time_is_no_frame() {
    let mail = |command: &str, result: &str, mails: usize| {
        sh(command, &format!("{result}\nYou have {mails} new mails."))
    };
    let run = [
        mail("ls", "a.txt", 0),
        mail("python sync.py", "synced", 0),
        mail("cat a.txt", "some words", 0),
        mail("grep x a.txt", "x", 0),
        mail("./wait.sh", "waited", 0),
        mail("cat inbox", "empty folder", 0),
        mail("cat inbox", "empty folder", 0),
        mail("cat inbox", "empty folder", 2),
    ];
    assert_eq!(loops(&run), []);
}

#[test]
fn how_far_a_job_has_come_is_no_frame() {
    // Each way of asking ends with it, and it is the same all the time that the job runs.
    let ask = |tool: &str| call(tool, r#"{"id":7}"#, &format!("{tool} of 7\nstate: running"));
    let round = ["get_job", "list_artifacts", "get_pipeline", "read_stages"].map(ask);
    let run = [round.to_vec(), times(6, &[ask("get_job")])].concat();
    assert_eq!(loops(&run), []);
}

#[test]
fn what_is_equal_only_without_its_frame_is_refused_later() {
    let stuck = times(12, &[sh("cat notes.txt", "nothing here yet")]);
    let run = framed(&[looks_around(), stuck].concat(), FRAMES[0]);
    let mut replay = loopbreaker::ReplayRules::new(&loopbreaker::DetectorsConfig::default()).start();
    for line in &run {
        replay.observe(&line.step());
    }
    let refused = |action: &(usize, loopbreaker::Action)| action.1 == loopbreaker::Action::Reject;
    let at = replay.finish().actions.iter().find(|action| refused(action)).map(|action| action.0);
    assert!(at.is_some_and(|at| at >= looks_around().len() + 7), "{at:?}");
}

#[test]
fn how_a_call_went_is_no_frame() {
    let ran = |command: &str, code: usize| sh(command, &format!("some words\nexit code: {code}"));
    let around =
        [ran("ls", 0), ran("python a.py", 0), ran("make", 0), ran("grep x y", 0), ran("git fetch", 0)];
    // What fails, and is mended in between, is work; were the code no part of the answer, nothing would have failed.
    let run =
        [around.to_vec(), vec![ran("cargo test", 1), edit("a.rs", "x", "y"), ran("cargo test", 0)]].concat();
    assert_eq!(loops(&run), []);
    let stuck = [around.to_vec(), times(3, &[ran("./deploy.sh", 1)])].concat();
    assert_eq!(loops(&stuck), [Kind::FailingRepeat]);
}

#[test]
fn an_answer_that_is_nothing_but_its_frame_is_an_answer() {
    let quiet = |tool: &str| call(tool, "{}", "done\nnothing to tell");
    let run: Vec<Line> = ["open_door", "take_key", "look", "wave", "jump", "sing"].map(quiet).to_vec();
    assert_eq!(loops(&run), [], "different calls, one answer");
}

proptest! {
    #[test]
    fn the_order_of_calls_side_by_side_teaches_the_same(
        calls in prop::collection::vec((0_usize..5, 0_usize..3, 0_usize..4), 6..40),
        size in 2_usize..4,
    ) {
        let line = |(at, (tool, args, result)): (usize, &(usize, usize, usize))| {
            let round = (at / size) as u64;
            let answer = format!("answer {result}\nturn {round}\nmode: {}", result % 2);
            call(["look", "ask", "run_it", "list_all", "fetch"][*tool], &format!("{{\"at\":{args}}}"), &answer).round(round)
        };
        let run: Vec<Line> = calls.iter().enumerate().map(line).collect();
        let turned: Vec<Line> = run.chunks(size).flat_map(|round| round.iter().rev().cloned()).collect();
        let found = |lines: &[Line]| {
            let mut found: Vec<_> = findings(lines)
                .into_iter()
                .map(|finding| (finding.kind, finding.severity, finding.identity.to_string(), finding.count))
                .collect();
            found.sort_by(|a, b| format!("{a:?}").cmp(&format!("{b:?}")));
            found.dedup();
            found
        };
        prop_assert_eq!(found(&run), found(&turned));
    }
}

#[test]
fn a_detector_that_was_reset_knows_no_frame() {
    let mut detector = loopbreaker::Redundancy::new(&loopbreaker::RedundancyConfig::default());
    let run = framed(&[looks_around(), times(3, &[sh("cat jobs.txt", "a job")])].concat(), FRAMES[0]);
    let (before, behind) = run.split_at(looks_around().len());
    for line in before {
        detector.observe(&line.step());
    }
    detector.reset();
    let found: Vec<_> = behind.iter().flat_map(|line| detector.observe(&line.step())).collect();
    assert_eq!(found, [], "in another session the same line may be news");
}
