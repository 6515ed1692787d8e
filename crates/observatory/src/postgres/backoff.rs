//! When to try a server again that did not answer.

use std::time::{Duration, Instant};

use crate::error::{StoreError, Stored};

/// How often in a row the server did not answer. Meanwhile nobody is kept waiting for it.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    /// When it is tried again, and why it could not be used the last time.
    until: Option<(Instant, StoreError)>,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(125);
    /// Short enough for a store that is back to be used again soon.
    const LONGEST: Duration = Duration::from_secs(2);

    /// Whether the server may be tried now; what it failed with the last time, if not.
    pub(super) fn is_over(&self) -> Stored<()> {
        match &self.until {
            Some((until, why)) if Instant::now() < *until => Err(why.clone()),
            _ => Ok(()),
        }
    }

    /// The server did not answer once more.
    pub(super) fn failed(&mut self, why: StoreError) {
        self.failures = self.failures.saturating_add(1);
        self.until = Some((Instant::now() + self.pause(), why));
    }

    fn pause(&self) -> Duration {
        let doubled = 1_u32.checked_shl(self.failures.saturating_sub(1)).unwrap_or(u32::MAX);
        Self::FIRST.saturating_mul(doubled).min(Self::LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Backoff, StoreError};

    #[test]
    fn a_server_that_never_failed_is_tried_at_once_and_one_that_did_is_not() {
        let mut backoff = Backoff::default();
        assert!(backoff.is_over().is_ok());
        backoff.failed(StoreError::Unreachable("nobody listens".to_owned()));
        assert_eq!(backoff.is_over(), Err(StoreError::Unreachable("nobody listens".to_owned())));
    }

    proptest! {
        #[test]
        fn a_pause_is_never_shorter_than_the_one_before_nor_longer_than_the_longest(failures in 1_u32..200) {
            let pause = |failures| Backoff { failures, until: None }.pause();
            prop_assert!(pause(failures) <= pause(failures + 1));
            prop_assert!(pause(failures) >= Backoff::FIRST && pause(failures) <= Backoff::LONGEST);
        }
    }
}
