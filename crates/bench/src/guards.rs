//! Asking before a call: a window of 50 that is full, arguments of 500 bytes that it has not seen.

use std::hint::black_box;

use loopbreaker::{DetectorsConfig, Guard, Sentinel, SentinelConfig, SentinelLimit, Step};
use serde_json::Value;
use tool_loop_break::LoopDetector;
use tool_loop_guard::LoopGuard;

use crate::inputs::{POOL, nested_args};
use crate::naive::{NaiveGuard, canonical_text, short_hash};
use crate::{Contender, Operation, Scenario, over};

const TOOL: &str = "search_code";
const WINDOW: u32 = 50;
const THRESHOLD: u32 = 3;

pub(crate) static SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "guard-check",
        about: "guard check, nested 500 B arguments, window 50 full, all different",
        at_most_nanos: Some(2_000.0),
        contenders: &[
            Contender::new("guard", "a session among many, from text", guard),
            Contender::new("sentinel", "bare, without sessions", sentinel),
            Contender::new("guard-with-outcomes", "redundancy has a word too", guard_with_outcomes),
            Contender::new("tool-loop-guard", "the arguments parsed beforehand, not counted", loop_guard)
                .must_beat(),
            Contender::new(
                "tool-loop-guard+parse",
                "from text, as it comes from the model",
                loop_guard_from_text,
            )
            .must_beat(),
            Contender::new(
                "tool-loop-break",
                "compares raw text: sees no equal calls in another spelling",
                loop_break,
            ),
            Contender::new("tool-loop-break+sort", "fed with a short hash of sorted JSON", loop_break_sorted),
            Contender::new("naive", "serde_json::Value, to_string, HashMap", naive),
        ],
    },
    Scenario {
        name: "guard-block",
        about: "guard check of a call that is blocked, with its feedback, window 50",
        // A block comes with words for the model: measured, without a floor.
        at_most_nanos: None,
        contenders: &[
            Contender::new("guard", "with words for the model", guard_block),
            Contender::new("tool-loop-guard", "the arguments parsed beforehand; no words", loop_guard_block),
            Contender::new("naive", "serde_json::Value, to_string, HashMap; no words", naive_block),
        ],
    },
];

fn config() -> DetectorsConfig {
    let default = SentinelLimit::new(THRESHOLD, WINDOW).unwrap_or_default();
    DetectorsConfig {
        sentinel: SentinelConfig { default, ..SentinelConfig::default() },
        ..DetectorsConfig::default()
    }
}

fn texts() -> Vec<String> {
    (0..POOL).map(nested_args).collect()
}

fn values() -> Vec<Value> {
    texts().iter().filter_map(|text| serde_json::from_str(text).ok()).collect()
}

fn guard() -> Operation {
    let guard = Guard::new(&config());
    for other in 0..1_000 {
        guard.session(&format!("other-{other}")).check(TOOL, None);
    }
    let session = guard.session("session");
    over(texts(), move |args| assert!(black_box(session.check(TOOL, Some(args))).allowed))
}

fn guard_with_outcomes() -> Operation {
    let session = Guard::new(&config()).session("session");
    for index in 0..POOL {
        session
            .outcome(&Step::call("read_file", &nested_args(index)).answered(&format!("line {index}"), None));
    }
    over(texts(), move |args| assert!(black_box(session.check(TOOL, Some(args))).allowed))
}

fn sentinel() -> Operation {
    let mut sentinel = Sentinel::new(&config().sentinel);
    over(texts(), move |args| assert!(black_box(sentinel.check(TOOL, Some(args))).is_ok()))
}

fn loop_guard() -> Operation {
    let mut guard = LoopGuard::with_capacity(WINDOW as usize, THRESHOLD as usize);
    over(values(), move |args| assert!(black_box(guard.record(TOOL, args)).is_ok()))
}

fn loop_guard_from_text() -> Operation {
    let mut guard = LoopGuard::with_capacity(WINDOW as usize, THRESHOLD as usize);
    over(texts(), move |args| {
        let args: Value = serde_json::from_str(args).unwrap_or_default();
        assert!(black_box(guard.record(TOOL, &args)).is_ok());
    })
}

fn loop_break() -> Operation {
    let mut detector = LoopDetector::new(WINDOW as usize, THRESHOLD);
    over(texts(), move |args| assert!(!black_box(detector.record(TOOL, args))))
}

fn loop_break_sorted() -> Operation {
    let mut detector = LoopDetector::new(WINDOW as usize, THRESHOLD);
    over(texts(), move |args| assert!(!black_box(detector.record(TOOL, &short_hash(&canonical_text(args))))))
}

fn naive() -> Operation {
    let mut guard = NaiveGuard::new(WINDOW as usize, THRESHOLD);
    over(texts(), move |args| assert!(black_box(guard.check(TOOL, args))))
}

fn guard_block() -> Operation {
    let session = Guard::new(&config()).session("session");
    let args = nested_args(0);
    for _ in 0..THRESHOLD {
        session.check(TOOL, Some(&args));
    }
    over(vec![args], move |args| assert!(!black_box(session.check(TOOL, Some(args))).allowed))
}

fn loop_guard_block() -> Operation {
    let mut guard = LoopGuard::with_capacity(WINDOW as usize, THRESHOLD as usize);
    let args: Value = serde_json::from_str(&nested_args(0)).unwrap_or_default();
    // It records blocked calls too, so that its window soon holds nothing else.
    for _ in 0..WINDOW {
        black_box(guard.record(TOOL, &args)).unwrap_or_default();
    }
    over(vec![args], move |args| assert!(black_box(guard.record(TOOL, args)).is_err()))
}

fn naive_block() -> Operation {
    let mut guard = NaiveGuard::new(WINDOW as usize, THRESHOLD);
    let args = nested_args(0);
    for _ in 0..THRESHOLD {
        guard.check(TOOL, &args);
    }
    over(vec![args], move |args| assert!(!black_box(guard.check(TOOL, args))))
}
