//! The circuit breaker for AI agents: sees when an agent goes round in circles, and says so before the next tool runs.
//!
//! **It fires on redundancy, never on mere repetition.** A repeat is redundant when the same call gives the same
//! (normalised) result again and nothing that it reads has been changed in between. Running the tests after an edit is
//! work; running them again with no edit is a loop.
//!
//! # Guard an agent
//!
//! Two calls around the tool dispatch of any agent:
//!
//! ```
//! use loopbreaker::{DetectorsConfig, Guard, Step};
//!
//! fn run_tool(_tool: &str, _args: &str) -> String {
//!     "no such table: users".to_owned()
//! }
//!
//! let guard = Guard::new(&DetectorsConfig::default());
//! let session = guard.session("run-17");
//! let (tool, args) = ("sql", r#"{"query":"select * from users"}"#);
//!
//! let mut calls = 0;
//! loop {
//!     let verdict = session.check(tool, Some(args));
//!     if !verdict.allowed {
//!         // The model reads this instead of an answer, and tries something else.
//!         println!("{}", verdict.feedback.unwrap_or_default());
//!         break;
//!     }
//!     let result = run_tool(tool, args);
//!     session.outcome(&Step::call(tool, args).answered(&result, None));
//!     calls += 1;
//! }
//! assert_eq!(calls, 3);
//! ```
//!
//! # The parts
//!
//! | detector | looks at | type |
//! |---|---|---|
//! | `redundancy` | calls and their results: no progress | [`Redundancy`] |
//! | `sentinel` | calls alone: the same one too often | [`Sentinel`] |
//! | `identical_request` | HTTP requests in a sliding window | [`IdenticalRequest`] |
//! | `entropy` | decisions: how many of the last five differ | [`Entropy`] |
//! | `semantic` | embeddings of what is said | [`Semantic`] |
//!
//! [`Strikes`] and [`Ladder`] turn findings into actions, [`ReplayRules`] plays a recorded run through all of it.
//! Every detector is a pure state machine: no clock, no I/O, no randomness; time comes in with the event, memory is
//! bounded, and the same steps give the same findings.

mod args;
mod canonical;
mod config;
mod effect;
mod entropy;
mod finding;
mod fingerprint;
mod guard;
mod harness;
mod identical_request;
mod ladder;
mod names;
mod normalise;
mod number;
mod outcome;
mod pattern;
mod redundancy;
mod remark;
mod replay;
mod saved;
mod scan;
mod semantic;
mod sentinel;
mod shell;
mod step;
mod strikes;
mod tool_name;
mod waiting;
mod words;

pub use canonical::canonical_json;
pub use config::{
    ConfigError, DetectorsConfig, Effect, EntropyConfig, IdenticalRequestConfig, RedundancyConfig,
    SemanticConfig, SentinelConfig, SentinelLimit, ToolProfile,
};
pub use effect::{asks_in_words, effect_of_call, runs_a_command};
pub use entropy::{
    Decision, Entropy, EntropyAlert, EntropyEvent, EntropyLevel, EntropyReading, RepeatedPattern,
};
pub use finding::{DetectorName, Finding, Kind, Severity};
pub use fingerprint::{Fingerprint, Request, with_canonical, with_canonical_text};
pub use guard::{Guard, GuardReport, GuardSession, GuardVerdict};
pub use identical_request::{IdenticalRequest, RequestCount};
pub use ladder::{Action, Ladder};
pub use names::{Names, Wording, name_the_same};
pub use outcome::{Outcome, Upshot};
pub use pattern::ToolPattern;
pub use redundancy::{Chant, Foresight, Redundancy, RedundancyRules};
pub use replay::{Replay, ReplayRules, Report, Wasted};
pub use saved::Saved;
pub use semantic::{Delta, Semantic, SemanticReading, similarity};
pub use sentinel::{Sentinel, SentinelBlock, SentinelScope};
pub use step::{Role, Status, Step, Timestamp};
pub use strikes::{Ruling, Strikes};
