//! The guard: what an agent asks before each tool call.

mod reported;
mod unchanged;

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::config::{DetectorsConfig, SentinelConfig};
use crate::finding::{DetectorName, Finding, Kind};
use crate::fingerprint::Fingerprint;
use crate::ladder::{Action, Ladder};
use crate::redundancy::rules::Rules;
use crate::redundancy::{Foresight, Redundancy};
use crate::sentinel::{Sentinel, SentinelBlock};
use crate::step::Step;
use crate::strikes::Strikes;
use reported::Reported;
use unchanged::Reads;

/// Guards the tool calls of any number of sessions, from any number of threads.
///
/// It runs the [`Sentinel`] and [`Redundancy`]. For a call whose outcomes are reported, redundancy decides: a repeat
/// that makes progress is allowed, and the sentinel's hit is only reported. Without outcomes the sentinel decides. A
/// hit under a tool's own limit always blocks.
///
/// The handle is cheap to clone; sessions are spread over shards, so that threads seldom wait for one another.
///
/// ```
/// use loopbreaker::{DetectorsConfig, Guard, Step};
///
/// let guard = Guard::new(&DetectorsConfig::default());
/// let session = guard.session("run-17");
/// let call = r#"{"command":"cargo test"}"#;
/// for _ in 0..3 {
///     assert!(session.check("bash", Some(call)).allowed);
///     session.outcome(&Step::call("bash", call).answered("1 failed", None));
/// }
/// let verdict = session.check("bash", Some(call));
/// assert!(!verdict.allowed);
/// println!("{}", verdict.feedback.unwrap_or_default());
/// ```
#[derive(Debug, Clone)]
pub struct Guard {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    sentinel: Arc<SentinelConfig>,
    redundancy: Arc<Rules>,
    ladder: Ladder,
    shards: Box<[Mutex<Shard>]>,
    max_sessions_per_shard: usize,
}

type Shard = LruCache<u128, SessionState, BuildHasherDefault<AlreadyHashed>>;

/// What the guard answers before a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardVerdict {
    /// Whether the call may be made.
    pub allowed: bool,
    /// The detector that saw a repeat, also where the call is allowed.
    pub detector: Option<DetectorName>,
    /// In which way the call repeats.
    pub kind: Option<Kind>,
    /// How often it was seen before.
    pub count: u32,
    /// From how many on it is a loop.
    pub threshold: u32,
    /// How often this call was blocked, this time included.
    pub strikes: u32,
    /// What to tell the model instead of the tool's answer.
    pub feedback: Option<String>,
    /// The step that gave this very call its answer, where the call only reads and nothing has been changed since:
    /// the answer is still there and need not be fetched again. Steps are counted from 1 as they are reported.
    pub unchanged_since: Option<usize>,
}

/// What the guard says to an outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct GuardReport {
    /// What became certain with it.
    pub findings: Vec<Finding>,
    /// What the ladder does about the worst of them.
    pub action: Action,
    /// Words to add to the tool's answer, from [`Action::Hint`] on.
    pub hint: Option<String>,
}

impl Guard {
    /// Sessions that are kept by default; the one that was used longest ago is forgotten first.
    pub const DEFAULT_MAX_SESSIONS: usize = 100_000;
    /// More shards than threads that a machine runs at once.
    const SHARDS: usize = 64;

    /// A guard with these settings.
    pub fn new(config: &DetectorsConfig) -> Self {
        Self::with_max_sessions(config, Self::DEFAULT_MAX_SESSIONS)
    }

    /// A guard that keeps at most about `max_sessions` sessions.
    pub fn with_max_sessions(config: &DetectorsConfig, max_sessions: usize) -> Self {
        let shard = || Mutex::new(Shard::unbounded_with_hasher(BuildHasherDefault::default()));
        let shared = Shared {
            sentinel: Arc::new(config.sentinel.clone()),
            redundancy: Rules::compile(&config.redundancy),
            ladder: config.ladder.clone(),
            shards: (0..Self::SHARDS).map(|_| shard()).collect(),
            max_sessions_per_shard: max_sessions.div_ceil(Self::SHARDS).max(1),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The guard of one session.
    pub fn session(&self, id: &str) -> GuardSession {
        let key = Fingerprint::of_bytes(b"session", id.as_bytes()).short();
        GuardSession { shared: Arc::clone(&self.shared), key, scope: None }
    }

    /// Sessions that are known now.
    pub fn sessions(&self) -> usize {
        self.shared.shards.iter().map(|shard| lock(shard).len()).sum()
    }
}

/// The guard of one session, or of one batch item in it; see [`Guard::session`].
#[derive(Debug, Clone)]
pub struct GuardSession {
    shared: Arc<Shared>,
    key: u128,
    scope: Option<Arc<str>>,
}

impl GuardSession {
    /// The same session with calls counted for one batch item apart from all others.
    ///
    /// Outcomes belong to the session as a whole, so the sentinel decides inside of a scope.
    #[must_use]
    pub fn scope(&self, name: &str) -> Self {
        Self { scope: Some(name.into()), ..self.clone() }
    }

    /// Asks before a call. An allowed call is recorded, a blocked one only counted.
    pub fn check(&self, tool: &str, args: Option<&str>) -> GuardVerdict {
        let call = Fingerprint::of_call_and_remarks(tool, args);
        self.with_state(|state| state.check(tool, args, call, self.scope.as_deref()))
    }

    /// What [`check`](Self::check) would answer, without recording anything.
    pub fn peek(&self, tool: &str, args: Option<&str>) -> GuardVerdict {
        let call = Fingerprint::of_call_and_remarks(tool, args);
        self.with_state(|state| state.judge(tool, args, call, self.scope.as_deref()))
    }

    /// Reports what a call gave. Redundancy decides about calls whose outcomes are reported.
    pub fn outcome(&self, step: &Step<'_>) -> GuardReport {
        let (rules, ladder) = (&self.shared.redundancy, &self.shared.ladder);
        self.with_state(|state| state.outcome(step, rules, ladder))
    }

    /// Forgets the session (or only the batch item): a new user message, or a new run.
    pub fn reset(&self) {
        self.with_state(|state| {
            if let Some(scope) = &self.scope {
                state.sentinel.reset_scope(scope);
            } else {
                state.sentinel.reset();
                state.outcomes = None;
            }
        });
    }

    /// Frees what is kept of the session, its batch items included: it is over. One that nothing is kept of stays so.
    pub fn free(&self) {
        lock(self.shard()).pop(&self.key);
    }

    fn shard(&self) -> &Mutex<Shard> {
        &self.shared.shards[(self.key >> 64) as usize % self.shared.shards.len()]
    }

    fn with_state<T>(&self, work: impl FnOnce(&mut SessionState) -> T) -> T {
        let mut sessions = lock(self.shard());
        if !sessions.contains(&self.key) && sessions.len() >= self.shared.max_sessions_per_shard {
            sessions.pop_lru();
        }
        let fresh =
            || SessionState { sentinel: Sentinel::shared(Arc::clone(&self.shared.sentinel)), outcomes: None };
        work(sessions.get_or_insert_mut(self.key, fresh))
    }
}

/// A detector that panicked in another thread has spoiled at most its own session: the guard goes on.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct SessionState {
    sentinel: Sentinel,
    /// Made with the first outcome: a session without outcomes costs a ring and no more.
    outcomes: Option<Box<Outcomes>>,
}

#[derive(Debug)]
struct Outcomes {
    redundancy: Redundancy,
    strikes: Strikes,
    reads: Reads,
    reported: Reported,
}

impl SessionState {
    fn check(
        &mut self,
        tool: &str,
        args: Option<&str>,
        (call, has_remarks): (Fingerprint, bool),
        scope: Option<&str>,
    ) -> GuardVerdict {
        let verdict = self.judge(tool, args, (call, has_remarks), scope);
        let mut rings = self.sentinel.rings(scope);
        if verdict.allowed {
            rings.admit(tool, call);
            return verdict;
        }
        GuardVerdict { strikes: rings.strike(call), ..verdict }
    }

    fn judge(
        &mut self,
        tool: &str,
        args: Option<&str>,
        (call, has_remarks): (Fingerprint, bool),
        scope: Option<&str>,
    ) -> GuardVerdict {
        let call = &call;
        let hit = self.sentinel.rings(scope).peek_call(tool, call).err();
        let outcomes = self.outcomes.as_ref().filter(|_| scope.is_none());
        let unchanged_since = outcomes.and_then(|outcomes| outcomes.reads.unchanged_since(call));
        let verdict = match (hit, outcomes) {
            (Some(block), _) if block.own_limit => GuardVerdict::blocked_by_sentinel(&block, tool),
            (Some(block), None) => GuardVerdict::blocked_by_sentinel(&block, tool),
            (None, None) => GuardVerdict::allowed(),
            (hit, Some(outcomes)) => {
                match (outcomes.redundancy.foresee_known(tool, args, (call, has_remarks)), hit) {
                    (Some(foresight), hit) => {
                        let strikes = hit.map_or(1, |block| block.strikes);
                        GuardVerdict::blocked_by_redundancy(foresight, tool, strikes)
                    }
                    // Nobody said what came of it.
                    (None, Some(block)) if !outcomes.reported.covers(call, block.count) => {
                        GuardVerdict::blocked_by_sentinel(&block, tool)
                    }
                    // It repeats, but it makes progress.
                    (None, Some(block)) => GuardVerdict {
                        allowed: true,
                        feedback: None,
                        strikes: 0,
                        ..GuardVerdict::blocked_by_sentinel(&block, tool)
                    },
                    (None, None) => GuardVerdict::allowed(),
                }
            }
        };
        GuardVerdict { unchanged_since, ..verdict }
    }

    fn outcome(&mut self, step: &Step<'_>, rules: &Arc<Rules>, ladder: &Ladder) -> GuardReport {
        let outcomes = self.outcomes.get_or_insert_with(|| {
            let redundancy = Redundancy::with_rules(Arc::clone(rules));
            Box::new(Outcomes {
                redundancy,
                strikes: Strikes::default(),
                reads: Reads::default(),
                reported: Reported::default(),
            })
        });
        outcomes.reported.take(step);
        outcomes.reads.take(step, rules);
        let findings = outcomes.redundancy.observe(step);
        let mut report = GuardReport { findings, action: Action::Allow, hint: None };
        for finding in &report.findings {
            let action = outcomes.strikes.rule(finding, ladder).action;
            if action > report.action {
                report.action = action;
                report.hint = (action >= Action::Hint).then(|| hint(finding));
            }
        }
        report
    }
}

impl GuardVerdict {
    const fn allowed() -> Self {
        Self {
            allowed: true,
            detector: None,
            kind: None,
            count: 0,
            threshold: 0,
            strikes: 0,
            feedback: None,
            unchanged_since: None,
        }
    }

    fn blocked_by_sentinel(block: &SentinelBlock, tool: &str) -> Self {
        Self {
            allowed: false,
            detector: Some(DetectorName::Sentinel),
            kind: Some(Kind::Repeat),
            count: block.count,
            threshold: block.threshold,
            strikes: block.strikes,
            feedback: Some(block.feedback(tool)),
            unchanged_since: None,
        }
    }

    fn blocked_by_redundancy(foresight: Foresight, tool: &str, strikes: u32) -> Self {
        let Foresight { kind, count, threshold } = foresight;
        let what = match kind {
            Kind::Cycle => {
                format!("this call of `{tool}` continues a sequence that was gone through {count} times")
            }
            Kind::FailingRepeat => {
                format!("this exact call of `{tool}` failed {count} times in the same way")
            }
            _ => format!("this exact call of `{tool}` gave the same result {count} times"),
        };
        let feedback = format!(
            "Loopbreaker: {what}, and nothing that it reads has changed since, so it was not run again. Use the result you have, change something first, try another way, or say that you are stuck."
        );
        Self {
            allowed: false,
            detector: Some(DetectorName::Redundancy),
            kind: Some(kind),
            count,
            threshold,
            strikes,
            feedback: Some(feedback),
            unchanged_since: None,
        }
    }
}

fn hint(finding: &Finding) -> String {
    format!(
        "Loopbreaker: you are going round in circles: {}. Do something different, or say that you are stuck.",
        finding.message
    )
}

/// Session keys are hashes already.
#[derive(Debug, Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

#[cfg(test)]
mod tests;
