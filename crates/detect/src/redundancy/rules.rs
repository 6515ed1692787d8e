//! The settings of the detector, compiled once and shared by every session.

use std::sync::Arc;

use crate::canonical::Keep;
use crate::config::{RedundancyConfig, ToolProfile, best_match};
use crate::normalise::Normaliser;
use crate::pattern::ToolPattern;
use crate::redundancy::Redundancy;
use crate::words::hash_bytes;

/// The settings of [`Redundancy`], compiled once for any number of sessions.
///
/// ```
/// use loopbreaker::{RedundancyConfig, RedundancyRules, Step};
///
/// let rules = RedundancyRules::compile(&RedundancyConfig::default());
/// let (mut one, mut other) = (rules.detector(), rules.detector());
/// let step = Step::call("bash", r#"{"command":"ls"}"#).answered("a b", None);
/// assert_eq!(one.observe(&step), other.observe(&step));
/// ```
#[derive(Debug, Clone)]
pub struct RedundancyRules(Arc<Rules>);

impl RedundancyRules {
    /// Compiles the settings.
    pub fn compile(config: &RedundancyConfig) -> Self {
        Self(Rules::compile(config))
    }

    /// A detector for one session.
    pub fn detector(&self) -> Redundancy {
        Redundancy::with_rules(Arc::clone(&self.0))
    }
}

/// Settings in the form that sessions use.
#[derive(Debug)]
pub(crate) struct Rules {
    /// Tells these settings, and the version that reads by them, from others.
    mark: u64,
    window: usize,
    tools: Vec<(ToolPattern, Compiled)>,
}

#[derive(Debug)]
struct Compiled {
    profile: ToolProfile,
    /// `None`: the built-in rules.
    normaliser: Option<Normaliser>,
}

impl Rules {
    pub(crate) fn compile(config: &RedundancyConfig) -> Arc<Self> {
        let compiled = |(tools, profile): &(ToolPattern, ToolProfile)| {
            // The config has checked its patterns; one that fails together with others folds nothing of its own.
            let own = !profile.ignore_result.is_empty();
            let normaliser = own.then(|| Normaliser::compile(&profile.ignore_result).ok()).flatten();
            (tools.clone(), Compiled { profile: profile.clone(), normaliser })
        };
        let version = concat!(env!("CARGO_PKG_VERSION"), "/5");
        Arc::new(Self {
            mark: hash_bytes(format!("{version} {config:?}").as_bytes()),
            window: config.window() as usize,
            tools: config.tools().iter().map(compiled).collect(),
        })
    }

    pub(crate) const fn mark(&self) -> u64 {
        self.mark
    }

    pub(crate) const fn window(&self) -> usize {
        self.window
    }

    /// What is declared about a tool.
    pub(crate) fn profile(&self, tool: &str) -> Option<&ToolProfile> {
        best_match(&self.tools, tool).map(|(_, compiled)| &compiled.profile)
    }

    /// How results of a tool are normalised.
    pub(crate) fn normaliser(&self, tool: Option<&str>) -> &Normaliser {
        tool.and_then(|tool| best_match(&self.tools, tool))
            .and_then(|(_, compiled)| compiled.normaliser.as_ref())
            .unwrap_or(Normaliser::built_in())
    }
}

/// What of a tool's arguments tells one call from another: what is declared, else all that the call does.
pub(super) fn what_counts(profile: Option<&ToolProfile>) -> Keep<'_> {
    match profile {
        Some(ToolProfile { loop_key, .. }) if !loop_key.is_empty() => Keep::Only(loop_key),
        _ => Keep::Deeds,
    }
}
