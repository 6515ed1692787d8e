//! Errors in each provider's own shape.

use bytes::Bytes;

use crate::json::{Json, object};
use crate::provider::Provider;

/// The error body for a status; without a message, the one this provider is known for.
pub(crate) fn body(provider: Provider, status: u16, message: Option<&str>, number: u64) -> Bytes {
    match provider {
        Provider::OpenAi => openai(status, message).pretty().into(),
        Provider::Anthropic => anthropic(status, message, number).compact().into(),
        Provider::Gemini => gemini(status, message).pretty().into(),
    }
}

fn openai(status: u16, message: Option<&str>) -> Json {
    let (usual, kind, code) = match status {
        401 => ("Incorrect API key provided.", "invalid_request_error", Some("invalid_api_key")),
        429 => (
            "Rate limit reached for requests. Please try again later.",
            "requests",
            Some("rate_limit_exceeded"),
        ),
        503 => ("The engine is currently overloaded, please try again later", "server_error", None),
        500.. => {
            ("The server had an error while processing your request. Sorry about that!", "server_error", None)
        }
        _ => ("Your request was malformed.", "invalid_request_error", None),
    };
    let message = message.unwrap_or(usual);
    object! { "error": object! { "message": message, "type": kind, "param": Json::Null, "code": code } }
}

fn anthropic(status: u16, message: Option<&str>, number: u64) -> Json {
    let (usual, kind) = match status {
        401 => ("invalid x-api-key", "authentication_error"),
        403 => ("Your API key does not have permission to use this resource.", "permission_error"),
        404 => ("Not found", "not_found_error"),
        413 => ("Request exceeds the maximum size", "request_too_large"),
        429 => ("This request would exceed your rate limit. Please try again later.", "rate_limit_error"),
        529 => ("Overloaded", "overloaded_error"),
        500.. => ("Internal server error", "api_error"),
        _ => ("Your request was malformed.", "invalid_request_error"),
    };
    object! {
        "type": "error",
        "error": object! { "type": kind, "message": message.unwrap_or(usual) },
        "request_id": format!("req_{number:024x}"),
    }
}

fn gemini(status: u16, message: Option<&str>) -> Json {
    let (usual, name) = match status {
        401 => ("Request had invalid authentication credentials.", "UNAUTHENTICATED"),
        403 => ("The caller does not have permission.", "PERMISSION_DENIED"),
        404 => ("Requested entity was not found.", "NOT_FOUND"),
        429 => ("Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED"),
        503 => ("The model is overloaded. Please try again later.", "UNAVAILABLE"),
        500.. => ("An internal error has occurred. Please retry.", "INTERNAL"),
        _ => ("Request contains an invalid argument.", "INVALID_ARGUMENT"),
    };
    let message = message.unwrap_or(usual);
    object! { "error": object! { "code": u64::from(status), "message": message, "status": name } }
}

#[cfg(test)]
mod tests {
    use super::body;
    use crate::provider::Provider;
    use serde_json::{Value, json};

    fn error(provider: Provider, status: u16) -> Value {
        serde_json::from_slice(&body(provider, status, Some("m"), 7)).unwrap()
    }

    #[test]
    fn each_provider_has_its_own_shape() {
        assert_eq!(
            error(Provider::OpenAi, 429),
            json!({"error": {"message": "m", "type": "requests", "param": null, "code": "rate_limit_exceeded"}})
        );
        assert_eq!(
            error(Provider::Anthropic, 529),
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "m"}, "request_id": "req_000000000000000000000007"})
        );
        assert_eq!(
            error(Provider::Gemini, 503),
            json!({"error": {"code": 503, "message": "m", "status": "UNAVAILABLE"}})
        );
    }
}
