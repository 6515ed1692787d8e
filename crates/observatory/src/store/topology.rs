//! The map of agents, and who hands off to whom.

use std::collections::{BTreeMap, HashMap};

use loopbreaker_record::Moment;
use serde_json::{Value, json};

use super::sessions::{SELECT, session_row};
use super::{Session, Store};
use crate::concern::rank;
use crate::database::values;
use crate::error::Stored;
use crate::graph::IDLE_AFTER;
use crate::session::{nine_decimals, silent_before};

/// An agent that sent something wrong in this time is shown so.
const VIOLATIONS_SHOWN: i64 = 10 * 60_000;
/// Live sessions that are looked at, the one that was active last first.
const MAX_LIVE: u32 = 10_000;

/// The worst of what an agent is in.
struct Worst {
    state: &'static str,
    session: String,
    loop_score: f64,
}

/// By tenant and name: one agent may be in several clusters.
type Agents = HashMap<(i64, String), Worst>;

impl Store {
    /// Agents, and who hands off to whom.
    pub(crate) fn topology(
        &mut self,
        tenant: Option<&str>,
        cluster: Option<&str>,
        now: i64,
    ) -> Stored<Value> {
        let mut violations = BTreeMap::new();
        let sql = "SELECT tenant, agent, count(*) FROM violations WHERE at >= ?1 GROUP BY tenant, agent";
        for (agent, count) in self.all(sql, values![now - VIOLATIONS_SHOWN], |row| {
            Ok(((row.text(0)?, row.text(1)?), row.count(2)?))
        })? {
            violations.insert(agent, count);
        }
        let worst = self.worst_of_agents(now)?;
        let scope =
            "(CAST(?1 AS TEXT) IS NULL OR t.name = ?1) AND (CAST(?2 AS TEXT) IS NULL OR x.cluster = ?2)";
        let sql = format!(
            "SELECT t.name, x.cluster, x.agent, x.steps, x.last_at, s.name, x.tokens, x.cost,
                coalesce(s.loop_score, 0), x.tenant, coalesce(s.ended, 1)
             FROM agents x JOIN tenants t ON t.id = x.tenant LEFT JOIN sessions s ON s.id = x.session
             WHERE {scope} ORDER BY x.last_at DESC, x.agent LIMIT 2000"
        );
        let nodes = self.all(&sql, values![tenant, cluster], |row| {
            let (tenant, cluster, agent) = (row.text(0)?, row.text(1)?, row.text(2)?);
            let last_at = row.int(4)?;
            let wrong = violations.get(&(tenant.clone(), agent.clone())).copied().unwrap_or(0);
            let live = worst.get(&(row.int(9)?, agent.clone()));
            let is_silent = last_at < silent_before(now);
            // A session names some of its agents only, when it has many.
            let newest = if row.flag(10)? { "dead" } else { "active" };
            let state = match live.map_or(newest, |live| live.state) {
                "paused" => "paused",
                _ if is_silent => "dead",
                "active" if wrong > 0 => "violation",
                "active" if now - last_at > IDLE_AFTER => "idle",
                state => state,
            };
            let session = live.map(|live| live.session.as_str()).or(row.maybe(5, super::Row::str)?);
            let loop_score = live.map_or(row.real(8)?, |live| live.loop_score);
            Ok(json!({
                "agent_id": agent, "tenant": tenant, "cluster_id": cluster, "state": state,
                "steps": row.int(3)?, "session_id": session, "tokens": row.int(6)?,
                "cost_usd": nine_decimals(row.real(7)?), "loop_score": loop_score, "violations": wrong,
                "last_at": Moment::from_millis(last_at).as_str(),
            }))
        })?;
        let sql = format!(
            "SELECT t.name, x.cluster, x.from_agent, x.to_agent, x.count, x.latency, x.last_at, s.name,
                CASE WHEN s.level = 'loop' AND s.ended = 0 AND s.last_at >= ?3 THEN 1 ELSE 0 END
             FROM hand_offs x JOIN tenants t ON t.id = x.tenant LEFT JOIN sessions s ON s.id = x.session
             WHERE {scope} ORDER BY x.last_at DESC, x.from_agent, x.to_agent LIMIT 10000"
        );
        let edges = self.all(&sql, values![tenant, cluster, silent_before(now)], |row| {
            Ok(json!({
                "from": row.str(2)?, "to": row.str(3)?, "tenant": row.str(0)?, "cluster_id": row.str(1)?,
                "count": row.int(4)?, "latency_ms": row.int(5)? / row.int(4)?.max(1),
                "session_id": row.maybe(7, super::Row::str)?, "loop": row.flag(8)?,
                "last_at": Moment::from_millis(row.int(6)?).as_str(),
            }))
        })?;
        Ok(json!({ "nodes": nodes, "edges": edges }))
    }

    /// What each agent is in, over all of its sessions that are live or held.
    fn worst_of_agents(&mut self, now: i64) -> Stored<Agents> {
        let mut worst = Agents::new();
        let sql = format!("{SELECT} WHERE s.id IN (SELECT session FROM pauses)");
        for session in self.all(&sql, &[], session_row)? {
            for agent in &session.agents {
                worst.insert(key(&session, agent), Worst::of(&session, "paused"));
            }
        }
        let sql = format!(
            "{SELECT} WHERE s.ended = 0 AND s.last_at >= ?1 ORDER BY s.last_at DESC, s.id DESC LIMIT ?2"
        );
        for session in self.all(&sql, values![silent_before(now), MAX_LIVE], session_row)? {
            for agent in &session.agents {
                let state = state_of(&session, agent);
                let known = worst.get(&key(&session, agent)).map(|known| known.state);
                // Of equally bad ones the one that was active last is shown.
                if known.is_none_or(|known| known != "paused" && rank(state) > rank(known)) {
                    worst.insert(key(&session, agent), Worst::of(&session, state));
                }
            }
        }
        Ok(worst)
    }
}

impl Worst {
    fn of(session: &Session, state: &'static str) -> Self {
        Self { state, session: session.name.clone(), loop_score: session.loop_score }
    }
}

fn key(session: &Session, agent: &str) -> (i64, String) {
    (session.tenant, agent.to_owned())
}

/// What an agent is in by one of its sessions. What the gateway says is about all of them; what the logs show is about
/// those whose own steps show it.
fn state_of(session: &Session, agent: &str) -> &'static str {
    let own = session.marks.agents.get(agent).map_or("normal", String::as_str);
    match rank(own).max(rank(&session.marks.verdict_level)).min(rank(&session.level)) {
        2 => "loop",
        1 => "warning",
        _ => "active",
    }
}
