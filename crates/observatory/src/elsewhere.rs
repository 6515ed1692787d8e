//! Orders that were given at another process, where each keeps a log of its own: taken over, so that the guard, the answers
//! to decision logs, the audit chain and the dashboard of every process know them.

use crate::error::{StoreError, Stored};
use crate::hitl::Order;
use crate::observatory::Observatory;
use crate::orders::Origin;
use crate::writer::Scribe;

/// What was said about a session at another process.
#[derive(Debug, Clone)]
pub struct OrderElsewhere {
    /// Its place among everything that was said: when in milliseconds, and a number.
    pub place: (u64, u64),
    /// The log in which it is written down already, if it is in one.
    pub log: Option<u64>,
    /// The tenant's name, where whoever said it knows it.
    pub tenant: Option<String>,
    /// A hash of the tenant's name, and how it is made.
    pub tenant_hash: (u64, fn(&str) -> u64),
    /// The session.
    pub session_id: String,
    /// Who gave the order.
    pub operator: String,
    /// What it is.
    pub order: Order,
    /// Whether its words have been handed out to the agent already.
    pub is_handed_out: bool,
    /// Whether it is about a session that this process need not have seen: one from before its start is not.
    pub may_be_new: bool,
}

impl Observatory {
    /// Takes it over: kept, audited under the name of who gave it, and told here. Nobody is told of it as of an order that
    /// was given here. What was taken over before, also by an earlier process with this log, changes nothing.
    pub async fn take_over(&self, said: OrderElsewhere) -> Result<(), StoreError> {
        self.write(move |scribe| {
            // An earlier process with this log may have said it.
            let is_own = said.log == Some(scribe.shared.id);
            if scribe.has_heard(said.place)? || is_own {
                return Ok(());
            }
            if let Some(session) = scribe.session_meant(&said)? {
                if said.is_handed_out {
                    scribe.drop_order(session, &said.order)?;
                } else {
                    scribe.give_order(
                        session,
                        &said.operator,
                        said.order,
                        Origin::Elsewhere(said.place.0),
                    )?;
                }
            }
            Ok(())
        })
        .await
    }
}

impl Observatory {
    /// A gateway has told the agent what an operator ordered: neither the guard nor the answer to a log does it again. What
    /// it puts into later requests as well, from the place `anchor` of the transcript on, is kept. It waits for nothing.
    pub fn handed_out(&self, tenant: &str, session_id: &str, order: Order, anchor: Option<u128>) {
        if self.shared.hitl.is_quiet() {
            return;
        }
        let (tenant, session_id) = (tenant.to_owned(), session_id.to_owned());
        self.hand_over_one(true, move |scribe| {
            let found = scribe.store.sessions_named(&session_id, Some(&tenant))?.into_iter().next();
            if let Some(session) = found
                && scribe.has_told(session.id, &order, anchor)?
            {
                scribe.tell_handed_out(session.id, order)?;
            }
            Ok(())
        });
    }
}

/// Where it is kept how far the log is with what others said.
const HEARD: &str = "orders_heard";

impl Scribe<'_> {
    /// Whether that was heard before; from now on it was.
    fn has_heard(&mut self, place: (u64, u64)) -> Stored<bool> {
        let last = self.store.setting(HEARD)?;
        let last = last.as_deref().and_then(|text| text.split_once('-'));
        let last = last.and_then(|(time, number)| Some((time.parse().ok()?, number.parse().ok()?)));
        // The clock of whoever numbers what is said may have been wrong, and is right again.
        let soon = u64::try_from(self.now).unwrap_or(0) + 60_000;
        if last.filter(|(time, _): &(u64, u64)| *time <= soon).is_some_and(|last| place <= last) {
            return Ok(true);
        }
        self.store.put_setting(HEARD, &format!("{}-{}", place.0, place.1))?;
        Ok(false)
    }

    fn session_meant(&mut self, said: &OrderElsewhere) -> Stored<Option<i64>> {
        let (hash, hashed) = said.tenant_hash;
        let named = self.store.sessions_named(&said.session_id, said.tenant.as_deref())?;
        let known = named.into_iter().find(|session| hashed(&session.tenant_name) == hash);
        match (known, &said.tenant) {
            (Some(session), _) => Ok(Some(session.id)),
            (None, Some(tenant)) if hashed(tenant) == hash && said.may_be_new && !said.is_handed_out => {
                let id = self.session_named(tenant, &said.session_id)?;
                self.change(id)?;
                Ok(Some(id))
            }
            (None, _) => Ok(None),
        }
    }

    /// The gateway has handed it out; says whether nobody had before.
    fn has_told(&mut self, session: i64, order: &Order, anchor: Option<u128>) -> Stored<bool> {
        if !matches!(order, Order::Inject { .. }) {
            return self.drop_order(session, order);
        }
        let Some((number, kept)) = self.undelivered(session, order) else { return Ok(false) };
        let was_there = self.store.keep_told(number, &kept, anchor)?;
        self.delivered(session, number);
        Ok(was_there)
    }

    fn undelivered(&self, session: i64, order: &Order) -> Option<(i64, Order)> {
        let told = &self.told;
        let is_it = |number: i64, other: &Order| other == order && !told.contains(&number);
        self.shared.hitl.find_order(session, is_it)
    }

    /// Somebody else has handed it out; says whether it was still there.
    fn drop_order(&mut self, session: i64, order: &Order) -> Stored<bool> {
        match self.undelivered(session, order) {
            Some((number, _)) => self.take_order(session, number),
            None => Ok(false),
        }
    }
}
