//! The circuit breaker for AI agents.
mod args;
mod canonical;
mod config;
mod effect;
mod entropy;
mod finding;
mod fingerprint;
mod guard;
mod identical_request;
mod ladder;
mod normalise;
mod number;
mod outcome;
mod pattern;
mod redundancy;
mod replay;
mod semantic;
mod sentinel;
mod shell;
mod step;
mod strikes;
mod words;

pub use canonical::canonical_json;
pub use config::{
    ConfigError, DetectorsConfig, Effect, EntropyConfig, IdenticalRequestConfig, RedundancyConfig,
    SemanticConfig, SentinelConfig, SentinelLimit, ToolProfile,
};
pub use entropy::{
    Decision, Entropy, EntropyAlert, EntropyEvent, EntropyLevel, EntropyReading, RepeatedPattern,
};
pub use finding::{DetectorName, Finding, Kind, Severity};
pub use fingerprint::{Fingerprint, Request};
pub use guard::{Guard, GuardReport, GuardSession, GuardVerdict};
pub use identical_request::{IdenticalRequest, RequestCount};
pub use ladder::{Action, Ladder};
pub use outcome::Outcome;
pub use pattern::ToolPattern;
pub use redundancy::{Chant, Foresight, Redundancy};
pub use replay::{Replay, ReplayRules, Report, Wasted};
pub use semantic::{Delta, Semantic, SemanticReading, similarity};
pub use sentinel::{Sentinel, SentinelBlock, SentinelScope};
pub use step::{Role, Status, Step, Timestamp};
pub use strikes::{Ruling, Strikes};
