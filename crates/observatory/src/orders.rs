//! Orders of operators on their way in: kept, audited, told, and then in force.

use std::sync::Arc;

use loopbreaker_record::Moment;
use serde_json::json;

use crate::audit::{self, Deed, sha256};
use crate::error::Stored;
use crate::events::{Draft, Said, Topic};
use crate::hitl::{Order, OrderGiven, Pause};
use crate::redact::{redact_text, redacted_order};
use crate::writer::Scribe;

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The session.
    pub session_id: String,
    /// Its state now.
    pub state: String,
    /// Why nothing was done, when nothing was.
    pub note: Option<&'static str>,
}

/// Why an order was not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderRefused {
    /// There is no such session, or no such step in it.
    Unknown,
    /// The step's result is to be another, but no later request carries it: the provider keeps the history.
    HistoryElsewhere,
    /// The step's input is to be another, but the call has been made.
    AlreadyRun,
}

/// What an operator is told who rejects what goes on.
const NOTHING_HELD: &str = "it is not paused, so there is nothing to reject and it goes on: pause it first";

/// Where an order was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// At this process.
    Here,
    /// At another one, in this millisecond, and its gateway has told ours.
    Elsewhere(u64),
}

impl Scribe<'_> {
    /// Gives an order to a session. What is asked for already is not done twice.
    pub(crate) fn give_order(
        &mut self,
        session: i64,
        operator: &str,
        order: Order,
        origin: Origin,
    ) -> Stored<Given> {
        let order = redacted_order(order);
        let (is_elsewhere, since) = match origin {
            Origin::Here => (false, self.now),
            Origin::Elsewhere(at) => (true, i64::try_from(at).unwrap_or(self.now).min(self.now)),
        };
        let row = self.live(session)?.row.clone();
        let pause = self.pause_of(session);
        let before = row.state(pause.is_some(), self.now).to_owned();
        let note = match (&order, &pause) {
            (Order::Pause { .. }, Some(_)) => Some("it is paused already"),
            // Whoever gave the order elsewhere has seen more of the session.
            (Order::Pause { .. }, None) if row.ended && !is_elsewhere => Some("it has ended"),
            (Order::Resume, None) => Some("it is not paused"),
            (Order::Reject { .. }, None) => Some(NOTHING_HELD),
            _ => None,
        };
        if note.is_some() {
            return Ok(Given { session_id: row.name, state: before, note });
        }
        // Everybody is told the order as it is kept, and knows it again by that.
        let order = self.supersede(session, order)?;
        let reason = match &order {
            Order::Pause { reason } => {
                let pause = Pause { since, operator: operator.to_owned(), reason: reason.clone() };
                self.set_pause(session, Some(pause))?;
                Some(reason.clone())
            }
            Order::Resume => {
                self.set_pause(session, None)?;
                None
            }
            Order::Reject { message } => {
                self.set_pause(session, None)?;
                self.queue(session, &order)?;
                Some(message.clone())
            }
            Order::Inject { message } => {
                self.queue(session, &order)?;
                Some(message.clone())
            }
            Order::Rewrite { trace_id, .. } => {
                for share in order.shares() {
                    self.queue(session, &share)?;
                }
                Some(trace_id.to_string())
            }
        };
        let state = row.state(self.pause_of(session).is_some(), self.now).to_owned();
        let content = serde_json::to_string(&order).unwrap_or_default();
        let deed = Deed {
            operator,
            action: order.name(),
            session_id: Some(&row.name),
            reason: reason.as_deref(),
            before: Some(sha256(before.as_bytes())),
            after: Some(sha256(format!("{state}\n{content}").as_bytes())),
        };
        self.audit(deed)?;
        let reason = reason.map(|reason| redact_text(&reason, true));
        let told = json!({
            "event_type": "hitl", "session_id": row.name, "order": order.name(), "operator": operator,
            "state": state, "reason": reason,
        });
        let given = OrderGiven {
            tenant: row.tenant_name.clone(),
            session_id: row.name.clone(),
            operator: operator.to_owned(),
            order,
            is_elsewhere,
            is_handed_out: false,
        };
        self.drafts.push(Draft {
            topic: Topic::Hitl,
            kind: "hitl",
            tenant: Some(Arc::from(row.tenant_name)),
            body: Said::now(&told),
            order: Some(given.clone()),
        });
        if before != state {
            self.change(session)?;
        }
        if !is_elsewhere {
            let shared = Arc::clone(self.shared);
            self.effects.push(Box::new(move || shared.hitl.tell(&given)));
        }
        Ok(Given { session_id: row.name, state, note: None })
    }

    /// The pause of a session, as it is with this batch.
    pub(crate) fn pause_of(&self, session: i64) -> Option<Pause> {
        match self.pauses.get(&session) {
            Some(pause) => pause.clone(),
            None => self.shared.hitl.pause_of(session),
        }
    }

    /// The first order that fits and that nobody has handed out, here or in another process. It is handed out once.
    pub(crate) fn next_order(
        &mut self,
        session: i64,
        fits: impl Fn(&Order) -> bool,
    ) -> Stored<Option<Order>> {
        loop {
            let told = &self.told;
            let open = |number: i64, order: &Order| fits(order) && !told.contains(&number);
            let Some((number, order)) = self.shared.hitl.find_order(session, open) else { return Ok(None) };
            if self.take_order(session, number)? {
                self.tell_handed_out(session, order.clone())?;
                return Ok(Some(order));
            }
        }
    }

    /// Takes an order away that is handed out; says whether it was still there.
    pub(crate) fn take_order(&mut self, session: i64, number: i64) -> Stored<bool> {
        let was_there = self.store.remove_order(number)?;
        self.delivered(session, number);
        Ok(was_there)
    }

    /// From now on nobody hands it out.
    pub(crate) fn delivered(&mut self, session: i64, number: i64) {
        self.told.push(number);
        let shared = Arc::clone(self.shared);
        self.effects.push(Box::new(move || shared.hitl.delivered(session, number)));
    }

    /// Whoever has the same order in a log of its own need not hand it out any more.
    pub(crate) fn tell_handed_out(&mut self, session: i64, order: Order) -> Stored<()> {
        let row = &self.live(session)?.row;
        let given = OrderGiven {
            tenant: row.tenant_name.clone(),
            session_id: row.name.clone(),
            operator: String::new(),
            order,
            is_elsewhere: false,
            is_handed_out: true,
        };
        let shared = Arc::clone(self.shared);
        self.effects.push(Box::new(move || shared.hitl.tell(&given)));
        Ok(())
    }

    /// Writes a deed into the audit log.
    pub(crate) fn audit(&mut self, deed: Deed<'_>) -> Stored<()> {
        let at = Moment::from_millis(self.now);
        audit::append(self.store, at.as_str(), deed).map(drop)
    }

    fn set_pause(&mut self, session: i64, pause: Option<Pause>) -> Stored<()> {
        self.store.put_pause(session, pause.as_ref())?;
        self.pauses.insert(session, pause.clone());
        let shared = Arc::clone(self.shared);
        self.effects.push(Box::new(move || shared.hitl.set_pause(session, pause)));
        Ok(())
    }

    pub(crate) fn queue(&mut self, session: i64, order: &Order) -> Stored<()> {
        let number = self.store.add_order(session, order)?;
        let (shared, order) = (Arc::clone(self.shared), order.clone());
        self.effects.push(Box::new(move || shared.hitl.queue(session, number, order)));
        Ok(())
    }
}
