//! What seldom happens, waited for beside what often does: it is polled only when something has woken it.
//!
//! Whatever wakes a task, all that it waits for is polled. The end of a connection comes once, and would be asked for
//! several times with every request.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// A future that is left alone until it is woken.
pub(crate) struct Seldom<F> {
    work: F,
    bell: Arc<Bell>,
    waker: Waker,
}

impl<F: Future + Unpin> Seldom<F> {
    pub(crate) fn new(work: F) -> Self {
        let bell = Arc::new(Bell { has_rung: AtomicBool::new(true), listener: Mutex::default() });
        Self { work, waker: Waker::from(Arc::clone(&bell)), bell }
    }
}

impl<F: Future + Unpin> Future for Seldom<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        // Who rings before this is seen below, who does later tells the one that listens now.
        this.bell.listen(context.waker());
        if !this.bell.has_rung.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        Pin::new(&mut this.work).poll(&mut Context::from_waker(&this.waker))
    }
}

/// Remembers that it was woken, and passes it on.
struct Bell {
    has_rung: AtomicBool,
    listener: Mutex<Option<Waker>>,
}

impl Bell {
    fn listen(&self, waker: &Waker) {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if !listener.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *listener = Some(waker.clone());
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.has_rung.store(true, Ordering::Release);
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner).clone();
        listener.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use super::Seldom;

    #[tokio::test]
    async fn it_is_polled_when_it_is_woken_and_only_then() {
        let (tell, told) = tokio::sync::oneshot::channel::<u8>();
        let (mut told, polled) = (pin!(told), Cell::new(0));
        let counted = pin!(poll_fn(|context| {
            polled.set(polled.get() + 1);
            told.as_mut().poll(context)
        }));
        let mut seldom = pin!(Seldom::new(counted));
        for _ in 0..3 {
            let first = poll_fn(|context| Poll::Ready(seldom.as_mut().poll(context))).await;
            assert!(first.is_pending());
        }
        assert_eq!(polled.get(), 1);
        tell.send(7).unwrap();
        assert_eq!(seldom.await, Ok(7));
        assert_eq!(polled.get(), 2);
    }
}
