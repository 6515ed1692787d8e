//! The formats of recorded runs.

use std::fmt;

use crate::Reader;
use crate::chat::Chat;
use crate::claude_code::ClaudeCode;
use crate::decision_log::DecisionLogs;
use crate::openhands::OpenHands;
use crate::otlp::Otlp;
use crate::swe_agent::SweAgent;
use crate::trace::Trace;

/// A format of recorded runs.
///
/// ```
/// use loopbreaker_trace::Format;
/// assert_eq!(Format::parse("claude-code"), Some(Format::ClaudeCode));
/// assert_eq!(Format::OtlpJson.as_str(), "otlp-json");
/// assert!(Format::ALL.iter().all(|format| Format::parse(format.as_str()) == Some(*format)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Our own: one run per line, `{"id", "steps": […]}`.
    Trace,
    /// Chat messages and Responses items of the `OpenAI` API, and contents of Gemini.
    OpenAi,
    /// Messages with `tool_use` and `tool_result` blocks of the Anthropic API.
    Anthropic,
    /// Session transcripts of Claude Code.
    ClaudeCode,
    /// Decision logs, one per line.
    DecisionLog,
    /// Trajectories (`.traj`) of SWE-agent.
    SweAgent,
    /// Event lists of `OpenHands`.
    OpenHands,
    /// OpenTelemetry spans with `GenAI` attributes, as OTLP JSON.
    OtlpJson,
}

impl Format {
    /// Every format, in the order in which the documentation lists them.
    pub const ALL: [Self; 8] = [
        Self::Trace,
        Self::OpenAi,
        Self::Anthropic,
        Self::ClaudeCode,
        Self::DecisionLog,
        Self::SweAgent,
        Self::OpenHands,
        Self::OtlpJson,
    ];

    /// The format of this name, as on the command line.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == name)
    }

    /// The format's name, as on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::ClaudeCode => "claude-code",
            Self::DecisionLog => "decision-log",
            Self::SweAgent => "swe-agent",
            Self::OpenHands => "openhands",
            Self::OtlpJson => "otlp-json",
        }
    }

    pub(crate) fn reader(self) -> Box<dyn Reader> {
        match self {
            Self::Trace => Box::new(Trace),
            // The two mix in recordings, so one reader understands both.
            Self::OpenAi | Self::Anthropic => Box::new(Chat::new()),
            Self::ClaudeCode => Box::new(ClaudeCode::new()),
            Self::DecisionLog => Box::new(DecisionLogs::new()),
            Self::SweAgent => Box::new(SweAgent),
            Self::OpenHands => Box::new(OpenHands::new()),
            Self::OtlpJson => Box::new(Otlp::new()),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
