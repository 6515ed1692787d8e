//! Why a log was refused.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

/// One field that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Path of the field, as `meta.trace_id`.
    pub field: String,
    /// What is wrong with it, as "is required".
    pub message: String,
}

impl Violation {
    /// A name in a message is cut at this length: it may be a megabyte of somebody's text.
    const MAX_FIELD: usize = 200;

    pub(crate) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        let (mut field, message) = (field.into(), message.into());
        if field.len() > Self::MAX_FIELD {
            field.truncate((0..=Self::MAX_FIELD).rev().find(|at| field.is_char_boundary(*at)).unwrap_or(0));
            field.push('…');
        }
        Self { field, message }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.message)
    }
}

/// Why a log was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// It cannot be read at all.
    #[error("the log is not JSON: {0}")]
    NotJson(String),
    /// It is longer than a log may be.
    #[error("the log has {bytes} bytes, at most {max} are accepted")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// It speaks a version that is not accepted; whatever else is wrong with it is listed as well.
    #[error("version {version} is not supported, {accepted} are accepted")]
    UnsupportedVersion {
        /// The version that it names.
        version: String,
        /// The versions that are accepted, as `>=1.0.0 <3.0.0`.
        accepted: String,
        /// Everything that is wrong, the version first.
        violations: Vec<Violation>,
    },
    /// Some of its fields are not as they must be.
    #[error("the log has {} violations, the first: {}", .0.len(), first(.0))]
    Invalid(Vec<Violation>),
}

impl Rejection {
    /// More violations than this are not listed; a list of a hundred thousand helps nobody.
    pub const MAX_VIOLATIONS: usize = 1_000;

    /// The HTTP status that says so.
    pub const fn status(&self) -> u16 {
        match self {
            Self::NotJson(_) => 400,
            Self::TooLarge { .. } => 413,
            Self::UnsupportedVersion { .. } | Self::Invalid(_) => 422,
        }
    }

    /// The error's name on the wire.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotJson(_) => "not_json",
            Self::TooLarge { .. } => "too_large",
            Self::UnsupportedVersion { .. } => "unsupported_version",
            Self::Invalid(_) => "schema_violation",
        }
    }

    /// The fields that are not as they must be.
    pub fn violations(&self) -> &[Violation] {
        match self {
            Self::NotJson(_) | Self::TooLarge { .. } => &[],
            Self::UnsupportedVersion { violations, .. } | Self::Invalid(violations) => violations,
        }
    }

    /// The answer to the one who sent the log.
    ///
    /// ```
    /// use loopbreaker_record::DecisionLog;
    /// let answer = DecisionLog::parse(b"[]").expect_err("a list is no log").answer();
    /// assert_eq!(answer["error"], "schema_violation");
    /// assert_eq!(answer["violations"][0]["message"], "must be an object");
    /// ```
    pub fn answer(&self) -> Value {
        match self {
            Self::NotJson(_) | Self::TooLarge { .. } => {
                json!({ "error": self.code(), "message": self.to_string() })
            }
            Self::UnsupportedVersion { accepted, violations, .. } => json!({
                "error": self.code(),
                "message": self.to_string(),
                "accepted": accepted,
                "violations": violations,
            }),
            Self::Invalid(violations) => json!({ "error": self.code(), "violations": violations }),
        }
    }
}

fn first(violations: &[Violation]) -> String {
    violations.first().map(ToString::to_string).unwrap_or_default()
}
