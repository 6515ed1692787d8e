//! What can be looked at.

use loopbreaker_record::{DecisionLog, Moment};
use serde_json::{Value, json};

use super::query::Query;
use super::reply::{error, json_reply};
use super::{Answered, Caller};
use crate::detectors;
use crate::observatory::Observatory;
use crate::store::{CostBy, CostFilter, Page, SearchFilter, Session, SessionFilter};
use hyper::Response;

use super::reply::Reply;

/// Costs are summed up over a day unless another time is asked for.
const DAY: i64 = 24 * 3_600_000;
/// Things that an agent remembers and that are shown at a step.
const MAX_MEMORY: usize = 10_000;

impl Observatory {
    pub(super) async fn list_sessions(&self, query: &Query, caller: &Caller) -> Answered {
        let cursor = query.read("cursor", "a cursor of an earlier answer", |text| {
            let (last_at, id) = text.split_once('.')?;
            Some((last_at.parse().ok()?, id.parse().ok()?))
        })?;
        let states = ["active", "warning", "loop", "paused", "ended"];
        let state = query
            .read("state", &states.join(", "), |state| states.contains(&state).then(|| state.to_owned()))?;
        let filter = SessionFilter {
            tenant: tenant_of(query, caller),
            state,
            min_loop: query.number("min_loop")?.unwrap_or(0.0),
            cluster: query.owned("cluster_id"),
            text: query.owned("q"),
            cursor,
            count: query.limit()?,
        };
        Ok(page("sessions", self.read(move |store| store.list_sessions(&filter)).await?))
    }

    pub(super) async fn show_session(&self, id: &str, query: &Query, caller: &Caller) -> Answered {
        let session = self.one(id, query, caller).await?;
        let number = session.id;
        let findings = self.read(move |store| store.findings(number)).await?;
        let mut shown = session.summary(self.shared.hitl.pause_of(session.id).is_some());
        shown["findings"] = findings.into();
        if let Some(pause) = self.shared.hitl.pause_of(session.id) {
            let since = Moment::from_millis(pause.since);
            shown["pause"] =
                json!({ "since": since.as_str(), "operator": pause.operator, "reason": pause.reason });
        }
        Ok(json_reply(200, &shown))
    }

    pub(super) async fn show_steps(&self, id: &str, query: &Query, caller: &Caller) -> Answered {
        let session = self.one(id, query, caller).await?.id;
        if let Some(at) = query.number::<u64>("at")? {
            return Ok(json_reply(200, &self.as_of(session, at).await?));
        }
        let behind = query.number("cursor")?.unwrap_or(0);
        let count = query.limit()?;
        Ok(page("steps", self.read(move |store| store.steps(session, behind, count)).await?))
    }

    /// What the agent knew and had spent after this many steps.
    async fn as_of(&self, session: i64, at: u64) -> Result<Value, Box<Response<Reply>>> {
        let state = self
            .read(move |store| {
                let (mut step, mut tokens, mut cost, mut behind) = (0, 0_u64, 0.0, 0);
                let (mut memory, mut intent) = (Vec::new(), String::new());
                'pages: loop {
                    let page = store.steps(session, behind, 500)?;
                    for mut row in page.rows {
                        if step == at {
                            break 'pages;
                        }
                        step += 1;
                        cost += row["cost_usd"].as_f64().unwrap_or(0.0);
                        let Ok(log) = serde_json::from_value::<DecisionLog>(row["log"].take()) else {
                            continue;
                        };
                        intent = log.cognition.intent;
                        let delta = log.state_delta.unwrap_or_default();
                        tokens = tokens.saturating_add(delta.tokens_consumed.unwrap_or(0));
                        memory.extend(delta.added_to_memory.unwrap_or_default());
                        memory.truncate(MAX_MEMORY);
                    }
                    match page.next.and_then(|next| next.parse().ok()) {
                        Some(next) => behind = next,
                        None => break,
                    }
                }
                Ok(json!({
                    "step": step, "memory": memory, "tokens": tokens, "cost_usd": cost, "intent": intent,
                }))
            })
            .await?;
        Ok(state)
    }

    pub(super) async fn show_graph(&self, id: &str, query: &Query, caller: &Caller) -> Answered {
        let session = self.one(id, query, caller).await?.id;
        let now = self.shared.now();
        Ok(json_reply(200, &self.read(move |store| store.graph(session, now)).await?))
    }

    pub(super) async fn show_findings(&self, id: &str, query: &Query, caller: &Caller) -> Answered {
        let session = self.one(id, query, caller).await?.id;
        let findings = self.read(move |store| store.findings(session)).await?;
        Ok(json_reply(200, &json!({ "findings": findings })))
    }

    pub(super) async fn search(&self, query: &Query, caller: &Caller) -> Answered {
        let filter = search_filter(query, caller)?;
        Ok(page("results", self.read(move |store| store.search(&filter)).await?))
    }

    pub(super) async fn sum_costs(&self, query: &Query, caller: &Caller) -> Answered {
        let by = query.read("by", "agent, session, tool or model", |by| match by {
            "agent" => Some(CostBy::Agent),
            "session" => Some(CostBy::Session),
            "tool" => Some(CostBy::Tool),
            "model" => Some(CostBy::Model),
            _ => None,
        })?;
        let bucket = query.read("bucket", "a time such as 5m, 1h or 1d", duration)?.unwrap_or(3_600_000);
        let to = query.moment("to")?.unwrap_or(self.shared.now() + 1);
        let from = query.moment("from")?.unwrap_or(to.saturating_sub(DAY));
        let filter = CostFilter {
            by: by.unwrap_or(CostBy::Agent),
            bucket,
            tenant: tenant_of(query, caller),
            cluster: query.owned("cluster_id"),
            from,
            to,
        };
        let cells = self.read(move |store| store.cost(&filter)).await?;
        Ok(json_reply(200, &json!({ "cells": cells })))
    }

    pub(super) async fn show_topology(&self, query: &Query, caller: &Caller) -> Answered {
        let (tenant, cluster, now) = (tenant_of(query, caller), query.owned("cluster_id"), self.shared.now());
        let topology =
            self.read(move |store| store.topology(tenant.as_deref(), cluster.as_deref(), now)).await?;
        Ok(json_reply(200, &topology))
    }

    pub(super) async fn list_violations(&self, query: &Query, caller: &Caller) -> Answered {
        let tenant = tenant_of(query, caller);
        let (before, count) = (query.number("cursor")?.unwrap_or(i64::MAX), query.limit()?);
        let rows = self.read(move |store| store.violations(tenant.as_deref(), before, count)).await?;
        Ok(page("violations", rows))
    }

    pub(super) async fn list_audit(&self, query: &Query, caller: &Caller) -> Answered {
        if caller.tenant.is_some() {
            // The audit log tells of every tenant.
            return Err(Box::new(error(403, "forbidden", "the audit log is for operators of all tenants")));
        }
        let (behind, count) = (query.number("cursor")?.unwrap_or(0), query.limit()?);
        let entries = self.read(move |store| store.audit(behind, count)).await?;
        let next =
            entries.last().filter(|_| entries.len() == count as usize).map(|last| last.seq.to_string());
        Ok(json_reply(200, &json!({ "entries": entries, "next": next })))
    }

    pub(super) fn running_config(&self) -> Value {
        let failure = self.health().failure();
        json!({
            "detectors": detectors::shown(&self.detectors()),
            "store": {
                "state": if failure.is_some() { "degraded" } else { "ok" },
                "reason": failure.map(|problem| problem.code()),
                "unwritten": self.health().unwritten(),
            },
        })
    }

    /// The one session that is meant.
    pub(super) async fn one(
        &self,
        id: &str,
        query: &Query,
        caller: &Caller,
    ) -> Result<Session, Box<Response<Reply>>> {
        match self.find(id, tenant_of(query, caller).as_deref()).await? {
            Ok(session) => Ok(session),
            Err(0) => Err(Box::new(error(404, "not_found", "no session of that id is kept"))),
            Err(_) => {
                let message = "several tenants have a session of that id: add ?tenant=";
                Err(Box::new(error(409, "conflict", message)))
            }
        }
    }
}

/// The tenant whose data is looked at: the caller's own, or the one that is asked for.
pub(super) fn tenant_of(query: &Query, caller: &Caller) -> Option<String> {
    caller.tenant.as_deref().or(query.get("tenant")).map(str::to_owned)
}

pub(super) fn search_filter(query: &Query, caller: &Caller) -> Result<SearchFilter, Box<Response<Reply>>> {
    Ok(SearchFilter {
        text: query.owned("q"),
        tenant: tenant_of(query, caller),
        session: query.owned("session_id"),
        agent: query.owned("agent"),
        tool: query.owned("tool"),
        status: query.owned("status"),
        level: query.owned("severity"),
        from: query.moment("from")?,
        to: query.moment("to")?,
        before: query.number("cursor")?,
        count: query.limit()?,
    })
}

fn page(name: &str, Page { rows, next }: Page) -> Response<Reply> {
    json_reply(200, &json!({ name: rows, "next": next }))
}

/// `50ms`, `25s`, `30m`, `1h` or `30d` in milliseconds.
fn duration(text: &str) -> Option<i64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let unit = match &text[digits..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => DAY,
        _ => return None,
    };
    let number: i64 = text[..digits].parse().ok()?;
    number.checked_mul(unit).filter(|millis| *millis > 0)
}
