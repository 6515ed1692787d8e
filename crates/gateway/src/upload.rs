//! How the body of a client comes in while it is passed on, for whoever waits for the answer to it.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::within::{TimedOut, within};

/// A body on its way.
#[derive(Debug)]
pub(crate) struct Upload {
    began: Instant,
    /// When its last piece went on, in milliseconds since it began.
    moved: AtomicU64,
    /// Whether the next piece was asked for and has not come.
    waits_for_client: AtomicBool,
}

impl Upload {
    /// A body that begins to come in.
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), moved: AtomicU64::new(0), waits_for_client: AtomicBool::new(false) }
    }

    /// The next piece was asked for; whether it has come, or the end.
    pub(crate) fn polled(&self, has_come: bool) {
        self.waits_for_client.store(!has_come, Ordering::Relaxed);
        if has_come {
            let moved = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.moved.store(moved, Ordering::Relaxed);
        }
    }

    /// What is left of a time limit that began with the last piece. As long as its client is waited for, all of it is.
    fn left(&self, limit: Duration) -> Option<Duration> {
        if self.waits_for_client.load(Ordering::Relaxed) {
            return Some(limit);
        }
        let moved = self.began + Duration::from_millis(self.moved.load(Ordering::Relaxed));
        limit.checked_sub(moved.elapsed()).filter(|left| !left.is_zero())
    }
}

/// Runs `work` for at most `limit`. The time in which the client of an upload lets others wait does not count: whoever
/// answers it can do nothing about that.
pub(crate) async fn within_of_others<T>(
    limit: Duration,
    upload: Option<&Upload>,
    work: impl Future<Output = T>,
) -> Result<T, TimedOut> {
    let mut work = pin!(work);
    let mut left = limit;
    loop {
        match within(left, work.as_mut()).await {
            Ok(done) => return Ok(done),
            Err(TimedOut) => left = upload.and_then(|upload| upload.left(limit)).ok_or(TimedOut)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Upload, within_of_others};
    use crate::within::TimedOut;

    const LIMIT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn the_time_of_a_slow_client_does_not_count() {
        let upload = Upload::new();
        let slowly = async {
            for _ in 0..10 {
                upload.polled(false);
                tokio::time::sleep(LIMIT / 2).await;
                upload.polled(true);
            }
            7
        };
        assert_eq!(within_of_others(LIMIT, Some(&upload), slowly).await, Ok(7));
    }

    #[tokio::test]
    async fn whoever_does_not_answer_what_has_come_is_given_up() {
        let never = std::future::pending::<()>;
        let upload = Upload::new();
        upload.polled(true);
        assert_eq!(within_of_others(LIMIT, Some(&upload), never()).await, Err(TimedOut));
        assert_eq!(within_of_others(LIMIT, None, never()).await, Err(TimedOut));
    }
}
