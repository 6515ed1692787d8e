//! The sidecar's settings, from its environment.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use loopbreaker::SemanticConfig;
use loopbreaker_config::SemanticEngine;

use crate::history::{HistoryLimits, shown};
use crate::model::{Engine, ModelOptions};

/// How a sidecar runs.
#[derive(Debug, Clone, PartialEq)]
pub struct SidecarOptions {
    /// The Unix socket.
    pub uds_path: PathBuf,
    /// Where vectors are kept: `memory` or the address of a Redis.
    pub store: String,
    /// How many, how long.
    pub limits: HistoryLimits,
    /// Above it a prompt is a loop.
    pub threshold: f64,
    /// What embeds.
    pub model: ModelOptions,
    /// Whether prompts are kept in clear.
    pub keep_prompts: bool,
    /// Where `/metrics` is served, if anywhere.
    pub metrics_listen: Option<SocketAddr>,
}

/// A variable that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is `{value}`: {expected}")]
pub struct OptionsError {
    /// Its name.
    pub name: &'static str,
    /// What it says; left out for addresses, which may hold a password.
    pub value: String,
    /// What it should say.
    pub expected: &'static str,
}

impl Default for SidecarOptions {
    fn default() -> Self {
        Self {
            uds_path: "/tmp/embedding-sidecar.sock".into(),
            store: "memory".to_owned(),
            limits: HistoryLimits::default(),
            threshold: SemanticConfig::default().threshold,
            model: ModelOptions::default(),
            keep_prompts: false,
            metrics_listen: None,
        }
    }
}

impl SidecarOptions {
    /// Where vectors are kept, without a password.
    ///
    /// ```
    /// use loopbreaker_embed::SidecarOptions;
    /// let store = "rediss://me:secret@cache:6379".to_owned();
    /// assert_eq!(SidecarOptions { store, ..SidecarOptions::default() }.place(), "rediss://cache:6379");
    /// assert_eq!(SidecarOptions::default().place(), "memory");
    /// ```
    pub fn place(&self) -> String {
        if self.store == "memory" { self.store.clone() } else { shown(&self.store) }
    }

    /// What the environment says: `UDS_PATH`, `REDIS_URL`, `LOOP_SIMILARITY_THRESHOLD`, `LOOP_HISTORY_SIZE`,
    /// `LOOP_EMBEDDING_TTL` (seconds), `LOOP_EMBEDDING_MODEL_PATH`, `LOOP_EMBEDDING_ENGINE` (`auto`, `pure`,
    /// `onnxruntime`), `LOOP_KEEP_PROMPTS`, `METRICS_LISTEN`, and `ORT_DYLIB_PATH`, which names ONNX Runtime's
    /// library. What is not set, or empty, is as usual.
    ///
    /// ```
    /// use loopbreaker_embed::SidecarOptions;
    /// let set = |name: &str| (name == "LOOP_HISTORY_SIZE").then(|| "7".to_owned());
    /// assert_eq!(SidecarOptions::from_env(set).unwrap().limits.size, 7);
    /// let set = |name: &str| (name == "LOOP_HISTORY_SIZE").then(|| "many".to_owned());
    /// assert!(SidecarOptions::from_env(set).unwrap_err().to_string().contains("LOOP_HISTORY_SIZE"));
    /// ```
    pub fn from_env(get: impl Fn(&str) -> Option<String>) -> Result<Self, OptionsError> {
        let set = |name: &'static str| get(name).filter(|value| !value.is_empty());
        let mut options = Self::default();
        let engine = match set("LOOP_EMBEDDING_ENGINE") {
            Some(value) => {
                let known = SemanticEngine::NAMES.into_iter().find(|(name, _)| *name == value);
                let expected = "write auto, pure or onnxruntime";
                known.ok_or_else(|| refuse("LOOP_EMBEDDING_ENGINE", &value, expected))?.1
            }
            None => SemanticEngine::Auto,
        };
        options.model.engine = Engine::choose(engine, &get).map_err(|_| {
            let expected =
                "the library of ONNX Runtime is not there; set ORT_DYLIB_PATH to libonnxruntime.so";
            refuse("LOOP_EMBEDDING_ENGINE", "onnxruntime", expected)
        })?;
        // A process of its own has all cores.
        options.model.threads = std::thread::available_parallelism().ok();
        if let Some(path) = set("UDS_PATH") {
            options.uds_path = path.into();
        }
        if let Some(url) = set("REDIS_URL") {
            let known = url.starts_with("redis://") || url.starts_with("rediss://");
            let expected = "write redis://host:port, or redis://host:port?vector=hnsw for Redis Stack, with rediss for TLS";
            options.store =
                if known { url } else { return Err(refuse("REDIS_URL", "not an address", expected)) };
        }
        if let Some(value) = set("LOOP_SIMILARITY_THRESHOLD") {
            let number = value.parse().ok().filter(|number| *number > 0.0 && *number <= 1.0);
            let expected = "write a similarity above 0 and up to 1, such as 0.95";
            options.threshold =
                number.ok_or_else(|| refuse("LOOP_SIMILARITY_THRESHOLD", &value, expected))?;
        }
        if let Some(value) = set("LOOP_HISTORY_SIZE") {
            let most = SemanticConfig::MAX_SIZE as usize;
            let number = value.parse().ok().filter(|number| (1..=most).contains(number));
            let expected = "write how many prompts are compared, from 1 to 100";
            options.limits.size = number.ok_or_else(|| refuse("LOOP_HISTORY_SIZE", &value, expected))?;
        }
        if let Some(value) = set("LOOP_EMBEDDING_TTL") {
            let seconds =
                value.parse().ok().filter(|seconds| (1..=u64::from(u32::MAX) / 1_000).contains(seconds));
            let expected = "write how many seconds a prompt is remembered, such as 3600";
            let seconds = seconds.ok_or_else(|| refuse("LOOP_EMBEDDING_TTL", &value, expected))?;
            options.limits.ttl = Duration::from_secs(seconds);
        }
        options.model.path = set("LOOP_EMBEDDING_MODEL_PATH").map(Into::into);
        if let Some(value) = set("LOOP_KEEP_PROMPTS") {
            let flag = value.parse().ok();
            options.keep_prompts =
                flag.ok_or_else(|| refuse("LOOP_KEEP_PROMPTS", &value, "write true or false"))?;
        }
        if let Some(value) = set("METRICS_LISTEN") {
            let expected = "write an address and a port, such as 127.0.0.1:9464";
            options.metrics_listen =
                Some(value.parse().map_err(|_| refuse("METRICS_LISTEN", &value, expected))?);
        }
        Ok(options)
    }
}

fn refuse(name: &'static str, value: &str, expected: &'static str) -> OptionsError {
    OptionsError { name, value: value.to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::SidecarOptions;

    fn with(name: &str, value: &str) -> Result<SidecarOptions, super::OptionsError> {
        SidecarOptions::from_env(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn nothing_set_is_the_design_documents_defaults() {
        let options = SidecarOptions::from_env(|_| None).unwrap();
        assert_eq!(options.uds_path.to_str(), Some("/tmp/embedding-sidecar.sock"));
        assert!((options.threshold - 0.95).abs() < 1e-9);
        assert_eq!(options.limits.size, 5);
        assert_eq!(options.limits.ttl, Duration::from_secs(3_600));
        assert_eq!(
            (options.store.as_str(), options.metrics_listen, options.keep_prompts),
            ("memory", None, false)
        );
    }

    #[test]
    fn a_bad_value_is_told_with_its_name() {
        for (name, values) in [
            ("LOOP_SIMILARITY_THRESHOLD", ["0", "1.1", "NaN", "high"]),
            ("LOOP_HISTORY_SIZE", ["0", "-1", "101", "five"]),
            ("LOOP_EMBEDDING_TTL", ["0", "-3", "1h", "99999999999"]),
            ("METRICS_LISTEN", ["9464", "localhost:9464", "1.2.3.4", "x"]),
            ("REDIS_URL", ["localhost:6379", "http://x", "memory", "rediss"]),
            ("LOOP_KEEP_PROMPTS", ["yes", "1", "no", "TRUE"]),
            ("LOOP_EMBEDDING_ENGINE", ["onnx", "PURE", "rten", "1"]),
        ] {
            for value in values {
                assert_eq!(with(name, value).unwrap_err().name, name, "{value}");
            }
        }
    }

    #[test]
    fn a_password_is_not_told() {
        assert!(!with("REDIS_URL", "http://me:secret@cache").unwrap_err().to_string().contains("secret"));
    }

    #[test]
    fn good_values_are_taken() {
        assert!((with("LOOP_SIMILARITY_THRESHOLD", "0.9").unwrap().threshold - 0.9).abs() < 1e-9);
        assert_eq!(with("LOOP_EMBEDDING_TTL", "60").unwrap().limits.ttl, Duration::from_secs(60));
        for url in ["redis://cache:1?vector=hnsw", "rediss://cache:1?sslrootcert=/ca.pem"] {
            assert_eq!(with("REDIS_URL", url).unwrap().store, url);
        }
        assert!(with("LOOP_KEEP_PROMPTS", "true").unwrap().keep_prompts);
        assert_eq!(with("UDS_PATH", "/run/e.sock").unwrap().uds_path.to_str(), Some("/run/e.sock"));
    }
}
