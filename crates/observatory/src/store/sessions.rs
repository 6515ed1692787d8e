//! Sessions, and what people order for them.

use super::{Session, Store};
use crate::database::{Param, Row, values};
use crate::error::Stored;
use crate::hitl::{Order, Pause, Standing};
use loopbreaker::Wasted;
use serde::Deserialize;
use serde_json::json;

pub(super) const SELECT: &str =
    "SELECT s.id, s.tenant, t.name, s.name, s.provisional, s.level, s.ended, s.entropy,
    s.loop_score, s.steps, s.tokens, s.cost, s.cumulative, s.cluster, s.agents, s.started_at, s.last_at,
    s.wasted_steps, s.wasted_tokens, s.wasted_cost, s.marks
    FROM sessions s CROSS JOIN tenants t ON t.id = s.tenant";

/// Tables whose rows belong to a session.
pub(super) const OF_A_SESSION: [&str; 3] = ["findings", "orders", "verdicts"];

impl Store {
    pub(crate) fn session_id(&mut self, tenant: i64, name: &str) -> Stored<Option<i64>> {
        if let Some(id) = self.known.as_mut().and_then(|known| known.session(tenant, name)) {
            return Ok(Some(id));
        }
        let sql = "SELECT id FROM sessions WHERE tenant = ?1 AND name = ?2";
        let found = self.one(sql, values![tenant, name], |row| row.int(0))?;
        if let (Some(known), Some(id)) = (&mut self.known, found) {
            known.add_session(tenant, name, id);
        }
        Ok(found)
    }

    pub(crate) fn session_of(&mut self, id: i64) -> Stored<Option<Session>> {
        self.one(&format!("{SELECT} WHERE s.id = ?1"), values![id], session_row)
    }

    /// Sessions of this name, of one tenant or of all.
    pub(crate) fn sessions_named(&mut self, name: &str, tenant: Option<&str>) -> Stored<Vec<Session>> {
        // Tenants are few, and the index on sessions starts with them.
        let sql = format!(
            "{SELECT} WHERE s.tenant IN (SELECT id FROM tenants WHERE CAST(?2 AS TEXT) IS NULL OR name = ?2)
             AND s.name = ?1 LIMIT 2"
        );
        self.all(&sql, values![name, tenant], session_row)
    }

    /// Sessions that were active last.
    pub(crate) fn last_sessions(&mut self, tenant: Option<&str>, count: u32) -> Stored<Vec<Session>> {
        let sql = format!(
            "{SELECT} WHERE CAST(?1 AS TEXT) IS NULL OR t.name = ?1 ORDER BY s.last_at DESC, s.id DESC LIMIT ?2"
        );
        self.all(&sql, values![tenant, count], session_row)
    }

    /// Writes a session; a new one has the id 0 and is given another. The name of an old one stays as it is.
    pub(crate) fn put_session(&mut self, session: &Session) -> Stored<i64> {
        let agents = serde_json::to_string(&session.agents).unwrap_or_default();
        let marks = serde_json::to_string(&session.marks).unwrap_or_default();
        let wasted = &session.wasted;
        let values: [Param<'_>; 17] = [
            session.provisional.into(),
            session.level.as_str().into(),
            session.ended.into(),
            session.entropy.into(),
            session.loop_score.into(),
            session.steps.into(),
            session.tokens.into(),
            session.cost.into(),
            session.cumulative.into(),
            session.cluster.as_str().into(),
            agents.as_str().into(),
            session.started_at.into(),
            session.last_at.into(),
            (wasted.steps as u64).into(),
            wasted.tokens.into(),
            wasted.cost_usd.into(),
            marks.as_str().into(),
        ];
        if session.id == 0 {
            let id = self.insert(
                "INSERT INTO sessions (provisional, level, ended, entropy, loop_score, steps, tokens, cost,
                    cumulative, cluster, agents, started_at, last_at, wasted_steps, wasted_tokens, wasted_cost,
                    marks, tenant, name)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
                &[&values[..], values![session.tenant, session.name.as_str()]].concat(),
            )?;
            if let Some(known) = &mut self.known {
                known.add_session(session.tenant, &session.name, id);
            }
            return Ok(id);
        }
        self.execute(
            "UPDATE sessions SET provisional = ?1, level = ?2, ended = ?3, entropy = ?4, loop_score = ?5,
                steps = ?6, tokens = ?7, cost = ?8, cumulative = ?9, cluster = ?10, agents = ?11,
                started_at = ?12, last_at = ?13, wasted_steps = ?14, wasted_tokens = ?15, wasted_cost = ?16,
                marks = ?17
             WHERE id = ?18",
            &[&values[..], values![session.id]].concat(),
        )?;
        Ok(session.id)
    }

    /// Gives a session another name.
    pub(crate) fn rename_session(&mut self, id: i64, name: &str) -> Stored<()> {
        self.forget_places();
        self.execute("UPDATE sessions SET name = ?2 WHERE id = ?1", values![id, name]).map(drop)
    }

    /// Moves everything of one session into another.
    pub(crate) fn merge(&mut self, from: &Session, into: &mut Session) -> Stored<()> {
        self.forget_places();
        self.put_tallies()?;
        for table in OF_A_SESSION.into_iter().chain(["steps", "agents"]) {
            let sql = format!("UPDATE {table} SET session = ?2 WHERE session = ?1");
            self.execute(&sql, values![from.id, into.id])?;
        }
        // What both have stays as it is with the one that stays.
        for (table, same) in
            [("pauses", ""), ("loops", "AND mine.kind = loops.kind AND mine.stopped = loops.stopped")]
        {
            let taken = format!("SELECT 1 FROM {table} AS mine WHERE mine.session = ?2 {same}");
            let sql = format!("UPDATE {table} SET session = ?2 WHERE session = ?1 AND NOT EXISTS ({taken})");
            self.execute(&sql, values![from.id, into.id])?;
            self.execute(&format!("DELETE FROM {table} WHERE session = ?1"), values![from.id])?;
        }
        self.execute("DELETE FROM sessions WHERE id = ?1", values![from.id])?;
        // Each of them counted from its own zero, so the steps' shares of the cumulative cost are worked out again.
        let reported = self.all(
            "SELECT id, cumulative FROM steps WHERE session = ?1 AND cumulative IS NOT NULL ORDER BY id",
            values![into.id],
            |row| Ok((row.int(0)?, row.real(1)?)),
        )?;
        let mut highest = 0.0_f64;
        for (id, cumulative) in reported {
            let share = (cumulative - highest).max(0.0);
            highest = highest.max(cumulative);
            self.execute("UPDATE steps SET cost = ?2 WHERE id = ?1", values![id, share])?;
        }
        let sql = "UPDATE steps SET number = placed.number
             FROM (SELECT id, row_number() OVER (ORDER BY id) AS number FROM steps WHERE session = ?1) AS placed
             WHERE placed.id = steps.id";
        self.execute(sql, values![into.id])?;
        (into.cost, into.cumulative) = (highest, highest);
        into.steps += from.steps;
        into.tokens = into.tokens.saturating_add(from.tokens);
        into.wasted.steps += from.wasted.steps;
        into.wasted.tokens = into.wasted.tokens.saturating_add(from.wasted.tokens);
        into.wasted.cost_usd += from.wasted.cost_usd;
        into.started_at = into.started_at.min(from.started_at);
        into.last_at = into.last_at.max(from.last_at);
        for agent in &from.agents {
            into.add_agent(agent);
        }
        Ok(())
    }

    pub(crate) fn put_pause(&mut self, session: i64, pause: Option<&Pause>) -> Stored<()> {
        self.execute("DELETE FROM pauses WHERE session = ?1", values![session])?;
        let Some(pause) = pause else { return Ok(()) };
        let sql = "INSERT INTO pauses (session, since, operator, reason) VALUES (?1, ?2, ?3, ?4)";
        self.execute(sql, values![session, pause.since, &pause.operator, &pause.reason]).map(drop)
    }

    pub(crate) fn pauses(&mut self) -> Stored<Vec<(Session, Pause)>> {
        let read = |row: &Row| {
            let pause = Pause { since: row.int(1)?, operator: row.text(2)?, reason: row.text(3)? };
            Ok((row.int(0)?, pause))
        };
        let mut found = Vec::new();
        for (session, pause) in self.all("SELECT session, since, operator, reason FROM pauses", &[], read)? {
            if let Some(session) = self.session_of(session)? {
                found.push((session, pause));
            }
        }
        Ok(found)
    }

    pub(crate) fn add_order(&mut self, session: i64, order: &Order) -> Stored<i64> {
        let body = serde_json::to_string(order).unwrap_or_default();
        self.insert("INSERT INTO orders (session, body) VALUES (?1, ?2)", values![session, &body])
    }

    pub(crate) fn orders(&mut self) -> Stored<Vec<(i64, i64, Order)>> {
        let read = |row: &Row| Ok((row.int(0)?, row.int(1)?, row.text(2)?));
        let rows = self.all("SELECT session, id, body FROM orders ORDER BY id", &[], read)?;
        let parsed =
            |(session, id, body): (i64, i64, String)| Some((session, id, serde_json::from_str(&body).ok()?));
        Ok(rows.into_iter().filter_map(parsed).collect())
    }

    /// An order that a gateway has put into a request stays as long as its session, with the place in the transcript at
    /// which it was put in; says whether nobody had handed it out before.
    pub(crate) fn keep_told(&mut self, order: i64, told: &Order, anchor: Option<u128>) -> Stored<bool> {
        let body =
            json!({ "told": told, "anchor": anchor.map(|anchor| format!("{anchor:032x}")) }).to_string();
        let sql = "UPDATE orders SET body = ?2 WHERE id = ?1 AND body LIKE '{\"order\"%'";
        self.execute(sql, values![order, &body]).map(|changed| changed > 0)
    }

    /// What is put into the requests of sessions, with the place at which it was put in first, where it was: the newest
    /// ones, in the order in which they were given.
    pub(crate) fn standing_orders(&mut self) -> Stored<Vec<Standing>> {
        let read = |row: &Row| Ok((row.int(0)?, row.text(1)?));
        let sql = "SELECT session, body FROM orders ORDER BY id DESC LIMIT 20000";
        let mut found = Vec::new();
        for (session, body) in self.all(sql, &[], read)?.into_iter().rev() {
            let Some((order, anchor)) = standing(&body) else { continue };
            if let Some(session) = self.session_of(session)? {
                found.push(Standing { tenant: session.tenant_name, session_id: session.name, order, anchor });
            }
        }
        Ok(found)
    }

    /// Takes an order away; says whether it was there, for another process may have handed it out.
    pub(crate) fn remove_order(&mut self, order: i64) -> Stored<bool> {
        self.execute("DELETE FROM orders WHERE id = ?1", values![order]).map(|gone| gone > 0)
    }
}

/// An order that is for the model, from how it is kept.
fn standing(body: &str) -> Option<(Order, Option<u128>)> {
    #[derive(Deserialize)]
    struct Told {
        told: Order,
        anchor: Option<String>,
    }
    let (order, anchor) = match serde_json::from_str::<Told>(body) {
        Ok(Told { told, anchor }) => (told, anchor.and_then(|hex| u128::from_str_radix(&hex, 16).ok())),
        Err(_) => (serde_json::from_str(body).ok()?, None),
    };
    let is_for_the_model = matches!(order, Order::Inject { .. } | Order::Rewrite { content: Some(_), .. });
    is_for_the_model.then_some((order, anchor))
}

pub(super) fn session_row(row: &Row) -> Stored<Session> {
    Ok(Session {
        id: row.int(0)?,
        tenant: row.int(1)?,
        tenant_name: row.text(2)?,
        name: row.text(3)?,
        provisional: row.flag(4)?,
        level: row.text(5)?,
        ended: row.flag(6)?,
        entropy: row.real(7)?,
        loop_score: row.real(8)?,
        steps: row.count(9)?,
        tokens: row.count(10)?,
        cost: row.real(11)?,
        cumulative: row.real(12)?,
        cluster: row.text(13)?,
        agents: serde_json::from_str(row.str(14)?).unwrap_or_default(),
        started_at: row.int(15)?,
        last_at: row.int(16)?,
        wasted: Wasted { steps: row.count(17)? as usize, tokens: row.count(18)?, cost_usd: row.real(19)? },
        marks: serde_json::from_str(row.str(20)?).unwrap_or_default(),
    })
}
