//! A bounded queue between requests and one thread that takes its time.
//!
//! Whoever puts something in never waits and never wakes the other side more than once per batch: a wake-up costs more
//! than most of what is queued.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The side that puts in; cheap to clone.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    sender: SyncSender<Item<T>>,
    urgency: Arc<Urgency>,
}

/// The side that takes out.
#[derive(Debug)]
pub(crate) struct Outlet<T> {
    receiver: Receiver<Item<T>>,
    urgency: Arc<Urgency>,
}

#[derive(Debug)]
enum Item<T> {
    One(T),
    Flush(Flush),
}

/// Somebody waits for everything before this to be done.
#[derive(Debug)]
pub(crate) struct Flush(SyncSender<bool>);

/// Why [`Outlet::gather`] returned.
#[derive(Debug)]
pub(crate) enum Gathered {
    /// The batch is full, or its time is over.
    Batch,
    /// Somebody waits: do what was gathered at once, then say so.
    Flush(Flush),
    /// Nothing will come any more.
    Closed,
}

/// A queue for so many items.
pub(crate) fn queue<T>(capacity: usize) -> (Queue<T>, Outlet<T>) {
    let (sender, receiver) = sync_channel(capacity);
    let urgency = Arc::new(Urgency::default());
    (Queue { sender, urgency: Arc::clone(&urgency) }, Outlet { receiver, urgency })
}

impl<T> Queue<T> {
    /// Puts an item in; false when there is no room, or nobody to take it.
    pub(crate) fn offer(&self, item: T) -> bool {
        self.sender.try_send(Item::One(item)).is_ok()
    }

    /// Waits until everything that is in the queue now was dealt with; whether that went well and in time.
    pub(crate) fn flush(&self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        let (done, result) = sync_channel(1);
        let _urgent = self.urgency.raise();
        let mut item = Item::Flush(Flush(done));
        loop {
            match self.sender.try_send(item) {
                Ok(()) => break,
                Err(TrySendError::Disconnected(_)) => return false,
                Err(TrySendError::Full(_)) if Instant::now() >= deadline => return false,
                Err(TrySendError::Full(back)) => item = back,
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        result.recv_timeout(left).unwrap_or(false)
    }
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), urgency: Arc::clone(&self.urgency) }
    }
}

impl<T> Outlet<T> {
    /// Waits for a first item (at most `idle`, when given), then collects what comes within `within`, looking in once
    /// per `tick`, until there are `max`.
    pub(crate) fn gather(&self, batch: &mut Vec<T>, max: usize, pace: &Pace) -> Gathered {
        let first = match pace.idle {
            None => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(idle) => self.receiver.recv_timeout(idle),
        };
        match first {
            Ok(Item::One(item)) => batch.push(item),
            Ok(Item::Flush(flush)) => return Gathered::Flush(flush),
            Err(RecvTimeoutError::Timeout) => return Gathered::Batch,
            Err(RecvTimeoutError::Disconnected) => return Gathered::Closed,
        }
        let deadline = Instant::now() + pace.within;
        loop {
            let is_last_look = Instant::now() >= deadline || self.is_urgent();
            while batch.len() < max {
                match self.receiver.try_recv() {
                    Ok(Item::One(item)) => batch.push(item),
                    Ok(Item::Flush(flush)) => return Gathered::Flush(flush),
                    Err(TryRecvError::Empty) => break,
                    // What was gathered is dealt with first; the next call says that it was the last.
                    Err(TryRecvError::Disconnected) => return Gathered::Batch,
                }
            }
            if is_last_look || batch.len() >= max {
                return Gathered::Batch;
            }
            self.pause(pace.tick);
        }
    }

    /// Waits, but not while somebody waits for the queue to be done.
    pub(crate) fn pause(&self, duration: Duration) {
        self.urgency.wait(duration);
    }

    /// Whether somebody waits for the queue to be done.
    pub(crate) fn is_urgent(&self) -> bool {
        *self.urgency.lock() > 0
    }
}

impl Flush {
    /// Tells who waits that everything was dealt with, and whether that went well.
    pub(crate) fn done(self, went_well: bool) {
        // Whoever gave up waiting does not listen any more.
        self.0.try_send(went_well).unwrap_or_default();
    }
}

/// How patiently a batch is gathered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// The longest wait for a first item; for ever when `None`.
    pub(crate) idle: Option<Duration>,
    /// The longest wait for more.
    pub(crate) within: Duration,
    /// How often to look in meanwhile.
    pub(crate) tick: Duration,
}

/// How many wait for the queue to be done.
#[derive(Debug, Default)]
struct Urgency {
    waiting: Mutex<usize>,
    changed: Condvar,
}

impl Urgency {
    fn raise(&self) -> Urgent<'_> {
        *self.lock() += 1;
        self.changed.notify_all();
        Urgent(self)
    }

    fn wait(&self, duration: Duration) {
        let calm = |waiting: &mut usize| *waiting == 0;
        drop(self.changed.wait_timeout_while(self.lock(), duration, calm));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, usize> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Urgent<'a>(&'a Urgency);

impl Drop for Urgent<'_> {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Gathered, Pace, queue};

    const PATIENCE: Duration = Duration::from_secs(20);
    const AT_ONCE: Pace = Pace { idle: Some(Duration::ZERO), within: Duration::ZERO, tick: Duration::ZERO };

    #[test]
    fn a_full_queue_takes_nothing_more() {
        let (queue, outlet) = queue(2);
        assert_eq!([1, 2, 3].map(|item| queue.offer(item)), [true, true, false]);
        let mut batch = Vec::new();
        assert!(matches!(outlet.gather(&mut batch, 10, &AT_ONCE), Gathered::Batch));
        assert_eq!(batch, [1, 2]);
        assert!(queue.offer(4), "there is room again");
    }

    #[test]
    fn a_queue_that_nobody_reads_takes_nothing() {
        let (queue, outlet) = queue(2);
        drop(outlet);
        assert!(!queue.offer(1));
        assert!(!queue.flush(PATIENCE), "and does not wait for anybody");
    }

    #[test]
    fn a_batch_has_at_most_so_many() {
        let (queue, outlet) = queue(10);
        (0..5).for_each(|item| assert!(queue.offer(item)));
        let mut batch = Vec::new();
        outlet.gather(&mut batch, 3, &Pace { within: PATIENCE, ..AT_ONCE });
        assert_eq!(batch, [0, 1, 2], "a full batch does not wait for its time");
    }

    #[test]
    fn a_flush_ends_every_wait_and_tells_how_it_went() {
        for went_well in [true, false] {
            let (queue, outlet) = queue(10);
            assert!(queue.offer(1));
            let taker = std::thread::spawn(move || {
                let mut batch = Vec::new();
                let patient = Pace { idle: None, within: PATIENCE, tick: PATIENCE };
                loop {
                    if let Gathered::Flush(flush) = outlet.gather(&mut batch, 10, &patient) {
                        flush.done(went_well);
                        return batch;
                    }
                }
            });
            let started = Instant::now();
            assert_eq!(queue.flush(PATIENCE), went_well);
            assert!(started.elapsed() < PATIENCE);
            assert_eq!(taker.join().unwrap(), [1], "what was before it came first");
        }
    }

    #[test]
    fn what_is_left_is_given_out_before_the_end() {
        let (queue, outlet) = queue(10);
        assert!(queue.offer(1));
        drop(queue);
        let mut batch = Vec::new();
        let patient = Pace { idle: None, within: PATIENCE, tick: PATIENCE };
        assert!(matches!(outlet.gather(&mut batch, 10, &patient), Gathered::Batch));
        assert!(matches!(outlet.gather(&mut batch, 10, &patient), Gathered::Closed));
        assert_eq!(batch, [1]);
    }
}
