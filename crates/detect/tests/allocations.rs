//! Once warm, asking costs no allocation: neither the guard, nor a fingerprint, nor a step that is new.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use loopbreaker::{
    DetectorsConfig, Fingerprint, Guard, Outcome, Redundancy, RedundancyConfig, Sentinel, SentinelConfig,
    SentinelLimit, Step, ToolPattern,
};

/// The system's allocator with a count for each thread, since tests run side by side.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[expect(unsafe_code, reason = "the only way to see every allocation; each call is handed on as it came")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A thread that is ending has no counter any more, and nothing to prove.
fn count() {
    ALLOCATIONS.try_with(|count| count.set(count.get() + 1)).unwrap_or_default();
}

/// Allocations of this thread while `work` runs.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// Runs `work` over all inputs once to warm up, then again, and wants no allocation the second time.
#[track_caller]
fn assert_none_once_warm<T>(inputs: &[T], mut work: impl FnMut(&T)) {
    inputs.iter().for_each(&mut work);
    for (index, input) in inputs.iter().enumerate() {
        assert_eq!(allocations(|| work(input)), 0, "allocations for input {index}");
    }
}

/// Different arguments of about 500 bytes, nested, with keys out of order.
fn nested_args(count: usize) -> Vec<String> {
    let one = |index: usize| {
        let words = "the quick brown fox jumps over the lazy dog \\u00e9 \\\"quoted\\\" ".repeat(4);
        format!(
            r#"{{"query":"{words}{index}","filter":{{"zone":["eu","us"],"after":"2026-01-01","deep":{{"y":-1.50e3,"x":{index}}}}},"limit":50,"cursor":null,"by":["b","a",{{"z":true,"a":[]}}]}}"#
        )
    };
    (0..count).map(one).collect()
}

#[test]
fn the_counter_sees_an_allocation() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn a_fingerprint_of_sorted_unsorted_or_nested_arguments_allocates_nothing() {
    let large = format!(r#"{{"text":"{}","path":"a"}}"#, "long \\n line ".repeat(5_000));
    let mut inputs = nested_args(8);
    inputs.extend(
        [r#"{"a":1,"b":[2,3],"c":{"d":"e"}}"#, r#"{"c":{"d":"e"},"b":[2,3],"a":1}"#].map(String::from),
    );
    inputs.extend(
        ["", "null", "{}", "ls -la", "[1.5e300,-0.0,12345678901234567890]", &large].map(String::from),
    );
    assert_none_once_warm(&inputs, |args| {
        std::hint::black_box(Fingerprint::of_call("search", Some(args)));
    });
}

#[test]
fn a_fingerprint_of_a_string_that_holds_an_object_allocates_nothing() {
    let quoted = |args: &String| format!("\"{}\"", args.replace('\\', "\\\\").replace('"', "\\\""));
    let inputs: Vec<String> = nested_args(8).iter().map(quoted).collect();
    assert_eq!(
        Fingerprint::of_call("search", Some(&inputs[0])),
        Fingerprint::of_call("search", Some(&nested_args(1)[0]))
    );
    assert_none_once_warm(&inputs, |args| {
        std::hint::black_box(Fingerprint::of_call("search", Some(args)));
    });
}

#[test]
fn an_admitted_call_of_the_sentinel_allocates_nothing() {
    let limit = SentinelLimit::new(3, 50).unwrap();
    let config = SentinelConfig { default: limit.clone(), ..SentinelConfig::default() };
    let mut sentinel = Sentinel::new(&config.with_override(ToolPattern::new("sear*"), limit));
    assert_none_once_warm(&nested_args(64), |args| {
        sentinel.check("search", Some(args)).unwrap();
        sentinel.check("fetch", Some(args)).unwrap();
        sentinel.peek("fetch", Some(args)).unwrap();
    });
}

#[test]
fn a_scope_that_was_used_before_allocates_nothing() {
    let mut sentinel = Sentinel::new(&SentinelConfig::default());
    assert_none_once_warm(&nested_args(64), |args| {
        for item in ["item-1", "item-2"] {
            sentinel.scope(item).check("search", Some(args)).unwrap();
        }
    });
}

#[test]
fn an_allowed_call_of_the_guard_allocates_nothing() {
    let guard = Guard::new(&DetectorsConfig::default());
    let sessions = ["run-1", "run-2"].map(|id| guard.session(id));
    assert_none_once_warm(&nested_args(64), |args| {
        for session in &sessions {
            assert!(session.peek("search", Some(args)).allowed);
            assert!(session.check("search", Some(args)).allowed);
        }
        assert!(
            guard.session("run-1").check("fetch", Some(args)).allowed,
            "finding the session costs none either"
        );
    });
}

#[test]
fn an_allowed_call_of_a_session_that_reports_outcomes_allocates_nothing() {
    let guard = Guard::new(&DetectorsConfig::default());
    let session = guard.session("run-1");
    let calls = nested_args(96);
    for (index, args) in calls.iter().enumerate() {
        session.outcome(&Step::call("search", args).answered(&format!("hit {index}x"), None));
    }
    assert_none_once_warm(&nested_args(64), |args| {
        assert!(session.check("fetch", Some(args)).allowed);
    });
}

#[test]
fn a_new_step_allocates_nothing_in_a_full_window() {
    let tools = ["search", "read_file", "edit_file", "bash", "frobnicate"];
    let calls = nested_args(200);
    let results: Vec<String> =
        (0..calls.len()).map(|index| format!("answer number {index}x of the tool")).collect();
    let mut detector = Redundancy::new(&RedundancyConfig::default());
    let steps: Vec<(Step<'_>, Outcome)> = (0..calls.len())
        .map(|index| {
            let step = Step::call(tools[index % tools.len()], &calls[index]).answered(&results[index], None);
            (step, detector.read(&step))
        })
        .collect();
    assert_none_once_warm(&steps, |(step, outcome)| {
        assert_eq!(detector.observe_read(step, *outcome), []);
    });
}

#[test]
fn a_new_short_text_allocates_nothing_in_a_full_window() {
    let words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"];
    let word = |index: usize, at: usize| format!("{}{}", words[at], index * 31 + at * at);
    let text = |index: usize| (0..8).map(|at| word(index, at)).collect::<Vec<_>>().join(" ");
    let texts: Vec<String> = (0..200).map(text).collect();
    let mut detector = Redundancy::new(&RedundancyConfig::default());
    let steps: Vec<(Step<'_>, Outcome)> = texts
        .iter()
        .map(|text| {
            let step = Step::said(text);
            (step, detector.read(&step))
        })
        .collect();
    assert_none_once_warm(&steps, |(step, outcome)| {
        assert_eq!(detector.observe_read(step, *outcome), []);
    });
}

#[test]
fn reading_a_result_allocates_nothing() {
    let line = |second: usize| format!("2026-01-01T10:00:{second:02}Z INFO request {second} took 12 ms");
    let log = (0..40).map(line).collect::<Vec<_>>().join("\n");
    let inputs = [log, "error: no such file".to_owned(), String::new()];
    let detector = Redundancy::new(&RedundancyConfig::default());
    assert_none_once_warm(&inputs, |result| {
        std::hint::black_box(detector.read(&Step::call("bash", "{}").answered(result, None)));
    });
}
