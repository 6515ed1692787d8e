//! Lists of sessions, and the steps of one of them.

use serde::Deserialize;
use serde_json::{Value, json};

use super::sessions::{SELECT, session_row};
use super::steps::trace_id;
use super::{Page, SessionFilter, SessionOrder, Store};
use crate::database::{Param, values};
use crate::error::Stored;
use crate::graph;
use crate::session::{nine_decimals, silent_before};

/// The filters of a list, over `sessions AS s` with its tenant and its pause: values 1 to 6.
const FILTERS: &str = "(CAST(?1 AS TEXT) IS NULL OR t.name = ?1)
    AND s.loop_score >= ?2
    AND (CAST(?3 AS TEXT) IS NULL OR s.cluster = ?3)
    AND (CAST(?4 AS TEXT) IS NULL OR lower(s.name) LIKE ?4 ESCAPE '\\' OR lower(s.agents) LIKE ?4 ESCAPE '\\')
    AND (CAST(?5 AS TEXT) IS NULL OR CASE
        WHEN ?5 = 'live' THEN s.ended = 0
        ELSE ?5 = CASE WHEN p.session IS NOT NULL THEN 'paused' WHEN s.ended = 1 THEN 'ended'
            WHEN s.level = 'normal' OR s.last_at < ?6 THEN 'active' ELSE s.level END END)";
/// More sessions than this are not counted one by one.
const MAX_TOTAL: i64 = 10_000;

impl Store {
    /// Some sessions, and how many fit the filter in all.
    pub(crate) fn list_sessions(&mut self, filter: &SessionFilter) -> Stored<(Page, u64)> {
        let text = filter.text.as_deref().map(|text| {
            let text = text.to_lowercase().replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
            format!("%{text}%")
        });
        let (column, last) = match (filter.order, filter.cursor) {
            (SessionOrder::LastAt, Some((last, _))) => ("s.last_at", Param::Int(last as i64)),
            (SessionOrder::LastAt, None) => ("s.last_at", Param::Int(i64::MAX)),
            (SessionOrder::LoopScore, cursor) => {
                ("s.loop_score", Param::Real(cursor.map_or(f64::MAX, |at| at.0)))
            }
            (SessionOrder::Cost, cursor) => ("s.cost", Param::Real(cursor.map_or(f64::MAX, |at| at.0))),
        };
        // What the filters say already, in words that an index understands.
        let narrow = match filter.state.as_deref() {
            Some(state @ ("loop" | "warning")) => {
                format!("AND s.level = '{state}' AND s.level <> 'normal' AND s.last_at >= ?6")
            }
            Some("paused") => "AND s.id IN (SELECT session FROM pauses)".to_owned(),
            _ => String::new(),
        };
        let sql = format!(
            "{SELECT} LEFT JOIN pauses p ON p.session = s.id
             WHERE {FILTERS} {narrow} AND ({column}, s.id) < (?7, ?8) ORDER BY {column} DESC, s.id DESC LIMIT ?9"
        );
        let values = [
            filter.tenant.as_deref().into(),
            filter.min_loop.into(),
            filter.cluster.as_deref().into(),
            text.as_deref().into(),
            filter.state.as_deref().into(),
            silent_before(filter.now).into(),
            last,
            filter.cursor.map_or(i64::MAX, |at| at.1).into(),
            filter.count.into(),
        ];
        let sessions = self.all(&sql, &values, session_row)?;
        let full = sessions.len() == filter.count as usize;
        let next = sessions.last().filter(|_| full).map(|last| match filter.order {
            SessionOrder::LastAt => format!("{}~{}", last.last_at, last.id),
            SessionOrder::LoopScore => format!("{}~{}", last.loop_score, last.id),
            SessionOrder::Cost => format!("{}~{}", last.cost, last.id),
        });
        let mut rows = Vec::with_capacity(sessions.len());
        for session in &sessions {
            let paused =
                self.one("SELECT 1 FROM pauses WHERE session = ?1", values![session.id], |_| Ok(()))?;
            rows.push(session.shown(paused.is_some(), filter.now));
        }
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM sessions s CROSS JOIN tenants t ON t.id = s.tenant
             LEFT JOIN pauses p ON p.session = s.id WHERE {FILTERS} {narrow} LIMIT {MAX_TOTAL}) AS counted"
        );
        let total = self.one(&sql, &values[..6], |row| row.count(0))?;
        Ok((Page { rows, next }, total.unwrap_or(0)))
    }

    /// Steps of a session behind one of them.
    pub(crate) fn steps(&mut self, session: i64, behind: i64, count: u32) -> Stored<Page> {
        let sql = "SELECT id, level, cost, log, number, tokens, wasted, open FROM steps
             WHERE session = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
        let rows = self.all(sql, values![session, behind, count], |row| {
            let log: Value = serde_json::from_str(row.str(3)?).unwrap_or_default();
            let shown = json!({
                "step": row.int(4)?, "severity": row.str(1)?, "cost_usd": nine_decimals(row.real(2)?), "tokens": row.int(5)?,
                "redundant": row.flag(6)?, "open": row.flag(7)?, "log": log,
            });
            Ok((row.int(0)?, shown))
        })?;
        Ok(Page::of(rows, count))
    }

    pub(crate) fn graph(&mut self, session: i64, now: i64) -> Stored<Value> {
        let sql = "SELECT trace, parent, agent, log, tool, status, waiting, received_at, number, level, cost, wasted
             FROM steps WHERE session = ?1 ORDER BY id LIMIT ?2";
        let nodes = self.all(sql, values![session, graph::MAX_NODES], |row| {
            let log: Intent = serde_json::from_str(row.str(3)?).unwrap_or_default();
            Ok(graph::Node {
                trace_id: trace_id(row, 0)?,
                parent: row.maybe(1, trace_id)?,
                agent: row.text(2)?,
                intent: log.cognition.intent,
                tool: row.text(4)?,
                status: row.text(5)?,
                waiting: row.flag(6)?,
                received_at: row.int(7)?,
                number: row.int(8)?,
                level: row.text(9)?,
                cost: nine_decimals(row.real(10)?),
                redundant: row.flag(11)?,
            })
        })?;
        Ok(graph::drawn(&nodes, now))
    }
}

/// The part of a log that a graph shows.
#[derive(Default, Deserialize)]
struct Intent {
    cognition: IntentText,
}

#[derive(Default, Deserialize)]
struct IntentText {
    intent: String,
}
