//! Doing what operators order, whichever process they told it.

use std::sync::{Arc, OnceLock};

use loopbreaker_fleet::{Decision, Fleet};
use loopbreaker_observatory::{Order, OrderElsewhere, OrderGiven};
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
pub(crate) struct Said {
    tenant: u64,
    session: String,
    order: Order,
    operator: String,
    /// Unknown where nothing is written down of the session.
    tenant_name: Option<String>,
    /// Whether its words have been handed out, so that nobody else does it.
    is_handed_out: bool,
}

impl Said {
    /// What another process said. What cannot be read comes from another version, and is left to it.
    pub(crate) fn read(message: &str) -> Option<Self> {
        serde_json::from_str(message).ok()
    }

    /// The same for the log of this process.
    pub(crate) fn elsewhere(self, place: (u64, u64), is_old: bool) -> OrderElsewhere {
        OrderElsewhere {
            place,
            tenant: self.tenant_name,
            tenant_hash: (self.tenant, RunName::tag),
            session_id: self.session,
            operator: self.operator,
            order: self.order,
            is_handed_out: self.is_handed_out,
            may_be_new: !is_old,
        }
    }
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
        if given.is_handed_out && !self.must_be_told_elsewhere() {
            return;
        }
        let run = RunName::of(&given.tenant, &given.session_id);
        if !given.is_elsewhere {
            let said = Said {
                tenant: run.tenant(),
                session: given.session_id.clone(),
                order: given.order.clone(),
                operator: given.operator.clone(),
                tenant_name: Some(given.tenant.clone()),
                is_handed_out: given.is_handed_out,
            };
            self.tell(&said, self.must_be_told_elsewhere());
        }
        if !given.is_handed_out {
            self.act(run, &given.session_id, &given.order);
        }
    }

    /// Does what was ordered here for a session that nothing is written down of; says whether that changed anything.
    pub(crate) fn order(&self, run: RunName, session: &str, operator: &str, order: Order) -> bool {
        let said = Said {
            tenant: run.tenant(),
            session: session.to_owned(),
            order,
            operator: operator.to_owned(),
            tenant_name: None,
            is_handed_out: false,
        };
        self.tell(&said, true);
        self.act(run, session, &said.order)
    }

    /// Does what another process was told. What was said before this one began may have been decided since, but words
    /// for the model stay.
    pub(crate) fn hear(&self, said: &Said, is_old: bool) {
        let is_for_the_model = matches!(said.order, Order::Inject { .. } | Order::Rewrite { .. });
        if !said.is_handed_out && (!is_old || is_for_the_model) {
            self.act(RunName::tagged(said.tenant, &said.session), &said.session, &said.order);
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
    fn tell(&self, said: &Said, in_words: bool) {
        let Some(fleet) = self.fleet.get() else { return };
        let decision = match &said.order {
            _ if said.is_handed_out => Decision::Say,
            Order::Pause { .. } => pausing(None),
            Order::Resume => Decision::Resume,
            Order::Reject { message } => Decision::Reject(message.clone()),
            Order::Inject { .. } | Order::Rewrite { .. } => Decision::Say,
        };
        let message = in_words.then(|| serde_json::to_string(said).ok()).flatten();
        fleet.decide(said.tenant, &said.session, decision, message);
    }
}
