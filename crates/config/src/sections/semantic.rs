//! `semantic`: the same intent in other words.

use std::time::Duration;

use loopbreaker::SemanticConfig;

use crate::cursor::{Cursor, Read};
use crate::fields::Fields;
use crate::kinds::{duration, flag, number, text, whole};

/// Where and how texts are embedded; the numbers of the detector itself are in
/// [`SemanticConfig`](loopbreaker::SemanticConfig).
///
/// ```
/// use loopbreaker_config::{Config, SemanticBackend};
/// let config = Config::parse("semantic: { backend: sidecar, sidecars: [/run/embed.sock] }").unwrap();
/// assert_eq!(config.semantic.backend, SemanticBackend::Sidecar);
/// assert_eq!(config.semantic.sidecars, ["/run/embed.sock"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SemanticService {
    /// Whether anything is compared at all; `LOOP_DETECTION_ENABLED` turns it off.
    pub enabled: bool,
    /// What the model is told in place of the usual sentence.
    pub message: Option<String>,
    /// Who computes the embeddings.
    pub backend: SemanticBackend,
    /// Sockets of the sidecars, when they do.
    pub sidecars: Vec<String>,
    /// How long a request waits for the answer before it goes on without.
    pub timeout: Duration,
    /// When a request is compared.
    pub timing: SemanticTiming,
    /// What of a conversation is compared.
    pub scope: SemanticScope,
    /// Whose earlier texts it is compared with.
    pub history: SemanticHistory,
    /// What computes, when this process does.
    pub engine: SemanticEngine,
    /// A model file or folder instead of the bundled one.
    pub model: Option<String>,
    /// Whether texts are kept in clear.
    pub keep_prompts: bool,
    /// Where the history is kept: `memory` or the URL of a Redis.
    pub store: String,
}

/// Who computes the embeddings.
///
/// ```
/// use loopbreaker_config::{Config, SemanticBackend};
/// let config = Config::parse("semantic: { backend: in_process }").unwrap();
/// assert_eq!(config.semantic.backend, SemanticBackend::InProcess);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SemanticBackend {
    /// This process, on threads of its own.
    InProcess,
    /// A service beside it.
    Sidecar,
}

/// What computes the embeddings.
///
/// ```
/// use loopbreaker_config::{Config, SemanticEngine};
/// let config = Config::parse("semantic: { engine: pure }").unwrap();
/// assert_eq!(config.semantic.engine, SemanticEngine::Pure);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SemanticEngine {
    /// ONNX Runtime where `ORT_DYLIB_PATH` names its library, else the built-in engine.
    #[default]
    Auto,
    /// The engine in the binary.
    Pure,
    /// ONNX Runtime, and nothing is compared where its library is missing.
    OnnxRuntime,
}

impl SemanticEngine {
    /// Every engine, by its name in the config.
    pub const NAMES: [(&'static str, Self); 3] =
        [("auto", Self::Auto), ("pure", Self::Pure), ("onnxruntime", Self::OnnxRuntime)];
}

/// When a request is compared.
///
/// ```
/// use loopbreaker_config::{Config, SemanticTiming};
/// let config = Config::parse("semantic: { timing: inline }").unwrap();
/// assert_eq!(config.semantic.timing, SemanticTiming::Inline);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SemanticTiming {
    /// Before it is sent on, within the timeout.
    Inline,
    /// Beside it: no latency is added, and what is found reaches the next request.
    Background,
}

/// What of a conversation is compared.
///
/// ```
/// use loopbreaker_config::{Config, SemanticScope};
/// let config = Config::parse("semantic: { scope: full }").unwrap();
/// assert_eq!(config.semantic.scope, SemanticScope::Full);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SemanticScope {
    /// What is new since the previous request.
    Delta,
    /// All of it.
    Full,
}

/// Whose earlier texts a new one is compared with.
///
/// ```
/// use loopbreaker_config::{Config, SemanticHistory};
/// let config = Config::parse("semantic: { history: tenant }").unwrap();
/// assert_eq!(config.semantic.history, SemanticHistory::Tenant);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SemanticHistory {
    /// Those of the same session.
    Session,
    /// Those of all sessions of the tenant.
    Tenant,
}

impl Default for SemanticService {
    fn default() -> Self {
        Self {
            enabled: true,
            message: None,
            backend: SemanticBackend::InProcess,
            sidecars: Vec::new(),
            timeout: Duration::from_millis(50),
            timing: SemanticTiming::Inline,
            scope: SemanticScope::Delta,
            history: SemanticHistory::Session,
            engine: SemanticEngine::Auto,
            model: None,
            keep_prompts: false,
            store: "memory".to_owned(),
        }
    }
}

pub(super) fn read(section: Cursor<'_>) -> Read<(SemanticConfig, SemanticService)> {
    let mut fields = section.map()?;
    let detector = detector(&mut fields);
    let service = service(&mut fields);
    fields.finish();
    Ok((detector?, service?))
}

fn detector(fields: &mut Fields<'_>) -> Read<SemanticConfig> {
    let default = SemanticConfig::default();
    let size = fields.field("size", default.size, size);
    let ttl_millis = fields.field("ttl", default.ttl_millis, ttl_millis);
    let threshold = fields.field("threshold", default.threshold, threshold);
    let config = SemanticConfig::new(size?, ttl_millis?, threshold?);
    // Each was tried out alone, so a complaint about them together has no key of its own.
    config.map_err(|error| fields.about("", |at| at.refuse(error.to_string(), "write other values")))
}

fn service(fields: &mut Fields<'_>) -> Read<SemanticService> {
    let default = SemanticService::default();
    let enabled = fields.field("enabled", default.enabled, flag);
    let message = fields.field("message", default.message, |value| value.or_null(text));
    let backend = fields.field("backend", default.backend, |value| {
        value.choice(&[("in_process", SemanticBackend::InProcess), ("sidecar", SemanticBackend::Sidecar)])
    });
    let sidecars = fields.field("sidecars", default.sidecars, |value| value.list(text));
    let timeout = fields.field("timeout", default.timeout, duration);
    let timing = fields.field("timing", default.timing, |value| {
        value.choice(&[("inline", SemanticTiming::Inline), ("background", SemanticTiming::Background)])
    });
    let scope = fields.field("scope", default.scope, |value| {
        value.choice(&[("delta", SemanticScope::Delta), ("full", SemanticScope::Full)])
    });
    let history = fields.field("history", default.history, |value| {
        value.choice(&[("session", SemanticHistory::Session), ("tenant", SemanticHistory::Tenant)])
    });
    let engine = fields.field("engine", default.engine, |value| value.choice(&SemanticEngine::NAMES));
    let model = fields.field("model", default.model, |value| value.or_null(text));
    let keep_prompts = fields.field("keep_prompts", default.keep_prompts, flag);
    let store = fields.field("store", default.store, text);
    Ok(SemanticService {
        enabled: enabled?,
        message: message?,
        backend: backend?,
        sidecars: sidecars?,
        timeout: timeout?,
        timing: timing?,
        scope: scope?,
        history: history?,
        engine: engine?,
        model: model?,
        keep_prompts: keep_prompts?,
        store: store?,
    })
}

/// How many texts are compared, tried out alone so that the number to blame is known.
fn size(value: Cursor<'_>) -> Read<u32> {
    let (default, max) = (SemanticConfig::default(), SemanticConfig::MAX_SIZE);
    let config = SemanticConfig::new(whole(value)?, default.ttl_millis, default.threshold);
    let hint = || format!("write how many texts to compare, from 1 to {max}");
    config.map(|config| config.size).map_err(|error| value.refuse(error.to_string(), hint()))
}

fn ttl_millis(value: Cursor<'_>) -> Read<u64> {
    match duration(value)?.as_millis() {
        0 => Err(value
            .refuse("ttl is 0, which remembers nothing", "write how long to remember a text, such as `1h`")),
        millis => Ok(u64::try_from(millis).unwrap_or(u64::MAX)),
    }
}

/// From which similarity on two texts say the same, tried out alone like `size`.
pub(super) fn threshold(value: Cursor<'_>) -> Read<f64> {
    let default = SemanticConfig::default();
    let config = SemanticConfig::new(default.size, default.ttl_millis, number(value)?);
    let hint = "write a similarity, such as 0.95";
    config.map(|config| config.threshold).map_err(|error| value.refuse(error.to_string(), hint))
}
