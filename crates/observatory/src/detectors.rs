//! The running thresholds as JSON: shown, and changed whole or not at all.

use loopbreaker::{
    ConfigError, DetectorsConfig, Effect, EntropyConfig, RedundancyConfig, SemanticConfig, SentinelConfig,
    SentinelLimit, ToolPattern, ToolProfile,
};
use serde_json::{Map, Value, json};

use crate::time_span::{millis, written};

/// A setting that was refused: its path and what is wrong.
pub(crate) type Problem = (String, String);

/// The thresholds as the API shows them.
pub(crate) fn shown(config: &DetectorsConfig) -> Value {
    let limit = |limit: &SentinelLimit| {
        let mut shown = json!({ "threshold": limit.threshold(), "window_size": limit.window_size() });
        if let Some(reason) = limit.reason() {
            shown["reason"] = reason.into();
        }
        shown
    };
    let overrides: Map<String, Value> = config
        .sentinel
        .overrides
        .iter()
        .map(|(tools, own)| (tools.as_str().to_owned(), limit(own)))
        .collect();
    let profile = |profile: &ToolProfile| {
        let mut shown = json!({ "loop_key": profile.loop_key, "ignore_result": profile.ignore_result });
        if let Some(effect) = profile.effect {
            let name = match effect {
                Effect::Read => "read",
                Effect::Write => "write",
                Effect::Poll => "poll",
            };
            shown["effect"] = name.into();
        }
        shown
    };
    let tools: Map<String, Value> = config
        .redundancy
        .tools()
        .iter()
        .map(|(tools, declared)| (tools.as_str().to_owned(), profile(declared)))
        .collect();
    let bypass: Vec<&str> = config.sentinel.bypass.iter().map(ToolPattern::as_str).collect();
    let (entropy, semantic) = (&config.entropy, &config.semantic);
    json!({
        "sentinel": { "default": limit(&config.sentinel.default), "overrides": overrides, "bypass": bypass },
        "entropy": {
            "window_size": entropy.window_size,
            "loop_below": entropy.loop_below,
            "warn_up_to": entropy.warn_up_to,
            "include_input": entropy.include_input,
        },
        "redundancy": { "window": config.redundancy.window(), "tools": tools },
        "semantic": {
            "size": semantic.size,
            "ttl": written(semantic.ttl_millis),
            "threshold": semantic.threshold,
        },
    })
}

/// The thresholds with a change applied; what the change does not name stays. Every problem is reported at once.
pub(crate) fn changed(config: &DetectorsConfig, change: &Value) -> Result<DetectorsConfig, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut new = config.clone();
    let mut top = Reader::new("", change, &mut problems);
    let sections = ["sentinel", "entropy", "redundancy", "semantic"].map(|name| top.take(name));
    top.finish();
    let [sentinel, entropy, redundancy, semantic] = sections;
    if let Some(change) = &sentinel {
        new.sentinel = read_sentinel(&config.sentinel, change, &mut problems);
    }
    if let Some(change) = &entropy {
        new.entropy = read_entropy(config.entropy, change, &mut problems);
    }
    if let Some(change) = &redundancy {
        new.redundancy = read_redundancy(&config.redundancy, change, &mut problems);
    }
    if let Some(change) = &semantic {
        new.semantic = read_semantic(config.semantic, change, &mut problems);
    }
    if problems.is_empty() { Ok(new) } else { Err(problems) }
}

/// Two changes, one after the other, as one. Lists and tables of tools are replaced whole, as a file would.
pub(crate) fn merged(before: Value, change: &Value) -> Value {
    let (Value::Object(mut all), Value::Object(change)) = (before, change) else { return change.clone() };
    // One setting in two spellings: the newer one counts.
    for (name, other) in [("ttl", "ttl_ms"), ("ttl_ms", "ttl")] {
        if change.contains_key(name) && !change.contains_key(other) {
            all.remove(other);
        }
    }
    for (name, new) in change {
        let is_settings =
            ["sentinel", "entropy", "redundancy", "semantic", "default"].contains(&name.as_str());
        match all.get_mut(name) {
            Some(old) if is_settings => *old = merged(old.take(), new),
            _ => drop(all.insert(name.clone(), new.clone())),
        }
    }
    Value::Object(all)
}

fn read_entropy(old: EntropyConfig, change: &Value, problems: &mut Vec<Problem>) -> EntropyConfig {
    let mut reader = Reader::new("entropy", change, problems);
    let window = reader.whole("window_size").unwrap_or(old.window_size);
    let loop_below = reader.number("loop_below").unwrap_or(old.loop_below);
    let warn_up_to = reader.number("warn_up_to").unwrap_or(old.warn_up_to);
    let include_input = reader.flag("include_input").unwrap_or(old.include_input);
    reader.finish();
    let usual = EntropyConfig::default();
    // Each by itself first, so that every one that is wrong is named.
    let alone = [
        ("window_size", EntropyConfig::new(window, usual.loop_below, usual.warn_up_to)),
        ("loop_below", EntropyConfig::new(usual.window_size, loop_below, 1.0)),
        ("warn_up_to", EntropyConfig::new(usual.window_size, 0.0, warn_up_to)),
    ];
    let wrong = refused("entropy", alone, problems);
    match EntropyConfig::new(window, loop_below, warn_up_to) {
        Ok(new) => EntropyConfig { include_input, ..new },
        Err(error) => {
            if !wrong {
                problems.push(("entropy.warn_up_to".to_owned(), error.to_string()));
            }
            old
        }
    }
}

/// Names the settings that are refused by themselves; says whether any is.
fn refused<T, const N: usize>(
    section: &str,
    alone: [(&str, Result<T, ConfigError>); N],
    problems: &mut Vec<Problem>,
) -> bool {
    let before = problems.len();
    for (name, checked) in alone {
        if let Err(error) = checked {
            problems.push((format!("{section}.{name}"), error.to_string()));
        }
    }
    problems.len() > before
}

fn read_semantic(old: SemanticConfig, change: &Value, problems: &mut Vec<Problem>) -> SemanticConfig {
    let mut reader = Reader::new("semantic", change, problems);
    let size = reader.whole("size").unwrap_or(old.size);
    let ttl = reader.duration("ttl");
    let millis = reader.whole("ttl_ms").map(u64::from);
    if ttl.is_some() && millis.is_some() && ttl != millis {
        reader.problem::<()>("ttl_ms", "says something else than ttl: give one of them");
    }
    let ttl = ttl.or(millis).unwrap_or(old.ttl_millis);
    let threshold = reader.number("threshold").unwrap_or(old.threshold);
    reader.finish();
    let usual = SemanticConfig::default();
    let alone = [
        ("size", SemanticConfig::new(size, ttl, usual.threshold)),
        ("threshold", SemanticConfig::new(usual.size, ttl, threshold)),
    ];
    refused("semantic", alone, problems);
    SemanticConfig::new(size, ttl, threshold).unwrap_or(old)
}

fn read_sentinel(old: &SentinelConfig, change: &Value, problems: &mut Vec<Problem>) -> SentinelConfig {
    let mut reader = Reader::new("sentinel", change, problems);
    let (default, overrides, bypass) =
        (reader.take("default"), reader.take("overrides"), reader.texts("bypass"));
    reader.finish();
    let mut new = old.clone();
    if let Some(limit) = default {
        new.default = read_limit("sentinel.default", &old.default, &limit, problems);
    }
    if let Some(overrides) = overrides {
        new.overrides = Vec::new();
        let mut reader = Reader::new("sentinel.overrides", &overrides, problems);
        for (tools, limit) in reader.rest() {
            let path = format!("sentinel.overrides.{tools}");
            let own = read_limit(&path, &old.default, &limit, problems);
            new.overrides.push((ToolPattern::new(tools), own));
        }
    }
    if let Some(bypass) = bypass {
        new.bypass = bypass.into_iter().map(ToolPattern::new).collect();
    }
    new
}

fn read_limit(path: &str, old: &SentinelLimit, change: &Value, problems: &mut Vec<Problem>) -> SentinelLimit {
    let mut reader = Reader::new(path, change, problems);
    let threshold = reader.whole("threshold").unwrap_or(old.threshold());
    let window = reader.whole("window_size").unwrap_or(old.window_size());
    let reason = reader.text("reason");
    reader.finish();
    match SentinelLimit::new(threshold, window) {
        Ok(limit) => match reason {
            Some(reason) => limit.because(reason),
            None => limit,
        },
        Err(error) => {
            problems.push((path.to_owned(), error.to_string()));
            old.clone()
        }
    }
}

fn read_redundancy(old: &RedundancyConfig, change: &Value, problems: &mut Vec<Problem>) -> RedundancyConfig {
    let mut reader = Reader::new("redundancy", change, problems);
    let window = reader.whole("window").unwrap_or(old.window());
    let tools = reader.take("tools");
    reader.finish();
    let mut declared = old.tools().to_vec();
    if let Some(tools) = tools {
        declared.clear();
        let mut reader = Reader::new("redundancy.tools", &tools, problems);
        for (tools, profile) in reader.rest() {
            let path = format!("redundancy.tools.{tools}");
            let mut reader = Reader::new(&path, &profile, problems);
            let effect = reader.text("effect");
            let profile = ToolProfile {
                effect: effect.as_deref().and_then(Effect::parse),
                loop_key: reader.texts("loop_key").unwrap_or_default(),
                ignore_result: reader.texts("ignore_result").unwrap_or_default(),
            };
            reader.finish();
            if effect.is_some() && profile.effect.is_none() {
                problems.push((format!("{path}.effect"), "must be read, write or poll".to_owned()));
            }
            declared.push((ToolPattern::new(tools), profile));
        }
    }
    let new = declared
        .into_iter()
        .fold(RedundancyConfig::new(window), |config, (tools, profile)| config?.with_tool(tools, profile));
    new.unwrap_or_else(|error| {
        problems.push(("redundancy".to_owned(), error.to_string()));
        old.clone()
    })
}

/// The fields of one object of a change; what is left over is refused by name.
struct Reader<'a> {
    path: String,
    fields: Map<String, Value>,
    problems: &'a mut Vec<Problem>,
}

impl<'a> Reader<'a> {
    fn new(path: &str, value: &Value, problems: &'a mut Vec<Problem>) -> Self {
        let fields = value.as_object().cloned().unwrap_or_else(|| {
            let path = if path.is_empty() { "detectors" } else { path };
            problems.push((path.to_owned(), "must be an object".to_owned()));
            Map::new()
        });
        Self { path: path.to_owned(), fields, problems }
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.fields.remove(name)
    }

    fn rest(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.fields)
    }

    fn problem<T>(&mut self, name: &str, message: &str) -> Option<T> {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        self.problems.push((path, message.to_owned()));
        None
    }

    fn whole(&mut self, name: &str) -> Option<u32> {
        let value = self.take(name)?;
        let whole = value.as_u64().and_then(|number| u32::try_from(number).ok());
        whole.or_else(|| self.problem(name, "must be a whole number from 0 on"))
    }

    /// A time as the config file writes it.
    fn duration(&mut self, name: &str) -> Option<u64> {
        let value = self.take(name)?;
        let millis = value.as_str().and_then(millis);
        millis.or_else(|| self.problem(name, "must be a time such as 50ms, 25s, 30m, 1h or 30d"))
    }

    fn number(&mut self, name: &str) -> Option<f64> {
        let value = self.take(name)?;
        value.as_f64().or_else(|| self.problem(name, "must be a number"))
    }

    fn flag(&mut self, name: &str) -> Option<bool> {
        let value = self.take(name)?;
        value.as_bool().or_else(|| self.problem(name, "must be true or false"))
    }

    fn text(&mut self, name: &str) -> Option<String> {
        let value = self.take(name)?;
        value.as_str().map(str::to_owned).or_else(|| self.problem(name, "must be a string"))
    }

    fn texts(&mut self, name: &str) -> Option<Vec<String>> {
        let value = self.take(name)?;
        let texts: Option<Vec<String>> = value
            .as_array()
            .and_then(|members| members.iter().map(|text| text.as_str().map(str::to_owned)).collect());
        texts.or_else(|| self.problem(name, "must be an array of strings"))
    }

    fn finish(mut self) {
        for name in self.rest().keys() {
            self.problem::<()>(name, "is not a known setting");
        }
    }
}

#[cfg(test)]
mod tests {
    use loopbreaker::DetectorsConfig;
    use serde_json::json;

    use super::{changed, merged, shown};

    #[test]
    fn what_is_shown_can_be_put_back() {
        let change = json!({
            "sentinel": { "overrides": { "search_*": { "threshold": 2, "window_size": 5, "reason": "r" } }, "bypass": ["poll"] },
            "redundancy": { "window": 32, "tools": { "ci_*": { "effect": "poll", "loop_key": ["id"], "ignore_result": ["[0-9]+"] } } },
        });
        let config = changed(&DetectorsConfig::default(), &change).unwrap();
        assert_eq!(changed(&DetectorsConfig::default(), &shown(&config)).unwrap(), config);
    }

    #[test]
    fn a_change_of_one_value_leaves_the_others() {
        let config =
            changed(&DetectorsConfig::default(), &json!({ "entropy": { "loop_below": 0.4 } })).unwrap();
        assert!((config.entropy.loop_below - 0.4).abs() < f64::EPSILON);
        assert_eq!(config.entropy.window_size, 5);
    }

    #[test]
    fn every_setting_of_a_section_that_is_wrong_is_named() {
        let wrong = |change: serde_json::Value| -> Vec<String> {
            let problems = changed(&DetectorsConfig::default(), &change).unwrap_err();
            problems.into_iter().map(|(field, _)| field).collect()
        };
        let all = ["entropy.window_size", "entropy.loop_below", "entropy.warn_up_to"];
        assert_eq!(wrong(json!({ "entropy": { "window_size": 0, "loop_below": 7, "warn_up_to": -1 } })), all);
        let crossed = json!({ "entropy": { "loop_below": 0.9, "warn_up_to": 0.5 } });
        assert_eq!(wrong(crossed), ["entropy.warn_up_to"]);
        let semantic = json!({ "semantic": { "size": 0, "threshold": 1.5, "ttl": "soon" } });
        assert_eq!(wrong(semantic), ["semantic.ttl", "semantic.size", "semantic.threshold"]);
    }

    #[test]
    fn a_time_to_live_is_written_as_in_the_file_or_in_milliseconds() {
        let ttl = |semantic: serde_json::Value| {
            changed(&DetectorsConfig::default(), &json!({ "semantic": semantic }))
                .map(|config| config.semantic.ttl_millis)
        };
        assert_eq!(ttl(json!({ "ttl": "2h" })), Ok(7_200_000));
        assert_eq!(ttl(json!({ "ttl_ms": 90_000 })), Ok(90_000));
        assert_eq!(ttl(json!({ "ttl": "1h", "ttl_ms": 3_600_000 })), Ok(3_600_000));
        assert!(ttl(json!({ "ttl": "1h", "ttl_ms": 1 })).is_err());
        assert!(ttl(json!({ "ttl": 5 })).is_err());
        let before = json!({ "semantic": { "ttl_ms": 1 } });
        let both = merged(before, &json!({ "semantic": { "ttl": "2h" } }));
        assert_eq!(both, json!({ "semantic": { "ttl": "2h" } }), "the newer spelling counts");
    }

    #[test]
    fn every_problem_of_a_change_is_named_at_once() {
        let change = json!({
            "entropy": { "window_size": 0, "colour": 1 },
            "sentinel": { "default": { "threshold": 11 } },
            "redundancy": { "tools": { "x": { "effect": "none" } } },
            "semantic": { "threshold": "high" },
            "other": {},
        });
        let problems = changed(&DetectorsConfig::default(), &change).unwrap_err();
        let fields: Vec<&str> = problems.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "other",
                "sentinel.default",
                "entropy.colour",
                "entropy.window_size",
                "redundancy.tools.x.effect",
                "semantic.threshold"
            ]
        );
    }
}
