//! The store in one `SQLite` file, in WAL mode.

mod page;
mod rows;

use std::path::Path;
use std::time::Duration;

use loopbreaker_record::TraceId;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use crate::audit::AuditEntry;
use crate::error::{StoreError, Stored};
use crate::hitl::{Order, Pause};
use crate::store::{
    CostFilter, HandOff, KnownStep, NewStep, Page, SearchFilter, Session, SessionFilter, Store,
};
use rows::{AUDIT_COLUMNS, SESSION_SELECT, STEP_COLUMNS, audit_entry, known_step, session_row};

/// A connection to the file.
#[derive(Debug)]
pub(crate) struct Sqlite {
    db: Connection,
}

/// What has to be done to a database, in order; its `user_version` says how far it is.
const MIGRATIONS: [&str; 1] = [include_str!("sqlite/schema.sql")];
/// Longer than any commit of ours takes, shorter than anybody likes to wait.
const BUSY: Duration = Duration::from_secs(2);

impl Sqlite {
    /// Opens the file for writing, makes it if it is not there, and brings it up to date.
    pub(crate) fn open(path: &Path) -> Stored<Self> {
        make_private(path)?;
        let db = Connection::open(path)?;
        db.busy_timeout(BUSY)?;
        db.set_prepared_statement_cache_capacity(64);
        // Only a new file takes this; it lets retention give space back.
        db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "FULL")?;
        db.pragma_update(None, "foreign_keys", "OFF")?;
        db.pragma_update(None, "cache_size", -32_768)?;
        let mut store = Self { db };
        store.migrate()?;
        Ok(store)
    }

    /// Opens the file for reading only.
    pub(crate) fn open_reader(path: &Path) -> Stored<Self> {
        let db = Connection::open(path)?;
        db.busy_timeout(BUSY)?;
        db.set_prepared_statement_cache_capacity(64);
        db.pragma_update(None, "query_only", "ON")?;
        Ok(Self { db })
    }

    fn migrate(&mut self) -> Stored<()> {
        let transaction = self.db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let found: u32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let known = MIGRATIONS.len() as u32;
        if found > known {
            return Err(StoreError::TooNew { found, known });
        }
        for migration in &MIGRATIONS[found as usize..] {
            transaction.execute_batch(migration)?;
        }
        transaction.pragma_update(None, "user_version", known)?;
        Ok(transaction.commit()?)
    }

    #[cfg(test)]
    pub(crate) fn connection(&self) -> &Connection {
        &self.db
    }

    fn execute(&mut self, sql: &str, values: impl rusqlite::Params) -> Stored<usize> {
        Ok(self.db.prepare_cached(sql)?.execute(values)?)
    }

    fn one<T>(
        &mut self,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Stored<Option<T>> {
        Ok(self.db.prepare_cached(sql)?.query_row(values, read).optional()?)
    }

    fn all<T>(
        &mut self,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Stored<Vec<T>> {
        let mut statement = self.db.prepare_cached(sql)?;
        let rows = statement.query_map(values, read)?.collect::<Result<_, _>>()?;
        Ok(rows)
    }
}

/// Makes the file, if it is not there, for its owner alone; `SQLite` gives its journal the same rights.
fn make_private(path: &Path) -> Stored<()> {
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let opened = options.open(path);
    opened
        .map(drop)
        .map_err(|error| StoreError::Other(format!("{} cannot be opened: {error}", path.display())))
}

impl Store for Sqlite {
    fn begin(&mut self) -> Stored<()> {
        self.execute("BEGIN IMMEDIATE", []).map(drop)
    }

    fn commit(&mut self) -> Stored<()> {
        self.execute("COMMIT", []).map(drop)
    }

    fn rollback(&mut self) {
        if !self.db.is_autocommit() {
            // A rollback that fails leaves a transaction that the next begin reports.
            drop(self.execute("ROLLBACK", []));
        }
    }

    fn tenant(&mut self, name: &str) -> Stored<i64> {
        let known = self.one("SELECT id FROM tenants WHERE name = ?1", [name], |row| row.get(0))?;
        if let Some(id) = known {
            return Ok(id);
        }
        self.execute("INSERT INTO tenants (name) VALUES (?1)", [name])?;
        Ok(self.db.last_insert_rowid())
    }

    fn step(&mut self, tenant: i64, trace: TraceId) -> Stored<Option<KnownStep>> {
        let sql = format!("SELECT {STEP_COLUMNS} FROM steps WHERE tenant = ?1 AND trace = ?2");
        self.one(&sql, params![tenant, trace.as_bytes()], known_step)
    }

    fn waiting_for(&mut self, tenant: i64, trace: TraceId) -> Stored<Vec<KnownStep>> {
        let sql = format!(
            "SELECT {STEP_COLUMNS} FROM steps WHERE tenant = ?1 AND parent = ?2 AND waiting = 1 ORDER BY id"
        );
        self.all(&sql, params![tenant, trace.as_bytes()], known_step)
    }

    fn is_above(&mut self, tenant: i64, above: TraceId, from: TraceId) -> Stored<bool> {
        // `UNION` and not `UNION ALL`: a chain is walked once however it came to be.
        let sql = "WITH RECURSIVE chain (trace) AS (
                SELECT ?2
                UNION
                SELECT steps.parent FROM steps, chain
                WHERE steps.tenant = ?1 AND steps.trace = chain.trace AND steps.parent IS NOT NULL
            )
            SELECT 1 FROM chain WHERE trace = ?3 LIMIT 1";
        let found = self.one(sql, params![tenant, from.as_bytes(), above.as_bytes()], |_| Ok(()))?;
        Ok(found.is_some())
    }

    fn add_step(&mut self, step: &NewStep<'_>) -> Stored<i64> {
        self.execute(
            "INSERT INTO steps (tenant, session, trace, parent, waiting, at, received_at, agent, cluster, tool,
                model, status, level, tokens, cost, cumulative, content, log)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
            params![
                step.tenant,
                step.session,
                step.trace.as_bytes(),
                step.parent.as_ref().map(TraceId::as_bytes),
                step.waiting,
                step.at,
                step.received_at,
                step.agent,
                step.cluster,
                step.tool,
                step.model,
                step.status,
                step.level,
                step.tokens.cast_signed(),
                step.cost,
                step.cumulative,
                step.content,
                step.log,
            ],
        )?;
        let (id, texts) = (self.db.last_insert_rowid(), &step.texts);
        self.execute(
            "INSERT INTO search (rowid, intent, reasoning, tool, input, output) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![id, texts.intent, texts.reasoning, texts.tool, texts.input, texts.output],
        )?;
        self.execute(
            "INSERT INTO agents (tenant, cluster, agent, steps, level, session, last_at)
             VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6)
             ON CONFLICT DO UPDATE SET steps = steps + 1, level = excluded.level, session = excluded.session,
                last_at = max(last_at, excluded.last_at)",
            params![step.tenant, step.cluster, step.agent, step.level, step.session, step.received_at],
        )?;
        Ok(id)
    }

    fn attach(&mut self, step: i64) -> Stored<()> {
        self.execute("UPDATE steps SET waiting = 0 WHERE id = ?1", [step]).map(drop)
    }

    fn session(&mut self, tenant: i64, name: &str) -> Stored<Option<Session>> {
        let sql = format!("{SESSION_SELECT} WHERE s.tenant = ?1 AND s.name = ?2");
        self.one(&sql, params![tenant, name], session_row)
    }

    fn session_of(&mut self, id: i64) -> Stored<Option<Session>> {
        self.one(&format!("{SESSION_SELECT} WHERE s.id = ?1"), [id], session_row)
    }

    fn sessions_named(&mut self, name: &str, tenant: Option<&str>) -> Stored<Vec<Session>> {
        // Tenants are few, and the index on sessions starts with them.
        let sql = format!(
            "{SESSION_SELECT} WHERE s.tenant IN (SELECT id FROM tenants WHERE ?2 IS NULL OR name = ?2)
             AND s.name = ?1 LIMIT 2"
        );
        self.all(&sql, params![name, tenant], session_row)
    }

    fn put_session(&mut self, session: &Session) -> Stored<i64> {
        let id = (session.id != 0).then_some(session.id);
        self.execute(
            "INSERT INTO sessions (id, tenant, name, provisional, level, ended, entropy, loop_score, steps, tokens,
                cost, cumulative, cluster, agents, started_at, last_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
             ON CONFLICT (id) DO UPDATE SET name = ?3, provisional = ?4, level = ?5, ended = ?6, entropy = ?7, loop_score = ?8,
                steps = ?9, tokens = ?10, cost = ?11, cumulative = ?12, cluster = ?13, agents = ?14,
                started_at = ?15, last_at = ?16",
            params![
                id,
                session.tenant,
                session.name,
                session.provisional,
                session.level,
                session.ended,
                session.entropy,
                session.loop_score,
                session.steps.cast_signed(),
                session.tokens.cast_signed(),
                session.cost,
                session.cumulative,
                session.cluster,
                serde_json::to_string(&session.agents).unwrap_or_default(),
                session.started_at,
                session.last_at,
            ],
        )?;
        Ok(id.unwrap_or_else(|| self.db.last_insert_rowid()))
    }

    fn merge(&mut self, from: &Session, into: &mut Session) -> Stored<()> {
        for table in ["steps", "findings", "orders", "agents"] {
            self.execute(
                &format!("UPDATE {table} SET session = ?2 WHERE session = ?1"),
                params![from.id, into.id],
            )?;
        }
        self.execute("UPDATE OR IGNORE pauses SET session = ?2 WHERE session = ?1", [from.id, into.id])?;
        self.execute("DELETE FROM pauses WHERE session = ?1", [from.id])?;
        self.execute("DELETE FROM sessions WHERE id = ?1", [from.id])?;
        // Each of them counted from its own zero, so the steps' shares of the cumulative cost are worked out again.
        let reported = self.all(
            "SELECT id, cumulative FROM steps WHERE session = ?1 AND cumulative IS NOT NULL ORDER BY id",
            [into.id],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, f64>(1)?)),
        )?;
        let mut highest = 0.0_f64;
        for (id, cumulative) in reported {
            let share = (cumulative - highest).max(0.0);
            highest = highest.max(cumulative);
            self.execute("UPDATE steps SET cost = ?2 WHERE id = ?1", params![id, share])?;
        }
        (into.cost, into.cumulative) = (highest, highest);
        into.steps += from.steps;
        into.tokens = into.tokens.saturating_add(from.tokens);
        into.started_at = into.started_at.min(from.started_at);
        into.last_at = into.last_at.max(from.last_at);
        for agent in &from.agents {
            into.add_agent(agent);
        }
        Ok(())
    }

    fn last_logs(&mut self, session: i64, count: u32) -> Stored<Vec<String>> {
        let sql = "SELECT log FROM steps WHERE session = ?1 ORDER BY id DESC LIMIT ?2";
        let mut logs = self.all(sql, params![session, count], |row| row.get(0))?;
        logs.reverse();
        Ok(logs)
    }

    fn add_hand_off(&mut self, hand_off: &HandOff<'_>) -> Stored<()> {
        let HandOff { tenant, cluster, from, to, latency, at } = hand_off;
        self.execute(
            "INSERT INTO hand_offs VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6)
             ON CONFLICT DO UPDATE SET count = count + 1, latency = latency + excluded.latency,
                last_at = max(last_at, excluded.last_at)",
            params![tenant, cluster, from, to, latency, at],
        )
        .map(drop)
    }

    fn add_finding(&mut self, session: i64, at: i64, finding: &Value) -> Stored<()> {
        let sql = "INSERT INTO findings (session, at, finding) VALUES (?1, ?2, ?3)";
        self.execute(sql, params![session, at, finding.to_string()]).map(drop)
    }

    fn add_violation(&mut self, at: i64, tenant: &str, sha256: &str, answer: &Value) -> Stored<()> {
        let error = answer["error"].as_str().unwrap_or_default();
        let sql = "INSERT INTO violations (at, tenant, sha256, error, details) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.execute(sql, params![at, tenant, sha256, error, answer["violations"].to_string()]).map(drop)
    }

    fn put_pause(&mut self, session: i64, pause: Option<&Pause>) -> Stored<()> {
        let Some(pause) = pause else {
            return self.execute("DELETE FROM pauses WHERE session = ?1", [session]).map(drop);
        };
        let sql = "INSERT OR REPLACE INTO pauses VALUES (?1, ?2, ?3, ?4)";
        self.execute(sql, params![session, pause.since, pause.operator, pause.reason]).map(drop)
    }

    fn pauses(&mut self) -> Stored<Vec<(Session, Pause)>> {
        let sql = "SELECT session, since, operator, reason FROM pauses";
        let read = |row: &Row<'_>| {
            let pause = Pause { since: row.get(1)?, operator: row.get(2)?, reason: row.get(3)? };
            Ok((row.get::<_, i64>(0)?, pause))
        };
        let mut found = Vec::new();
        for (session, pause) in self.all(sql, [], read)? {
            if let Some(session) = self.session_of(session)? {
                found.push((session, pause));
            }
        }
        Ok(found)
    }

    fn add_order(&mut self, session: i64, order: &Order) -> Stored<i64> {
        let body = serde_json::to_string(order).unwrap_or_default();
        self.execute("INSERT INTO orders (session, body) VALUES (?1, ?2)", params![session, body])?;
        Ok(self.db.last_insert_rowid())
    }

    fn orders(&mut self) -> Stored<Vec<(i64, i64, Order)>> {
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?));
        let rows = self.all("SELECT session, id, body FROM orders ORDER BY id", [], read)?;
        let parsed =
            |(session, id, body): (i64, i64, String)| Some((session, id, serde_json::from_str(&body).ok()?));
        Ok(rows.into_iter().filter_map(parsed).collect())
    }

    fn remove_order(&mut self, order: i64) -> Stored<()> {
        self.execute("DELETE FROM orders WHERE id = ?1", [order]).map(drop)
    }

    fn setting(&mut self, name: &str) -> Stored<Option<String>> {
        self.one("SELECT value FROM settings WHERE name = ?1", [name], |row| row.get(0))
    }

    fn put_setting(&mut self, name: &str, value: &str) -> Stored<()> {
        self.execute("INSERT OR REPLACE INTO settings VALUES (?1, ?2)", [name, value]).map(drop)
    }

    fn last_audit(&mut self) -> Stored<Option<AuditEntry>> {
        let sql = format!("SELECT {AUDIT_COLUMNS} FROM audit ORDER BY seq DESC LIMIT 1");
        self.one(&sql, [], audit_entry)
    }

    fn add_audit(&mut self, entry: &AuditEntry) -> Stored<()> {
        self.execute(
            "INSERT INTO audit VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                entry.seq.cast_signed(),
                entry.at,
                entry.operator,
                entry.action,
                entry.session_id,
                entry.reason,
                entry.before,
                entry.after,
                entry.prev_hash,
                entry.hash,
            ],
        )
        .map(drop)
    }

    fn audit(&mut self, behind: u64, count: u32) -> Stored<Vec<AuditEntry>> {
        let sql = format!("SELECT {AUDIT_COLUMNS} FROM audit WHERE seq > ?1 ORDER BY seq LIMIT ?2");
        self.all(&sql, params![behind.cast_signed(), count], audit_entry)
    }

    fn forget(&mut self, received_before: i64, count: u32) -> Stored<u32> {
        let oldest = "SELECT id, session FROM steps ORDER BY id LIMIT ?2";
        let sql = format!(
            "SELECT max(id), count(*) FROM ({oldest}) AS oldest
             WHERE (SELECT received_at FROM steps WHERE id = oldest.id) < ?1"
        );
        let read = |row: &Row<'_>| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, u32>(1)?));
        let Some((Some(last), gone)) = self.one(&sql, params![received_before, count], read)? else {
            return Ok(0);
        };
        let sessions: Vec<i64> =
            self.all("SELECT DISTINCT session FROM steps WHERE id <= ?1", [last], |row| row.get(0))?;
        self.execute(
            "INSERT INTO search (search, rowid, intent, reasoning, tool, input, output)
             SELECT 'delete', id, intent, reasoning, tool, input, output FROM search_text WHERE id <= ?1",
            [last],
        )?;
        // The index only marks what is deleted; a merge gives its space back.
        self.execute("INSERT INTO search (search, rank) VALUES ('merge', 200)", [])?;
        self.execute("DELETE FROM steps WHERE id <= ?1", [last])?;
        for session in sessions {
            let left = self.one("SELECT 1 FROM steps WHERE session = ?1 LIMIT 1", [session], |_| Ok(()))?;
            if left.is_none() {
                for table in ["findings", "orders", "pauses"] {
                    self.execute(&format!("DELETE FROM {table} WHERE session = ?1"), [session])?;
                }
                self.execute("DELETE FROM sessions WHERE id = ?1", [session])?;
            }
        }
        for table in ["violations", "findings"] {
            self.execute(&format!("DELETE FROM {table} WHERE at < ?1"), [received_before])?;
        }
        for table in ["agents", "hand_offs"] {
            self.execute(&format!("DELETE FROM {table} WHERE last_at < ?1"), [received_before])?;
        }
        self.db.execute_batch("PRAGMA incremental_vacuum(1000)")?;
        Ok(gone)
    }

    fn used_bytes(&mut self) -> Stored<u64> {
        let pragma = |name: &str| -> Stored<i64> {
            Ok(self.db.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))?)
        };
        let pages = pragma("page_count")? - pragma("freelist_count")?;
        Ok((pages * pragma("page_size")?).max(0).cast_unsigned())
    }

    fn list_sessions(&mut self, filter: &SessionFilter) -> Stored<Page> {
        self.page_of_sessions(filter)
    }

    fn steps(&mut self, session: i64, behind: i64, count: u32) -> Stored<Page> {
        self.page_of_steps(session, behind, count)
    }

    fn graph(&mut self, session: i64, now: i64) -> Stored<Value> {
        self.read_graph(session, now)
    }

    fn findings(&mut self, session: i64) -> Stored<Vec<Value>> {
        let sql = "SELECT finding FROM findings WHERE session = ?1 ORDER BY id DESC LIMIT 1000";
        let texts: Vec<String> = self.all(sql, [session], |row| row.get(0))?;
        Ok(texts.iter().rev().filter_map(|text| serde_json::from_str(text).ok()).collect())
    }

    fn search(&mut self, filter: &SearchFilter) -> Stored<Page> {
        self.page_of_matches(filter)
    }

    fn cost(&mut self, filter: &CostFilter) -> Stored<Vec<Value>> {
        self.sum_costs(filter)
    }

    fn topology(&mut self, tenant: Option<&str>, cluster: Option<&str>, now: i64) -> Stored<Value> {
        self.read_topology(tenant, cluster, now)
    }

    fn violations(&mut self, tenant: Option<&str>, before: i64, count: u32) -> Stored<Page> {
        self.page_of_violations(tenant, before, count)
    }

    fn export(&mut self, filter: &SearchFilter, behind: i64, count: u32) -> Stored<(Vec<String>, i64)> {
        self.read_logs(filter, behind, count)
    }
}

#[cfg(test)]
mod tests;
