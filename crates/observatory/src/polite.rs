//! Who goes first where a model call and the log want the same core.

use std::cell::Cell;

thread_local! {
    static IS_BEHIND: Cell<bool> = const { Cell::new(false) };
}

/// Gives up the core to whoever waits for it, between two pieces of work: a model call is waited for, and the log is not.
/// A scheduler would let this thread end its slice of several milliseconds first, whatever its priority. If nobody waits,
/// it costs next to nothing; who has fallen behind goes on.
///
/// ```
/// loopbreaker_observatory::after_you();
/// ```
pub fn after_you() {
    if !IS_BEHIND.get() {
        std::thread::yield_now();
    }
}

/// Says whether this thread has fallen behind, so that it can no longer afford to let others go first: beside a neighbour
/// that never rests, each time costs it a slice.
///
/// ```
/// loopbreaker_observatory::hurry(true);
/// ```
pub fn hurry(is_behind: bool) {
    IS_BEHIND.set(is_behind);
}
