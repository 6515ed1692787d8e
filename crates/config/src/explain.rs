//! Says in plain sentences what a config does.

use std::time::Duration;

use loopbreaker::{Action, DetectorsConfig, Effect, EntropyConfig, Ladder, RedundancyConfig, SemanticConfig};
use loopbreaker::{SentinelConfig, SentinelLimit, ToolProfile};

use crate::sections::semantic::{SemanticBackend, SemanticHistory, SemanticScope, SemanticService};
use crate::sections::{Mode, Policy};

/// What the gateway's sections say, as far as this version speaks about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Gateway {
    pub(crate) policies: Vec<Policy>,
    pub(crate) global_shadow: bool,
    pub(crate) holdout: f64,
    pub(crate) kill_switches: usize,
}

/// One sentence per thing in force, each with the name of its section in front.
pub(crate) fn sentences(
    detectors: &DetectorsConfig,
    service: &SemanticService,
    gateway: &Gateway,
) -> Vec<String> {
    let mut said = Vec::new();
    sentinel(&detectors.sentinel, &mut said);
    said.push(entropy(&detectors.entropy));
    redundancy(&detectors.redundancy, &mut said);
    said.push(semantic(&detectors.semantic, service));
    policies(gateway, &mut said);
    ladder(&detectors.ladder, &mut said);
    said
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

fn policies(gateway: &Gateway, said: &mut Vec<String>) {
    if gateway.policies.is_empty() {
        said.push("policies: there are none, so the default policy is in force".to_owned());
    }
    for (index, Policy { id, mode, ladder }) in gateway.policies.iter().enumerate() {
        let name = if id.is_empty() { format!("policies[{index}]") } else { format!("policy `{id}`") };
        let does = match mode {
            Mode::Enforce => "is enforced",
            Mode::Shadow => "only observes",
            Mode::Off => "is off",
        };
        let loops = if ladder.is_some() { "looks for tool loops" } else { "does not look for tool loops" };
        said.push(format!("{name}: {does}, and {loops}"));
    }
    if gateway.global_shadow {
        said.push("global_shadow: every policy only observes".to_owned());
    }
    if gateway.holdout > 0.0 {
        said.push(format!(
            "holdout: in {}% of the sessions loops are only observed",
            gateway.holdout * 100.0
        ));
    }
    match gateway.kill_switches {
        0 => {}
        count => {
            said.push(format!("kill_switches: every request of {count} tenant{} is refused", plural(count)));
        }
    }
}

fn ladder(ladder: &Ladder, said: &mut Vec<String>) {
    let rungs = ladder.rungs();
    for (strike, action) in rungs.iter().enumerate() {
        let when = match strike {
            0 if rungs.len() == 1 => "at every strike of a loop".to_owned(),
            0 => "when a loop is found".to_owned(),
            _ if strike + 1 == rungs.len() => format!("from strike {strike} on"),
            _ => format!("at strike {strike}"),
        };
        said.push(format!("ladder: {when}: {action}, {}", effect_of(*action)));
    }
}

const fn effect_of(action: Action) -> &'static str {
    match action {
        Action::Allow => "nothing is done",
        Action::Warn => "the call passes and the answer's headers say so",
        Action::Hint => "the call passes and the model is told what it repeats",
        Action::Throttle => "the model is told, and the call is delayed",
        Action::Pause => "the call is held until an operator decides, and refused when none does",
        Action::Reject => "the call is refused",
    }
}

fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}

/// In the largest unit that divides it, as one would write it in the config.
fn duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
    match units.iter().find(|(_, unit)| millis > 0 && millis.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", millis / unit),
        None => format!("{millis}ms"),
    }
}

const fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
