//! What is read page by page: lists, searches, sums.

use std::collections::HashSet;

use loopbreaker_record::{Moment, TraceId};
use rusqlite::{Row, named_params, params};
use serde_json::{Value, json};

use super::Sqlite;
use super::rows::{SESSION_SELECT, session_row, trace_id};
use crate::error::Stored;
use crate::graph;
use crate::store::{CostBy, CostFilter, Page, SearchFilter, SessionFilter};

/// The filters of a search, over `steps AS p` and its session and tenant.
///
/// Joins are cross joins, which are taken in the order in which they are written: the newest steps are walked first,
/// and a page is full before the rest is looked at.
const FILTERS: &str = "(:tenant IS NULL OR t.name = :tenant)
    AND (:session IS NULL OR s.name = :session)
    AND (:agent IS NULL OR p.agent = :agent)
    AND (:tool IS NULL OR p.tool = :tool)
    AND (:status IS NULL OR p.status = :status)
    AND (:level IS NULL OR p.level = :level)
    AND (:from IS NULL OR p.at >= :from)
    AND (:to IS NULL OR p.at < :to)";

impl Sqlite {
    pub(super) fn page_of_sessions(&mut self, filter: &SessionFilter) -> Stored<Page> {
        let sql = format!(
            "{SESSION_SELECT} LEFT JOIN pauses p ON p.session = s.id
             WHERE (:tenant IS NULL OR t.name = :tenant)
               AND s.loop_score >= :min_loop
               AND (:cluster IS NULL OR s.cluster = :cluster)
               AND (:text IS NULL OR instr(lower(s.name), lower(:text)) OR instr(lower(s.agents), lower(:text)))
               AND (:state IS NULL OR :state = CASE WHEN p.session IS NOT NULL THEN 'paused'
                    WHEN s.ended THEN 'ended' WHEN s.level = 'normal' THEN 'active' ELSE s.level END)
               AND (s.last_at, s.id) < (:last_at, :id)
             ORDER BY s.last_at DESC, s.id DESC LIMIT :count"
        );
        let (last_at, id) = filter.cursor.unwrap_or((i64::MAX, i64::MAX));
        let values = named_params! {
            ":tenant": filter.tenant,
            ":min_loop": filter.min_loop,
            ":cluster": filter.cluster,
            ":text": filter.text,
            ":state": filter.state,
            ":last_at": last_at,
            ":id": id,
            ":count": filter.count,
        };
        let sessions = self.all(&sql, values, session_row)?;
        let full = sessions.len() == filter.count as usize;
        let next = sessions.last().filter(|_| full).map(|last| format!("{}.{}", last.last_at, last.id));
        let mut rows = Vec::with_capacity(sessions.len());
        for session in &sessions {
            let paused = self.one("SELECT 1 FROM pauses WHERE session = ?1", [session.id], |_| Ok(()))?;
            rows.push(session.summary(paused.is_some()));
        }
        Ok(Page { rows, next })
    }

    pub(super) fn page_of_steps(&mut self, session: i64, behind: i64, count: u32) -> Stored<Page> {
        let sql =
            "SELECT id, level, cost, log FROM steps WHERE session = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
        let read = |row: &Row<'_>| {
            let (id, log): (i64, String) = (row.get(0)?, row.get(3)?);
            let (severity, cost): (String, f64) = (row.get(1)?, row.get(2)?);
            Ok((id, json!({ "severity": severity, "cost_usd": cost, "log": parsed(&log) })))
        };
        let rows = self.all(sql, params![session, behind, count], read)?;
        let next = rows.last().filter(|_| rows.len() == count as usize).map(|(id, _)| id.to_string());
        Ok(Page { rows: rows.into_iter().map(|(_, row)| row).collect(), next })
    }

    pub(super) fn read_graph(&mut self, session: i64, now: i64) -> Stored<Value> {
        let sql =
            "SELECT trace, parent, agent, json_extract(log, '$.cognition.intent'), tool, status, waiting,
                received_at
             FROM steps WHERE session = ?1 ORDER BY id LIMIT ?2";
        let read = |row: &Row<'_>| {
            Ok(graph::Node {
                trace_id: trace_id(row, 0)?,
                parent: row.get::<_, Option<[u8; 16]>>(1)?.map(TraceId::from_random_bytes),
                agent: row.get(2)?,
                intent: row.get(3)?,
                tool: row.get(4)?,
                status: row.get(5)?,
                waiting: row.get(6)?,
                received_at: row.get(7)?,
            })
        };
        let nodes = self.all(sql, params![session, graph::MAX_NODES], read)?;
        Ok(graph::drawn(&nodes, now))
    }

    pub(super) fn page_of_matches(&mut self, filter: &SearchFilter) -> Stored<Page> {
        let source = if filter.text.is_some() {
            "SELECT p.id, s.name, t.name, p.level, p.log, snippet(search, -1, char(2), char(3), '…', 24)
             FROM search CROSS JOIN steps p ON p.id = search.rowid
             CROSS JOIN sessions s ON s.id = p.session CROSS JOIN tenants t ON t.id = p.tenant
             WHERE search MATCH :text AND search.rowid < :before"
        } else {
            "SELECT p.id, s.name, t.name, p.level, p.log, NULL
             FROM steps p CROSS JOIN sessions s ON s.id = p.session CROSS JOIN tenants t ON t.id = p.tenant
             WHERE :text IS NULL AND p.id < :before"
        };
        let order = if filter.text.is_some() { "search.rowid" } else { "p.id" };
        let sql = format!("{source} AND {FILTERS} ORDER BY {order} DESC LIMIT :count");
        let values = named_params! {
            ":text": filter.text.as_deref().map(as_query),
            ":before": filter.before.unwrap_or(i64::MAX),
            ":tenant": filter.tenant,
            ":session": filter.session,
            ":agent": filter.agent,
            ":tool": filter.tool,
            ":status": filter.status,
            ":level": filter.level,
            ":from": filter.from,
            ":to": filter.to,
            ":count": filter.count,
        };
        let read = |row: &Row<'_>| {
            let (id, session, tenant, severity): (i64, String, String, String) =
                (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            let (log, snippet): (String, Option<String>) = (row.get(4)?, row.get(5)?);
            let row = json!({
                "session_id": session,
                "tenant": tenant,
                "severity": severity,
                "matches": snippet.as_deref().map(marked),
                "log": parsed(&log),
            });
            Ok((id, row))
        };
        let rows = self.all(&sql, values, read)?;
        let next = rows.last().filter(|_| rows.len() == filter.count as usize).map(|(id, _)| id.to_string());
        Ok(Page { rows: rows.into_iter().map(|(_, row)| row).collect(), next })
    }

    pub(super) fn read_logs(
        &mut self,
        filter: &SearchFilter,
        behind: i64,
        count: u32,
    ) -> Stored<(Vec<String>, i64)> {
        let sql = format!(
            "SELECT p.id, s.name, t.name, p.log
             FROM steps p CROSS JOIN sessions s ON s.id = p.session CROSS JOIN tenants t ON t.id = p.tenant
             WHERE p.id > :behind AND (:text IS NULL OR p.id IN (SELECT rowid FROM search WHERE search MATCH :text))
               AND {FILTERS} ORDER BY p.id LIMIT :count"
        );
        let values = named_params! {
            ":behind": behind,
            ":text": filter.text.as_deref().map(as_query),
            ":tenant": filter.tenant,
            ":session": filter.session,
            ":agent": filter.agent,
            ":tool": filter.tool,
            ":status": filter.status,
            ":level": filter.level,
            ":from": filter.from,
            ":to": filter.to,
            ":count": count,
        };
        let read = |row: &Row<'_>| {
            let (session, tenant, log): (String, String, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
            let line = json!({ "session_id": session, "tenant": tenant, "log": parsed(&log) }).to_string();
            Ok((row.get::<_, i64>(0)?, line))
        };
        let rows = self.all(&sql, values, read)?;
        let last = rows.last().map_or(behind, |(id, _)| *id);
        Ok((rows.into_iter().map(|(_, line)| line).collect(), last))
    }

    pub(super) fn sum_costs(&mut self, filter: &CostFilter) -> Stored<Vec<Value>> {
        let key = match filter.by {
            CostBy::Agent => "p.agent",
            CostBy::Session => "s.name",
            CostBy::Tool => "p.tool",
            CostBy::Model => "p.model",
        };
        let sql = format!(
            "SELECT {key}, p.at / :bucket * :bucket AS start, sum(p.cost), total(p.tokens), count(*),
                sum(CASE WHEN p.level = 'loop' THEN p.cost ELSE 0 END)
             FROM steps p CROSS JOIN sessions s ON s.id = p.session CROSS JOIN tenants t ON t.id = p.tenant
             WHERE p.at >= :from AND p.at < :to AND (:tenant IS NULL OR t.name = :tenant)
               AND (:cluster IS NULL OR p.cluster = :cluster)
             GROUP BY 1, 2 ORDER BY 2, 1 LIMIT 10000"
        );
        let values = named_params! {
            ":bucket": filter.bucket,
            ":from": filter.from,
            ":to": filter.to,
            ":tenant": filter.tenant,
            ":cluster": filter.cluster,
        };
        self.all(&sql, values, |row| {
            let (key, start, cost): (String, i64, f64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (tokens, steps, in_loops): (f64, i64, f64) = (row.get(3)?, row.get(4)?, row.get(5)?);
            Ok(json!({
                "key": key,
                "at": Moment::from_millis(start).as_str(),
                "cost_usd": cost,
                "loop_cost_usd": in_loops,
                "tokens": tokens,
                "steps": steps,
            }))
        })
    }

    pub(super) fn read_topology(
        &mut self,
        tenant: Option<&str>,
        cluster: Option<&str>,
        now: i64,
    ) -> Stored<Value> {
        let paused: HashSet<i64> =
            self.all("SELECT session FROM pauses", [], |row| row.get(0))?.into_iter().collect();
        let scope = "(?1 IS NULL OR t.name = ?1) AND (?2 IS NULL OR x.cluster = ?2)";
        let sql = format!(
            "SELECT t.name, x.cluster, x.agent, x.steps, x.level, x.last_at, x.session, s.name, s.ended
             FROM agents x JOIN tenants t ON t.id = x.tenant LEFT JOIN sessions s ON s.id = x.session
             WHERE {scope} ORDER BY x.last_at DESC LIMIT 2000"
        );
        let nodes = self.all(&sql, params![tenant, cluster], |row| {
            let (tenant, cluster, agent): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (steps, level, last_at): (i64, String, i64) = (row.get(3)?, row.get(4)?, row.get(5)?);
            let session: Option<String> = row.get(7)?;
            let ended = row.get::<_, Option<bool>>(8)?.unwrap_or(true);
            let state = match level.as_str() {
                _ if paused.contains(&row.get(6)?) => "paused",
                _ if ended => "dead",
                "normal" if now - last_at > graph::IDLE_AFTER => "idle",
                "normal" => "active",
                level => level,
            };
            Ok(json!({
                "agent_id": agent, "tenant": tenant, "cluster_id": cluster, "state": state, "steps": steps,
                "session_id": session, "last_at": Moment::from_millis(last_at).as_str(),
            }))
        })?;
        let sql = format!(
            "SELECT t.name, x.cluster, x.from_agent, x.to_agent, x.count, x.latency, x.last_at
             FROM hand_offs x JOIN tenants t ON t.id = x.tenant
             WHERE {scope} ORDER BY x.last_at DESC LIMIT 10000"
        );
        let edges = self.all(&sql, params![tenant, cluster], |row| {
            let (tenant, cluster): (String, String) = (row.get(0)?, row.get(1)?);
            let (from, to): (String, String) = (row.get(2)?, row.get(3)?);
            let (count, latency, last_at): (i64, i64, i64) = (row.get(4)?, row.get(5)?, row.get(6)?);
            Ok(json!({
                "from": from, "to": to, "tenant": tenant, "cluster_id": cluster, "count": count,
                "latency_ms": latency / count.max(1), "last_at": Moment::from_millis(last_at).as_str(),
            }))
        })?;
        Ok(json!({ "nodes": nodes, "edges": edges }))
    }

    pub(super) fn page_of_violations(
        &mut self,
        tenant: Option<&str>,
        before: i64,
        count: u32,
    ) -> Stored<Page> {
        let sql = "SELECT id, at, tenant, sha256, error, details FROM violations
             WHERE id < ?2 AND (?1 IS NULL OR tenant = ?1) ORDER BY id DESC LIMIT ?3";
        let rows = self.all(sql, params![tenant, before, count], |row| {
            let (id, at, tenant): (i64, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (sha256, error, details): (String, String, String) = (row.get(3)?, row.get(4)?, row.get(5)?);
            let row = json!({
                "at": Moment::from_millis(at).as_str(), "tenant": tenant, "payload_sha256": sha256, "error": error,
                "violations": parsed(&details),
            });
            Ok((id, row))
        })?;
        let next = rows.last().filter(|_| rows.len() == count as usize).map(|(id, _)| id.to_string());
        Ok(Page { rows: rows.into_iter().map(|(_, row)| row).collect(), next })
    }
}

/// Stored JSON as a value.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

/// Where a match begins and ends, as pairs of text and whether it matched: agents' words are data, never markup.
fn marked(snippet: &str) -> Value {
    let mut parts = Vec::new();
    for (index, piece) in snippet.split(['\u{2}', '\u{3}']).enumerate() {
        if !piece.is_empty() {
            parts.push(json!({ "text": piece, "hit": index % 2 == 1 }));
        }
    }
    Value::Array(parts)
}

/// What a person typed as a query in which nothing is an operator but quotes and a final star.
fn as_query(text: &str) -> String {
    let mut query = String::new();
    for (index, piece) in text.split('"').enumerate() {
        let quoted = index % 2 == 1;
        let words: Vec<&str> = if quoted { vec![piece] } else { piece.split_whitespace().collect() };
        for word in words {
            let (word, star) =
                word.strip_suffix('*').filter(|_| !quoted).map_or((word, ""), |word| (word, "*"));
            if word.chars().any(char::is_alphanumeric) {
                query.extend(["\"", &word.replace('\0', " "), "\"", star, " "]);
            }
        }
    }
    if query.is_empty() { "\"\"".to_owned() } else { query }
}
