//! Who goes first where a model call and the log want the same core.

/// Lets everybody else go first, from this thread: a model call is waited for, and the log is not. Not so far back that
/// a busy gateway starves it: it keeps about a tenth.
///
/// A scheduler may still let it run for a whole slice of several milliseconds while a call waits, so whoever has stepped
/// back also says [`after_you`] between two pieces of work.
///
/// ```
/// std::thread::spawn(loopbreaker_observatory::step_back).join().expect("it never fails");
/// ```
pub fn step_back() {
    // Elsewhere it would hold for the whole process. If it is refused, the log is only less polite.
    #[cfg(target_os = "linux")]
    rustix::process::nice(10).unwrap_or_default();
}

/// Gives up the core to whoever waits for it; if nobody does, it costs next to nothing.
///
/// ```
/// loopbreaker_observatory::after_you();
/// ```
pub fn after_you() {
    std::thread::yield_now();
}
