//! Retention: what is too old or too much goes, the audit log stays.

use super::Store;
use super::sessions::OF_A_SESSION;
use crate::database::values;
use crate::error::Stored;

impl Store {
    /// Removes the oldest steps, at most `count` of them and only those that came before `received_before`.
    pub(crate) fn forget(&mut self, received_before: i64, count: u32) -> Stored<u32> {
        self.forget_places();
        self.put_tallies()?;
        let sql = "SELECT max(id), count(*), max(received_at)
             FROM (SELECT id, received_at FROM steps ORDER BY id LIMIT ?2) AS oldest WHERE received_at < ?1";
        let oldest = self.one(sql, values![received_before, count], |row| {
            let last = row.maybe(0, super::Row::int)?.zip(row.maybe(2, super::Row::int)?);
            Ok(last.zip(Some(row.count(1)? as u32)))
        })?;
        let Some(((last, received_at), gone)) = oldest.flatten() else {
            if received_before < i64::MAX {
                self.forget_notes(received_before)?;
            }
            return Ok(0);
        };
        let sessions =
            self.all("SELECT DISTINCT session FROM steps WHERE id <= ?1", values![last], |row| row.int(0))?;
        self.forget_words(0, last)?;
        self.execute("DELETE FROM steps WHERE id <= ?1", values![last])?;
        for session in sessions {
            let left =
                self.one("SELECT 1 FROM steps WHERE session = ?1 LIMIT 1", values![session], |_| Ok(()))?;
            if left.is_none() {
                for table in OF_A_SESSION.into_iter().chain(["pauses", "loops"]) {
                    self.execute(&format!("DELETE FROM {table} WHERE session = ?1"), values![session])?;
                }
                self.execute("DELETE FROM sessions WHERE id = ?1", values![session])?;
            }
        }
        self.forget_notes(received_at.min(received_before))?;
        self.db.give_space_back()?;
        Ok(gone)
    }

    /// Removes what was noted before a moment beside the steps.
    fn forget_notes(&mut self, before: i64) -> Stored<()> {
        for table in ["violations", "findings", "verdicts", "loops"] {
            self.execute(&format!("DELETE FROM {table} WHERE at < ?1"), values![before])?;
        }
        for table in ["agents", "hand_offs"] {
            self.execute(&format!("DELETE FROM {table} WHERE last_at < ?1"), values![before])?;
        }
        self.execute("DELETE FROM sessions WHERE steps = 0 AND last_at < ?1", values![before]).map(drop)
    }

    /// Bytes that the kept data takes.
    pub(crate) fn used_bytes(&mut self) -> Stored<u64> {
        self.db.used_bytes()
    }
}
