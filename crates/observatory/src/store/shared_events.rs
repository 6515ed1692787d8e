//! Events of a database that several processes write to: kept in it, so that all of them tell the same.

use std::sync::Arc;

use super::Store;
use crate::database::{Flavour, Param, Row, values};
use crate::error::Stored;
use crate::events::{Draft, Event, Topic};
use crate::hitl::OrderGiven;

/// An event of any process, and what only the processes are told about it.
#[derive(Debug)]
pub(crate) struct SharedEvent {
    pub(crate) event: Event,
    /// The order that it tells of, for the gateways that hold and release calls by it.
    pub(crate) order: Option<String>,
}

impl Store {
    /// Whether other processes are expected to write to the same database.
    pub(crate) fn is_shared(&self) -> bool {
        self.db.flavour() == Flavour::Postgres
    }

    /// The number of the last event. Numbers are given in the transaction in which nobody else writes, so whatever
    /// is seen has no gaps.
    pub(crate) fn last_shared_event(&mut self) -> Stored<u64> {
        let last = self.one("SELECT coalesce(max(seq), 0) FROM events", &[], |row| row.count(0))?;
        Ok(last.unwrap_or(0))
    }

    /// Writes events down with numbers from `first` on.
    pub(crate) fn add_shared_events(&mut self, first: u64, drafts: &[Draft]) -> Stored<()> {
        /// Events of one statement: there is one text of it for each number of them.
        const AT_ONCE: usize = 16;
        const COLUMNS: usize = 6;
        let mut seq = first;
        for some in drafts.chunks(AT_ONCE) {
            let order = |given: &OrderGiven| serde_json::to_string(given).ok();
            let orders: Vec<Option<String>> =
                some.iter().map(|draft| draft.order.as_ref().and_then(order)).collect();
            let bodies: Vec<_> = some.iter().map(|draft| draft.body.text()).collect();
            let mut values: Vec<Param<'_>> = Vec::with_capacity(some.len() * COLUMNS);
            for ((draft, body), order) in some.iter().zip(&bodies).zip(&orders) {
                let Draft { topic, kind, tenant, .. } = draft;
                let row = values![seq, topic.as_str(), *kind, tenant.as_deref(), &**body, order.as_ref()];
                values.extend_from_slice(row);
                seq += 1;
            }
            let row = |row: usize| {
                let places: Vec<String> =
                    (1..=COLUMNS).map(|column| format!("?{}", row * COLUMNS + column)).collect();
                format!("({})", places.join(", "))
            };
            let rows: Vec<String> = (0..some.len()).map(row).collect();
            let rows = rows.join(", ");
            let sql = format!("INSERT INTO events (seq, topic, kind, tenant, body, given) VALUES {rows}");
            self.execute(&sql, &values)?;
        }
        Ok(())
    }

    /// Forgets events that nobody comes back to.
    pub(crate) fn forget_shared_events(&mut self, up_to: u64) -> Stored<()> {
        self.execute("DELETE FROM events WHERE seq <= ?1", values![up_to]).map(drop)
    }

    pub(crate) fn shared_events(&mut self, behind: u64, count: u32) -> Stored<Vec<SharedEvent>> {
        let sql =
            "SELECT seq, topic, kind, tenant, body, given FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?2";
        self.all(sql, values![behind, count], |row| {
            let event = Event {
                seq: row.count(0)?,
                topic: Topic::parse(row.str(1)?).unwrap_or(Topic::Health),
                kind: crate::events::known_kind(row.str(2)?),
                tenant: row.maybe(3, Row::str)?.map(Arc::from),
                body: row.text(4)?.into(),
            };
            Ok(SharedEvent { event, order: row.maybe(5, Row::text)? })
        })
    }
}
