//! What operators said to sessions: put into every request that still goes on from where it was said.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loopbreaker_record::TraceId;

use crate::sessions::RunName;

/// Every order that changes requests.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    given: Mutex<HashMap<RunName, Vec<Given>>>,
    /// Whether there is any, so that nearly every request can tell without a lock.
    any: AtomicBool,
}

#[derive(Debug)]
struct Given {
    order: Edit,
    /// The link of the transcript at which it was first put in; `None` until then.
    anchor: Option<u128>,
}

/// A change to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Edit {
    /// These words go to the model.
    Inject(Arc<str>),
    /// The result of this step is another.
    Rewrite(TraceId, Arc<str>),
}

impl Orders {
    /// Sessions that are remembered; beyond it the ones that operators spoke to first are forgotten at random.
    const MAX_RUNS: usize = 10_000;
    /// Orders of one session; the oldest are forgotten.
    const MAX_EACH: usize = 32;

    /// These words go to the session's model from its next call on.
    pub(crate) fn inject(&self, run: RunName, message: &str) {
        self.add(run, Edit::Inject(message.into()), None);
    }

    /// The result of this step is another from the session's next call on.
    pub(crate) fn rewrite(&self, run: RunName, step: TraceId, content: &str) {
        self.add(run, Edit::Rewrite(step, content.into()), None);
    }

    /// An order of before this process began, and where it was put in first, where that is known. It may be heard of from
    /// the log and from other processes.
    pub(crate) fn remember(&self, run: RunName, order: Edit, anchor: Option<u128>) {
        let is_known = {
            let mut given = self.lock();
            let mut orders = given.get_mut(&run).into_iter().flatten();
            let known = orders.find(|given| given.order == order);
            known.map(|known| known.anchor = known.anchor.or(anchor)).is_some()
        };
        if !is_known {
            self.add(run, order, anchor);
        }
    }

    /// What to change in a request of these sessions that ends with `tip`. An order that was put in before is put in
    /// again where the transcript still `contains` the place; that is asked only when it matters.
    pub(crate) fn edits(
        &self,
        runs: [RunName; 2],
        tip: u128,
        contains: &mut dyn FnMut(u128) -> bool,
    ) -> Vec<Edit> {
        if !self.any.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut found = self.given_to(runs, tip);
        found.retain(|(_, anchor)| *anchor == tip || contains(*anchor));
        found.into_iter().map(|(edit, _)| edit).collect()
    }

    /// Orders and the places where they belong: here, where they are new.
    fn given_to(&self, runs: [RunName; 2], tip: u128) -> Vec<(Edit, u128)> {
        let runs = if runs[0] == runs[1] { &runs[..1] } else { &runs[..] };
        let mut given = self.lock();
        let mut found = Vec::new();
        for run in runs {
            let orders = given.get_mut(run).into_iter().flatten();
            found.extend(orders.map(|given| (given.order.clone(), *given.anchor.get_or_insert(tip))));
        }
        found
    }

    fn add(&self, run: RunName, order: Edit, anchor: Option<u128>) {
        let mut given = self.lock();
        if given.len() >= Self::MAX_RUNS
            && !given.contains_key(&run)
            && let Some(other) = given.keys().next().copied()
        {
            given.remove(&other);
        }
        let orders = given.entry(run).or_default();
        if orders.len() >= Self::MAX_EACH {
            orders.remove(0);
        }
        orders.push(Given { order, anchor });
        self.any.store(true, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunName, Vec<Given>>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Edit, Orders};
    use crate::sessions::RunName;

    #[test]
    fn an_order_is_put_in_again_as_long_as_the_transcript_goes_on_from_it() {
        let orders = Orders::default();
        let run = RunName::of("acme", "run-17");
        let others = RunName::of("umbrella", "run-17");
        let mut never = |_| -> bool { panic!("it is not asked about") };
        assert!(orders.edits([run, run], 7, &mut never).is_empty());
        orders.inject(run, "look at the log");
        let words = [Edit::Inject("look at the log".into())];
        assert_eq!(orders.edits([run, run], 7, &mut never), words);
        assert_eq!(orders.edits([run, run], 7, &mut never), words, "a retry is the same request");
        assert_eq!(orders.edits([run, run], 8, &mut |link| link == 7), words);
        assert!(orders.edits([run, run], 9, &mut |_| false).is_empty(), "its history was dropped");
        assert!(orders.edits([others, others], 7, &mut never).is_empty());
        let restarted = Orders::default();
        for _ in 0..2 {
            restarted.remember(run, words[0].clone(), Some(7));
        }
        assert_eq!(restarted.edits([run, run], 8, &mut |link| link == 7), words, "once, and at its place");
        assert!(restarted.edits([run, run], 9, &mut |_| false).is_empty());
        let fork = RunName::of("acme", "lb-1");
        assert_eq!(orders.edits([fork, run], 8, &mut |link| link == 7), words, "a fork inherits it");
    }
}
