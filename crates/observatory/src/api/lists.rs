//! What can be looked at.

use std::time::Instant;

use loopbreaker::{Kind, Status, Wasted};
use loopbreaker_record::Moment;
use serde_json::{Value, json};

use super::query::Query;
use super::reply::{error, json_reply};
use super::{Answered, Caller};
use crate::detectors;
use crate::graph::start_of;
use crate::observatory::Observatory;
use crate::session::nine_decimals;
use crate::store::{CostBy, CostFilter, Page, SearchFilter, Session, SessionFilter, SessionOrder};
use crate::time_span::millis;
use hyper::Response;

use super::reply::Reply;

/// Costs are summed up over a day unless another time is asked for.
const DAY: i64 = 24 * 3_600_000;
/// Things that an agent remembers and that are shown at a step.
const MAX_MEMORY: usize = 10_000;
/// Steps of one page when their texts are cut, and how long those are then.
const MAX_BRIEF: u32 = 2_000;
const MAX_BRIEF_TEXT: usize = 300;

/// What can be searched for; any other word finds nothing, and is a slip.
const STATUSES: [&str; 4] =
    [Status::Success.as_str(), Status::Failure.as_str(), Status::Pending.as_str(), Status::Skipped.as_str()];
const LEVELS: [&str; 3] = ["normal", "warning", "loop"];
const KINDS: [&str; 14] = [
    Kind::Repeat.as_str(),
    Kind::FailingRepeat.as_str(),
    Kind::Cycle.as_str(),
    Kind::Churn.as_str(),
    Kind::Oscillation.as_str(),
    Kind::Sweep.as_str(),
    Kind::StalePoll.as_str(),
    Kind::Monologue.as_str(),
    Kind::Chant.as_str(),
    Kind::UnknownTool.as_str(),
    Kind::Retry.as_str(),
    Kind::IdenticalRequest.as_str(),
    Kind::Semantic.as_str(),
    "entropy",
];

impl Observatory {
    pub(super) async fn list_sessions(&self, query: &Query, caller: &Caller) -> Answered {
        let cursor = query.read("cursor", "a cursor of an earlier answer", |text| {
            let (last, id) = text.split_once('~')?;
            Some((last.parse().ok()?, id.parse().ok()?))
        })?;
        let states = ["active", "warning", "loop", "paused", "ended", "live"];
        let state = query.one_of("state", &states)?;
        let order = query.read("sort", "last_at, loop_score or cost", |order| match order {
            "last_at" => Some(SessionOrder::LastAt),
            "loop_score" => Some(SessionOrder::LoopScore),
            "cost" => Some(SessionOrder::Cost),
            _ => None,
        })?;
        let filter = SessionFilter {
            tenant: tenant_of(query, caller),
            state,
            min_loop: query.number("min_loop")?.unwrap_or(0.0),
            cluster: query.owned("cluster_id"),
            text: query.owned("q"),
            order: order.unwrap_or_default(),
            now: self.shared.now(),
            cursor,
            count: query.limit()?,
        };
        let (Page { rows, next }, total) = self.read(move |store| store.list_sessions(&filter)).await?;
        Ok(json_reply(200, &json!({ "sessions": rows, "next": next, "total": total })))
    }

    pub(super) async fn show_session(&self, id: &str, query: &Query, caller: &Caller) -> Answered {
        let session = self.one(id, query, caller).await?;
        let number = session.id;
        let (findings, verdicts) =
            self.read(move |store| Ok((store.findings(number)?, store.verdicts(number)?))).await?;
        let mut shown = session.shown(self.shared.hitl.pause_of(session.id).is_some(), self.shared.now());
        shown["findings"] = findings.into();
        shown["verdicts"] = verdicts.into();
        if let Some(pause) = self.shared.hitl.pause_of(session.id) {
            let since = Moment::from_millis(pause.since);
            shown["pause"] =
                json!({ "since": since.as_str(), "operator": pause.operator, "reason": pause.reason });
        }
        Ok(json_reply(200, &shown))
    }

    pub(super) async fn show_steps(&self, id: &str, query: &Query, caller: &Caller) -> Answered {
        let session = self.one(id, query, caller).await?.id;
        if let Some(at) = query.whole::<u64>("at")? {
            return Ok(json_reply(200, &self.as_of(session, at).await?));
        }
        let behind = query.whole("cursor")?.unwrap_or(0);
        let brief = query.get("brief").is_some_and(|brief| brief != "0");
        let count = if brief { query.limit_up_to(MAX_BRIEF)? } else { query.limit()? };
        let mut steps = self.read(move |store| store.steps(session, behind, count)).await?;
        if brief {
            for row in &mut steps.rows {
                let cut = shorten(&mut row["log"]);
                row["cut"] = cut.into();
            }
        }
        Ok(page("steps", steps))
    }

    /// What the agent knew and had spent after this many steps.
    async fn as_of(&self, session: i64, at: u64) -> Result<Value, Box<Response<Reply>>> {
        let state = self
            .read(move |store| {
                let (mut step, mut tokens, mut cost, mut behind) = (0, 0_u64, 0.0, 0);
                let mut wasted = Wasted::default();
                let (mut memory, mut added, mut last) = (Vec::new(), Vec::new(), Value::Null);
                'pages: loop {
                    let page = store.steps(session, behind, 500)?;
                    for row in page.rows {
                        if step == at {
                            break 'pages;
                        }
                        step += 1;
                        let of_step = (row["tokens"].as_u64().unwrap_or(0), row["cost_usd"].as_f64());
                        tokens = tokens.saturating_add(of_step.0);
                        cost += of_step.1.unwrap_or(0.0);
                        if row["redundant"] == true {
                            wasted.steps += 1;
                            wasted.tokens = wasted.tokens.saturating_add(of_step.0);
                            wasted.cost_usd += of_step.1.unwrap_or(0.0);
                        }
                        added = row["log"]["state_delta"]["added_to_memory"]
                            .as_array()
                            .cloned()
                            .unwrap_or_default();
                        memory.extend_from_slice(&added);
                        memory.truncate(MAX_MEMORY);
                        last = row;
                    }
                    match page.next.and_then(|next| next.parse().ok()) {
                        Some(next) => behind = next,
                        None => break,
                    }
                }
                Ok(json!({
                    "step": step, "memory": memory, "memory_added": added, "tokens": tokens,
                    "cost_usd": nine_decimals(cost),
                    "intent": last["log"]["cognition"]["intent"].as_str().unwrap_or_default(),
                    "entropy_score": last["log"]["cognition"]["entropy_score"],
                    "wasted": {
                        "steps": wasted.steps, "tokens": wasted.tokens,
                        "cost_usd": nine_decimals(wasted.cost_usd),
                    },
                    "row": last,
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
        let (findings, verdicts) =
            self.read(move |store| Ok((store.findings(session)?, store.verdicts(session)?))).await?;
        Ok(json_reply(200, &json!({ "findings": findings, "verdicts": verdicts })))
    }

    pub(super) async fn search(&self, query: &Query, caller: &Caller) -> Answered {
        let filter = search_filter(query, caller)?;
        let started = Instant::now();
        self.index_words_for(&filter).await;
        let Page { rows, next } = self.read(move |store| store.search(&filter)).await?;
        let took = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(json_reply(200, &json!({ "results": rows, "next": next, "took_ms": took })))
    }

    pub(super) async fn sum_costs(&self, query: &Query, caller: &Caller) -> Answered {
        let by = query.read("by", "agent, session, tool or model", |by| match by {
            "agent" => Some(CostBy::Agent),
            "session" => Some(CostBy::Session),
            "tool" => Some(CostBy::Tool),
            "model" => Some(CostBy::Model),
            _ => None,
        })?;
        let bucket = query.read("bucket", "a time such as 5m, 1h or 1d", bucket_of)?.unwrap_or(3_600_000);
        let to = query.moment("to")?.unwrap_or(self.shared.now() + 1);
        let from = query.moment("from")?.unwrap_or(to.saturating_sub(DAY));
        let filter = CostFilter {
            by: by.unwrap_or(CostBy::Agent),
            bucket,
            tenant: tenant_of(query, caller),
            cluster: query.owned("cluster_id"),
            agent: query.owned("agent"),
            tool: query.owned("tool"),
            model: query.owned("model"),
            from,
            to,
        };
        Ok(json_reply(200, &self.read(move |store| store.cost(&filter)).await?))
    }

    pub(super) async fn show_topology(&self, query: &Query, caller: &Caller) -> Answered {
        let (tenant, cluster, now) = (tenant_of(query, caller), query.owned("cluster_id"), self.shared.now());
        let topology =
            self.read(move |store| store.topology(tenant.as_deref(), cluster.as_deref(), now)).await?;
        Ok(json_reply(200, &topology))
    }

    pub(super) async fn list_violations(&self, query: &Query, caller: &Caller) -> Answered {
        let tenant = tenant_of(query, caller);
        let (before, count) = (query.whole("cursor")?.unwrap_or(i64::MAX), query.limit()?);
        let rows = self.read(move |store| store.violations(tenant.as_deref(), before, count)).await?;
        Ok(page("violations", rows))
    }

    pub(super) async fn list_audit(&self, query: &Query, caller: &Caller) -> Answered {
        if caller.tenant.is_some() {
            // The audit log tells of every tenant.
            return Err(Box::new(error(403, "forbidden", "the audit log is for operators of all tenants")));
        }
        let newest_first = query
            .read("order", "asc or desc", |order| ["asc", "desc"].contains(&order).then(|| order == "desc"))?
            .unwrap_or(false);
        let (cursor, count) = (query.whole("cursor")?, query.limit()?);
        let entries = self
            .read(move |store| {
                if newest_first {
                    store.audit_before(cursor.unwrap_or(u64::MAX), count)
                } else {
                    store.audit(cursor.unwrap_or(0), count)
                }
            })
            .await?;
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
                "dropped": self.health().dropped(),
            },
            "degraded": self.health().degraded(),
        })
    }

    /// The one session that is meant.
    pub(super) async fn one(
        &self,
        id: &str,
        query: &Query,
        caller: &Caller,
    ) -> Result<Session, Box<Response<Reply>>> {
        let tenant = tenant_of(query, caller);
        match self.find(id, tenant.as_deref()).await? {
            Ok(session) => Ok(session),
            Err(0) => {
                let guarded = self.guarded_session(id, tenant.as_deref()).await?;
                guarded.ok_or_else(|| Box::new(error(404, "not_found", "no session of that id is kept")))
            }
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
        status: query.one_of("status", &STATUSES)?,
        level: query.one_of("severity", &LEVELS)?,
        kind: query.one_of("kind", &KINDS)?,
        cluster: query.owned("cluster_id"),
        from: query.moment("from")?,
        to: query.moment("to")?,
        before: query.whole("cursor")?,
        count: query.limit()?,
    })
}

/// Cuts the texts of a log for a list; says whether any was longer.
fn shorten(value: &mut Value) -> bool {
    match value {
        Value::String(text) if text.len() > MAX_BRIEF_TEXT => {
            text.truncate(start_of(text, MAX_BRIEF_TEXT).len());
            true
        }
        Value::Array(members) => members.iter_mut().fold(false, |cut, member| shorten(member) | cut),
        Value::Object(fields) => fields.values_mut().fold(false, |cut, field| shorten(field) | cut),
        _ => false,
    }
}

fn page(name: &str, Page { rows, next }: Page) -> Response<Reply> {
    json_reply(200, &json!({ name: rows, "next": next }))
}

/// A time in milliseconds, which is some.
fn bucket_of(text: &str) -> Option<i64> {
    millis(text).and_then(|millis| i64::try_from(millis).ok()).filter(|millis| *millis > 0)
}
