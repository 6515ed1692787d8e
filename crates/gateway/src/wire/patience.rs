//! A time limit for one wait after the other.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// How long is waited. The timer is made with the first wait that is no empty one, and left where it stands when the
/// next one ends later: it looks again when it goes off, which most never do.
#[derive(Debug)]
pub(crate) struct Patience {
    ends: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    /// Waits at most so long from now on.
    pub(crate) fn of(limit: Duration) -> Self {
        Self { ends: end_of(limit), timer: None }
    }

    /// Another wait begins.
    pub(crate) fn begin(&mut self, limit: Duration) {
        self.ends = end_of(limit);
    }

    /// Ready when the wait was too long.
    pub(crate) fn poll_over(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let ends = self.ends;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(ends)));
        if timer.deadline() > ends {
            timer.as_mut().reset(ends);
        }
        loop {
            ready!(timer.as_mut().poll(context));
            if Instant::now() >= ends {
                return Poll::Ready(());
            }
            timer.as_mut().reset(ends);
        }
    }
}

/// Limits that are too long for the clock are as good as none.
fn end_of(limit: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);
    Instant::now() + limit.min(YEAR)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;
    use std::time::{Duration, Instant};

    use super::Patience;

    const SHORT: Duration = Duration::from_millis(20);

    async fn is_over(patience: &mut Patience) -> bool {
        poll_fn(|context| Poll::Ready(patience.poll_over(context).is_ready())).await
    }

    #[tokio::test]
    async fn a_wait_that_begins_anew_has_all_of_its_time() {
        let begun = Instant::now();
        let mut patience = Patience::of(SHORT);
        assert!(!is_over(&mut patience).await);
        patience.begin(3 * SHORT);
        poll_fn(|context| patience.poll_over(context)).await;
        assert!(begun.elapsed() >= 3 * SHORT, "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn a_shorter_wait_is_not_as_long_as_the_one_before() {
        let mut patience = Patience::of(Duration::MAX);
        assert!(!is_over(&mut patience).await);
        patience.begin(SHORT);
        let over = poll_fn(|context| patience.poll_over(context));
        assert_eq!(tokio::time::timeout(Duration::from_secs(10), over).await, Ok(()));
    }
}
