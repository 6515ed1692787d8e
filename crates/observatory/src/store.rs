//! What is kept, and how it is asked for: the same statements for every database.

mod agents;
mod findings;
mod forget;
mod kept;
mod known;
mod pages;
mod room;
mod search;
mod sessions;
mod shared_events;
mod steps;
mod sums;
mod topology;
mod words;

pub(crate) use room::Tidied;
pub(crate) use shared_events::SharedEvent;

use std::collections::BTreeMap;
use std::sync::Arc;

use loopbreaker::Wasted;
use loopbreaker_record::TraceId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::concern::{Concern, Recovery};
use crate::database::{Database, Param, Row};
use crate::error::{StoreError, Stored};
use agents::Tallies;
use known::Known;
use words::Words;

/// A connection to what is kept.
pub(crate) struct Store {
    db: Box<dyn Database>,
    /// Steps whose words are not in the index yet.
    words: Words,
    /// What agents have done in this transaction.
    tallies: Tallies,
    /// What need not be asked for again, from the first transaction on.
    known: Option<Known>,
    /// Its files may be larger than what they hold.
    shrinks: bool,
}

impl Store {
    pub(crate) fn new(db: impl Database + 'static) -> Self {
        let (words, tallies) = (Words::default(), Tallies::default());
        Self { db: Box::new(db), words, tallies, known: None, shrinks: false }
    }

    /// Starts a transaction; `relied_on` says whether somebody is told that it is written.
    pub(crate) fn begin(&mut self, relied_on: bool) -> Stored<()> {
        self.db.begin(relied_on)?;
        self.known.get_or_insert_default();
        self.recall_words()
    }

    pub(crate) fn commit(&mut self) -> Stored<()> {
        self.put_tallies()?;
        if self.words_are_due() {
            self.index_words()?;
        }
        self.db.commit()
    }

    pub(crate) fn rollback(&mut self) {
        self.words.forget();
        self.tallies.forget();
        // What it knew may have been thought in this transaction only.
        self.known = None;
        self.db.rollback();
    }

    /// Sessions have other names, are gone, or are parts of others; or another process has written.
    pub(crate) fn forget_places(&mut self) {
        if let Some(known) = &mut self.known {
            known.forget_places();
        }
    }

    fn execute(&mut self, sql: &str, values: &[Param<'_>]) -> Stored<u64> {
        self.db.execute(sql, values)
    }

    /// Makes a row that cannot be there already; says its id.
    fn insert(&mut self, sql: &str, values: &[Param<'_>]) -> Stored<i64> {
        self.db.insert(sql, values)?.ok_or_else(|| StoreError::Other("a new row has no id".to_owned()))
    }

    /// The first row.
    fn one<T>(
        &mut self,
        sql: &str,
        values: &[Param<'_>],
        read: impl FnOnce(&Row) -> Stored<T>,
    ) -> Stored<Option<T>> {
        self.db.query(sql, values)?.first().map(read).transpose()
    }

    /// Every row.
    fn all<T>(
        &mut self,
        sql: &str,
        values: &[Param<'_>],
        read: impl FnMut(&Row) -> Stored<T>,
    ) -> Stored<Vec<T>> {
        self.db.query(sql, values)?.iter().map(read).collect()
    }
}

/// Some rows, and where the next ones are.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) rows: Vec<Value>,
    pub(crate) next: Option<String>,
}

impl Page {
    /// Rows with their ids; when there are as many as were asked for, there may be more.
    fn of(rows: Vec<(i64, Value)>, count: u32) -> Self {
        let next = rows.last().filter(|_| rows.len() == count as usize).map(|(id, _)| id.to_string());
        Self { rows: rows.into_iter().map(|(_, row)| row).collect(), next }
    }
}

/// A step that is stored.
#[derive(Debug, Clone)]
pub(crate) struct KnownStep {
    pub(crate) id: i64,
    pub(crate) tenant: i64,
    pub(crate) trace: TraceId,
    pub(crate) session: i64,
    pub(crate) agent: Arc<str>,
    pub(crate) cluster: Arc<str>,
    pub(crate) at: i64,
    pub(crate) level: &'static str,
    /// Its result has not come.
    pub(crate) open: bool,
    /// Its place in its session, from 1 on.
    pub(crate) number: u64,
}

/// What a stored step says.
#[derive(Debug)]
pub(crate) struct Said {
    /// Names what its agent sent; empty where a gateway wrote it.
    pub(crate) content: Vec<u8>,
    pub(crate) log: String,
}

/// A stored step as its agent or the gateway wrote it.
#[derive(Debug)]
pub(crate) struct KeptLog<T> {
    pub(crate) id: i64,
    /// Its place in its session, from 1 on.
    pub(crate) number: u64,
    pub(crate) log: T,
}

/// A step that is not stored yet.
#[derive(Debug)]
pub(crate) struct NewStep<'a> {
    pub(crate) tenant: i64,
    pub(crate) session: i64,
    pub(crate) trace: TraceId,
    pub(crate) parent: Option<TraceId>,
    pub(crate) waiting: bool,
    pub(crate) at: i64,
    pub(crate) received_at: i64,
    pub(crate) agent: &'a str,
    pub(crate) cluster: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) model: &'a str,
    pub(crate) status: &'static str,
    pub(crate) level: &'static str,
    pub(crate) open: bool,
    pub(crate) tokens: u64,
    pub(crate) cost: f64,
    pub(crate) cumulative: Option<f64>,
    /// Names what its agent sent; empty where a gateway wrote it.
    pub(crate) content: &'a [u8],
    pub(crate) log: &'a str,
    /// It is a redundant repeat.
    pub(crate) wasted: bool,
    /// Its place in its session, from 1 on.
    pub(crate) number: u64,
    /// What can be searched for.
    pub(crate) texts: Texts<'a>,
}

/// What becomes of an open step when its result comes.
#[derive(Debug)]
pub(crate) struct Completed<'a> {
    pub(crate) status: &'static str,
    pub(crate) level: &'static str,
    pub(crate) log: &'a str,
    pub(crate) texts: Texts<'a>,
}

/// The texts of a step that can be searched for, exactly as they stand in its log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Texts<'a> {
    pub(crate) intent: &'a str,
    /// One thought per line.
    pub(crate) reasoning: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) input: &'a str,
    pub(crate) output: &'a str,
}

impl<'a> Texts<'a> {
    /// All of them, in the order of the index.
    const fn all(&self) -> [&'a str; 5] {
        [self.intent, self.reasoning, self.tool, self.input, self.output]
    }
}

/// One session as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Session {
    pub(crate) id: i64,
    pub(crate) tenant: i64,
    pub(crate) tenant_name: String,
    pub(crate) name: String,
    pub(crate) provisional: bool,
    pub(crate) level: String,
    pub(crate) ended: bool,
    pub(crate) entropy: f64,
    pub(crate) loop_score: f64,
    pub(crate) steps: u64,
    pub(crate) tokens: u64,
    pub(crate) cost: f64,
    pub(crate) cumulative: f64,
    pub(crate) cluster: String,
    pub(crate) agents: Vec<String>,
    pub(crate) started_at: i64,
    pub(crate) last_at: i64,
    /// What its redundant repeats burned.
    pub(crate) wasted: Wasted,
    pub(crate) marks: Marks,
}

/// What a list shows of a session beside its numbers. Most sessions are well, and what says no more than that is not written
/// down: they are written with every page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Marks {
    /// The last scores, the newest last.
    pub(crate) recent: Vec<f64>,
    /// What its last decisions amount to; the session's level is the worst of this, its concern and the gateway's.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) entropy_level: String,
    /// The open alert.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) alert: Option<Value>,
    /// What the gateway did last, until all was well again.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) verdict: Option<Value>,
    /// `loop` or `warning` while the gateway says so, and for a while after that.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) verdict_level: String,
    /// How sure the gateway is of that, by what it found.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) verdict_score: f64,
    /// The scores of the newest loop, and the newest warning, that it found.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) found_loop: f64,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) found_warning: f64,
    /// The way out of the loop that the gateway saw.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) verdict_recovery: Recovery,
    /// What its own logs show of loops.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) concern: Concern,
    /// Agents whose last step here was part of what is wrong, and how bad it was; none while all is well.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) agents: BTreeMap<String, String>,
    /// The provider keeps its history, so later requests do not carry it.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) history_elsewhere: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What the gateway did, or would have done, with one request.
#[derive(Debug)]
pub(crate) struct VerdictRow<'a> {
    pub(crate) action: &'a str,
    pub(crate) enforced: bool,
    pub(crate) policy: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) message: &'a str,
}

/// One agent's step followed another agent's.
#[derive(Debug)]
pub(crate) struct HandOff<'a> {
    pub(crate) tenant: i64,
    pub(crate) cluster: &'a str,
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) latency: i64,
    pub(crate) at: i64,
    pub(crate) session: i64,
}

/// Which sessions to list.
#[derive(Debug, Default)]
pub(crate) struct SessionFilter {
    pub(crate) tenant: Option<String>,
    pub(crate) state: Option<String>,
    pub(crate) min_loop: f64,
    pub(crate) cluster: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) order: SessionOrder,
    /// What has been silent for long by now is in no loop any more.
    pub(crate) now: i64,
    /// The last one that was seen: what it is ordered by, and its id.
    pub(crate) cursor: Option<(f64, i64)>,
    pub(crate) count: u32,
}

/// What sessions are ordered by, the largest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum SessionOrder {
    #[default]
    LastAt,
    LoopScore,
    Cost,
}

/// Which steps to find.
#[derive(Debug, Default, Clone)]
pub(crate) struct SearchFilter {
    pub(crate) text: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) level: Option<String>,
    /// Only steps of sessions with a finding of this kind.
    pub(crate) kind: Option<String>,
    pub(crate) cluster: Option<String>,
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
    pub(crate) before: Option<i64>,
    pub(crate) count: u32,
}

/// Which costs to sum up.
#[derive(Debug)]
pub(crate) struct CostFilter {
    pub(crate) by: CostBy,
    pub(crate) bucket: i64,
    pub(crate) tenant: Option<String>,
    pub(crate) cluster: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) from: i64,
    pub(crate) to: i64,
}

/// What costs are summed up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CostBy {
    Agent,
    Session,
    Tool,
    Model,
}
