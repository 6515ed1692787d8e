//! `state`: where counters, strikes and sessions are kept.

use crate::cursor::{Cursor, Read};
use crate::kinds::text;
use crate::store_url::StoreUrl;

/// Where counters, windows, strikes and sessions are kept.
///
/// ```
/// use loopbreaker_config::{Config, State};
/// assert_eq!(Config::default().state, State::Memory);
/// let config = Config::parse("state: redis+cluster://cache:7000").unwrap();
/// assert!(matches!(config.state, State::RedisCluster(_)));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum State {
    /// In this process; a restart forgets it.
    #[default]
    Memory,
    /// In one Redis or Valkey, shared by any number of processes.
    Redis(StoreUrl),
    /// In a cluster of them; the scheme of the URL ends with `+cluster`.
    RedisCluster(StoreUrl),
}

pub(super) fn read(value: Cursor<'_>) -> Read<State> {
    let text = text(value)?;
    let url = |schemes| StoreUrl::parse(&text, schemes);
    let state = match &*text {
        "memory" => Some(State::Memory),
        _ => url(&["redis", "rediss"])
            .map(State::Redis)
            .or_else(|| url(&["redis+cluster", "rediss+cluster"]).map(State::RedisCluster)),
    };
    // The text is not repeated: it may hold a password.
    state.ok_or_else(|| {
        value.refuse(
            "this is no place to keep state in",
            "write `memory`, `redis://host:6379` or `redis+cluster://host:6379`, with `rediss` for TLS",
        )
    })
}
