//! A policy in the form in which it is read, for those who show it and change it.

use serde_json::{Map, Value, json};

use super::parts::{Cache, ChantAction, LoopDetection, Similarity};
use super::rule::{Limit, Quantity, Rule, Window};
use super::selector::{PathPattern, Selector};
use super::{Mode, Policy};

impl Policy {
    /// The policy as it would be written in a config: reading it gives the same policy again.
    ///
    /// ```
    /// use loopbreaker_config::{Config, Policy};
    /// let policy = Policy::default_policy();
    /// let text = serde_json::json!({ "policies": [policy.to_json()] }).to_string();
    /// assert_eq!(Config::parse(&text).unwrap().policies, [policy]);
    /// ```
    pub fn to_json(&self) -> Value {
        let mut spec = Map::new();
        let mode = match self.mode {
            Mode::Enforce => "enforce",
            Mode::Shadow => "shadow",
            Mode::Off => "off",
        };
        spec.insert("mode".to_owned(), mode.into());
        put(&mut spec, "selector", selector(&self.selector));
        let keys: Vec<String> = self.limit_keys.iter().map(ToString::to_string).collect();
        put(&mut spec, "limit_keys", keys.into());
        if let Some(part) = &self.loop_detection {
            put(&mut spec, "loop_detection", loop_detection(part));
        }
        if let Some(part) = &self.tool_loops {
            let ladder: Vec<&str> = part.ladder.rungs().iter().map(|rung| rung.as_str()).collect();
            put(&mut spec, "tool_loops", json!({ "enabled": true, "ladder": ladder }));
        }
        if let Some(part) = &self.semantic {
            let (threshold, action) = (part.threshold, part.action.as_str());
            put(&mut spec, "semantic", json!({ "enabled": true, "threshold": threshold, "action": action }));
        }
        if let Some(action) = self.chant {
            let action = if action == ChantAction::Cut { "cut" } else { "warn" };
            put(&mut spec, "chant", json!({ "enabled": true, "action": action }));
        }
        if let Some(part) = &self.cache {
            put(&mut spec, "cache", cache(part));
        }
        put(&mut spec, "rules", self.rules.iter().map(rule).collect());
        json!({ "id": self.id, "spec": spec })
    }
}

/// Puts in what is not empty: an empty list would mean something else than none.
fn put(object: &mut Map<String, Value>, name: &str, value: Value) {
    let is_empty = match &value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    if !is_empty {
        object.insert(name.to_owned(), value);
    }
}

fn selector(selector: &Selector) -> Value {
    let mut written = Map::new();
    for path in &selector.paths {
        match path {
            PathPattern::Exact(path) => put(&mut written, "pathExact", path.as_str().into()),
            PathPattern::Prefix(path) => put(&mut written, "pathPrefix", path.as_str().into()),
            PathPattern::Dialects => put(&mut written, "dialects", true.into()),
        }
    }
    let patterns = |patterns: &[loopbreaker::ToolPattern]| -> Value {
        patterns.iter().map(|pattern| Value::from(pattern.as_str())).collect()
    };
    put(&mut written, "methods", selector.methods.clone().into());
    put(&mut written, "hosts", selector.hosts.clone().into());
    put(&mut written, "tenants", patterns(&selector.tenants));
    put(&mut written, "models", patterns(&selector.models));
    written.into()
}

fn loop_detection(part: &LoopDetection) -> Value {
    let mut written = json!({
        "enabled": true,
        "window_seconds": part.config.window_seconds(),
        "threshold_identical_requests": part.config.threshold(),
        "action": part.action.as_str(),
        "similarity": similarity(part.similarity),
    });
    if part.once_in_flight {
        written["once_in_flight"] = true.into();
    }
    written
}

fn cache(part: &Cache) -> Value {
    let mut written = json!({
        "enabled": true,
        "ttl": format!("{}ms", part.ttl.as_millis()),
        "max_bytes": format!("{}B", part.max_bytes),
        "similarity": similarity(part.similarity),
        "allow_sampled": part.allow_sampled,
    });
    if !part.tools.is_empty() {
        written["tools"] = part.tools.iter().map(|tool| Value::from(tool.as_str())).collect();
    }
    written
}

const fn similarity(similarity: Similarity) -> &'static str {
    match similarity {
        Similarity::Exact => "exact",
        Similarity::Semantic => "semantic",
    }
}

fn rule(rule: &Rule) -> Value {
    let mut written = Map::new();
    written.insert("id".to_owned(), rule.id.as_str().into());
    let keys: Vec<String> = rule.keys.iter().map(ToString::to_string).collect();
    put(&mut written, "key", keys.into());
    for limit in &rule.limits {
        let (name, period) = name_of(limit);
        let amount = match limit.quantity {
            Quantity::CostUsd => Value::from(limit.amount as f64 / 1e6),
            Quantity::Requests | Quantity::Tokens => limit.amount.into(),
        };
        written.insert(name.to_owned(), amount);
        if let Some(period) = period {
            written.insert("period".to_owned(), period.into());
        }
    }
    put(&mut written, "warn_at", rule.warn_at.clone().into());
    written.insert("on_exceed".to_owned(), rule.on_exceed.as_str().into());
    written.into()
}

fn name_of(limit: &Limit) -> (&'static str, Option<String>) {
    let minute = Window::Seconds(60);
    let name = match limit.quantity {
        Quantity::Requests if limit.window == minute => return ("requests_per_minute", None),
        Quantity::Tokens if limit.window == minute => return ("tokens_per_minute", None),
        Quantity::Requests => "requests",
        Quantity::Tokens => "tokens",
        Quantity::CostUsd => "cost_usd",
    };
    let period = match limit.window {
        Window::Seconds(seconds) => format!("{seconds}s"),
        Window::Session => "session".to_owned(),
    };
    (name, Some(period))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Config;

    #[test]
    fn a_policy_that_is_written_and_read_again_is_the_same() {
        let text = "
policies:
  - id: agents
    spec:
      mode: shadow
      selector: { pathPrefix: /v1/, methods: [POST], hosts: [a.example], tenants: ['team-*'], models: [gpt-5] }
      limit_keys: [tenant, 'header:x-team']
      loop_detection: { enabled: true, window_seconds: 30, threshold_identical_requests: 4, action: throttle }
      tool_loops: { enabled: true, ladder: [warn, hint, pause] }
      semantic: { enabled: true, threshold: 0.9, action: throttle }
      chant: { enabled: true, action: warn }
      cache: { enabled: true, ttl: 90s, max_bytes: 1MiB, tools: [read_*] }
      rules:
        - { id: rpm, key: tenant, requests_per_minute: 600 }
        - { id: budget, key: session, cost_usd: 5.25, warn_at: [0.5, 0.8], on_exceed: pause }
        - { id: daily, key: [tenant, agent], tokens: 1000, period: 1d }
  - { id: nothing, spec: {} }
";
        let policies = Config::parse(text).unwrap().policies;
        let written: Vec<_> = policies.iter().map(super::Policy::to_json).collect();
        let again = Config::parse(&json!({ "policies": written }).to_string());
        assert_eq!(again.unwrap().policies, policies);
    }
}
