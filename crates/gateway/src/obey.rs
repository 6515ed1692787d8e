//! Doing what operators order, whichever process they told it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use loopbreaker_fleet::{Decision, Fleet};
use loopbreaker_observatory::{Held, Order, OrderElsewhere, OrderGiven};
use serde::{Deserialize, Serialize};

use crate::fleet::pausing;
use crate::orders::{Edit, Orders};
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
    /// Names the log of this process among those of the others.
    log: OnceLock<u64>,
    /// Numbers what is said here.
    numbers: AtomicU64,
    /// What was heard lately: one that tells the same twice, not knowing whether it got through, is heard once.
    heard: Mutex<VecDeque<u64>>,
}

/// An order as other processes hear of it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Said {
    number: u64,
    /// The log in which it is written down already.
    log: Option<u64>,
    tenant: u64,
    session: String,
    order: Order,
    operator: String,
    /// Unknown where nothing is written down of the session.
    tenant_name: Option<String>,
    /// Whether its words have been handed out, so that nobody else does it.
    is_handed_out: bool,
}

/// What an operator has refused, as other processes hear of it.
#[derive(Serialize, Deserialize)]
pub(crate) struct StaysRefused {
    tenant: u64,
    session: String,
    /// The transcript, as hexadecimal digits: not every reader of JSON knows numbers of this size.
    refused_tip: String,
    words: String,
}

impl StaysRefused {
    /// What another process said, if it is this.
    pub(crate) fn read(message: &str) -> Option<Self> {
        serde_json::from_str(message).ok()
    }
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
            log: self.log,
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
    /// So much of what was heard is remembered.
    const MAX_HEARD: usize = 4_096;

    /// Nothing is ordered yet. What is said here is numbered from a random number on.
    pub(crate) fn new(clock: Clock, shares_log: bool, random: u64) -> Self {
        Self {
            pauses: Arc::default(),
            orders: Arc::default(),
            clock,
            fleet: OnceLock::new(),
            shares_log,
            log: OnceLock::new(),
            numbers: AtomicU64::new(random),
            heard: Mutex::default(),
        }
    }

    /// From now on orders are written down in this log.
    pub(crate) fn is_written_in(&self, log: u64) {
        // It is opened once.
        self.log.set(log).unwrap_or_default();
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

    /// Holds the calls of a session that the log says is paused, as it was before this process began. The others may not
    /// know of it, or have decided since, which its age tells.
    pub(crate) fn hold_on(&self, held: Held, millis: u64) {
        let Held { tenant, session_id, pause } = held;
        let run = RunName::of(&tenant, &session_id);
        let order = Order::Pause { reason: pause.reason };
        let said = self.said(run, session_id, order, pause.operator, Some(tenant));
        self.tell(&said, self.must_be_told_elsewhere(), millis);
        self.hold(run, millis);
    }

    fn hold(&self, run: RunName, millis: u64) -> bool {
        self.pauses.paused_for(run, millis, self.clock.now())
    }

    fn said(
        &self,
        run: RunName,
        session: String,
        order: Order,
        operator: String,
        tenant_name: Option<String>,
    ) -> Said {
        Said {
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
            log: self.log.get().copied(),
            tenant: run.tenant(),
            session,
            order,
            operator,
            tenant_name,
            is_handed_out: false,
        }
    }

    /// Does what the log says that an operator ordered.
    pub(crate) fn carry_out(&self, given: &OrderGiven) {
        if given.is_handed_out && !self.must_be_told_elsewhere() {
            return;
        }
        let run = RunName::of(&given.tenant, &given.session_id);
        if !given.is_elsewhere {
            let OrderGiven { tenant, session_id, operator, order, is_handed_out, .. } = given.clone();
            let said = Said { is_handed_out, ..self.said(run, session_id, order, operator, Some(tenant)) };
            self.tell(&said, self.must_be_told_elsewhere(), 0);
        }
        if !given.is_handed_out {
            self.act(run, &given.session_id, &given.order);
        }
    }

    /// Does what was ordered here for a session that nothing is written down of; says whether that changed anything.
    pub(crate) fn order(&self, run: RunName, session: &str, operator: &str, order: Order) -> bool {
        let said = Said { log: None, ..self.said(run, session.to_owned(), order, operator.to_owned(), None) };
        self.tell(&said, true, 0);
        self.act(run, session, &said.order)
    }

    /// Whether something is said for the first time.
    pub(crate) fn is_news(&self, said: &Said) -> bool {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.contains(&said.number) {
            return false;
        }
        if heard.len() >= Self::MAX_HEARD {
            heard.pop_front();
        }
        heard.push_back(said.number);
        true
    }

    /// Does what another process was told. What was said before this one began may have been decided since, but words
    /// for the model stay.
    pub(crate) fn hear(&self, said: &Said, is_old: bool) {
        let is_for_the_model = matches!(said.order, Order::Inject { .. } | Order::Rewrite { .. });
        let run = RunName::tagged(said.tenant, &said.session);
        match (said.is_handed_out, is_old) {
            (false, true) if is_for_the_model => self.remember(run, &said.order, None),
            (false, false) => drop(self.act(run, &said.session, &said.order)),
            _ => {}
        }
    }

    /// What an earlier process put into the requests of a session, or another one does, goes into them from now on.
    pub(crate) fn remember(&self, run: RunName, order: &Order, anchor: Option<u128>) {
        match order {
            Order::Inject { message } => {
                self.orders.remember(run, Edit::Inject(message.as_str().into()), anchor);
            }
            Order::Rewrite { trace_id, content: Some(content), .. } => {
                self.orders.remember(run, Edit::Rewrite(*trace_id, content.as_str().into()), anchor);
            }
            _ => {}
        }
    }

    /// A session is refused with this transcript as long as it comes again unchanged, wherever that is.
    pub(crate) fn refuse(&self, run: RunName, session: &str, tip: u128, words: &str) {
        self.pauses.refusals.add(run, tip, words, self.clock.now());
        let Some(fleet) = self.fleet.get().filter(|_| tip != 0) else { return };
        let refused = StaysRefused {
            tenant: run.tenant(),
            session: session.to_owned(),
            refused_tip: format!("{tip:032x}"),
            words: words.to_owned(),
        };
        fleet.decide(run.tenant(), session, Decision::Say, serde_json::to_string(&refused).ok());
    }

    /// Another process has refused a session. What it said before this one began may have been decided anew since.
    pub(crate) fn hear_refusal(&self, refused: &StaysRefused, is_old: bool) {
        if let (Ok(tip), false) = (u128::from_str_radix(&refused.refused_tip, 16), is_old) {
            let run = RunName::tagged(refused.tenant, &refused.session);
            self.pauses.refusals.add(run, tip, &refused.words, self.clock.now());
        }
    }

    fn act(&self, run: RunName, session: &str, order: &Order) -> bool {
        if !matches!(order, Order::Reject { .. }) {
            self.pauses.refusals.lift(run);
        }
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
    fn tell(&self, said: &Said, in_words: bool, ago: u64) {
        let Some(fleet) = self.fleet.get() else { return };
        let decision = match &said.order {
            _ if said.is_handed_out => Decision::Say,
            Order::Pause { .. } => pausing(None, ago),
            Order::Resume => Decision::Resume,
            Order::Reject { message } => Decision::Reject(message.clone()),
            Order::Inject { .. } | Order::Rewrite { .. } => Decision::Say,
        };
        let message = in_words.then(|| serde_json::to_string(said).ok()).flatten();
        fleet.decide(said.tenant, &said.session, decision, message);
    }
}
