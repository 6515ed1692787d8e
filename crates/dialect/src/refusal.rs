//! What a client gets that is refused: the error object of its own dialect.

use serde_json::Value;

use crate::Dialect;

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The agent goes round in circles.
    LoopDetected,
    /// A rule on requests, tokens or money says no.
    BudgetExceeded,
    /// A person said no.
    RejectedByOperator,
    /// The tenant is switched off.
    KillSwitch,
    /// The provider cannot be reached, or has failed too often.
    UpstreamUnavailable,
    /// The body is larger than the limit.
    TooLarge,
    /// The session is paused, and was held as long as the client may wait.
    Paused,
}

impl Refusal {
    /// Every refusal.
    pub const ALL: [Self; 7] = [
        Self::LoopDetected,
        Self::BudgetExceeded,
        Self::RejectedByOperator,
        Self::KillSwitch,
        Self::UpstreamUnavailable,
        Self::TooLarge,
        Self::Paused,
    ];

    /// The word for it in every error object.
    pub const fn code(self) -> &'static str {
        match self {
            Self::LoopDetected => "loop_detected",
            Self::BudgetExceeded => "budget_exceeded",
            Self::RejectedByOperator => "rejected_by_operator",
            Self::KillSwitch => "kill_switch",
            Self::UpstreamUnavailable => "upstream_unavailable",
            Self::TooLarge => "request_too_large",
            Self::Paused => "paused",
        }
    }
}

/// The JSON body of a refusal. Where the dialect is not known, it has `OpenAI`'s shape.
///
/// ```
/// use loopbreaker_dialect::{Dialect, Refusal, refusal};
/// let body = refusal(Some(Dialect::Anthropic), Refusal::LoopDetected, 429, "the same call 5 times");
/// assert_eq!(
///     body,
///     r#"{"type":"error","error":{"type":"rate_limit_error","message":"loop_detected: the same call 5 times"}}"#
/// );
/// ```
pub fn refusal(dialect: Option<Dialect>, refusal: Refusal, status: u16, message: &str) -> String {
    let code = refusal.code();
    match dialect {
        None | Some(Dialect::Chat | Dialect::Responses) => {
            let message = Value::from(message);
            format!(r#"{{"error":{{"message":{message},"type":"{code}","code":"{code}","param":null}}}}"#)
        }
        Some(Dialect::Anthropic) => {
            let message = Value::from(format!("{code}: {message}"));
            let kind = anthropic_type(status);
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":{message}}}}}"#)
        }
        Some(Dialect::Gemini) => {
            let message = Value::from(format!("{code}: {message}"));
            let name = gemini_status(status);
            let details = format!(
                r#"{{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"{code}","domain":"loopbreaker"}}"#
            );
            format!(
                r#"{{"error":{{"code":{status},"status":"{name}","message":{message},"details":[{details}]}}}}"#
            )
        }
    }
}

const fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

const fn gemini_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        500.. => "UNAVAILABLE",
        _ => "INVALID_ARGUMENT",
    }
}
