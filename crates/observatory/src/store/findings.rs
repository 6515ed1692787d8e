//! What detectors found in a session, and what the gateway did about it.

use loopbreaker_record::Moment;
use serde_json::{Value, json};

use super::{Store, VerdictRow};
use crate::database::values;
use crate::error::Stored;

/// Findings and verdicts of one session that are shown.
const MAX_SHOWN: u32 = 1_000;

impl Store {
    /// Keeps a finding. One with a `key` takes the place of an earlier one of that key.
    pub(crate) fn add_finding(&mut self, session: i64, at: i64, finding: &Value) -> Stored<()> {
        let kind = finding["kind"].as_str().unwrap_or_default();
        let text = finding.to_string();
        let sql = "INSERT INTO findings (session, at, kind, key, finding) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (session, key) WHERE key IS NOT NULL
             DO UPDATE SET at = excluded.at, kind = excluded.kind, finding = excluded.finding";
        self.execute(sql, values![session, at, kind, finding["key"].as_str(), &text]).map(drop)
    }

    pub(crate) fn findings(&mut self, session: i64) -> Stored<Vec<Value>> {
        let sql = "SELECT at, finding FROM findings WHERE session = ?1 ORDER BY id DESC LIMIT ?2";
        let mut found = self.all(sql, values![session, MAX_SHOWN], |row| {
            let mut finding: Value = serde_json::from_str(row.str(1)?).unwrap_or_default();
            if let Some(fields) = finding.as_object_mut() {
                fields.insert("at".to_owned(), Moment::from_millis(row.int(0)?).as_str().into());
            }
            Ok(finding)
        })?;
        found.reverse();
        Ok(found)
    }

    /// The words of the newest finding of this kind.
    pub(crate) fn said_of(&mut self, session: i64, kind: &str) -> Stored<Option<String>> {
        let sql =
            "SELECT finding FROM findings WHERE session = ?1 AND kind = ?2 ORDER BY at DESC, id DESC LIMIT 1";
        let found = self.one(sql, values![session, kind], |row| row.text(0))?;
        let found = found.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        Ok(found.and_then(|finding| finding["message"].as_str().map(str::to_owned)))
    }

    pub(crate) fn add_verdict(&mut self, session: i64, at: i64, verdict: &VerdictRow<'_>) -> Stored<()> {
        let VerdictRow { action, enforced, policy, kind, message } = *verdict;
        let sql = "INSERT INTO verdicts (session, at, action, enforced, policy, kind, message)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        self.execute(sql, values![session, at, action, enforced, policy, kind, message]).map(drop)
    }

    pub(crate) fn verdicts(&mut self, session: i64) -> Stored<Vec<Value>> {
        let sql = "SELECT at, action, enforced, policy, kind, message FROM verdicts
             WHERE session = ?1 ORDER BY id DESC LIMIT ?2";
        let mut found = self.all(sql, values![session, MAX_SHOWN], |row| {
            Ok(json!({
                "at": Moment::from_millis(row.int(0)?).as_str(), "action": row.str(1)?, "enforced": row.flag(2)?,
                "policy": row.str(3)?, "kind": row.str(4)?, "message": row.str(5)?,
            }))
        })?;
        found.reverse();
        Ok(found)
    }

    /// How often each policy did what, and would have, since a moment: policy, kind, enforced, count.
    pub(crate) fn count_verdicts(&mut self, since: i64) -> Stored<Vec<(String, String, bool, u64)>> {
        let sql = "SELECT policy, kind, enforced, count(*) FROM verdicts
             WHERE at >= ?1 AND action <> 'allow' GROUP BY policy, kind, enforced ORDER BY policy, kind";
        self.all(sql, values![since], |row| Ok((row.text(0)?, row.text(1)?, row.flag(2)?, row.count(3)?)))
    }

    /// A loop was stopped, or would have been and goes on for one more round.
    pub(crate) fn count_round(
        &mut self,
        session: i64,
        kind: &str,
        stopped: bool,
        cost: f64,
        at: i64,
    ) -> Stored<()> {
        let sql =
            "INSERT INTO loops (session, kind, stopped, rounds, cost, at) VALUES (?1, ?2, ?3, 0, ?4, ?5)
             ON CONFLICT (session, kind, stopped)
             DO UPDATE SET rounds = loops.rounds + 1, cost = excluded.cost";
        self.execute(sql, values![session, kind, stopped, cost, at]).map(drop)
    }
}
