//! The circuit breaker for AI agents.
mod args;
mod canonical;
mod config;
mod effect;
mod finding;
mod fingerprint;
mod ladder;
mod normalise;
mod number;
mod outcome;
mod pattern;
mod redundancy;
mod replay;
mod shell;
mod step;
mod strikes;
mod words;

pub use canonical::canonical_json;
pub use config::{
    ConfigError, DetectorsConfig, Effect, EntropyConfig, IdenticalRequestConfig, RedundancyConfig, SemanticConfig,
    SentinelConfig, SentinelLimit, ToolProfile,
};
pub use finding::{DetectorName, Finding, Kind, Severity};
pub use fingerprint::{Fingerprint, Request};
pub use ladder::{Action, Ladder};
pub use outcome::Outcome;
pub use pattern::ToolPattern;
pub use redundancy::{Chant, Redundancy};
pub use replay::{Replay, ReplayRules, Report, Wasted};
pub use step::{Role, Status, Step, Timestamp};
pub use strikes::{Ruling, Strikes};
