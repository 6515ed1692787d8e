//! Retention: what is too old or too much goes, the audit log stays.

use super::Store;
use super::sessions::OF_A_SESSION;
use crate::database::values;
use crate::error::Stored;

/// One of the oldest steps.
struct Oldest {
    id: i64,
    received_at: i64,
    weight: f64,
}

impl Store {
    /// Removes the oldest steps, at most `count` of them and only those that came before `received_before`.
    pub(crate) fn forget(&mut self, received_before: i64, count: u32) -> Stored<u32> {
        let mut oldest = self.oldest(count)?;
        let old = oldest.iter().rposition(|step| step.received_at < received_before);
        oldest.truncate(old.map_or(0, |last| last + 1));
        if oldest.is_empty() {
            self.forget_places();
            self.put_tallies()?;
            self.forget_notes(received_before)?;
            return Ok(0);
        }
        self.forget_steps(&oldest, received_before)
    }

    /// Removes the oldest steps until they have this weight together, at most `count` of them.
    pub(super) fn forget_oldest(&mut self, weight: f64, count: u32) -> Stored<u32> {
        let mut oldest = self.oldest(count)?;
        let mut sum = 0.0;
        let enough = oldest.iter().position(|step| {
            sum += step.weight;
            sum >= weight
        });
        oldest.truncate(enough.map_or(oldest.len(), |last| last + 1));
        self.forget_steps(&oldest, i64::MAX)
    }

    fn oldest(&mut self, count: u32) -> Stored<Vec<Oldest>> {
        let sql = format!("SELECT id, received_at, {} FROM steps ORDER BY id LIMIT ?1", self.weight());
        self.all(&sql, values![count], |row| {
            Ok(Oldest { id: row.int(0)?, received_at: row.int(1)?, weight: row.real(2)? })
        })
    }

    fn forget_steps(&mut self, oldest: &[Oldest], received_before: i64) -> Stored<u32> {
        self.forget_places();
        self.put_tallies()?;
        let Some(&Oldest { id: last, .. }) = oldest.last() else { return Ok(0) };
        let received_at = oldest.iter().map(|step| step.received_at).max().unwrap_or_default();
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
        self.note_forgotten(oldest.iter().map(|step| step.weight).sum())?;
        Ok(oldest.len() as u32)
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
}
