//! Taking steps in: a full window of 64, results read beforehand; reading results; looking for a chant.

use std::hint::black_box;

use loopbreaker::{Chant, Outcome, Redundancy, RedundancyConfig, Step};

use crate::inputs::{POOL, chant, log, nested_args, prose, words};
use crate::naive::sha256;
use crate::{Contender, Operation, Scenario, over};

/// `observe` has at most this long when the result has been read already.
const OBSERVE_NANOS: Option<f64> = Some(5_000.0);

pub(crate) static OBSERVE: &[Scenario] = &[
    Scenario {
        name: "observe-different",
        about: "redundancy observe, window 64 full, 500 B arguments, all calls different",
        at_most_nanos: OBSERVE_NANOS,
        contenders: &[Contender::new("redundancy", "", different)],
    },
    Scenario {
        name: "observe-repeating",
        about: "redundancy observe, window 64 full, 500 B arguments, one call with one result again and again",
        // A step that raises a finding puts it into words too: measured, without a floor.
        at_most_nanos: None,
        contenders: &[Contender::new("redundancy", "each one is a finding with its words", repeating)],
    },
    Scenario {
        name: "observe-failing",
        about: "redundancy observe, window 64 full, 500 B arguments, near-equal calls that fail alike",
        // A step that raises a finding puts it into words too: measured, without a floor.
        at_most_nanos: None,
        contenders: &[Contender::new("redundancy", "each one is a finding with its words", failing)],
    },
    Scenario {
        name: "observe-texts",
        about: "redundancy observe, window 64 full, texts of 500 B, all different",
        at_most_nanos: OBSERVE_NANOS,
        contenders: &[Contender::new("redundancy", "", texts)],
    },
    Scenario {
        name: "observe-mix",
        about: "redundancy observe, window 64 full, a coding session: reads, edits, commands, tests, words",
        at_most_nanos: OBSERVE_NANOS,
        contenders: &[Contender::new("redundancy", "", mix)],
    },
];

pub(crate) static READ: &[Scenario] = &[
    Scenario {
        name: "read-2k",
        about: "reading a 2 kB result: folding, signals, fingerprint",
        at_most_nanos: None,
        contenders: &[
            Contender::new("redundancy", "", || read(2_048)),
            Contender::new("sha256", "only the hash, nothing folded or read", || hash_only(2_048)),
        ],
    },
    Scenario {
        name: "read-64k",
        about: "reading a 64 kB result: folding, signals, fingerprint",
        at_most_nanos: None,
        contenders: &[
            Contender::new("redundancy", "", || read(65_536)),
            Contender::new("sha256", "only the hash, nothing folded or read", || hash_only(65_536)),
        ],
    },
];

pub(crate) static CHANT: &[Scenario] = &[
    Scenario {
        name: "chant-prose",
        about: "looking for a chant in 4 kB of prose",
        at_most_nanos: None,
        contenders: &[Contender::new("chant", "", || look_for_chant(prose, false))],
    },
    Scenario {
        name: "chant-chant",
        about: "finding a chant of 4 kB",
        at_most_nanos: None,
        contenders: &[Contender::new("chant", "", || look_for_chant(chant, true))],
    },
];

/// The words of a step.
#[derive(Default)]
struct Words {
    thought: Option<String>,
    tool: Option<&'static str>,
    args: Option<String>,
    result: Option<String>,
}

impl Words {
    fn call(tool: &'static str, args: String, result: String) -> Self {
        Self { tool: Some(tool), args: Some(args), result: Some(result), thought: None }
    }

    fn step(&self) -> Step<'_> {
        Step {
            thought: self.thought.as_deref(),
            tool: self.tool,
            args: self.args.as_deref(),
            result: self.result.as_deref(),
            ..Step::default()
        }
    }
}

/// Observes these steps again and again; `findings` says whether each step of a full window gives one.
fn observe(steps: Vec<Words>, findings: bool) -> Operation {
    let mut detector = Redundancy::new(&RedundancyConfig::default());
    let with_outcome = |words: Words| {
        let outcome = detector.read(&words.step());
        (words, outcome)
    };
    let steps: Vec<(Words, Outcome)> = steps.into_iter().map(with_outcome).collect();
    for (words, outcome) in steps.iter().cycle().take(2 * POOL) {
        detector.observe_read(&words.step(), *outcome);
    }
    over(steps, move |(words, outcome)| {
        assert_eq!(black_box(detector.observe_read(&words.step(), *outcome)).is_empty(), !findings);
    })
}

fn different() -> Operation {
    let call =
        |index| Words::call("search_code", nested_args(index), format!("{} x{index}", words(index, 20)));
    observe((0..POOL).map(call).collect(), false)
}

fn repeating() -> Operation {
    observe(vec![Words::call("search_code", nested_args(0), "3 hits in src/lib.rs".into())], true)
}

fn failing() -> Operation {
    let call = |index| {
        let args = nested_args(0).replace(r#""limit":50"#, &format!(r#""limit":"{index}x""#));
        Words::call("search_code", args, format!("error: no such index 'main-{index}'"))
    };
    observe((0..POOL).map(call).collect(), true)
}

fn texts() -> Operation {
    let text = |index| Words { thought: Some(prose(index, 500)), ..Words::default() };
    observe((0..POOL).map(text).collect(), false)
}

/// Eight steps for one file: think, read, search, edit, test (fails), edit, test, commit.
fn mix() -> Operation {
    let file = |index: usize| {
        let path = format!("crates/core/src/{}_{index}.rs", words(index, 1));
        let edit = |old: usize, new: usize| {
            format!(
                r#"{{"path":"{path}","old_str":"fn {}() {{}}","new_str":"fn {}() {{\n    {}\n}}"}}"#,
                words(old, 1),
                words(new, 2),
                words(new, 12)
            )
        };
        let test = || format!(r#"{{"command":"cargo test -p core {index} 2>&1 | tail -20"}}"#);
        [
            Words { thought: Some(prose(index, 300)), ..Words::default() },
            Words::call("read_file", format!(r#"{{"path":"{path}","limit":200}}"#), log(index, 400)),
            Words::call(
                "grep",
                format!(r#"{{"pattern":"fn {}","path":"crates"}}"#, words(index, 2)),
                words(index, 30),
            ),
            Words::call("edit_file", edit(index, index + 1), format!("edited {path}")),
            Words::call("bash", test(), format!("error[E0308]: mismatched types\n  --> {path}:12:5")),
            Words::call("edit_file", edit(index + 1, index + 2), format!("edited {path}")),
            Words::call("bash", test(), format!("test result: ok. {index} passed; 0 failed")),
            Words::call(
                "bash",
                format!(r#"{{"command":"git commit -am 'fix {index}'"}}"#),
                format!("[main {index}a]"),
            ),
        ]
    };
    observe((0..POOL / 8).flat_map(file).collect(), false)
}

fn results(bytes: usize) -> Vec<String> {
    (0..4).map(|index| log(index * 100, bytes)).collect()
}

fn read(bytes: usize) -> Operation {
    let detector = Redundancy::new(&RedundancyConfig::default());
    over(results(bytes), move |result| {
        black_box(detector.read(&Step::call("bash", "{}").answered(result, None)));
    })
}

fn hash_only(bytes: usize) -> Operation {
    over(results(bytes), |result| {
        black_box(sha256("bash", result));
    })
}

fn look_for_chant(text: fn(usize, usize) -> String, found: bool) -> Operation {
    over((0..4).map(|index| text(index, 4_096)).collect(), move |text: &String| {
        assert_eq!(black_box(Chant::of(text)).is_some(), found);
    })
}
