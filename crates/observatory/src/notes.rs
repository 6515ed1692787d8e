//! What a gateway notes without waiting for it.

use std::sync::Arc;
use std::time::Duration;

use loopbreaker::Action;
use loopbreaker_record::{DecisionLog, Status, TraceId};
use serde_json::Value;

use crate::error::Stored;
use crate::hitl::Order;
use crate::ingest::Arrival;
use crate::observatory::Observatory;
use crate::orders::Origin;
use crate::writer::Scribe;

/// Something that happened to a session.
#[derive(Debug)]
pub enum Note {
    /// A step was taken. One that is `pending` is kept open: its entropy counts when its result comes, or when the session
    /// ends. One that is not completes an open one of the same name. One that is known otherwise, as of a transcript that
    /// is sent again, changes nothing. Where its round is over, what that used stands in the log.
    Stepped(Box<Arrival>, Option<Usage>),
    /// The result of a pending call has come. It is taken once; a second one changes nothing.
    Completed(Completion),
    /// What a round used whose log is known or of which there is none, as a difference and not as a sum.
    Used(Usage),
    /// A detector found something, in the form of [`finding_json`](crate::finding_json). A finding with a text as `key`
    /// takes the place of the session's earlier one of that key.
    Found {
        /// Whose it is.
        tenant: Arc<str>,
        /// The session that it was found in.
        session: String,
        /// What was found.
        finding: Value,
    },
    /// The session was in a loop, now or before: what it has wasted and will waste is counted. It need be told only where
    /// [`traffic_is_judged`](crate::Options::traffic_is_judged), and may be told with every request.
    Looped {
        /// Whose it is.
        tenant: Arc<str>,
        /// The session.
        session: String,
    },
    /// Something was done with a request. Each is one round of its session.
    Judged(Verdict),
    /// The provider keeps the session's history: what was said before stands in no later request.
    HistoryElsewhere {
        /// Whose it is.
        tenant: Arc<str>,
        /// The session.
        session: String,
    },
    /// An order, behind everything that was noted before it: the gateway's own verdict pauses a session that may be as new
    /// as the request.
    Ordered {
        /// Whose it is.
        tenant: Arc<str>,
        /// The session, which need not be known.
        session: String,
        /// Who gives it.
        operator: &'static str,
        /// What is to be done.
        order: Order,
    },
    /// A session ends: what is open is counted as it is, and its windows are freed.
    Ended {
        /// Whose it is.
        tenant: Arc<str>,
        /// The session.
        session: String,
    },
}

/// The result of a call that was noted while it was pending.
#[derive(Debug, Clone)]
pub struct Completion {
    /// Whose it is.
    pub tenant: Arc<str>,
    /// The session of the call.
    pub session: String,
    /// The step that the call was noted as.
    pub trace_id: TraceId,
    /// How it ended.
    pub status: Status,
    /// What came back, in short.
    pub output: Option<String>,
}

/// What one round used.
#[derive(Debug, Clone)]
pub struct Usage {
    /// Whose it is.
    pub tenant: Arc<str>,
    /// The session that used it.
    pub session: String,
    /// The step that it was used for, where there is one.
    pub trace_id: Option<TraceId>,
    /// The model that was asked.
    pub model: Option<String>,
    /// Tokens of this round.
    pub tokens: u64,
    /// US dollars of this round.
    pub cost_usd: f64,
}

impl Usage {
    /// A provider may claim what it likes; sums have an end.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens.min(DecisionLog::MAX_TOKENS)
    }

    pub(crate) fn cost_usd(&self) -> f64 {
        if self.cost_usd.is_finite() { self.cost_usd.clamp(0.0, DecisionLog::MAX_COST) } else { 0.0 }
    }
}

/// What a gateway did with one request, or would have done.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Whose it is.
    pub tenant: Arc<str>,
    /// The session of the request.
    pub session: String,
    /// What was done; [`Action::Allow`] says that all is well again.
    pub action: Action,
    /// Whether it was really done: in shadow, and for sessions that are only observed, it was not.
    pub enforced: bool,
    /// The policy that decided.
    pub policy: Option<String>,
    /// The kind of loop, or the rule.
    pub kind: Option<String>,
    /// What the client was told.
    pub message: Option<String>,
}

/// A store that needs longer for what waits is broken.
const FLUSH_PATIENCE: Duration = Duration::from_secs(5);

impl From<Arrival> for Note {
    fn from(arrival: Arrival) -> Self {
        Self::Stepped(arrival.into(), None)
    }
}

impl From<(Arrival, Usage)> for Note {
    fn from((arrival, usage): (Arrival, Usage)) -> Self {
        Self::Stepped(arrival.into(), Some(usage))
    }
}

impl From<Completion> for Note {
    fn from(completion: Completion) -> Self {
        Self::Completed(completion)
    }
}

impl From<Usage> for Note {
    fn from(usage: Usage) -> Self {
        Self::Used(usage)
    }
}

impl From<Verdict> for Note {
    fn from(verdict: Verdict) -> Self {
        Self::Judged(verdict)
    }
}

impl Observatory {
    /// Notes what happened without waiting; `false` when there is no room for it, which is counted.
    pub fn note(&self, note: impl Into<Note>) -> bool {
        self.note_all(vec![note.into()])
    }

    /// Notes what happened, in order, without waiting; `false` when there is no room for all of it: then nothing of it is
    /// noted, and all of it is counted. It survives the end of the process once it is written; a loss of power may take
    /// what came last, but no order.
    ///
    /// ```
    /// use loopbreaker_observatory::{Arrival, Completion, Observatory, Options};
    /// use loopbreaker_record::{DecisionLog, Moment, Status, TraceId};
    ///
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let path = folder.path().join("log.db");
    /// let observatory = Observatory::open(Options::at(path))?;
    /// let trace_id = TraceId::derived(&[b"run-17", b"3"]);
    /// let log = DecisionLog::builder("coder", "gateway", "2.0.0")
    ///     .intent("build")
    ///     .called("make", "{}")
    ///     .build(trace_id, Moment::from_millis(0))
    ///     .expect("it is valid");
    /// let (tenant, session) = ("acme".into(), "run-17".to_owned());
    /// let call = Arrival { tenant, session: Some(session.clone()), log };
    /// let (tenant, output) = ("acme".into(), Some("1 error".to_owned()));
    /// let result = Completion { tenant, session, trace_id, status: Status::Failure, output };
    /// assert!(observatory.note_all(vec![call.into(), result.into()]));
    /// # Ok::<(), loopbreaker_observatory::StoreError>(())
    /// ```
    pub fn note_all(&self, notes: Vec<Note>) -> bool {
        let relied_on = notes.iter().any(|note| matches!(note, Note::Ordered { .. }));
        self.hand_over(relied_on, notes)
    }

    /// Waits until everything that was noted before is written, for at most a few seconds. It blocks its thread.
    pub fn flush(&self) {
        let (done, is_done) = std::sync::mpsc::channel();
        let handed = self.push_through(move |scribe| {
            // Whoever waits may have given up.
            scribe.effects.push(Box::new(move || done.send(()).unwrap_or_default()));
            Ok(())
        });
        if handed {
            is_done.recv_timeout(FLUSH_PATIENCE).ok();
        }
    }
}

impl Scribe<'_> {
    pub(crate) fn note(&mut self, note: Note) -> Stored<()> {
        match note {
            Note::Stepped(arrival, usage) => self.note_step(*arrival, usage.as_ref()),
            Note::Completed(completion) => self.complete(&completion),
            Note::Used(usage) => self.note_usage(&usage),
            Note::Found { tenant, session, finding } => self.keep_finding(&tenant, &session, finding),
            Note::Looped { tenant, session } => {
                let id = self.session_named(&tenant, &session)?;
                self.look_back(id, i64::MAX)
            }
            Note::Judged(verdict) => self.note_verdict(&verdict),
            Note::HistoryElsewhere { tenant, session } => {
                let id = self.session_named(&tenant, &session)?;
                self.change(id)?.marks.history_elsewhere = true;
                Ok(())
            }
            Note::Ordered { tenant, session, operator, order } => {
                let id = self.session_named(&tenant, &session)?;
                // A request has just come: it goes on.
                self.change(id)?.ended = false;
                self.give_order(id, operator, order, Origin::Here).map(drop)
            }
            Note::Ended { tenant, session } => {
                let id = self.session_named(&tenant, &session)?;
                self.change(id)?.ended = true;
                self.end(id, false)
            }
        }
    }
}
