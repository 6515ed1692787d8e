//! Who goes first where a model call and the log want the same core.

use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    static IS_BEHIND: Cell<bool> = const { Cell::new(false) };
    static GAVE_WAY: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// A model call does not notice that it waits for so long; giving way more often would cost more than it is worth.
const AT_A_STRETCH: Duration = Duration::from_micros(200);

/// Gives up the core to whoever waits for it, between two pieces of work: a model call is waited for, and the log is not.
/// A scheduler would let this thread end its slice of several milliseconds first, whatever its priority. Who has fallen
/// behind goes on.
///
/// ```
/// loopbreaker_observatory::after_you();
/// ```
pub fn after_you() {
    if IS_BEHIND.get() {
        return;
    }
    let now = Instant::now();
    if GAVE_WAY.get().is_none_or(|last| now - last >= AT_A_STRETCH) {
        std::thread::yield_now();
        GAVE_WAY.set(Some(Instant::now()));
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
