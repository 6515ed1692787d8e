//! The detectors, in plain sentences.

use std::time::Duration;

use loopbreaker::{
    Effect, EntropyConfig, RedundancyConfig, SemanticConfig, SentinelConfig, SentinelLimit, ToolProfile,
};

use super::words::{duration, plural, times};
use crate::Config;
use crate::sections::semantic::{SemanticBackend, SemanticHistory, SemanticScope, SemanticService};

pub(super) fn explain(config: &Config, said: &mut Vec<String>) {
    let detectors = &config.detectors;
    sentinel(&detectors.sentinel, said);
    said.push(entropy(&detectors.entropy));
    redundancy(&detectors.redundancy, said);
    said.push(semantic(&detectors.semantic, &config.semantic));
}

fn sentinel(config: &SentinelConfig, said: &mut Vec<String>) {
    let limit = |limit: &SentinelLimit| {
        let (threshold, window_size) = (times(limit.threshold()), limit.window_size());
        format!("blocked when it already stands {threshold} among the last {window_size} calls")
    };
    said.push(format!("sentinel: a tool call is {}", limit(&config.default)));
    for (tools, own) in &config.overrides {
        let reason = own.reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
        said.push(format!("sentinel: a call of `{tools}` is {}{reason}", limit(own)));
    }
    for tools in &config.bypass {
        said.push(format!("sentinel: calls of `{tools}` are never blocked"));
    }
}

fn entropy(config: &EntropyConfig) -> String {
    let EntropyConfig { window_size, loop_below, warn_up_to, include_input } = config;
    let input = if *include_input { "the tool's input counts" } else { "the tool's input does not count" };
    format!(
        "entropy: of the last {window_size} decisions, a share of different ones below {loop_below} is a loop, up to \
         {warn_up_to} a warning; {input}"
    )
}

fn redundancy(config: &RedundancyConfig, said: &mut Vec<String>) {
    said.push(format!(
        "redundancy: the last {} steps are searched for steps without progress",
        config.window()
    ));
    for (tools, ToolProfile { effect, loop_key, ignore_result }) in config.tools() {
        let mut known = Vec::new();
        known.extend(effect.map(|effect| match effect {
            Effect::Read => "only reads".to_owned(),
            Effect::Write => "changes something".to_owned(),
            Effect::Poll => "waits for something that moves by itself".to_owned(),
        }));
        if !loop_key.is_empty() {
            known.push(format!("repeats itself when `{}` is the same", loop_key.join("` and `")));
        }
        if !ignore_result.is_empty() {
            let parts = ignore_result.len();
            known
                .push(format!("has {parts} pattern{} whose matches in a result do not count", plural(parts)));
        }
        if !known.is_empty() {
            said.push(format!("redundancy: `{tools}` {}", known.join(", ")));
        }
    }
}

fn semantic(config: &SemanticConfig, service: &SemanticService) -> String {
    let SemanticConfig { size, ttl_millis, threshold } = config;
    let what = match service.scope {
        SemanticScope::Delta => "what is new in a request",
        SemanticScope::Full => "the whole of a request",
    };
    let whose = match service.history {
        SemanticHistory::Session => "session",
        SemanticHistory::Tenant => "tenant",
    };
    let by = match service.backend {
        SemanticBackend::InProcess => "in this process".to_owned(),
        SemanticBackend::Sidecar => format!("by a sidecar, at most {}", duration(service.timeout)),
    };
    let age = duration(Duration::from_millis(*ttl_millis));
    format!(
        "semantic: {what} is compared with the last {size} of its {whose}, at most {age} old; a similarity above \
         {threshold} says the same; it is computed {by}"
    )
}
