//! Sums over many steps: costs, the numbers of the first screen.

use std::collections::BTreeMap;

use loopbreaker_record::Moment;
use serde_json::{Value, json};

use super::{CostBy, CostFilter, Store};
use crate::database::{Param, Row, values};
use crate::error::Stored;
use crate::overview::PROBE;
use crate::session::{nine_decimals, silent_before};

/// Cells of one answer about costs.
const MAX_CELLS: usize = 10_000;
/// The first screen counts sessions that did something in this time.
const DAY: i64 = 24 * 3_600_000;

impl Store {
    /// Costs over time: cells, and the sums over all of them.
    pub(crate) fn cost(&mut self, filter: &CostFilter) -> Stored<Value> {
        let key = match filter.by {
            CostBy::Agent => "p.agent",
            CostBy::Session => "s.name",
            CostBy::Tool => "p.tool",
            CostBy::Model => "p.model",
        };
        let sql = format!(
            "SELECT {key}, t.name, p.at / ?1 * ?1 AS start, sum(p.cost), sum(CAST(p.tokens AS DOUBLE PRECISION)),
                count(*), sum(CASE WHEN p.level = 'loop' THEN p.cost ELSE 0 END),
                sum(CASE WHEN p.wasted = 1 THEN p.cost ELSE 0 END)
             FROM steps p CROSS JOIN sessions s ON s.id = p.session CROSS JOIN tenants t ON t.id = p.tenant
             WHERE p.at >= ?2 AND p.at < ?3 AND (CAST(?4 AS TEXT) IS NULL OR t.name = ?4)
               AND (CAST(?5 AS TEXT) IS NULL OR p.cluster = ?5) AND (CAST(?6 AS TEXT) IS NULL OR p.agent = ?6)
               AND (CAST(?7 AS TEXT) IS NULL OR p.tool = ?7) AND (CAST(?8 AS TEXT) IS NULL OR p.model = ?8)
             GROUP BY 1, 2, 3 ORDER BY 3, 1, 2 LIMIT ?9"
        );
        let values = values![
            filter.bucket,
            filter.from,
            filter.to,
            filter.tenant.as_deref(),
            filter.cluster.as_deref(),
            filter.agent.as_deref(),
            filter.tool.as_deref(),
            filter.model.as_deref(),
            MAX_CELLS as u64,
        ];
        let (mut total, mut steps) = ([0.0; 4], 0);
        let cells = self.all(&sql, values, |row| {
            let sums = [row.real(3)?, row.real(4)?, row.real(6)?, row.real(7)?];
            steps += row.count(5)?;
            for (total, sum) in total.iter_mut().zip(sums) {
                *total += sum;
            }
            let mut cell = costs(sums, row.count(5)?);
            cell["key"] = row.str(0)?.into();
            cell["tenant"] = row.str(1)?.into();
            cell["at"] = Moment::from_millis(row.int(2)?).as_str().into();
            Ok(cell)
        })?;
        Ok(json!({
            "truncated": cells.len() == MAX_CELLS,
            "cells": cells,
            "total": costs(total, steps),
            "from": Moment::from_millis(filter.from).as_str(),
            "to": Moment::from_millis(filter.to).as_str(),
            "bucket_ms": filter.bucket,
        }))
    }

    /// How many sessions are in which state: those that did something within a day, and all that are held.
    pub(crate) fn count_sessions(&mut self, tenant: Option<&str>, now: i64) -> Stored<BTreeMap<String, u64>> {
        let of_tenant = "(CAST(?1 AS TEXT) IS NULL OR s.tenant IN (SELECT id FROM tenants WHERE name = ?1))";
        let values: &[Param<'_>] = values![tenant, now - DAY, silent_before(now)];
        let level = "CASE WHEN s.last_at < ?3 THEN 'normal' ELSE s.level END";
        // Only what stands in the index on times: sessions are many.
        let sql = format!(
            "SELECT {level}, s.ended, count(*) FROM sessions s WHERE s.last_at >= ?2 AND {of_tenant} GROUP BY 1, 2"
        );
        let mut counted = BTreeMap::<String, u64>::new();
        for (state, count) in self.all(&sql, values, |row| Ok((state_of(row)?, row.count(2)?)))? {
            *counted.entry(state).or_default() += count;
        }
        // Those that are held are few.
        let sql = format!(
            "SELECT {level}, s.ended, CASE WHEN s.last_at >= ?2 THEN 1 ELSE 0 END
             FROM pauses p JOIN sessions s ON s.id = p.session WHERE {of_tenant}"
        );
        for (state, is_counted) in self.all(&sql, values, |row| Ok((state_of(row)?, row.flag(2)?)))? {
            *counted.entry("paused".to_owned()).or_default() += 1;
            if is_counted && let Some(others) = counted.get_mut(&state) {
                *others -= 1;
            }
        }
        Ok(counted)
    }

    /// What redundant repeats burned since a moment: steps, tokens, dollars.
    pub(crate) fn wasted_since(&mut self, tenant: Option<&str>, since: i64) -> Stored<(u64, u64, f64)> {
        let sql = "SELECT count(*), sum(CAST(tokens AS DOUBLE PRECISION)), sum(cost) FROM steps
             WHERE wasted = 1 AND at >= ?2
               AND (CAST(?1 AS TEXT) IS NULL OR tenant IN (SELECT id FROM tenants WHERE name = ?1))
               AND (CAST(?1 AS TEXT) IS NOT NULL OR tenant NOT IN (SELECT id FROM tenants WHERE name = ?3))";
        let wasted = self.one(sql, values![tenant, since, PROBE], |row| {
            Ok((row.count(0)?, whole(row.real(1)?), row.real(2)?))
        })?;
        Ok(wasted.unwrap_or_default())
    }

    /// Loops that were stopped since a moment, by kind: how many, and the sum of what a round of each costs.
    pub(crate) fn stopped_since(
        &mut self,
        tenant: Option<&str>,
        since: i64,
    ) -> Stored<Vec<(String, u64, f64)>> {
        let sql = "SELECT l.kind, count(*), sum(l.cost) FROM loops l JOIN sessions s ON s.id = l.session
             WHERE l.stopped = 1 AND l.at >= ?2
               AND (CAST(?1 AS TEXT) IS NULL OR s.tenant IN (SELECT id FROM tenants WHERE name = ?1))
               AND (CAST(?1 AS TEXT) IS NOT NULL OR s.tenant NOT IN (SELECT id FROM tenants WHERE name = ?3))
             GROUP BY l.kind";
        self.all(sql, values![tenant, since, PROBE], |row| Ok((row.text(0)?, row.count(1)?, row.real(2)?)))
    }

    /// How many more rounds loops of each kind made when nobody stopped them, on average.
    pub(crate) fn rounds_unstopped(&mut self) -> Stored<BTreeMap<String, f64>> {
        let sql = "SELECT kind, CAST(avg(rounds) AS DOUBLE PRECISION) FROM loops
             WHERE stopped = 0 AND session NOT IN (
                SELECT s.id FROM sessions s JOIN tenants t ON t.id = s.tenant WHERE t.name = ?1)
             GROUP BY kind";
        Ok(self.all(sql, values![PROBE], |row| Ok((row.text(0)?, row.real(1)?)))?.into_iter().collect())
    }
}

/// What a session is counted as by its level and whether it has ended, the first columns of a row.
fn state_of(row: &Row) -> Stored<String> {
    Ok(match (row.flag(1)?, row.str(0)?) {
        (true, _) => "ended",
        (false, "normal") => "active",
        (false, level) => level,
    }
    .to_owned())
}

/// A sum of counts that no database could add up as whole numbers.
#[expect(clippy::cast_sign_loss, reason = "counts are not below 0")]
const fn whole(sum: f64) -> u64 {
    sum as u64
}

fn costs([cost, tokens, in_loops, wasted]: [f64; 4], steps: u64) -> Value {
    json!({
        "cost_usd": nine_decimals(cost), "loop_cost_usd": nine_decimals(in_loops),
        "wasted_cost_usd": nine_decimals(wasted),
        "tokens": whole(tokens), "steps": steps,
    })
}
