//! Says in plain sentences what a config does.

mod detectors;
mod gateway;
mod policies;
mod words;

use crate::Config;

/// One sentence per thing in force, each with the name of its section in front.
pub(crate) fn sentences(config: &Config) -> Vec<String> {
    let mut said = Vec::new();
    detectors::explain(config, &mut said);
    gateway::explain(config, &mut said);
    policies::explain(config, &mut said);
    said
}
