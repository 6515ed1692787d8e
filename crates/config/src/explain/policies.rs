//! The policies in force, in plain sentences.

use std::time::Duration;

use loopbreaker::Ladder;

use super::words::{duration, effect_of, effect_on_requests, names, percent, size};
use crate::Config;
use crate::moment;
use crate::sections::global_shadow::GlobalShadow;
use crate::sections::kill_switches::KillSwitch;
use crate::sections::policies::limit_key::LimitKey;
use crate::sections::policies::parts::{Cache, ChantAction, LoopDetection, SemanticPolicy, Similarity};
use crate::sections::policies::rule::{Limit, Quantity, Rule, Window};
use crate::sections::policies::selector::{PathPattern, Selector};
use crate::sections::policies::{Mode, Policy};

pub(super) fn explain(config: &Config, said: &mut Vec<String>) {
    if config.policies.is_empty() {
        said.push("policies: there are none, so the default policy is in force".to_owned());
    }
    for policy in &*config.policies_in_force() {
        explain_one(policy, &config.global_shadow, said);
    }
    if config.global_shadow.enabled {
        let until = config.global_shadow.expires_at.map(|end| format!(" until {}", moment::write(end)));
        let reason = config.global_shadow.reason.as_ref().map(|reason| format!(" ({reason})"));
        let (until, reason) = (until.unwrap_or_default(), reason.unwrap_or_default());
        said.push(format!("global_shadow: every policy only observes{until}{reason}"));
    }
    if config.holdout > 0.0 {
        let share = percent(config.holdout);
        said.push(format!("holdout: in {share} of the sessions loops are only observed"));
    }
    said.extend(config.kill_switches.iter().map(kill_switch));
}

fn explain_one(policy: &Policy, shadow: &GlobalShadow, said: &mut Vec<String>) {
    let name = format!("policy `{}`", policy.id);
    let what = requests(&policy.selector);
    match policy.mode {
        Mode::Enforce if shadow.enabled => said.push(match shadow.expires_at {
            Some(end) => {
                let end = moment::write(end);
                format!("{name}: only observes {what} until {end} (global_shadow), then it is enforced")
            }
            None => format!(
                "{name}: only observes {what} as long as global_shadow is on, and does nothing of what follows"
            ),
        }),
        Mode::Enforce => said.push(format!("{name}: is enforced for {what}")),
        Mode::Shadow => said.push(format!("{name}: only observes {what}, and does nothing of what follows")),
        Mode::Off => {
            said.push(format!("{name}: is off"));
            return;
        }
    }
    let before = said.len();
    said.extend(
        policy.loop_detection.map(|part| format!("{name}: {}", loop_detection(part, &policy.limit_keys))),
    );
    if let Some(loops) = &policy.tool_loops {
        ladder(&name, &loops.ladder, said);
    }
    said.extend(policy.semantic.map(|SemanticPolicy { threshold, action }| {
        let effect = effect_of(action);
        format!(
            "{name}: when a request says the same again (a similarity above {threshold}): {action}, {effect}"
        )
    }));
    said.extend(policy.chant.map(|action| match action {
        ChantAction::Warn => {
            format!("{name}: when an answer repeats itself without end: warn, it is reported")
        }
        ChantAction::Cut => {
            format!("{name}: when an answer repeats itself without end: cut, its stream is ended")
        }
    }));
    said.extend(policy.cache.as_ref().map(|part| format!("{name}: {}", cache(part))));
    said.extend(policy.rules.iter().map(|part| format!("{name}: {}", rule(part))));
    if said.len() == before {
        said.push(format!("{name}: looks for nothing and limits nothing"));
    }
}

fn requests(selector: &Selector) -> String {
    let Selector { paths, methods, hosts, tenants, models } = selector;
    let mut said = match &methods[..] {
        [] => "requests".to_owned(),
        methods => format!("{} requests", methods.join(", ")),
    };
    let places = paths.iter().map(|path| match path {
        PathPattern::Exact(path) => format!("to `{path}`"),
        PathPattern::Prefix(prefix) if prefix == "/" => "to every path".to_owned(),
        PathPattern::Prefix(prefix) if prefix.ends_with('/') => format!("below `{prefix}`"),
        PathPattern::Prefix(prefix) => format!("to `{prefix}` and below"),
        PathPattern::Dialects => "to the paths of OpenAI, Anthropic and Gemini".to_owned(),
    });
    let places: Vec<String> = places.collect();
    let conditions = [
        (places.is_empty(), "to every path".to_owned()),
        (!places.is_empty(), places.join(" or ")),
        (!hosts.is_empty(), format!("at {}", names(hosts, "or"))),
        (!tenants.is_empty(), format!("of {}", names(tenants, "or"))),
        (!models.is_empty(), format!("for {}", names(models, "or"))),
    ];
    for (_, condition) in conditions.into_iter().filter(|(holds, _)| *holds) {
        said = format!("{said} {condition}");
    }
    said
}

fn loop_detection(part: LoopDetection, keys: &[LimitKey]) -> String {
    let (count, seconds) = (part.config.threshold(), part.config.window_seconds());
    let same = match part.similarity {
        Similarity::Exact => "equal",
        Similarity::Semantic => "similar",
    };
    let whose = if keys.is_empty() { String::new() } else { format!(" of one {}", names(keys, "and")) };
    let flight = if part.once_in_flight { ", those under way together counted once" } else { "" };
    let (action, effect) = (part.action, effect_on_requests(part.action));
    format!("at {count} {same} requests{whose} within {seconds}s{flight}: {action}, {effect}")
}

fn ladder(name: &str, ladder: &Ladder, said: &mut Vec<String>) {
    let rungs = ladder.rungs();
    for (strike, action) in rungs.iter().enumerate() {
        let when = match strike {
            0 if rungs.len() == 1 => "at every strike of a tool loop".to_owned(),
            0 => "when a tool loop is found".to_owned(),
            _ if strike + 1 == rungs.len() => format!("from strike {strike} on"),
            _ => format!("at strike {strike}"),
        };
        said.push(format!("{name}: {when}: {action}, {}", effect_of(*action)));
    }
}

fn cache(part: &Cache) -> String {
    let same = match part.similarity {
        Similarity::Exact => "an equal request",
        Similarity::Semantic => "a request that says the same",
    };
    let sampled = if part.allow_sampled { ", a sampled one too," } else { "" };
    let (ttl, bytes) = (duration(part.ttl), size(part.max_bytes));
    let tools =
        if part.tools.is_empty() { String::new() } else { format!(" (tools {})", names(&part.tools, "and")) };
    format!("{same}{sampled} gets the same answer for {ttl}, {bytes} are kept{tools}")
}

fn rule(rule: &Rule) -> String {
    let limits: Vec<String> = rule.limits.iter().map(limit).collect();
    let limits = limits.join(" and ");
    let each = if rule.keys.is_empty() {
        "for all together".to_owned()
    } else {
        format!("per {}", names(&rule.keys, "and"))
    };
    let warn = match &rule.warn_at[..] {
        [] => String::new(),
        stages => {
            let stages: Vec<String> = stages.iter().map(|share| percent(*share)).collect();
            format!(", with a warning at {}", stages.join(" and "))
        }
    };
    let (id, action, effect) = (&rule.id, rule.on_exceed, effect_on_requests(rule.on_exceed));
    format!("rule `{id}`: at most {limits} {each}{warn}; beyond it: {action}, {effect}")
}

fn limit(limit: &Limit) -> String {
    let amount = limit.amount;
    let ending = if amount == 1 { "" } else { "s" };
    let much = match limit.quantity {
        Quantity::Requests => format!("{amount} request{ending}"),
        Quantity::Tokens => format!("{amount} token{ending}"),
        Quantity::CostUsd => dollars(amount),
    };
    match limit.window {
        Window::Seconds(seconds) => {
            format!("{much} within {}", duration(Duration::from_secs(seconds.into())))
        }
        Window::Session => format!("{much} in all"),
    }
}

/// Cents are always written, smaller parts when there are any.
fn dollars(micros: u64) -> String {
    let (whole, part) = (micros / 1_000_000, format!("{:06}", micros % 1_000_000));
    let digits = part.trim_end_matches('0').len().max(2);
    format!("${whole}.{}", &part[..digits])
}

fn kill_switch(switch: &KillSwitch) -> String {
    let KillSwitch { key, value, path, reason, expires_at } = switch;
    let path = path.as_ref().map(|path| format!(" to `{path}`")).unwrap_or_default();
    let until = expires_at.map(|end| format!(" until {}", moment::write(end))).unwrap_or_default();
    let reason = reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    format!("kill_switches: every request{path} of {key} `{value}` is refused{until}{reason}")
}
