//! Agents and what they have done so far, for the map: counted over a transaction, and written at its end.
//!
//! An agent takes many steps in one transaction, and its row is the same for all of them.

use std::collections::HashMap;

use super::{HandOff, KnownStep, NewStep, Store};
use crate::database::values;
use crate::error::Stored;

/// What agents have done in this transaction.
#[derive(Debug, Default)]
pub(super) struct Tallies(HashMap<Agent, Tally>);

/// Tenant, cluster and name.
type Agent = (i64, Box<str>, Box<str>);

#[derive(Debug, Default)]
struct Tally {
    steps: u64,
    tokens: u64,
    cost: f64,
    /// Of the newest step; nothing where there was none.
    level: String,
    session: i64,
    last_at: i64,
}

impl Tallies {
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    fn of(&mut self, tenant: i64, cluster: &str, agent: &str) -> &mut Tally {
        self.0.entry((tenant, cluster.into(), agent.into())).or_default()
    }

    pub(super) fn stepped(&mut self, step: &NewStep<'_>) {
        let tally = self.of(step.tenant, step.cluster, step.agent);
        tally.steps += 1;
        tally.use_up(step.tokens, step.cost);
        step.level.clone_into(&mut tally.level);
        tally.session = step.session;
        tally.last_at = tally.last_at.max(step.received_at);
    }

    pub(super) fn used(&mut self, step: &KnownStep, tokens: u64, cost: f64) {
        self.of(step.tenant, &step.cluster, &step.agent).use_up(tokens, cost);
    }
}

impl Tally {
    /// As many as can be added to what the row may hold at most.
    const MAX_TOKENS: u64 = 1 << 62;

    fn use_up(&mut self, tokens: u64, cost: f64) {
        self.tokens = self.tokens.saturating_add(tokens).min(Self::MAX_TOKENS);
        self.cost += cost;
    }
}

impl Store {
    /// Writes down what agents have done in this transaction.
    pub(super) fn put_tallies(&mut self) -> Stored<()> {
        for ((tenant, cluster, agent), tally) in std::mem::take(&mut self.tallies.0) {
            let (cluster, agent) = (&*cluster, &*agent);
            if tally.steps == 0 {
                self.execute(
                    "UPDATE agents SET cost = cost + ?5,
                        tokens = CASE WHEN tokens < 4611686018427387904 THEN tokens + ?4 ELSE tokens END
                     WHERE tenant = ?1 AND cluster = ?2 AND agent = ?3",
                    values![tenant, cluster, agent, tally.tokens, tally.cost],
                )?;
                continue;
            }
            self.execute(
                "INSERT INTO agents (tenant, cluster, agent, steps, level, session, last_at, tokens, cost)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                 ON CONFLICT (tenant, cluster, agent) DO UPDATE SET steps = agents.steps + excluded.steps,
                    tokens = CASE WHEN agents.tokens < 4611686018427387904 THEN agents.tokens + excluded.tokens
                        ELSE agents.tokens END,
                    cost = agents.cost + excluded.cost,
                    level = excluded.level, session = excluded.session,
                    last_at = CASE WHEN excluded.last_at > agents.last_at THEN excluded.last_at
                        ELSE agents.last_at END",
                values![
                    tenant, cluster, agent, tally.steps, &tally.level, tally.session, tally.last_at,
                    tally.tokens, tally.cost,
                ],
            )?;
        }
        Ok(())
    }

    pub(crate) fn add_hand_off(&mut self, hand_off: &HandOff<'_>) -> Stored<()> {
        let HandOff { tenant, cluster, from, to, latency, at, session } = *hand_off;
        self.execute(
            "INSERT INTO hand_offs (tenant, cluster, from_agent, to_agent, count, latency, last_at, session)
             VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7)
             ON CONFLICT (tenant, cluster, from_agent, to_agent) DO UPDATE SET count = hand_offs.count + 1,
                latency = hand_offs.latency + excluded.latency, session = excluded.session,
                last_at = CASE WHEN excluded.last_at > hand_offs.last_at THEN excluded.last_at
                    ELSE hand_offs.last_at END",
            values![tenant, cluster, from, to, latency, at, session],
        )
        .map(drop)
    }
}
