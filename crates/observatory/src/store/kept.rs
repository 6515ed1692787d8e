//! What is kept under a name, and the audit log.

use super::{Page, Store};
use crate::audit::AuditEntry;
use crate::database::{Row, values};
use crate::error::Stored;
use loopbreaker_record::Moment;
use serde_json::{Value, json};

const AUDIT_COLUMNS: &str = "seq, at, operator, action, session_id, reason, before, after, prev_hash, hash";

impl Store {
    pub(crate) fn setting(&mut self, name: &str) -> Stored<Option<String>> {
        self.one("SELECT value FROM settings WHERE name = ?1", values![name], |row| row.text(0))
    }

    pub(crate) fn put_setting(&mut self, name: &str, value: &str) -> Stored<()> {
        let sql = "INSERT INTO settings (name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        self.execute(sql, values![name, value]).map(drop)
    }

    pub(crate) fn last_audit(&mut self) -> Stored<Option<AuditEntry>> {
        let sql = format!("SELECT {AUDIT_COLUMNS} FROM audit ORDER BY seq DESC LIMIT 1");
        self.one(&sql, &[], audit_entry)
    }

    pub(crate) fn add_audit(&mut self, entry: &AuditEntry) -> Stored<()> {
        let sql =
            format!("INSERT INTO audit ({AUDIT_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
        self.execute(
            &sql,
            values![
                entry.seq,
                &entry.at,
                &entry.operator,
                &entry.action,
                entry.session_id.as_ref(),
                entry.reason.as_ref(),
                entry.before.as_ref(),
                entry.after.as_ref(),
                &entry.prev_hash,
                &entry.hash,
            ],
        )
        .map(drop)
    }

    /// Entries behind a sequence number, in order.
    pub(crate) fn audit(&mut self, behind: u64, count: u32) -> Stored<Vec<AuditEntry>> {
        let sql = format!("SELECT {AUDIT_COLUMNS} FROM audit WHERE seq > ?1 ORDER BY seq LIMIT ?2");
        self.all(&sql, values![behind, count], audit_entry)
    }

    /// Entries before a sequence number, the newest first.
    pub(crate) fn audit_before(&mut self, before: u64, count: u32) -> Stored<Vec<AuditEntry>> {
        let sql = format!("SELECT {AUDIT_COLUMNS} FROM audit WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2");
        self.all(&sql, values![before.min(i64::MAX.cast_unsigned()), count], audit_entry)
    }

    pub(crate) fn add_violation(
        &mut self,
        at: i64,
        tenant: &str,
        agent: &str,
        sha256: &str,
        answer: &Value,
    ) -> Stored<()> {
        let error = answer["error"].as_str().unwrap_or_default();
        let details = answer["violations"].to_string();
        let sql = "INSERT INTO violations (at, tenant, agent, sha256, error, details)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.execute(sql, values![at, tenant, agent, sha256, error, &details]).map(drop)
    }

    pub(crate) fn violations(&mut self, tenant: Option<&str>, before: i64, count: u32) -> Stored<Page> {
        let sql = "SELECT id, at, tenant, sha256, error, details, agent FROM violations
             WHERE id < ?2 AND (CAST(?1 AS TEXT) IS NULL OR tenant = ?1) ORDER BY id DESC LIMIT ?3";
        let rows = self.all(sql, values![tenant, before, count], |row| {
            let details: Value = serde_json::from_str(row.str(5)?).unwrap_or_default();
            let shown = json!({
                "at": Moment::from_millis(row.int(1)?).as_str(), "tenant": row.str(2)?,
                "agent_id": Some(row.str(6)?).filter(|agent| !agent.is_empty()), "payload_sha256": row.str(3)?,
                "error": row.str(4)?, "violations": details,
            });
            Ok((row.int(0)?, shown))
        })?;
        Ok(Page::of(rows, count))
    }
}

fn audit_entry(row: &Row) -> Stored<AuditEntry> {
    Ok(AuditEntry {
        seq: row.count(0)?,
        at: row.text(1)?,
        operator: row.text(2)?,
        action: row.text(3)?,
        session_id: row.maybe(4, Row::text)?,
        reason: row.maybe(5, Row::text)?,
        before: row.maybe(6, Row::text)?,
        after: row.maybe(7, Row::text)?,
        prev_hash: row.text(8)?,
        hash: row.text(9)?,
    })
}
