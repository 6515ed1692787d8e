//! A log whose name is known: the same one again, or another.

use loopbreaker::Fingerprint;
use loopbreaker_record::DecisionLog;

use crate::error::Stored;
use crate::ingest::{Accepted, written};
use crate::store::{KnownStep, Said};
use crate::writer::Scribe;

/// Whether a log is the one that is kept: as it was sent, as it was answered, or as it was sent with the score of the
/// answer. A gateway sends none: what it noted is known by what was kept of it.
pub(crate) fn is_same(kept: &Said, log: &DecisionLog) -> bool {
    let content = log.content();
    let is_sent = |content: &Fingerprint| kept.content == content.as_bytes();
    if is_sent(&content) {
        return true;
    }
    let Ok(mut answered) = serde_json::from_str::<DecisionLog>(&kept.log) else { return false };
    if answered.content() == content {
        return true;
    }
    if kept.content.is_empty() {
        answered.cognition.entropy_score = None;
        return answered.content() == content;
    }
    let mut unscored = log.clone();
    unscored.cognition.entropy_score = None;
    log.cognition.entropy_score == answered.cognition.entropy_score && is_sent(&unscored.content())
}

impl Scribe<'_> {
    /// A log that came again is answered as the first time, and changes nothing.
    pub(crate) fn repeat(&mut self, known: &KnownStep, kept: Said) -> Stored<Accepted> {
        let is_terminal = serde_json::from_str(&kept.log).is_ok_and(|log: DecisionLog| log.is_terminal());
        let session_id = self.live(known.session)?.row.name.clone();
        let control = self.control_for(known.session, is_terminal)?;
        let log = written(kept.log)?;
        Ok(Accepted { session_id, duplicate: true, severity: known.level.to_owned(), log, control })
    }
}
