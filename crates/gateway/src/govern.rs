//! Policies and kill switches as people see and change them at run time: those of the config, with overrides above them.

use std::sync::{Arc, Weak};

use loopbreaker::DetectorsConfig;
use loopbreaker_config::{Config, KillSwitch, Mode, Policy};
use loopbreaker_observatory::{Policies, Setting, SettingChange};
use serde_json::{Value, json};

use crate::state::{Shared, today};

/// What the observatory knows of our policies.
#[derive(Debug)]
pub(crate) struct Governed(Weak<Shared>);

/// One thing that is wrong with a policy: the field, and what to write instead.
type Wrong = Vec<(String, String)>;

impl Governed {
    /// The policies of a gateway, which may end before those who ask about them.
    pub(crate) fn of(shared: &Arc<Shared>) -> Self {
        Self(Arc::downgrade(shared))
    }
}

impl Policies for Governed {
    fn list(&self) -> Value {
        let Some(shared) = self.0.upgrade() else { return json!({ "policies": [] }) };
        let settings = shared.settings();
        let overridden = shared.overrides();
        let written = settings.config.policies_in_force();
        let is_default = shared.is_default_policy();
        let show = |policy: &Policy| {
            let is_overridden = overridden.iter().any(|own| own.id == policy.id);
            let source = match (is_overridden, is_default) {
                (true, _) => "override",
                (false, true) => "default",
                (false, false) => "file",
            };
            let mut shown = policy.to_json();
            shown["mode"] = shown["spec"]["mode"].clone();
            shown["source"] = source.into();
            shown["overridden"] = is_overridden.into();
            shown
        };
        let policies: Vec<Value> = written.iter().map(show).collect();
        json!({
            "policies": policies,
            "global_shadow": settings.config.global_shadow.is_on(today()),
            "kill_switches": shared.kill_switches().iter().map(|(id, switch)| shown(id.as_deref(), switch))
                .collect::<Vec<_>>(),
        })
    }

    fn checked_switch(&self, id: &str, switch: &Value) -> Result<Value, Wrong> {
        read_switch(id, switch).map(|switch| switch.to_json())
    }

    fn replace_switches(&self, switches: &[(String, Value)]) {
        let Some(shared) = self.0.upgrade() else { return };
        let sound =
            switches.iter().filter_map(|(id, switch)| Some((id.clone(), read_switch(id, switch).ok()?)));
        shared.change_switches(|known| *known = sound.collect());
    }

    fn checked(&self, id: &str, spec: &Value) -> Result<Value, Wrong> {
        read(id, spec).map(|policy| policy.to_json()["spec"].clone())
    }

    fn budgets(&self) -> Value {
        let shared = self.0.upgrade();
        let budgets = shared.map(|shared| shared.accounts.list(&shared.ledger, shared.now()));
        json!({ "budgets": budgets.unwrap_or_default() })
    }

    fn replace(&self, overrides: &[(String, Value)]) {
        let Some(shared) = self.0.upgrade() else { return };
        // What was sound when it was kept may not be after an update; then the config's own policy stays.
        let sound = overrides.iter().filter_map(|(id, spec)| read(id, spec).ok());
        shared.set_overrides(sound.collect());
    }

    fn thresholds_changed(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.renew_settings();
        }
    }

    fn changed_here(&self, change: &SettingChange) {
        let Some(shared) = self.0.upgrade() else { return };
        if !shared.obedience.must_be_told_elsewhere() {
            return;
        }
        if let (Some(fleet), Ok(value)) = (&shared.fleet, serde_json::to_string(change)) {
            fleet.publish(&change.setting.name(), value);
        }
    }

    fn detectors(&self, spec: &Value) -> Result<Option<DetectorsConfig>, Wrong> {
        let policy = read("tried", spec)?;
        let Some(loops) = policy.tool_loops.filter(|_| policy.mode != Mode::Off) else { return Ok(None) };
        let usual = self.0.upgrade().map(|shared| shared.settings().config.detectors.clone());
        Ok(Some(DetectorsConfig { ladder: loops.ladder, ..usual.unwrap_or_default() }))
    }
}

/// A policy as it came over the wire, read as the config file would be.
fn read(id: &str, spec: &Value) -> Result<Policy, Wrong> {
    let config = parse(&json!({ "policies": [{ "id": id, "spec": spec }] }), "policies[0].")?;
    config.policies.into_iter().next().ok_or_else(|| vec![("spec".to_owned(), "says nothing".to_owned())])
}

/// A kill switch as it came over the wire, read as the config file would be. One that names nobody is for the tenant of
/// its id.
pub(crate) fn read_switch(id: &str, switch: &Value) -> Result<KillSwitch, Wrong> {
    let mut switch = switch.clone();
    let names_somebody = ["tenant", "scope_key", "scope_value"].iter().any(|name| switch.get(name).is_some());
    if let (Some(fields), false) = (switch.as_object_mut(), names_somebody) {
        fields.insert("tenant".to_owned(), id.into());
    }
    let config = parse(&json!({ "kill_switches": [switch] }), "kill_switches[0].")?;
    config.kill_switches.into_iter().next().ok_or_else(|| vec![(String::new(), "says nothing".to_owned())])
}

/// A kill switch that was thrown or released at another process holds at once, also where nothing can be written down.
pub(crate) fn take_over_switch(shared: &Shared, change: &str) {
    let Ok(SettingChange { setting: Setting::KillSwitch(id), value, .. }) = serde_json::from_str(change)
    else {
        return;
    };
    let switch = value.and_then(|switch| read_switch(&id, &switch).ok());
    shared.change_switches(|known| {
        known.retain(|(other, _)| *other != id);
        known.extend(switch.map(|switch| (id, switch)));
    });
}

/// Reads a part of a config; what is wrong is told by its field, without what stands before all of them.
fn parse(part: &Value, before: &str) -> Result<Config, Wrong> {
    Config::parse(&part.to_string()).map_err(|problems| {
        let told = problems.into_iter().map(|problem| {
            let field = problem.path.strip_prefix(before).unwrap_or(&problem.path).to_owned();
            let hint = problem.hint.map_or_else(String::new, |hint| format!("; {hint}"));
            (field, format!("{}{hint}", problem.message))
        });
        told.collect()
    })
}

/// A kill switch as it is listed; those of the file have no id.
fn shown(id: Option<&str>, switch: &KillSwitch) -> Value {
    let mut shown = switch.to_json();
    let expires_at = shown["expires_at"].take();
    json!({
        "id": id, "key": switch.key.to_string(), "value": switch.value, "path": switch.path,
        "reason": switch.reason, "expires_at": expires_at, "on": switch.is_on(today()),
        "source": if id.is_some() { "override" } else { "file" },
    })
}

/// The config with other thresholds above its own. Policies that compare as its `semantic` section says follow it.
pub(crate) fn with_detectors(mut config: Config, detectors: &DetectorsConfig) -> Config {
    let (usual, similarity) = (config.detectors.semantic.threshold, detectors.semantic.threshold);
    for policy in config.policies.iter_mut().filter_map(|policy| policy.semantic.as_mut()) {
        if policy.threshold.to_bits() == usual.to_bits() {
            policy.threshold = similarity;
        }
    }
    config.detectors = detectors.clone();
    config
}

/// The config with overrides above its own policies: in place of those of the same id, else behind them.
pub(crate) fn with_overrides(mut config: Config, overrides: &[Policy]) -> Config {
    if overrides.is_empty() {
        return config;
    }
    let mut policies = config.policies_in_force().into_owned();
    for own in overrides {
        match policies.iter_mut().find(|policy| policy.id == own.id) {
            Some(policy) => *policy = own.clone(),
            None => policies.push(own.clone()),
        }
    }
    config.policies = policies;
    config
}

#[cfg(test)]
mod tests {
    use loopbreaker::DetectorsConfig;
    use loopbreaker_config::{Config, Mode};
    use serde_json::json;

    use super::{read, read_switch, with_detectors, with_overrides};

    #[test]
    fn an_override_stands_in_place_of_the_policy_of_its_name() {
        let shadow = read("default", &json!({ "mode": "shadow" })).unwrap();
        let more = read("more", &json!({})).unwrap();
        let config = with_overrides(Config::default(), &[shadow, more]);
        let modes: Vec<_> = config.policies.iter().map(|policy| (policy.id.as_str(), policy.mode)).collect();
        assert_eq!(modes, [("default", Mode::Shadow), ("more", Mode::Enforce)]);
        assert_eq!(with_overrides(Config::default(), &[]), Config::default());
    }

    #[test]
    fn a_policy_with_a_similarity_of_its_own_keeps_it_when_the_usual_one_changes() {
        let text = "policies: [{ id: a, spec: { semantic: { enabled: true } } },
            { id: b, spec: { semantic: { enabled: true, threshold: 0.9 } } }]";
        let mut detectors = DetectorsConfig::default();
        detectors.semantic.threshold = 0.8;
        let config = with_detectors(Config::parse(text).unwrap(), &detectors);
        let similarities: Vec<_> =
            config.policies.iter().map(|policy| policy.semantic.unwrap().threshold).collect();
        assert_eq!(similarities, [0.8, 0.9]);
    }

    #[test]
    fn a_kill_switch_that_names_nobody_is_for_the_tenant_of_its_id() {
        let of = |switch| read_switch("acme", &switch).map(|switch| (switch.key.to_string(), switch.value));
        let named = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));
        assert_eq!(of(json!({ "reason": "runaway" })), named("tenant", "acme"));
        assert_eq!(of(json!({ "tenant": "other" })), named("tenant", "other"));
        assert_eq!(of(json!({ "scope_key": "agent", "scope_value": "crawler" })), named("agent", "crawler"));
        let wrong = of(json!({ "reasons": "x", "expires_at": "soon" })).unwrap_err();
        let fields: Vec<_> = wrong.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(fields, ["expires_at", "reasons"], "{wrong:?}");
    }

    #[test]
    fn every_problem_of_a_policy_is_told_by_its_field() {
        let wrong = read("x", &json!({ "mode": "maybe", "tool_loops": { "enabled": true, "ladder": [] } }));
        let fields: Vec<_> = wrong.unwrap_err().into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["spec.mode", "spec.tool_loops.ladder"]);
        assert_eq!(read("x", &json!(7)).unwrap_err()[0].0, "spec");
    }
}
