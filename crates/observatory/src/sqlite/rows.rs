//! Rows as values.

use loopbreaker_record::TraceId;
use rusqlite::Row;

use crate::audit::AuditEntry;
use crate::store::{KnownStep, Session};

pub(crate) const STEP_COLUMNS: &str = "id, trace, session, agent, at, level, content, log";

pub(crate) fn known_step(row: &Row<'_>) -> rusqlite::Result<KnownStep> {
    Ok(KnownStep {
        id: row.get(0)?,
        trace: trace_id(row, 1)?,
        session: row.get(2)?,
        agent: row.get(3)?,
        at: row.get(4)?,
        level: row.get(5)?,
        content: row.get(6)?,
        log: row.get(7)?,
    })
}

pub(crate) fn trace_id(row: &Row<'_>, column: usize) -> rusqlite::Result<TraceId> {
    row.get(column).map(TraceId::from_random_bytes)
}

pub(crate) const SESSION_SELECT: &str = "SELECT s.id, s.tenant, t.name, s.name, s.provisional, s.level, s.ended,
    s.entropy, s.loop_score, s.steps, s.tokens, s.cost, s.cumulative, s.cluster, s.agents, s.started_at, s.last_at
    FROM sessions s CROSS JOIN tenants t ON t.id = s.tenant";

pub(crate) fn session_row(row: &Row<'_>) -> rusqlite::Result<Session> {
    let agents: String = row.get(14)?;
    Ok(Session {
        id: row.get(0)?,
        tenant: row.get(1)?,
        tenant_name: row.get(2)?,
        name: row.get(3)?,
        provisional: row.get(4)?,
        level: row.get(5)?,
        ended: row.get(6)?,
        entropy: row.get(7)?,
        loop_score: row.get(8)?,
        steps: row.get::<_, i64>(9)?.cast_unsigned(),
        tokens: row.get::<_, i64>(10)?.cast_unsigned(),
        cost: row.get(11)?,
        cumulative: row.get(12)?,
        cluster: row.get(13)?,
        agents: serde_json::from_str(&agents).unwrap_or_default(),
        started_at: row.get(15)?,
        last_at: row.get(16)?,
    })
}

pub(crate) const AUDIT_COLUMNS: &str =
    "seq, at, operator, action, session_id, reason, before, after, prev_hash, hash";

pub(crate) fn audit_entry(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    Ok(AuditEntry {
        seq: row.get::<_, i64>(0)?.cast_unsigned(),
        at: row.get(1)?,
        operator: row.get(2)?,
        action: row.get(3)?,
        session_id: row.get(4)?,
        reason: row.get(5)?,
        before: row.get(6)?,
        after: row.get(7)?,
        prev_hash: row.get(8)?,
        hash: row.get(9)?,
    })
}
