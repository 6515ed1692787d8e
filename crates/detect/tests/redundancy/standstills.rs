//! Steps in a row that bring nothing new, in whatever order, and what only looks like it.

use loopbreaker::{Action, DetectorsConfig, Finding, ReplayRules, Severity};

use crate::script::{Line, call, edit, findings, loops, read, says, sh, times, user};

/// What the parser of a text world answers.
fn act(command: &str, answer: &str) -> Line {
    call("play", &format!("{command:?}"), answer)
}

/// A walk between two rooms, with some of the things that can be tried there.
fn walk(tries: &[(&str, &str)]) -> Vec<Line> {
    let tries = tries.iter().map(|(command, answer)| act(command, answer));
    [act("go east", "Kitchen")].into_iter().chain(tries).chain([act("go west", "Living Room")]).collect()
}

/// Rounds of such walks, each with other things left out, so that no sequence comes twice.
fn wanders() -> Vec<Line> {
    let sword = ("take sword", "You already have that!");
    let lamp = ("turn off lamp", "It is already off.");
    let sack = ("look in sack", "The sack holds a lunch.");
    let walks: [&[_]; 6] =
        [&[sword, lamp, sack], &[lamp, sword], &[sack, lamp], &[sword, sack], &[lamp], &[sack, sword]];
    walks.iter().flat_map(|tries| walk(tries)).collect()
}

fn standstill(lines: &[Line]) -> Option<Finding> {
    findings(lines)
        .into_iter()
        .find(|finding| finding.rule == "standstill" && finding.severity == Severity::Loop)
}

#[test]
fn steps_that_have_all_been_there_stand_still_in_whatever_order_they_come() {
    let found = standstill(&wanders()).expect("nothing is new from the second walk on");
    assert!(found.count >= 8, "{found:?}");
    assert!(found.step <= 20, "{found:?}");
}

#[test]
fn a_room_that_is_new_is_progress() {
    let rooms = ["Attic", "Cellar", "Forest", "Clearing", "Dam", "Cave"];
    let run: Vec<Line> = wanders()
        .chunks(4)
        .zip(rooms.iter().cycle().zip(0..))
        .flat_map(|(part, (room, turn))| {
            [part.to_vec(), vec![act(&format!("go {room} by way {turn}"), &format!("{room}, part {turn}"))]]
                .concat()
        })
        .collect();
    assert_eq!(standstill(&run), None);
}

#[test]
fn who_is_told_the_same_by_every_action_may_be_getting_on() {
    // A robot whose motors only say that they have moved: what came of it nobody has looked at.
    let moved = |motor: &str| call("drive", &format!("{{\"motor\":{motor:?}}}"), "The motor has moved.");
    let path = [
        "left", "ahead", "ahead", "right", "ahead", "left", "left", "ahead", "right", "ahead", "right",
        "left",
    ];
    assert_eq!(standstill(&path.map(moved)), None);
}

#[test]
fn what_was_read_before_is_read_again_after_new_words() {
    let files =
        ["a", "b", "c", "d", "e"].map(|name| read(&format!("{name}.rs"), &format!("the words of {name}")));
    let run = [
        files.to_vec(),
        vec![user("now the other one")],
        files.to_vec(),
        vec![user("and once more, please")],
        files.to_vec(),
    ];
    assert_eq!(loops(&run.concat()), []);
}

#[test]
fn a_second_look_at_many_files_is_no_third() {
    let files: Vec<Line> =
        (0..12).map(|n| read(&format!("part{n}.rs"), &format!("the words of part {n}"))).collect();
    let shuffled: Vec<Line> =
        [5, 2, 9, 0, 7, 11, 3, 1, 10, 4, 8, 6].iter().map(|n| files[*n].clone()).collect();
    assert_eq!(standstill(&[files, shuffled].concat()), None);
}

#[test]
fn tests_between_edits_are_no_standstill() {
    let unit = |n: usize| {
        [
            edit("a.rs", &format!("x{n}"), &format!("y{n}")),
            sh("cargo test", "1 failed: parses"),
            read("b.rs", "mod b;"),
            says("Not yet."),
        ]
    };
    assert_eq!(standstill(&(0..8).flat_map(unit).collect::<Vec<_>>()), None);
}

#[test]
fn who_waits_does_not_stand_still() {
    let unit = [
        sh("sleep 30", ""),
        call("get_job_status", r#"{"id":7}"#, "state: running"),
        sh("tail -1 build.log", "linking"),
    ];
    assert_eq!(standstill(&times(8, &unit)), None);
}

#[test]
fn a_debugger_that_goes_through_a_loop_does_not_stand_still() {
    let at = |line: usize| call("debugger", r#"{"command":"next"}"#, &format!("> sum.py({line})total()"));
    let watch = call("debugger", r#"{"command":"p done"}"#, "False");
    assert_eq!(standstill(&times(7, &[at(12), watch, at(13)])), None);
}

#[test]
fn a_standstill_is_refused_late() {
    let refused_at = |lines: &[Line]| {
        let mut replay = ReplayRules::new(&DetectorsConfig::default()).start();
        for line in lines {
            replay.observe(&line.step());
        }
        replay.finish().actions.iter().find(|action| action.1 == Action::Reject).map(|action| action.0)
    };
    let first = wanders().len() / 3;
    assert_eq!(refused_at(&wanders()[..first + 8]), None);
}
