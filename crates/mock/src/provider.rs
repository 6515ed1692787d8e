//! Whose API a request is meant for: the path says it, and where paths are shared, the credential.

use hyper::HeaderMap;
use hyper::Method;

/// A company's API, with its own shape of errors and headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provider {
    OpenAi,
    Anthropic,
    Gemini,
}

/// A way to ask a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Chat,
    Responses,
    Anthropic,
    Gemini { streamed: bool },
}

/// Where a request leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// A question to the model.
    Ask(Dialect),
    /// The list of models.
    Models(Provider),
    /// Nowhere.
    Unknown(Provider),
}

impl Route {
    /// The route of a request. Prefixes before the known paths are passed over, as a base URL may have one.
    pub(crate) fn of(method: &Method, path: &str, query: Option<&str>, headers: &HeaderMap) -> Self {
        let provider = Provider::of(path, query, headers);
        if method == Method::POST {
            if path.ends_with("/chat/completions") {
                return Self::Ask(Dialect::Chat);
            }
            if path.ends_with("/v1/responses") {
                return Self::Ask(Dialect::Responses);
            }
            if path.ends_with("/v1/messages") {
                return Self::Ask(Dialect::Anthropic);
            }
            if path.contains("/models/") && path.ends_with(":generateContent") {
                return Self::Ask(Dialect::Gemini { streamed: false });
            }
            if path.contains("/models/") && path.ends_with(":streamGenerateContent") {
                return Self::Ask(Dialect::Gemini { streamed: true });
            }
        }
        if method == Method::GET && (path.ends_with("/v1/models") || path.ends_with("/v1beta/models")) {
            return Self::Models(provider);
        }
        Self::Unknown(provider)
    }

    /// Whose shapes the answer has.
    pub(crate) fn provider(self) -> Provider {
        match self {
            Self::Ask(dialect) => dialect.provider(),
            Self::Models(provider) | Self::Unknown(provider) => provider,
        }
    }
}

impl Dialect {
    /// Whose dialect it is.
    pub(crate) fn provider(self) -> Provider {
        match self {
            Self::Chat | Self::Responses => Provider::OpenAi,
            Self::Anthropic => Provider::Anthropic,
            Self::Gemini { .. } => Provider::Gemini,
        }
    }
}

impl Provider {
    fn of(path: &str, query: Option<&str>, headers: &HeaderMap) -> Self {
        let has_key = || query.is_some_and(|query| query.split('&').any(|pair| pair.starts_with("key=")));
        if headers.contains_key("anthropic-version") || headers.contains_key("x-api-key") {
            Self::Anthropic
        } else if headers.contains_key("x-goog-api-key") || has_key() || path.contains("/v1beta/") {
            Self::Gemini
        } else {
            Self::OpenAi
        }
    }

    /// The headers that this provider's answers carry, for the answer with this number.
    pub(crate) fn headers(self, number: u64) -> Vec<(&'static str, String)> {
        let id = format!("req_{number:024x}");
        match self {
            Self::OpenAi => vec![
                ("openai-organization", "mock".into()),
                ("openai-processing-ms", "12".into()),
                ("openai-version", "2020-10-01".into()),
                ("x-request-id", id),
            ],
            Self::Anthropic => {
                vec![
                    ("anthropic-organization-id", "00000000-0000-4000-8000-000000000000".into()),
                    ("request-id", id),
                ]
            }
            Self::Gemini => vec![
                ("vary", "Origin, X-Origin, Referer".into()),
                ("server-timing", "gfet4t7; dur=12".into()),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Dialect, Provider, Route};
    use hyper::{HeaderMap, Method, header::HeaderValue};

    fn route(method: &Method, path: &str, header: Option<&'static str>) -> Route {
        let mut headers = HeaderMap::new();
        if let Some(name) = header {
            headers.insert(name, HeaderValue::from_static("x"));
        }
        Route::of(method, path, None, &headers)
    }

    #[test]
    fn the_path_says_the_dialect_whatever_stands_before_it() {
        let post = |path| route(&Method::POST, path, None);
        assert_eq!(post("/v1/chat/completions"), Route::Ask(Dialect::Chat));
        assert_eq!(post("/openai/v1/chat/completions"), Route::Ask(Dialect::Chat));
        assert_eq!(post("/v1/responses"), Route::Ask(Dialect::Responses));
        assert_eq!(post("/v1/messages"), Route::Ask(Dialect::Anthropic));
        let gemini = post("/v1beta/models/gemini-x:streamGenerateContent");
        assert_eq!(gemini, Route::Ask(Dialect::Gemini { streamed: true }));
        assert_eq!(post("/v1/models/x:generateContent"), Route::Ask(Dialect::Gemini { streamed: false }));
    }

    #[test]
    fn shared_paths_go_by_the_credential() {
        let models = |header| route(&Method::GET, "/v1/models", header);
        assert_eq!(models(None), Route::Models(Provider::OpenAi));
        assert_eq!(models(Some("x-api-key")), Route::Models(Provider::Anthropic));
        assert_eq!(models(Some("x-goog-api-key")), Route::Models(Provider::Gemini));
        let with_key = Route::of(&Method::GET, "/v1/models", Some("a=1&key=2"), &HeaderMap::new());
        assert_eq!(with_key, Route::Models(Provider::Gemini));
    }

    #[test]
    fn other_methods_and_paths_lead_nowhere() {
        assert_eq!(route(&Method::GET, "/v1/messages", None), Route::Unknown(Provider::OpenAi));
        assert_eq!(route(&Method::POST, "/v1beta/x", None), Route::Unknown(Provider::Gemini));
    }
}
