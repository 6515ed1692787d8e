//! A time limit that costs nothing while the work does not have to wait.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// What ended first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TimedOut;

/// Runs `work` for at most `limit`. A timer is made only when the first poll did not finish it.
pub(crate) async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, TimedOut> {
    let mut work = pin!(work);
    let first = std::future::poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
    match first {
        Poll::Ready(done) => Ok(done),
        Poll::Pending => tokio::time::timeout(limit, work).await.map_err(|_| TimedOut),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{TimedOut, within};

    #[tokio::test]
    async fn work_that_never_ends_is_given_up() {
        assert_eq!(within(Duration::from_millis(3), std::future::pending::<()>()).await, Err(TimedOut));
    }

    #[tokio::test]
    async fn work_that_is_done_needs_no_time() {
        assert_eq!(within(Duration::ZERO, std::future::ready(7)).await, Ok(7));
    }
}
