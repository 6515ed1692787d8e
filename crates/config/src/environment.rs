//! What the environment says above the config file: the switches of the semantic detector.

use std::path::Path;

use crate::Config;
use crate::sections::semantic::SemanticBackend;
use crate::units;

/// A variable whose value cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {value:?}: {wanted}")]
pub struct BadVariable {
    /// Its name.
    pub name: &'static str,
    value: String,
    wanted: &'static str,
}

impl Config {
    /// The config with what these variables say: `LOOP_DETECTION_ENABLED`, `LOOP_EMBEDDING_SIDECAR_UDS`,
    /// `LOOP_EMBEDDING_SIDECAR_TIMEOUT`, `LOOP_EMBEDDING_MODEL_PATH`, `LOOP_SIMILARITY_THRESHOLD` and
    /// `LOOP_INTERVENTION_MESSAGE`. They turn and tune the semantic detector, and nothing else.
    ///
    /// ```
    /// use loopbreaker_config::Config;
    /// let off = |name: &str| (name == "LOOP_DETECTION_ENABLED").then(|| "false".to_owned());
    /// let config = Config::default().with_environment(off).unwrap();
    /// assert!(config.policies_in_force()[0].semantic.is_none());
    /// let bad = |name: &str| (name == "LOOP_SIMILARITY_THRESHOLD").then(|| "much".to_owned());
    /// assert_eq!(Config::default().with_environment(bad).unwrap_err().name, "LOOP_SIMILARITY_THRESHOLD");
    /// ```
    pub fn with_environment(
        mut self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, BadVariable> {
        let set = |name: &'static str| variable(name).filter(|value| !value.trim().is_empty());
        let bad = |name, value: String, wanted| BadVariable { name, value, wanted };
        if let Some(value) = set("LOOP_DETECTION_ENABLED") {
            self.semantic.enabled = match value.trim().to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => true,
                "false" | "0" | "no" | "off" => false,
                _ => return Err(bad("LOOP_DETECTION_ENABLED", value, "write true or false")),
            };
        }
        if let Some(path) = set("LOOP_EMBEDDING_SIDECAR_UDS") {
            self.semantic.backend = SemanticBackend::Sidecar;
            self.semantic.sidecars = path.split(',').map(|path| path.trim().to_owned()).collect();
        }
        if let Some(value) = set("LOOP_EMBEDDING_SIDECAR_TIMEOUT") {
            let wanted = "write a duration such as 50ms";
            let Some(timeout) = units::duration(value.trim()).ok().filter(|timeout| !timeout.is_zero())
            else {
                return Err(bad("LOOP_EMBEDDING_SIDECAR_TIMEOUT", value, wanted));
            };
            self.semantic.timeout = timeout;
        }
        if let Some(path) = set("LOOP_EMBEDDING_MODEL_PATH") {
            // A model is loaded at first need, which would be too late to learn that there is none.
            if !Path::new(&path).exists() {
                let wanted = "name a folder with model.onnx and tokenizer.json, or the .onnx file itself";
                return Err(bad("LOOP_EMBEDDING_MODEL_PATH", path, wanted));
            }
            self.semantic.model = Some(path);
        }
        if let Some(value) = set("LOOP_SIMILARITY_THRESHOLD") {
            let usual = &self.detectors.semantic;
            let number = value.trim().parse().ok();
            let config = number.and_then(|number| {
                loopbreaker::SemanticConfig::new(usual.size, usual.ttl_millis, number).ok()
            });
            let Some(config) = config else {
                return Err(bad("LOOP_SIMILARITY_THRESHOLD", value, "write a similarity such as 0.95"));
            };
            for policy in self.policies.iter_mut().filter_map(|policy| policy.semantic.as_mut()) {
                policy.threshold = config.threshold;
            }
            self.detectors.semantic = config;
        }
        if let Some(message) = set("LOOP_INTERVENTION_MESSAGE") {
            self.semantic.message = Some(message);
        }
        if !self.semantic.enabled {
            for policy in &mut self.policies {
                policy.semantic = None;
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{Config, SemanticBackend};

    fn with(pairs: &[(&str, &str)]) -> Result<Config, String> {
        let text = "policies: [{ id: a, spec: { semantic: { enabled: true, threshold: 0.9 } } }]";
        let variable = |name: &str| {
            let found = pairs.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Config::parse(text).unwrap().with_environment(variable).map_err(|bad| bad.to_string())
    }

    #[test]
    fn the_environment_wins_over_the_file() {
        let config = with(&[
            ("LOOP_EMBEDDING_SIDECAR_UDS", "/run/a.sock, /run/b.sock"),
            ("LOOP_EMBEDDING_SIDECAR_TIMEOUT", "20ms"),
            ("LOOP_SIMILARITY_THRESHOLD", "0.8"),
            ("LOOP_INTERVENTION_MESSAGE", "stop it"),
            ("LOOP_EMBEDDING_MODEL_PATH", env!("CARGO_MANIFEST_DIR")),
        ])
        .unwrap();
        assert_eq!(config.semantic.backend, SemanticBackend::Sidecar);
        assert_eq!(config.semantic.sidecars, ["/run/a.sock", "/run/b.sock"]);
        assert_eq!(config.semantic.timeout, Duration::from_millis(20));
        assert_eq!(config.semantic.message.as_deref(), Some("stop it"));
        assert_eq!(config.semantic.model.as_deref(), Some(env!("CARGO_MANIFEST_DIR")));
        let thresholds =
            (config.detectors.semantic.threshold, config.policies[0].semantic.unwrap().threshold);
        assert_eq!(thresholds, (0.8, 0.8));
    }

    #[test]
    fn it_turns_the_semantic_detector_off_and_nothing_else() {
        let config = with(&[("LOOP_DETECTION_ENABLED", "False")]).unwrap();
        assert!(config.policies[0].semantic.is_none());
        assert_eq!(with(&[("LOOP_DETECTION_ENABLED", " ")]), with(&[]), "an empty variable says nothing");
    }

    #[test]
    fn a_bad_value_is_told_by_its_name() {
        for (name, value) in [
            ("LOOP_DETECTION_ENABLED", "maybe"),
            ("LOOP_EMBEDDING_SIDECAR_TIMEOUT", "fast"),
            ("LOOP_EMBEDDING_SIDECAR_TIMEOUT", "0ms"),
            ("LOOP_SIMILARITY_THRESHOLD", "1.5"),
            ("LOOP_EMBEDDING_MODEL_PATH", "/nowhere/at/all"),
        ] {
            let told = with(&[(name, value)]).unwrap_err();
            assert!(told.contains(name) && (told.contains("write") || told.contains("folder")), "{told}");
        }
    }
}
