//! The server's clock, as far as its answers told it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::now_millis;

/// How far a server's clock is ahead of ours. Two machines seldom agree, so until an answer has told it nothing is said
/// in the server's time.
#[derive(Debug)]
pub(super) struct Clock {
    ahead: AtomicI64,
}

const UNKNOWN: i64 = i64::MIN;

impl Default for Clock {
    fn default() -> Self {
        Self { ahead: AtomicI64::new(UNKNOWN) }
    }
}

impl Clock {
    /// The last moment, by the server's clock, at which somebody who asks now still waits for the answer; 0 when that
    /// clock is not known. What a frozen server does later than that must leave no trace: whoever asked was told that
    /// it failed, asks again, and would meet itself.
    pub(super) fn until(&self, timeout: Duration) -> i64 {
        match self.ahead.load(Ordering::Relaxed) {
            UNKNOWN => 0,
            ahead => now().saturating_add(ahead).saturating_add(millis(timeout)),
        }
    }

    /// The server answered, and said its time. By the moment of the question it is rather too far ahead than too
    /// little: what comes in time is never taken for late.
    pub(super) fn learn(&self, asked: i64, said: i64) {
        self.ahead.store(said.saturating_sub(asked).max(UNKNOWN + 1), Ordering::Relaxed);
    }
}

/// Milliseconds since 1970, by our clock.
pub(super) fn now() -> i64 {
    i64::try_from(now_millis()).unwrap_or(i64::MAX)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Clock, now};

    #[test]
    fn nothing_is_said_in_a_time_that_is_not_known() {
        assert_eq!(Clock::default().until(Duration::from_millis(250)), 0);
    }

    #[test]
    fn a_limit_is_told_in_the_servers_time() {
        for ahead in [-3_600_000, 0, 3_600_000] {
            let clock = Clock::default();
            clock.learn(now(), now() + ahead);
            let left = clock.until(Duration::from_millis(250)) - now() - ahead;
            assert!((200..=300).contains(&left), "{left}");
        }
    }

    #[test]
    fn no_time_is_too_strange() {
        for (asked, said) in [(i64::MAX, i64::MIN), (i64::MIN, i64::MAX), (0, i64::MIN)] {
            let clock = Clock::default();
            clock.learn(asked, said);
            clock.until(Duration::MAX);
        }
    }
}
