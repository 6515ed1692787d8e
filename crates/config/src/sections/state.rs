//! `state`: where counters, strikes and sessions are kept.

use std::time::Duration;

use crate::cursor::{Cursor, Read};
use crate::kinds::text;
use crate::store_url::StoreUrl;
use crate::units::duration;

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
    let state = state.ok_or_else(|| {
        value.refuse(
            "this is no place to keep state in",
            "write `memory`, `redis://host:6379` or `redis+cluster://host:6379`, with `rediss` for TLS",
        )
    })?;
    match wrong(&state) {
        Some((problem, hint)) => Err(value.refuse(problem, hint)),
        None => Ok(state),
    }
}

/// What nobody could connect by, or would not be heeded, with what to do. Nothing of the address is repeated.
fn wrong(state: &State) -> Option<(&'static str, &'static str)> {
    let (url, is_cluster) = match state {
        State::Memory => return None,
        State::Redis(url) => (url.as_str(), false),
        State::RedisCluster(url) => (url.as_str(), true),
    };
    let (_, rest) = url.split_once("://")?;
    if rest.contains('#') {
        return Some(("the address has a `#`", "leave it out; in a password it is written `%23`"));
    }
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = place.split_once('/').unwrap_or((place, ""));
    let nodes = authority.rsplit_once('@').map_or(authority, |(_, nodes)| nodes);
    let mut nodes = nodes.split(if is_cluster { ',' } else { '\0' });
    if !nodes.all(is_node) {
        return Some((
            "this is no host with a port from 1 to 65535",
            "write `redis://host:6379`, and several nodes of a cluster with commas between them; in a password `/` is \
             written `%2F`, `?` `%3F` and `@` `%40`",
        ));
    }
    let is_number = path.is_empty() || path.parse::<u16>().is_ok();
    if !is_number || is_cluster && !matches!(path, "" | "0") {
        return Some((
            "this is no number of a database",
            "write it like `redis://host:6379/1`; a cluster has the database 0 only",
        ));
    }
    query.split('&').filter(|pair| !pair.is_empty()).find_map(wrong_parameter)
}

/// Whether this names a host, and a port if any that there is.
fn is_node(node: &str) -> bool {
    let (host, port) = match node.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, port.strip_prefix(':').or(Some(""))),
        None => node.split_once(':').map_or((node, None), |(host, port)| (host, Some(port))),
    };
    !host.is_empty() && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

fn wrong_parameter(pair: &str) -> Option<(&'static str, &'static str)> {
    match pair.split_once('=') {
        Some(("timeout", limit)) => {
            let limits = Duration::from_millis(1)..=Duration::from_secs(10);
            let is_one = duration(limit).is_ok_and(|limit| limits.contains(&limit));
            (!is_one).then_some((
                "`timeout` is how long a request waits for Redis, from 1ms to 10s",
                "write it like `?timeout=20ms`",
            ))
        }
        Some(("sslrootcert", path)) => path
            .is_empty()
            .then_some(("`sslrootcert` names no file", "write it like `?sslrootcert=/path/ca.pem`")),
        Some(("protocol", "resp2" | "resp3")) => None,
        _ => Some((
            "the address has a parameter that is not known",
            "known are `timeout=20ms`, `sslrootcert=/path/ca.pem` and `protocol=resp3`; in a password `?` is written `%3F`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn problem(address: &str) -> Option<String> {
        let problems = Config::parse(&format!("state: \"{address}\"")).err()?;
        Some(problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn an_address_by_which_nobody_can_connect_is_told_without_its_password() {
        for address in [
            "redis://cache:99999",
            "redis://cache:0",
            "redis://cache:port",
            "redis://me:se/cret@cache",
            "redis://cache/first",
            "redis://cache/-1",
            "redis://a:1,b:2",
            "redis+cluster://a:7000,",
            "redis+cluster://a:7000,b:99999",
            "redis+cluster://a:7000/1",
            "rediss://me:secret@cache#insecure",
            "redis://me:se?cret@cache",
            "redis://cache?timeout=20",
            "redis://cache?timeout=0ms",
            "redis://cache?timeout=1h",
            "redis://cache?timeuot=20ms",
            "rediss://cache?sslrootcert=",
            "redis://[::1",
        ] {
            let problem = problem(address).unwrap_or_else(|| panic!("{address} is taken"));
            assert!(!problem.contains("cret"), "{problem}");
        }
    }

    #[test]
    fn an_address_that_means_something_is_taken() {
        for address in [
            "redis://cache",
            "redis://cache:6379/",
            "redis://:secret@cache:6379/15",
            "redis://me:se%2Fcret@127.0.0.1:6379?timeout=20ms",
            "rediss://[::1]:6380/1?sslrootcert=/etc/ca.pem&timeout=1s&protocol=resp3",
            "redis://[::1]",
            "redis+cluster://me:secret@a:7000,b:7001,c",
            "rediss+cluster://a:7000/0?timeout=9ms",
        ] {
            assert_eq!(problem(address), None, "{address}");
        }
    }
}
