//! The detectors of a policy: each part with its switch and its action.

use std::time::Duration;

use loopbreaker::{Action, ConfigError, IdenticalRequestConfig, Ladder, ToolPattern};

use crate::cursor::{Cursor, Read};
use crate::fields::Fields;
use crate::kinds::{filled, flag, size, some_time, whole};
use crate::sections::semantic;

/// What is done about the same HTTP request again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopDetection {
    /// How many within how many seconds.
    pub config: IdenticalRequestConfig,
    /// What is done from then on.
    pub action: Action,
    /// When two requests are the same.
    pub similarity: Similarity,
    /// Whether equal requests that are under way at the same time count as one, as in the default policy: sampling
    /// sends several at once.
    pub once_in_flight: bool,
}

impl Default for LoopDetection {
    fn default() -> Self {
        Self {
            config: IdenticalRequestConfig::default(),
            action: Action::Reject,
            similarity: Similarity::Exact,
            once_in_flight: false,
        }
    }
}

/// When two requests are the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Similarity {
    /// Their fingerprints are equal.
    #[default]
    Exact,
    /// They say the same in other words.
    Semantic,
}

/// What is done about tool loops in the transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolLoops {
    /// One action per strike.
    pub ladder: Ladder,
}

/// What is done about the same intent in other words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SemanticPolicy {
    /// Two texts above this similarity say the same; that of the `semantic` section where none is written.
    pub threshold: f64,
    /// What is done then.
    pub action: Action,
}

impl SemanticPolicy {
    /// The usual action at a threshold.
    pub const fn at(threshold: f64) -> Self {
        Self { threshold, action: Action::Hint }
    }
}

/// What is done about an answer that repeats itself without end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ChantAction {
    /// It is reported.
    Warn,
    /// The stream is ended.
    #[default]
    Cut,
}

/// Which answers are kept and given again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// How long an answer is kept.
    pub ttl: Duration,
    /// How much is kept; the oldest goes first.
    pub max_bytes: u64,
    /// Which requests get the same answer.
    pub similarity: Similarity,
    /// Whether requests with a temperature above 0 get one too.
    pub allow_sampled: bool,
    /// Tools whose requests may be answered so; every tool when empty.
    pub tools: Vec<ToolPattern>,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(300),
            max_bytes: 64 << 20,
            similarity: Similarity::Exact,
            allow_sampled: false,
            tools: Vec::new(),
        }
    }
}

pub(super) fn loop_detection(value: Cursor<'_>) -> Read<Option<LoopDetection>> {
    let default = LoopDetection::default();
    let (window, threshold) = (default.config.window_seconds(), default.config.threshold());
    let checked = |value: Cursor<'_>, config: Result<_, ConfigError>| {
        let hint = "the action fires at so many equal requests within so many seconds; 5 within 60 is usual";
        config.map_err(|error| value.refuse(error.to_string(), hint))
    };

    let mut fields = value.map()?;
    let enabled = fields.required("enabled", "say whether it is on: `enabled: true`", flag);
    // Each number alone, beside one that suits it, so that two wrong ones are two problems.
    let read_window = |value: Cursor<'_>| {
        checked(value, IdenticalRequestConfig::new(whole(value)?, threshold))
            .map(IdenticalRequestConfig::window_seconds)
    };
    let read_threshold = |value: Cursor<'_>| {
        checked(value, IdenticalRequestConfig::new(60, whole(value)?)).map(IdenticalRequestConfig::threshold)
    };
    // How often is too often depends on the agents, so whoever switches this on has to say it.
    let (window, threshold) = if matches!(enabled, Ok(true)) {
        (
            fields.required(
                "window_seconds",
                "say how long requests count: `window_seconds: 60`",
                read_window,
            ),
            fields.required(
                "threshold_identical_requests",
                "say how many equal ones are a loop: `threshold_identical_requests: 5`",
                read_threshold,
            ),
        )
    } else {
        (
            fields.field("window_seconds", window, read_window),
            fields.field("threshold_identical_requests", threshold, read_threshold),
        )
    };
    let action = fields.field("action", default.action, |value| {
        action(value, &[Action::Reject, Action::Throttle, Action::Warn, Action::Hint, Action::Pause])
    });
    let similarity = fields.field("similarity", default.similarity, similarity);
    let once_in_flight = fields.field("once_in_flight", default.once_in_flight, flag);
    fields.finish();
    let config = checked(value, IdenticalRequestConfig::new(window?, threshold?));
    let on = LoopDetection {
        config: config?,
        action: action?,
        similarity: similarity?,
        once_in_flight: once_in_flight?,
    };
    Ok(enabled?.then_some(on))
}

pub(super) fn tool_loops(value: Cursor<'_>) -> Read<Option<ToolLoops>> {
    let mut fields = value.map()?;
    let enabled = enabled(&mut fields);
    let ladder = fields.field("ladder", Ladder::default(), ladder);
    fields.finish();
    let ladder = ladder?;
    Ok(enabled?.then_some(ToolLoops { ladder }))
}

fn ladder(value: Cursor<'_>) -> Read<Ladder> {
    const RUNGS: [Action; 6] =
        [Action::Allow, Action::Warn, Action::Hint, Action::Throttle, Action::Pause, Action::Reject];
    let rungs = value.list(|rung| action(rung, &RUNGS))?;
    Ladder::new(rungs).ok_or_else(|| {
        value.refuse(
            "a ladder without rungs does nothing",
            "write `[hint, hint, throttle, reject]`, or `enabled: false`",
        )
    })
}

/// `usual` is the threshold of the `semantic` section.
pub(super) fn semantic(value: Cursor<'_>, usual: f64) -> Read<Option<SemanticPolicy>> {
    let default = SemanticPolicy::at(usual);
    let mut fields = value.map()?;
    let enabled = enabled(&mut fields);
    let threshold = fields.field("threshold", default.threshold, semantic::threshold);
    let action = fields.field("action", default.action, |value| {
        action(value, &[Action::Warn, Action::Hint, Action::Throttle, Action::Pause, Action::Reject])
    });
    fields.finish();
    let on = SemanticPolicy { threshold: threshold?, action: action? };
    Ok(enabled?.then_some(on))
}

pub(super) fn chant(value: Cursor<'_>) -> Read<Option<ChantAction>> {
    let mut fields = value.map()?;
    let enabled = enabled(&mut fields);
    let action = fields.field("action", ChantAction::default(), |value| {
        value.choice(&[("warn", ChantAction::Warn), ("cut", ChantAction::Cut)])
    });
    fields.finish();
    let action = action?;
    Ok(enabled?.then_some(action))
}

pub(super) fn cache(value: Cursor<'_>) -> Read<Option<Cache>> {
    let default = Cache::default();
    let mut fields = value.map()?;
    let enabled = enabled(&mut fields);
    let ttl = fields.field("ttl", default.ttl, some_time);
    let max_bytes = fields.field("max_bytes", default.max_bytes, |value| match size(value)? {
        0 => Err(value.refuse("a cache of 0 bytes keeps nothing", "write a size such as `64MiB`")),
        bytes => Ok(bytes),
    });
    let similarity = fields.field("similarity", default.similarity, similarity);
    let allow_sampled = fields.field("allow_sampled", default.allow_sampled, flag);
    let tools =
        fields.field("tools", default.tools, |value| value.list(|tool| filled(tool).map(ToolPattern::new)));
    if let (Ok(Similarity::Semantic), Ok(true)) = (similarity, allow_sampled) {
        fields.about("allow_sampled", |at| {
            at.refuse(
                "sampled requests are answered again only when they are equal",
                "write `similarity: exact`",
            )
        });
    }
    fields.finish();
    let on = Cache {
        ttl: ttl?,
        max_bytes: max_bytes?,
        similarity: similarity?,
        allow_sampled: allow_sampled?,
        tools: tools?,
    };
    Ok(enabled?.then_some(on))
}

/// One of a few actions, by its name.
pub(super) fn action<const N: usize>(value: Cursor<'_>, accepted: &[Action; N]) -> Read<Action> {
    value.choice(&accepted.map(|action| (action.as_str(), action)))
}

fn similarity(value: Cursor<'_>) -> Read<Similarity> {
    value.choice(&[("exact", Similarity::Exact), ("semantic", Similarity::Semantic)])
}

/// The switch that each part of a policy has. A part without it is off, which is easily overlooked.
fn enabled(fields: &mut Fields<'_>) -> Read<bool> {
    let enabled = fields.field("enabled", false, flag);
    if !fields.has("enabled") {
        fields.about("enabled", |at| {
            at.notice("this is off, since `enabled` is missing", "write `enabled: true`");
        });
    }
    enabled
}
