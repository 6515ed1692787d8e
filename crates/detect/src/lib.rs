//! The circuit breaker for AI agents.
mod config;
mod ladder;
mod normalise;
mod pattern;
mod step;

pub use config::{
    ConfigError, DetectorsConfig, Effect, EntropyConfig, IdenticalRequestConfig, RedundancyConfig, SemanticConfig,
    SentinelConfig, SentinelLimit, ToolProfile,
};
pub use ladder::{Action, Ladder};
pub use pattern::ToolPattern;
pub use step::{Role, Status, Step, Timestamp};
