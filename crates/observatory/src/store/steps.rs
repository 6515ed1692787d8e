//! Steps, one by one.

use std::sync::Arc;

use loopbreaker_record::TraceId;

use super::known::MAX_AWAITED;
use super::{Completed, KeptLog, KnownStep, NewStep, Said, Store};
use crate::concern::level_named;
use crate::database::{Flavour, Param, Row, values};
use crate::error::{StoreError, Stored};

/// What is known of a step.
macro_rules! columns {
    () => {
        "SELECT id, trace, session, agent, at, level, open, tenant, number, cluster FROM steps "
    };
}

/// A new step. On a server its words are a column of it, in a file an index of their own.
macro_rules! insert {
    ($column:literal, $place:literal) => {
        concat!(
            "INSERT INTO steps (tenant, session, trace, parent, waiting, at, received_at, agent, cluster, tool,
                model, status, level, open, tokens, cost, cumulative, content, log, number, wasted",
            $column,
            ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
                ?20, ?21",
            $place,
            ") ON CONFLICT (tenant, trace) DO NOTHING"
        )
    };
}

impl Store {
    pub(crate) fn tenant(&mut self, name: &str) -> Stored<i64> {
        if let Some(id) = self.known.as_ref().and_then(|known| known.tenant(name)) {
            return Ok(id);
        }
        let find = "SELECT id FROM tenants WHERE name = ?1";
        let id = match self.one(find, values![name], |row| row.int(0))? {
            Some(id) => id,
            None => self.insert("INSERT INTO tenants (name) VALUES (?1)", values![name])?,
        };
        if let Some(known) = &mut self.known {
            known.add_tenant(name, id);
        }
        Ok(id)
    }

    pub(crate) fn step(&mut self, tenant: i64, trace: TraceId) -> Stored<Option<Arc<KnownStep>>> {
        if let Some(step) = self.known.as_mut().and_then(|known| known.step(tenant, trace)) {
            return Ok(Some(step));
        }
        let sql = concat!(columns!(), "WHERE tenant = ?1 AND trace = ?2");
        let found = self.one(sql, values![tenant, trace.as_bytes()], known_step)?.map(Arc::new);
        if let (Some(known), Some(step)) = (&mut self.known, &found) {
            known.add_step(Arc::clone(step));
        }
        Ok(found)
    }

    /// What a step says.
    pub(crate) fn said(&mut self, step: &KnownStep) -> Stored<Said> {
        let sql = "SELECT content, log FROM steps WHERE id = ?1";
        let said = self.one(sql, values![step.id], |row| {
            Ok(Said { content: row.bytes(0)?.to_vec(), log: row.text(1)? })
        })?;
        said.ok_or_else(|| StoreError::Corrupt("a step is gone".to_owned()))
    }

    /// Steps that wait for this one as their parent.
    pub(crate) fn waiting_for(&mut self, tenant: i64, trace: TraceId) -> Stored<Vec<KnownStep>> {
        let known = self.known.as_ref().and_then(|known| known.may_be_awaited(tenant, trace));
        if known.is_none() {
            self.learn_awaited()?;
        }
        let known = self.known.as_ref().and_then(|known| known.may_be_awaited(tenant, trace));
        if known == Some(false) {
            return Ok(Vec::new());
        }
        let sql = concat!(columns!(), "WHERE tenant = ?1 AND parent = ?2 AND waiting = 1 ORDER BY id");
        self.all(sql, values![tenant, trace.as_bytes()], known_step)
    }

    /// Asks once which steps others wait for: hardly ever are there any, and every new step has to be looked for.
    fn learn_awaited(&mut self) -> Stored<()> {
        let sql = "SELECT tenant, parent FROM steps WHERE waiting = 1 LIMIT ?1";
        let awaited =
            self.all(sql, values![MAX_AWAITED as u64 + 1], |row| Ok((row.int(0)?, trace_id(row, 1)?)))?;
        if let Some(known) = &mut self.known {
            known.await_only(awaited.into_iter().collect());
        }
        Ok(())
    }

    /// Steps of a session whose results have not come.
    pub(crate) fn open_steps(&mut self, session: i64) -> Stored<Vec<KnownStep>> {
        let sql = concat!(columns!(), "WHERE session = ?1 AND open = 1 ORDER BY id");
        self.all(sql, values![session], known_step)
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

    /// Keeps a step; `None` when there is one of its name.
    pub(crate) fn add_step(&mut self, step: &NewStep<'_>) -> Stored<Option<i64>> {
        let values: [Param<'_>; 21] = [
            step.tenant.into(),
            step.session.into(),
            step.trace.as_bytes().into(),
            step.parent.as_ref().map(TraceId::as_bytes).into(),
            step.waiting.into(),
            step.at.into(),
            step.received_at.into(),
            step.agent.into(),
            step.cluster.into(),
            step.tool.into(),
            step.model.into(),
            step.status.into(),
            step.level.into(),
            step.open.into(),
            step.tokens.into(),
            step.cost.into(),
            step.cumulative.into(),
            step.content.into(),
            step.log.into(),
            step.number.into(),
            step.wasted.into(),
        ];
        let id = match self.db.flavour() {
            Flavour::Sqlite => self.db.insert(insert!("", ""), &values)?,
            Flavour::Postgres => {
                let words = super::search::words_to_index(&step.texts.all());
                let values = [&values[..], &[Param::Text(&words)]].concat();
                self.db.insert(insert!(", search", ", to_tsvector('simple', ?22)"), &values)?
            }
        };
        let Some(id) = id else { return Ok(None) };
        if self.db.flavour() == Flavour::Sqlite {
            self.add_words(id, &step.texts);
        }
        if let Some(known) = &mut self.known {
            let (agent, cluster) = (known.shared_name(step.agent), known.shared_name(step.cluster));
            known.add_step(Arc::new(KnownStep {
                id,
                tenant: step.tenant,
                trace: step.trace,
                session: step.session,
                agent,
                cluster,
                at: step.at,
                level: step.level,
                open: step.open,
                number: step.number,
            }));
            if let Some(parent) = step.parent.filter(|_| step.waiting) {
                known.add_awaited(step.tenant, parent);
            }
        }
        self.tallies.stepped(step);
        Ok(Some(id))
    }

    /// The result of an open step has come.
    pub(crate) fn complete_step(&mut self, step: &KnownStep, done: &Completed<'_>) -> Stored<()> {
        if let Some(known) = &mut self.known {
            known.add_step(Arc::new(KnownStep { level: done.level, open: false, ..step.clone() }));
        }
        self.change_words(step, &done.texts)?;
        self.execute(
            "UPDATE steps SET status = ?2, level = ?3, log = ?4, open = 0 WHERE id = ?1",
            values![step.id, done.status, done.level, done.log],
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
        self.tallies.used(step, tokens, cost);
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
}

fn known_step(row: &Row) -> Stored<KnownStep> {
    Ok(KnownStep {
        id: row.int(0)?,
        trace: trace_id(row, 1)?,
        session: row.int(2)?,
        agent: row.str(3)?.into(),
        at: row.int(4)?,
        level: level_named(row.str(5)?),
        open: row.flag(6)?,
        tenant: row.int(7)?,
        number: row.count(8)?,
        cluster: row.str(9)?.into(),
    })
}

pub(super) fn trace_id(row: &Row, column: usize) -> Stored<TraceId> {
    let bytes = <[u8; 16]>::try_from(row.bytes(column)?);
    let bytes = bytes.map_err(|_| StoreError::Corrupt("a trace_id has no 16 bytes".to_owned()))?;
    Ok(TraceId::from_random_bytes(bytes))
}
