//! Steps, one by one.

use loopbreaker_record::TraceId;

use super::{Completed, HandOff, KeptLog, KnownStep, NewStep, Store, Texts};
use crate::database::{Flavour, Param, Row, values};
use crate::error::{StoreError, Stored};

const COLUMNS: &str = "id, trace, session, agent, at, level, open, content, log, tenant, number";

impl Store {
    pub(crate) fn tenant(&mut self, name: &str) -> Stored<i64> {
        if let Some(id) = self.known.as_ref().and_then(|known| known.tenant(name)) {
            return Ok(id);
        }
        let find = "SELECT id FROM tenants WHERE name = ?1";
        let id = match self.one(find, values![name], |row| row.int(0))? {
            Some(id) => id,
            None => self.db.insert("INSERT INTO tenants (name) VALUES (?1)", values![name])?,
        };
        if let Some(known) = &mut self.known {
            known.add_tenant(name, id);
        }
        Ok(id)
    }

    pub(crate) fn step(&mut self, tenant: i64, trace: TraceId) -> Stored<Option<KnownStep>> {
        if let Some(step) = self.known.as_mut().and_then(|known| known.step(tenant, trace)) {
            return Ok(Some(step.clone()));
        }
        let sql = format!("SELECT {COLUMNS} FROM steps WHERE tenant = ?1 AND trace = ?2");
        let found = self.one(&sql, values![tenant, trace.as_bytes()], known_step)?;
        if let (Some(known), Some(step)) = (&mut self.known, &found) {
            known.add_step(step.clone());
        }
        Ok(found)
    }

    /// Steps that wait for this one as their parent.
    pub(crate) fn waiting_for(&mut self, tenant: i64, trace: TraceId) -> Stored<Vec<KnownStep>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM steps WHERE tenant = ?1 AND parent = ?2 AND waiting = 1 ORDER BY id"
        );
        self.all(&sql, values![tenant, trace.as_bytes()], known_step)
    }

    /// Steps of a session whose results have not come.
    pub(crate) fn open_steps(&mut self, session: i64) -> Stored<Vec<KnownStep>> {
        let sql = format!("SELECT {COLUMNS} FROM steps WHERE session = ?1 AND open = 1 ORDER BY id");
        self.all(&sql, values![session], known_step)
    }

    /// Whether `above` stands in the chain of parents that starts with `from`, at any depth.
    pub(crate) fn is_above(&mut self, tenant: i64, above: TraceId, from: TraceId) -> Stored<bool> {
        // `UNION` and not `UNION ALL`: a chain is walked once however it came to be.
        let sql = "WITH RECURSIVE chain (trace, parent) AS (
                SELECT trace, parent FROM steps WHERE tenant = ?1 AND trace = ?2
                UNION
                SELECT steps.trace, steps.parent FROM steps, chain
                WHERE steps.tenant = ?1 AND steps.trace = chain.parent
            )
            SELECT 1 FROM chain WHERE trace = ?3 OR parent = ?3 LIMIT 1";
        let found = self.one(sql, values![tenant, from.as_bytes(), above.as_bytes()], |_| Ok(()))?;
        Ok(found.is_some())
    }

    pub(crate) fn add_step(&mut self, step: &NewStep<'_>) -> Stored<i64> {
        let Texts { intent, reasoning, tool, input, output } = step.texts;
        let texts = [intent, reasoning, tool, input, output];
        // On a server the words are a column of the step, in a file an index of their own.
        let (column, place, words) = match self.db.flavour() {
            Flavour::Sqlite => ("", "", None),
            Flavour::Postgres => {
                (", search", ", to_tsvector('simple', ?21)", Some(super::search::words_to_index(&texts)))
            }
        };
        let sql = format!(
            "INSERT INTO steps (tenant, session, trace, parent, waiting, at, received_at, agent, cluster, tool,
                model, status, level, open, tokens, cost, cumulative, content, log, number{column})
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
                ?20{place})"
        );
        let mut values: Vec<Param<'_>> = values![
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
            step.open,
            step.tokens,
            step.cost,
            step.cumulative,
            step.content,
            step.log,
            step.number,
        ]
        .to_vec();
        values.extend(words.as_deref().map(Param::Text));
        let id = self.db.insert(&sql, &values)?;
        if words.is_none() {
            self.add_words(id, &step.texts)?;
        }
        if let Some(known) = &mut self.known {
            known.add_step(KnownStep {
                id,
                tenant: step.tenant,
                trace: step.trace,
                session: step.session,
                agent: step.agent.to_owned(),
                at: step.at,
                level: step.level.to_owned(),
                open: step.open,
                number: step.number,
                content: step.content.to_vec(),
                log: step.log.to_owned(),
            });
        }
        self.execute(
            "INSERT INTO agents (tenant, cluster, agent, steps, level, session, last_at, tokens, cost)
             VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (tenant, cluster, agent) DO UPDATE SET steps = agents.steps + 1,
                tokens = CASE WHEN agents.tokens < 4611686018427387904 THEN agents.tokens + excluded.tokens
                    ELSE agents.tokens END,
                cost = agents.cost + excluded.cost,
                level = excluded.level, session = excluded.session,
                last_at = CASE WHEN excluded.last_at > agents.last_at THEN excluded.last_at
                    ELSE agents.last_at END",
            values![
                step.tenant, step.cluster, step.agent, step.level, step.session, step.received_at,
                step.tokens, step.cost,
            ],
        )?;
        Ok(id)
    }

    /// The result of an open step has come.
    pub(crate) fn complete_step(&mut self, step: &KnownStep, done: &Completed<'_>) -> Stored<()> {
        if let Some(known) = &mut self.known {
            let (level, log) = (done.level.to_owned(), done.log.to_owned());
            known.add_step(KnownStep { level, log, open: false, ..step.clone() });
        }
        self.change_words(step, &done.texts)?;
        self.execute(
            "UPDATE steps SET status = ?2, level = ?3, log = ?4, open = 0 WHERE id = ?1",
            values![step.id, done.status, done.level, done.log],
        )?;
        self.execute(
            "UPDATE agents SET level = ?1
             WHERE (tenant, cluster, agent) IN (SELECT tenant, cluster, agent FROM steps WHERE id = ?2)",
            values![done.level, step.id],
        )
        .map(drop)
    }

    /// Tokens and money of a step that became known after it. Says whether it was a redundant repeat.
    pub(crate) fn add_usage(
        &mut self,
        step: &KnownStep,
        model: &str,
        tokens: u64,
        cost: f64,
    ) -> Stored<bool> {
        self.execute(
            "UPDATE agents SET tokens = CASE WHEN tokens < 4611686018427387904 THEN tokens + ?1 ELSE tokens END, cost = cost + ?2
             WHERE (tenant, cluster, agent) IN (SELECT tenant, cluster, agent FROM steps WHERE id = ?3)",
            values![tokens, cost, step.id],
        )?;
        let sql = "UPDATE steps SET tokens = tokens + ?2, cost = cost + ?3,
                model = CASE WHEN CAST(?4 AS TEXT) = '' THEN model ELSE ?4 END
             WHERE id = ?1 RETURNING wasted";
        let wasted = self.one(sql, values![step.id, tokens, cost, model], |row| row.flag(0))?;
        Ok(wasted.unwrap_or(false))
    }

    /// Marks a step as a redundant repeat; says what it burned, or `None` when it was marked before.
    pub(crate) fn mark_wasted(&mut self, step: i64) -> Stored<Option<(u64, f64)>> {
        let sql = "UPDATE steps SET wasted = 1 WHERE id = ?1 AND wasted = 0 RETURNING tokens, cost";
        self.one(sql, values![step], |row| Ok((row.count(0)?, row.real(1)?)))
    }

    /// The parent of this step has come.
    pub(crate) fn attach(&mut self, step: i64) -> Stored<()> {
        self.execute("UPDATE steps SET waiting = 0 WHERE id = ?1", values![step]).map(drop)
    }

    /// The last decisions of a session as logs, the oldest first; open ones are none yet.
    pub(crate) fn last_logs(&mut self, session: i64, count: u32) -> Stored<Vec<KeptLog<String>>> {
        let sql =
            "SELECT id, number, log FROM steps WHERE session = ?1 AND open = 0 ORDER BY id DESC LIMIT ?2";
        let mut logs = self.all(sql, values![session, count], |row| {
            Ok(KeptLog { id: row.int(0)?, number: row.count(1)?, log: row.text(2)? })
        })?;
        logs.reverse();
        Ok(logs)
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

fn known_step(row: &Row) -> Stored<KnownStep> {
    Ok(KnownStep {
        id: row.int(0)?,
        trace: trace_id(row, 1)?,
        session: row.int(2)?,
        agent: row.text(3)?,
        at: row.int(4)?,
        level: row.text(5)?,
        open: row.flag(6)?,
        content: row.bytes(7)?.to_vec(),
        log: row.text(8)?,
        tenant: row.int(9)?,
        number: row.count(10)?,
    })
}

pub(super) fn trace_id(row: &Row, column: usize) -> Stored<TraceId> {
    let bytes = <[u8; 16]>::try_from(row.bytes(column)?);
    let bytes = bytes.map_err(|_| StoreError::Corrupt("a trace_id has no 16 bytes".to_owned()))?;
    Ok(TraceId::from_random_bytes(bytes))
}
