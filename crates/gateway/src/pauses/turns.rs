//! The calls that one pause holds go on in the order in which they came.
//!
//! Each is let go when the one before it is on its way, has its answer or has gone. Nobody waits for a slow one for more
//! than a moment, for order is worth no more than that.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// Who waits, oldest first. There are never more than calls that are held.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    line: VecDeque<Place>,
}

#[derive(Debug)]
struct Place {
    number: u64,
    /// Whether its body has been given to a connection.
    is_sent: bool,
    called: Arc<Notify>,
}

/// One call's place in the line; it leaves when it is dropped, also when its client has gone.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    number: u64,
    called: Arc<Notify>,
}

/// Tells the line, when it is dropped, that the body of a call has been given to a connection.
#[derive(Debug)]
pub(crate) struct Sent {
    turns: Arc<Turns>,
    number: u64,
}

impl Turns {
    /// A place behind all others.
    pub(crate) fn enter(self: &Arc<Self>) -> Turn {
        let called = Arc::new(Notify::new());
        let mut waiting = self.lock();
        let number = waiting.next;
        waiting.next += 1;
        waiting.line.push_back(Place { number, is_sent: false, called: Arc::clone(&called) });
        Turn { turns: Arc::clone(self), number, called }
    }

    /// Who is first, and whether it is on its way.
    fn first(&self) -> Option<(u64, bool)> {
        self.lock().line.front().map(|place| (place.number, place.is_sent))
    }

    fn leave(&self, number: u64) {
        let mut waiting = self.lock();
        if let Some(at) = waiting.line.iter().position(|place| place.number == number) {
            waiting.line.remove(at);
        }
        if let Some(first) = waiting.line.front() {
            first.called.notify_one();
        }
    }

    fn sent(&self, number: u64) {
        let mut waiting = self.lock();
        if let Some(place) = waiting.line.iter_mut().find(|place| place.number == number) {
            place.is_sent = true;
        }
        // Who is behind it need not wait as long for it any more; where it is not the first, nobody waits for it.
        if let Some(second) = waiting.line.get(1) {
            second.called.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a call waits for those that came before it.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// For one that is not on its way yet: perhaps its connection is still to be made.
    to_go: Duration,
    /// For the answer to one that is: its bytes may still be overtaken, for the next one has another connection.
    to_arrive: Duration,
    /// For all of them together, however many there are.
    in_all: Duration,
}

impl Turn {
    const PATIENCE: Patience = Patience {
        to_go: Duration::from_millis(500),
        to_arrive: Duration::from_millis(50),
        in_all: Duration::from_secs(5),
    };

    /// Waits until all that came before are on their way, or are not worth waiting for.
    pub(crate) async fn comes(&self) {
        self.comes_with(Self::PATIENCE).await;
    }

    async fn comes_with(&self, patience: Patience) {
        // Whoever has waited for so long goes on where it is.
        drop(timeout(patience.in_all, self.is_first(patience)).await);
    }

    async fn is_first(&self, patience: Patience) {
        while let Some(first @ (number, is_sent)) = self.turns.first() {
            // Where it stands no more, it was too slow for the one behind it.
            if number >= self.number {
                return;
            }
            let moment = if is_sent { patience.to_arrive } else { patience.to_go };
            let is_late = timeout(moment, self.called.notified()).await.is_err();
            if is_late && self.turns.first() == Some(first) {
                self.turns.leave(number);
            }
        }
    }

    /// What travels with the body of the call.
    pub(crate) fn when_sent(&self) -> Sent {
        Sent { turns: Arc::clone(&self.turns), number: self.number }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.leave(self.number);
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.turns.sent(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use super::{Patience, Turn, Turns};

    const PATIENCE: Patience = Patience {
        to_go: Duration::from_millis(200),
        to_arrive: Duration::from_millis(5),
        in_all: Duration::from_secs(20),
    };

    /// Lets all of them go at once, the last one first, and says in which order they went. Each takes so many
    /// milliseconds until it is on its way, and is answered only when all are.
    async fn order(turns: Vec<(u64, Turn, u64)>) -> Vec<u64> {
        let went = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for (name, turn, takes) in turns.into_iter().rev() {
            let went = Arc::clone(&went);
            tasks.push(tokio::spawn(async move {
                turn.comes_with(PATIENCE).await;
                went.lock().unwrap().push(name);
                tokio::time::sleep(Duration::from_millis(takes)).await;
                drop(turn.when_sent());
                turn
            }));
        }
        let mut answered = Vec::new();
        for task in tasks {
            answered.push(task.await.unwrap());
        }
        Arc::into_inner(went).unwrap().into_inner().unwrap()
    }

    #[tokio::test]
    async fn all_go_in_the_order_in_which_they_came() {
        let turns = Arc::new(Turns::default());
        let held = (0..20).map(|name| (name, turns.enter(), 20 - name)).collect();
        assert_eq!(order(held).await, (0..20).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn one_that_has_gone_keeps_nobody_and_lets_nobody_past() {
        let turns = Arc::new(Turns::default());
        let [first, gone, last] = [turns.enter(), turns.enter(), turns.enter()];
        drop(gone);
        let began = Instant::now();
        assert_eq!(order(vec![(1, first, 10), (3, last, 0)]).await, [1, 3]);
        assert!(began.elapsed() < PATIENCE.to_go);
    }

    #[tokio::test]
    async fn a_slow_one_is_waited_for_no_longer_than_a_moment_and_only_once() {
        let turns = Arc::new(Turns::default());
        let [slow, next, last] = [turns.enter(), turns.enter(), turns.enter()];
        let began = Instant::now();
        next.comes_with(PATIENCE).await;
        assert!(began.elapsed() >= PATIENCE.to_go);
        drop(next);
        let began = Instant::now();
        last.comes_with(PATIENCE).await;
        assert!(began.elapsed() < PATIENCE.to_go);
        drop(slow);
    }

    #[tokio::test]
    async fn however_many_are_slow_nobody_waits_for_all_of_them() {
        let turns = Arc::new(Turns::default());
        let stuck: Vec<_> = (0..1_000).map(|_| turns.enter()).collect();
        let last = turns.enter();
        let began = Instant::now();
        last.comes_with(Patience { in_all: Duration::from_millis(30), ..PATIENCE }).await;
        assert!(began.elapsed() < 10 * PATIENCE.to_go);
        drop(stuck);
    }
}
