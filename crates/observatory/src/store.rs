//! What a store must be able to do: the one place where a second kind of database fits in.

use loopbreaker_record::TraceId;
use serde_json::Value;

use crate::audit::AuditEntry;
use crate::error::Stored;
use crate::hitl::{Order, Pause};

/// A connection to a store. One of them writes, in transactions; any number read.
pub(crate) trait Store: Send {
    /// Starts a transaction in which nobody else writes.
    fn begin(&mut self) -> Stored<()>;
    /// Ends it. What was written survives a loss of power from here on.
    fn commit(&mut self) -> Stored<()>;
    /// Ends it as if it had never been.
    fn rollback(&mut self);

    fn tenant(&mut self, name: &str) -> Stored<i64>;
    fn step(&mut self, tenant: i64, trace: TraceId) -> Stored<Option<KnownStep>>;
    /// Steps that wait for this one as their parent.
    fn waiting_for(&mut self, tenant: i64, trace: TraceId) -> Stored<Vec<KnownStep>>;
    /// Whether `above` stands in the chain of parents that starts with `from`, at any depth.
    fn is_above(&mut self, tenant: i64, above: TraceId, from: TraceId) -> Stored<bool>;
    fn add_step(&mut self, step: &NewStep<'_>) -> Stored<i64>;
    /// The parent of this step has come.
    fn attach(&mut self, step: i64) -> Stored<()>;
    fn session(&mut self, tenant: i64, name: &str) -> Stored<Option<Session>>;
    fn session_of(&mut self, id: i64) -> Stored<Option<Session>>;
    /// Sessions of this name, of one tenant or of all.
    fn sessions_named(&mut self, name: &str, tenant: Option<&str>) -> Stored<Vec<Session>>;
    /// Writes a session; a new one has the id 0 and is given another.
    fn put_session(&mut self, session: &Session) -> Stored<i64>;
    /// Moves everything of one session into another.
    fn merge(&mut self, from: &Session, into: &mut Session) -> Stored<()>;
    /// The last decisions of a session as logs, the oldest first.
    fn last_logs(&mut self, session: i64, count: u32) -> Stored<Vec<String>>;
    fn add_hand_off(&mut self, hand_off: &HandOff<'_>) -> Stored<()>;
    fn add_finding(&mut self, session: i64, at: i64, finding: &Value) -> Stored<()>;
    fn add_violation(&mut self, at: i64, tenant: &str, sha256: &str, answer: &Value) -> Stored<()>;

    fn put_pause(&mut self, session: i64, pause: Option<&Pause>) -> Stored<()>;
    fn pauses(&mut self) -> Stored<Vec<(Session, Pause)>>;
    fn add_order(&mut self, session: i64, order: &Order) -> Stored<i64>;
    fn orders(&mut self) -> Stored<Vec<(i64, i64, Order)>>;
    fn remove_order(&mut self, order: i64) -> Stored<()>;

    fn setting(&mut self, name: &str) -> Stored<Option<String>>;
    fn put_setting(&mut self, name: &str, value: &str) -> Stored<()>;
    fn last_audit(&mut self) -> Stored<Option<AuditEntry>>;
    fn add_audit(&mut self, entry: &AuditEntry) -> Stored<()>;
    /// Entries behind a sequence number, in order.
    fn audit(&mut self, behind: u64, count: u32) -> Stored<Vec<AuditEntry>>;

    /// Removes the oldest steps, at most `count` of them and only those that came before `received_before`.
    fn forget(&mut self, received_before: i64, count: u32) -> Stored<u32>;
    /// Bytes that the kept data takes.
    fn used_bytes(&mut self) -> Stored<u64>;

    fn list_sessions(&mut self, filter: &SessionFilter) -> Stored<Page>;
    fn steps(&mut self, session: i64, behind: i64, count: u32) -> Stored<Page>;
    fn graph(&mut self, session: i64, now: i64) -> Stored<Value>;
    fn findings(&mut self, session: i64) -> Stored<Vec<Value>>;
    fn search(&mut self, filter: &SearchFilter) -> Stored<Page>;
    fn cost(&mut self, filter: &CostFilter) -> Stored<Vec<Value>>;
    fn topology(&mut self, tenant: Option<&str>, cluster: Option<&str>, now: i64) -> Stored<Value>;
    fn violations(&mut self, tenant: Option<&str>, before: i64, count: u32) -> Stored<Page>;
    /// Logs as they were broadcast, with the id of the last.
    fn export(&mut self, filter: &SearchFilter, behind: i64, count: u32) -> Stored<(Vec<String>, i64)>;
}

/// Some rows, and where the next ones are.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) rows: Vec<Value>,
    pub(crate) next: Option<String>,
}

/// A step that is stored.
#[derive(Debug, Clone)]
pub(crate) struct KnownStep {
    pub(crate) id: i64,
    pub(crate) trace: TraceId,
    pub(crate) session: i64,
    pub(crate) agent: String,
    pub(crate) at: i64,
    pub(crate) level: String,
    pub(crate) content: Vec<u8>,
    pub(crate) log: String,
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
    pub(crate) status: &'a str,
    pub(crate) level: &'a str,
    pub(crate) tokens: u64,
    pub(crate) cost: f64,
    pub(crate) cumulative: Option<f64>,
    pub(crate) content: &'a [u8],
    pub(crate) log: &'a str,
    /// What can be searched for.
    pub(crate) texts: Texts<'a>,
}

/// The texts of a step that can be searched for, exactly as they stand in its log.
#[derive(Debug)]
pub(crate) struct Texts<'a> {
    pub(crate) intent: &'a str,
    /// One thought per line.
    pub(crate) reasoning: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) input: &'a str,
    pub(crate) output: &'a str,
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
}

/// Which sessions to list.
#[derive(Debug, Default)]
pub(crate) struct SessionFilter {
    pub(crate) tenant: Option<String>,
    pub(crate) state: Option<String>,
    pub(crate) min_loop: f64,
    pub(crate) cluster: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) cursor: Option<(i64, i64)>,
    pub(crate) count: u32,
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
