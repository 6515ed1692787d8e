//! Doing what operators order, whichever process they told it.

use std::sync::{Arc, OnceLock};

use loopbreaker_fleet::{Decision, Fleet};
use loopbreaker_observatory::{Order, OrderGiven};
use serde::{Deserialize, Serialize};

use crate::fleet::pausing;
use crate::orders::Orders;
use crate::pauses::Pauses;
use crate::sessions::RunName;
use crate::state::Clock;

/// What orders have an effect on.
#[derive(Debug)]
pub(crate) struct Obedience {
    pub(crate) pauses: Arc<Pauses>,
    pub(crate) orders: Arc<Orders>,
    clock: Clock,
    /// The other processes, where there are any.
    fleet: OnceLock<Fleet>,
    /// Whether the others read orders from the same log.
    shares_log: bool,
}

/// An order as other processes hear of it.
#[derive(Serialize, Deserialize)]
struct Said {
    tenant: u64,
    session: String,
    order: Order,
}

impl Obedience {
    /// Nothing is ordered yet.
    pub(crate) fn new(clock: Clock, shares_log: bool) -> Self {
        Self { pauses: Arc::default(), orders: Arc::default(), clock, fleet: OnceLock::new(), shares_log }
    }

    /// There are other processes that have to know.
    pub(crate) fn join(&self, fleet: &Fleet) {
        // It is joined once, before anybody gives an order.
        self.fleet.set(fleet.clone()).unwrap_or_default();
    }

    /// Whether there are other processes, and they cannot read what is ordered here.
    pub(crate) fn must_be_told_elsewhere(&self) -> bool {
        self.fleet.get().is_some() && !self.shares_log
    }

    /// Holds the calls of a session that has been paused for so many milliseconds; says whether they went on before.
    pub(crate) fn hold(&self, run: RunName, millis: u64) -> bool {
        self.pauses.paused_for(run, millis, self.clock.now())
    }

    /// Does what the log says that an operator ordered.
    pub(crate) fn carry_out(&self, given: &OrderGiven) {
        let run = RunName::of(&given.tenant, &given.session_id);
        if !given.is_elsewhere {
            self.tell(run, &given.session_id, &given.order, self.must_be_told_elsewhere());
        }
        self.act(run, &given.session_id, &given.order);
    }

    /// Does what was ordered here for a session that nothing is written down of; says whether that changed anything.
    pub(crate) fn order(&self, run: RunName, session: &str, order: &Order) -> bool {
        self.tell(run, session, order, true);
        self.act(run, session, order)
    }

    /// Does what another process was told. What was said before this one began may have been decided since, but words
    /// for the model stay.
    pub(crate) fn hear(&self, message: &str, is_old: bool) {
        let Ok(Said { tenant, session, order }) = serde_json::from_str(message) else { return };
        let is_for_the_model = matches!(order, Order::Inject { .. } | Order::Rewrite { .. });
        if !is_old || is_for_the_model {
            self.act(RunName::tagged(tenant, &session), &session, &order);
        }
    }

    fn act(&self, run: RunName, session: &str, order: &Order) -> bool {
        match order {
            Order::Pause { .. } => return self.hold(run, 0),
            Order::Resume => return self.pauses.resume(run),
            Order::Reject { message } => return self.reject(run, session, message),
            Order::Inject { message } => self.orders.inject(run, message),
            Order::Rewrite { trace_id, content: Some(content), .. } => {
                self.orders.rewrite(run, *trace_id, content);
            }
            // Another input is handed out where the agent asks before it calls: by the guard.
            Order::Rewrite { .. } => {}
        }
        true
    }

    /// Refuses what is held. Where nothing is held here, somebody else does, or the next call is told.
    fn reject(&self, run: RunName, session: &str, message: &str) -> bool {
        match self.fleet.get() {
            None => self.pauses.reject(run, message),
            Some(fleet) if self.pauses.holds(run) => {
                fleet.decide(run.tenant(), session, Decision::Told, None);
                self.pauses.reject(run, message)
            }
            Some(_) => self.pauses.forget(run),
        }
    }

    /// Decides for all processes, and tells them where they cannot read it.
    fn tell(&self, run: RunName, session: &str, order: &Order, in_words: bool) {
        let Some(fleet) = self.fleet.get() else { return };
        let decision = match order {
            Order::Pause { .. } => pausing(None),
            Order::Resume => Decision::Resume,
            Order::Reject { message } => Decision::Reject(message.clone()),
            Order::Inject { .. } | Order::Rewrite { .. } => Decision::Say,
        };
        let said = Said { tenant: run.tenant(), session: session.to_owned(), order: order.clone() };
        let message = in_words.then(|| serde_json::to_string(&said).ok()).flatten();
        fleet.decide(run.tenant(), session, decision, message);
    }
}
