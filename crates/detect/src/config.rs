//! Settings of the detectors, checked when they are made.

use crate::ladder::Ladder;
use crate::pattern::ToolPattern;
use crate::saved::saved_as_one_of;

/// Why a setting was refused.
///
/// ```
/// use loopbreaker::{ConfigError, SentinelLimit};
/// assert_eq!(SentinelLimit::new(0, 10), Err(ConfigError::ThresholdZero));
/// assert_eq!(
///     SentinelLimit::new(11, 10),
///     Err(ConfigError::ThresholdAboveWindow { threshold: 11, window_size: 10 })
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// `threshold: 0` would block every call.
    #[error("threshold is 0, which would block every call")]
    ThresholdZero,
    /// `window_size: 0` remembers nothing.
    #[error("window_size is 0, which remembers nothing")]
    WindowZero,
    /// A threshold that the window cannot hold is never reached.
    #[error("threshold {threshold} is larger than window_size {window_size}, so it is never reached")]
    ThresholdAboveWindow {
        /// The threshold that was asked for.
        threshold: u32,
        /// The window that was asked for.
        window_size: u32,
    },
    /// A window beyond what one session may keep.
    #[error("{field} is {value}, at most {max} is kept per session")]
    WindowTooLarge {
        /// Which setting.
        field: &'static str,
        /// What was asked for.
        value: u32,
        /// The largest that is accepted.
        max: u32,
    },
    /// A number outside its range.
    #[error("{field} is {value}, it must be {expected}")]
    OutOfRange {
        /// Which setting.
        field: &'static str,
        /// What was asked for.
        value: String,
        /// What is accepted.
        expected: &'static str,
    },
    /// A pattern that does not compile.
    #[error("pattern {pattern:?} cannot be used: {reason}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// How often one call may stand in the sentinel's ring.
///
/// ```
/// use loopbreaker::SentinelLimit;
/// let limit = SentinelLimit::new(2, 5)?.because("search should converge quickly");
/// assert_eq!((limit.threshold(), limit.window_size()), (2, 5));
/// # Ok::<(), loopbreaker::ConfigError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentinelLimit {
    threshold: u32,
    window_size: u32,
    reason: Option<String>,
}

impl SentinelLimit {
    /// The largest ring that one session may keep.
    pub const MAX_WINDOW: u32 = 10_000;

    /// A limit of `threshold` equal calls among the last `window_size`.
    pub fn new(threshold: u32, window_size: u32) -> Result<Self, ConfigError> {
        if threshold == 0 {
            return Err(ConfigError::ThresholdZero);
        }
        if window_size == 0 {
            return Err(ConfigError::WindowZero);
        }
        if window_size > Self::MAX_WINDOW {
            let (field, value, max) = ("window_size", window_size, Self::MAX_WINDOW);
            return Err(ConfigError::WindowTooLarge { field, value, max });
        }
        if threshold > window_size {
            return Err(ConfigError::ThresholdAboveWindow { threshold, window_size });
        }
        Ok(Self { threshold, window_size, reason: None })
    }

    /// The same limit with a reason that is shown to the model when it blocks.
    #[must_use]
    pub fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }

    /// Equal calls that may stand in the ring; the next one is blocked.
    pub const fn threshold(&self) -> u32 {
        self.threshold
    }

    /// Calls that the ring remembers.
    pub const fn window_size(&self) -> u32 {
        self.window_size
    }

    /// Why this tool has a limit of its own.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// What is legal but rarely meant: a threshold of 1 blocks every retry.
    pub const fn warning(&self) -> Option<&'static str> {
        if self.threshold == 1 {
            return Some(
                "threshold 1 blocks every repeat, also a retry after a transient failure; 3 is usual",
            );
        }
        None
    }
}

impl Default for SentinelLimit {
    fn default() -> Self {
        Self { threshold: 3, window_size: 10, reason: None }
    }
}

/// Settings of the [`Sentinel`](crate::Sentinel).
///
/// ```
/// use loopbreaker::{SentinelConfig, SentinelLimit, ToolPattern};
/// let config = SentinelConfig::default()
///     .with_override(ToolPattern::new("search_*"), SentinelLimit::new(2, 5)?)
///     .with_bypass(ToolPattern::new("poll_*"));
/// assert_eq!(config.overrides.len(), 1);
/// # Ok::<(), loopbreaker::ConfigError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SentinelConfig {
    /// The limit of every tool that has none of its own.
    pub default: SentinelLimit,
    /// Limits per tool; a plain name wins over a glob, then the order counts.
    pub overrides: Vec<(ToolPattern, SentinelLimit)>,
    /// Tools that are never guarded.
    pub bypass: Vec<ToolPattern>,
}

impl SentinelConfig {
    /// The same settings with a limit of its own for some tools.
    #[must_use]
    pub fn with_override(mut self, tools: ToolPattern, limit: SentinelLimit) -> Self {
        self.overrides.push((tools, limit));
        self
    }

    /// The same settings with some tools never guarded.
    #[must_use]
    pub fn with_bypass(mut self, tools: ToolPattern) -> Self {
        self.bypass.push(tools);
        self
    }
}

/// Settings of [`IdenticalRequest`](crate::IdenticalRequest).
///
/// ```
/// use loopbreaker::IdenticalRequestConfig;
/// let config = IdenticalRequestConfig::new(60, 5)?;
/// assert_eq!(config.window_seconds(), 60);
/// assert!(IdenticalRequestConfig::new(60, 1).is_err());
/// # Ok::<(), loopbreaker::ConfigError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdenticalRequestConfig {
    window_seconds: u32,
    threshold: u32,
}

impl IdenticalRequestConfig {
    /// The largest threshold.
    pub const MAX_THRESHOLD: u32 = 100_000;
    /// The largest count that is ever reported, unless the threshold is larger.
    pub const MAX_COUNT: u32 = 1_000;

    /// Fires on the request that makes `threshold` identical ones within `window_seconds`.
    pub fn new(window_seconds: u32, threshold: u32) -> Result<Self, ConfigError> {
        let bad = |field, value: u32, expected| {
            Err(ConfigError::OutOfRange { field, value: value.to_string(), expected })
        };
        if window_seconds < 1 {
            return bad("window_seconds", window_seconds, "at least 1");
        }
        if !(2..=Self::MAX_THRESHOLD).contains(&threshold) {
            return bad("threshold_identical_requests", threshold, "from 2 to 100000");
        }
        Ok(Self { window_seconds, threshold })
    }

    /// Length of the sliding window.
    pub const fn window_seconds(self) -> u32 {
        self.window_seconds
    }

    /// Identical requests in the window at which it fires, the current one included.
    pub const fn threshold(self) -> u32 {
        self.threshold
    }

    /// So many attempts are remembered, the newest ones.
    pub const fn most(self) -> u32 {
        if self.threshold > Self::MAX_COUNT { self.threshold } else { Self::MAX_COUNT }
    }
}

impl Default for IdenticalRequestConfig {
    fn default() -> Self {
        Self { window_seconds: 60, threshold: 5 }
    }
}

/// Settings of [`Entropy`](crate::Entropy); each can be changed while it runs.
///
/// ```
/// use loopbreaker::EntropyConfig;
/// let config = EntropyConfig::new(5, 0.25, 0.5)?;
/// assert!(config.include_input);
/// assert!(EntropyConfig::new(5, 0.6, 0.5).is_err());
/// # Ok::<(), loopbreaker::ConfigError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EntropyConfig {
    /// Decisions that are looked at.
    pub window_size: u32,
    /// A score below this is a loop.
    pub loop_below: f64,
    /// A score up to this (and not a loop) is a warning.
    pub warn_up_to: f64,
    /// Whether the tool's input is part of what is compared. `false` is the literal tuple of the design.
    pub include_input: bool,
}

impl EntropyConfig {
    /// The largest window that one session may keep.
    pub const MAX_WINDOW: u32 = 1_000;

    /// Checked settings, with the input included.
    pub fn new(window_size: u32, loop_below: f64, warn_up_to: f64) -> Result<Self, ConfigError> {
        if window_size == 0 {
            return Err(ConfigError::WindowZero);
        }
        if window_size > Self::MAX_WINDOW {
            let (field, value, max) = ("window_size", window_size, Self::MAX_WINDOW);
            return Err(ConfigError::WindowTooLarge { field, value, max });
        }
        let bad = |field, value: f64, expected| {
            Err(ConfigError::OutOfRange { field, value: value.to_string(), expected })
        };
        if !(0.0..=1.0).contains(&loop_below) {
            return bad("loop_below", loop_below, "from 0 to 1");
        }
        if !(0.0..=1.0).contains(&warn_up_to) {
            return bad("warn_up_to", warn_up_to, "from 0 to 1");
        }
        if warn_up_to < loop_below {
            return bad("warn_up_to", warn_up_to, "at least loop_below");
        }
        Ok(Self { window_size, loop_below, warn_up_to, include_input: true })
    }
}

impl Default for EntropyConfig {
    fn default() -> Self {
        Self { window_size: 5, loop_below: 0.25, warn_up_to: 0.5, include_input: true }
    }
}

/// What a tool does to the world, as far as later calls can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It only looks.
    Read,
    /// It changes something, so what is read afterwards may differ.
    Write,
    /// It waits for something that moves by itself.
    Poll,
}

saved_as_one_of!(Effect [Self::Read, Self::Write, Self::Poll]);

impl Effect {
    /// The effect of this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "read" => Some(Self::Read),
            "write" => Some(Self::Write),
            "poll" => Some(Self::Poll),
            _ => None,
        }
    }
}

/// What is declared about one tool (or a glob of them) for [`Redundancy`](crate::Redundancy).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolProfile {
    /// What it does to the world; guessed from its name and arguments when absent.
    pub effect: Option<Effect>,
    /// Top-level argument fields that make two calls the same; all of them when empty.
    pub loop_key: Vec<String>,
    /// Regular expressions whose matches in a result do not count, beside the built-in ones.
    pub ignore_result: Vec<String>,
}

/// Settings of [`Redundancy`](crate::Redundancy).
///
/// ```
/// use loopbreaker::{Effect, RedundancyConfig, ToolPattern, ToolProfile};
/// let profile = ToolProfile { effect: Some(Effect::Poll), ..ToolProfile::default() };
/// let config = RedundancyConfig::new(64)?.with_tool(ToolPattern::new("ci_*"), profile)?;
/// assert_eq!(config.window(), 64);
/// # Ok::<(), loopbreaker::ConfigError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedundancyConfig {
    window: u32,
    tools: Vec<(ToolPattern, ToolProfile)>,
}

impl RedundancyConfig {
    /// The smallest window: three copies of a two-step cycle must fit.
    pub const MIN_WINDOW: u32 = 6;
    /// The largest window that one session may keep.
    pub const MAX_WINDOW: u32 = 1_024;

    /// Settings that look at the last `window` steps.
    pub fn new(window: u32) -> Result<Self, ConfigError> {
        if window < Self::MIN_WINDOW {
            let expected = "at least 6, so that a two-step cycle fits three times";
            return Err(ConfigError::OutOfRange { field: "window", value: window.to_string(), expected });
        }
        if window > Self::MAX_WINDOW {
            let (field, value, max) = ("window", window, Self::MAX_WINDOW);
            return Err(ConfigError::WindowTooLarge { field, value, max });
        }
        Ok(Self { window, tools: Vec::new() })
    }

    /// The same settings with something declared about some tools.
    pub fn with_tool(mut self, tools: ToolPattern, profile: ToolProfile) -> Result<Self, ConfigError> {
        for pattern in &profile.ignore_result {
            crate::normalise::check_pattern(pattern)?;
        }
        self.tools.push((tools, profile));
        Ok(self)
    }

    /// Steps that are looked at.
    pub const fn window(&self) -> u32 {
        self.window
    }

    /// What is declared about tools; a plain name wins over a glob, then the order counts.
    pub fn tools(&self) -> &[(ToolPattern, ToolProfile)] {
        &self.tools
    }
}

impl Default for RedundancyConfig {
    fn default() -> Self {
        Self { window: 64, tools: Vec::new() }
    }
}

/// Settings of [`Semantic`](crate::Semantic).
///
/// ```
/// use loopbreaker::SemanticConfig;
/// assert_eq!(SemanticConfig::default().size, 5);
/// assert!(SemanticConfig::new(0, 3_600_000, 0.95).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SemanticConfig {
    /// Earlier deltas that are compared.
    pub size: u32,
    /// Milliseconds after which a delta is forgotten.
    pub ttl_millis: u64,
    /// Two deltas above this similarity say the same.
    pub threshold: f64,
}

impl SemanticConfig {
    /// The longest history that one session may keep.
    pub const MAX_SIZE: u32 = 100;

    /// Checked settings.
    pub fn new(size: u32, ttl_millis: u64, threshold: f64) -> Result<Self, ConfigError> {
        if size == 0 {
            return Err(ConfigError::OutOfRange { field: "size", value: "0".into(), expected: "at least 1" });
        }
        if size > Self::MAX_SIZE {
            return Err(ConfigError::WindowTooLarge { field: "size", value: size, max: Self::MAX_SIZE });
        }
        // At 0 everything would be the same as everything else.
        if !(threshold > 0.0 && threshold <= 1.0) {
            let (field, value) = ("threshold", threshold.to_string());
            return Err(ConfigError::OutOfRange { field, value, expected: "above 0, and 1 at most" });
        }
        Ok(Self { size, ttl_millis, threshold })
    }
}

impl Default for SemanticConfig {
    fn default() -> Self {
        Self { size: 5, ttl_millis: 3_600_000, threshold: 0.95 }
    }
}

/// Settings of every detector together, as the `loopbreaker.yaml` sections name them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DetectorsConfig {
    /// Repeated tool calls.
    pub sentinel: SentinelConfig,
    /// Uniqueness of decisions.
    pub entropy: EntropyConfig,
    /// No progress.
    pub redundancy: RedundancyConfig,
    /// The same intent in other words.
    pub semantic: SemanticConfig,
    /// What to do about a loop, per strike.
    pub ladder: Ladder,
}

/// The entry whose pattern fits `tool` best: a plain name wins over a glob, then the first one.
pub(crate) fn best_match<'a, T>(entries: &'a [(ToolPattern, T)], tool: &str) -> Option<&'a (ToolPattern, T)> {
    let fitting = |entry: &&(ToolPattern, T)| entry.0.matches(tool);
    entries.iter().filter(|entry| !entry.0.is_glob()).find(fitting).or_else(|| entries.iter().find(fitting))
}
