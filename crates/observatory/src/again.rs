//! A log whose name is known: the same one again, or another.

use loopbreaker_record::DecisionLog;

use crate::error::Stored;
use crate::ingest::{Accepted, written};
use crate::store::KnownStep;
use crate::writer::Scribe;

/// Whether a log is the one that is kept: as it was sent, as it was answered, or as it was sent with the score of the
/// answer.
pub(crate) fn is_same(known: &KnownStep, log: &DecisionLog) -> bool {
    let is_sent = |log: &DecisionLog| known.content == log.content().as_bytes();
    if is_sent(log) {
        return true;
    }
    let Ok(answered) = serde_json::from_str::<DecisionLog>(&known.log) else { return false };
    if answered.content() == log.content() {
        return true;
    }
    let mut unscored = log.clone();
    unscored.cognition.entropy_score = None;
    log.cognition.entropy_score == answered.cognition.entropy_score && is_sent(&unscored)
}

impl Scribe<'_> {
    /// A log that came again is answered as the first time, and changes nothing.
    pub(crate) fn repeat(&mut self, known: &KnownStep) -> Stored<Accepted> {
        let is_terminal = serde_json::from_str(&known.log).is_ok_and(|log: DecisionLog| log.is_terminal());
        let session_id = self.live(known.session)?.row.name.clone();
        let control = self.control_for(known.session, is_terminal)?;
        let log = written(known.log.clone())?;
        Ok(Accepted { session_id, duplicate: true, severity: known.level.clone(), log, control })
    }
}
