//! A million sessions fit into 600 MB: a guard that reports no outcomes costs a ring of hashes and no more.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use loopbreaker::{DetectorsConfig, Guard};

/// The system's allocator with the bytes that each thread holds, since tests run side by side.
struct Measuring;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

#[expect(unsafe_code, reason = "the only way to see every allocation; each call is handed on as it came")]
unsafe impl GlobalAlloc for Measuring {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        hold(cost(layout.size()));
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        hold(cost(layout.size()));
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        hold(cost(size) - cost(layout.size()));
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        hold(-cost(layout.size()));
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static MEASURING: Measuring = Measuring;

/// What an allocation takes with its header and its rounding, as glibc does it and others do no worse.
fn cost(size: usize) -> isize {
    isize::try_from((size + 8).next_multiple_of(16).max(32)).unwrap_or(isize::MAX)
}

/// A thread that is ending has no counter any more, and nothing to prove.
fn hold(bytes: isize) {
    HELD.try_with(|held| held.set(held.get() + bytes)).unwrap_or_default();
}

/// Bytes that a guard holds per session, each with its ring of ten full.
fn bytes_per_session(sessions: usize, rounds: usize) -> f64 {
    let calls: Vec<String> = (0..10).map(|call| format!(r#"{{"path":"src/{call}.rs"}}"#)).collect();
    let before = HELD.get();
    let guard = Guard::with_max_sessions(&DetectorsConfig::default(), sessions * 2);
    for index in 0..sessions {
        let session = guard.session(&format!("session-{index}"));
        for call in calls.iter().cycle().take(calls.len() * rounds) {
            assert!(session.check("read_file", Some(call)).allowed);
        }
    }
    assert_eq!(guard.sessions(), sessions);
    (HELD.get() - before) as f64 / sessions as f64
}

/// `make bench` fills the whole million and looks at the process; here a part of it stands for the whole. A hash
/// table is at its emptiest right after it has grown, so that the share of its free places counts at its worst.
#[test]
fn a_session_with_a_window_of_ten_costs_at_most_600_bytes() {
    for sessions in [64 * 450, 64 * 900, 64 * 1_000] {
        let bytes = bytes_per_session(sessions, 1);
        assert!(bytes <= 600.0, "{bytes:.0} bytes for each of {sessions} sessions");
    }
}

#[test]
fn a_session_does_not_grow_with_the_calls_that_it_makes() {
    let (short, long) = (bytes_per_session(640, 1), bytes_per_session(640, 3));
    assert!((short - long).abs() < 1.0, "{short:.0} bytes after 10 calls, {long:.0} after 30");
}

#[test]
fn sessions_beyond_the_limit_are_given_back() {
    let guard = Guard::with_max_sessions(&DetectorsConfig::default(), 640);
    let fill = |from: usize| {
        for index in from..from + 20_000 {
            guard.session(&format!("session-{index}")).check("read_file", None);
        }
        HELD.get()
    };
    let (early, late) = (fill(0), fill(20_000));
    assert_eq!(early, late);
    assert!(guard.sessions() <= 640);
}
