//! Which provider a request is for, and in which dialect it speaks: by its path, on shared paths by its credential.

use std::borrow::Cow;

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName};
use loopbreaker_config::{BaseUrl, Dialect as Provider, Route, Upstreams};
use loopbreaker_dialect::Dialect;

use crate::headers::{ANTHROPIC_VERSION, X_API_KEY, X_GOOG_API_KEY};

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    /// The dialect of an inspected path; `None`: passed through.
    pub(crate) dialect: Option<Dialect>,
    /// Whose credential it carries, and so whose host it may go to.
    pub(crate) provider: Provider,
    /// Index of the route in the config; `None`: the provider's own base URL.
    pub(crate) route: Option<usize>,
    /// Path and query as the upstream knows them, without its base path.
    pub(crate) path_and_query: String,
}

/// Finds the destination of a request; `None` when the path is none that a provider serves.
pub(crate) fn destination(
    path_and_query: &str,
    headers: &HeaderMap,
    upstreams: &Upstreams,
) -> Option<Destination> {
    let routed =
        upstreams.routes.iter().enumerate().filter(|(_, route)| path_and_query.starts_with(&*route.prefix));
    let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
    if let Some((index, route)) = routed.max_by_key(|(_, route)| route.prefix.len()) {
        let destination = by_prefix(index, route, path_and_query);
        return Some(destination).filter(|_| !leaves(&route.base_url, path));
    }
    let dialect = dialect(path);
    let provider = provider(path, query, headers, dialect)?;
    let base = match provider {
        Provider::OpenAi => &upstreams.openai,
        Provider::Anthropic => &upstreams.anthropic,
        Provider::Gemini => &upstreams.gemini,
    };
    if leaves(base, path) {
        return None;
    }
    let path_and_query = if provider == Provider::Gemini || !has_key(query) {
        path_and_query.to_owned()
    } else {
        // It is a credential, too, and goes to nobody else.
        let kept: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with("key=")).collect();
        if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
    };
    Some(Destination { dialect, provider, route: None, path_and_query })
}

/// The dialect of a path, wherever it is sent. A path that is only spelled in another way is served like any other, so
/// it must not escape.
pub(crate) fn dialect(path: &str) -> Option<Dialect> {
    let path = &*plain(path);
    if is_gemini_call(path) {
        return Some(Dialect::Gemini);
    }
    let known = [
        ("/chat/completions", Dialect::Chat),
        ("/v1/responses", Dialect::Responses),
        ("/v1/messages", Dialect::Anthropic),
    ];
    known.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, dialect)| dialect)
}

/// Whether an answer to this path is a stream although its body does not say so.
pub(crate) fn is_streamed_by_path(path: &str) -> bool {
    plain(path).ends_with(":streamGenerateContent")
}

/// The model that a Gemini path names.
pub(crate) fn model_in_path(path: &str) -> Option<String> {
    let path = plain(path);
    if !is_gemini_call(&path) {
        return None;
    }
    path.rsplit('/').next()?.split(':').next().map(str::to_owned)
}

/// Whether a path might lead out of the folder that a base URL names, to what else its host serves. A base URL without
/// a folder is all of its host, so there every path keeps its bytes.
fn leaves(base: &BaseUrl, path: &str) -> bool {
    if base.path().is_empty() || !path.contains(['.', '%']) {
        return false;
    }
    let plain = path.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "\\");
    // Some servers take `..;x` for `..`, too.
    plain.split(['/', '\\']).any(|part| part.split(';').next() == Some(".."))
}

fn by_prefix(index: usize, route: &Route, path_and_query: &str) -> Destination {
    let rest = path_and_query[route.prefix.len()..].trim_start_matches('/');
    let path_and_query = format!("/{rest}");
    let path = path_and_query.split('?').next().unwrap_or_default();
    // A route's base URL often ends in `/v1` or `/openai`, so only the end of the path tells the dialect.
    let ends = [
        ("chat/completions", Dialect::Chat),
        ("responses", Dialect::Responses),
        ("messages", Dialect::Anthropic),
    ];
    let by_end = ends.into_iter().find(|(end, _)| path.trim_start_matches('/').ends_with(end));
    let dialect = dialect(path).or(by_end.map(|(_, dialect)| dialect));
    let dialect = dialect.filter(|dialect| speaks(route.dialect, *dialect));
    Destination { dialect, provider: route.dialect, route: Some(index), path_and_query }
}

fn provider(path: &str, query: &str, headers: &HeaderMap, dialect: Option<Dialect>) -> Option<Provider> {
    if path.starts_with("/v1beta/") || path.starts_with("/upload/") || is_gemini_call(path) {
        return Some(Provider::Gemini);
    }
    if !path.starts_with("/v1/") && path != "/v1" {
        return None;
    }
    // A path that only one provider has is for that one, where its credential is there, whatever else is: a header too
    // many must not carry a credential to another host.
    let has = |name: HeaderName| headers.contains_key(name);
    match dialect {
        Some(Dialect::Chat | Dialect::Responses) if has(AUTHORIZATION) => return Some(Provider::OpenAi),
        Some(Dialect::Anthropic) if has(AUTHORIZATION) || has(X_API_KEY) => {
            return Some(Provider::Anthropic);
        }
        _ => {}
    }
    if has(X_GOOG_API_KEY) || has_key(query) {
        return Some(Provider::Gemini);
    }
    if has(ANTHROPIC_VERSION) || has(X_API_KEY) {
        return Some(Provider::Anthropic);
    }
    if path == "/v1/messages" || path.starts_with("/v1/messages/") {
        return Some(Provider::Anthropic);
    }
    Some(Provider::OpenAi)
}

/// Whether a query has Gemini's credential.
pub(crate) fn has_key(query: &str) -> bool {
    !query.is_empty() && query.split('&').any(|pair| pair.starts_with("key="))
}

fn speaks(provider: Provider, dialect: Dialect) -> bool {
    match dialect {
        Dialect::Chat | Dialect::Responses => provider == Provider::OpenAi,
        Dialect::Anthropic => provider == Provider::Anthropic,
        Dialect::Gemini => provider == Provider::Gemini,
    }
}

/// A path without a slash at its end and without escapes that nobody needs.
fn plain(path: &str) -> Cow<'_, str> {
    let path = path.trim_end_matches('/');
    if !path.contains('%') {
        return path.into();
    }
    let mut pieces = path.split('%');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let escaped = piece.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let Some(byte) = escaped.filter(|byte| byte.is_ascii_alphanumeric() || b"-._~:".contains(byte)) {
            plain.push(byte.into());
            plain.push_str(&piece[2..]);
        } else {
            plain.push('%');
            plain.push_str(piece);
        }
    }
    plain.into()
}

/// The path that many servers take this one for, where that is another: without escapes that nobody needs, empty and
/// dotted parts, and a slash at its end.
pub(crate) fn other_spelling(path: &str) -> Option<String> {
    let ends_in_slash = path.len() > 1 && path.ends_with('/');
    let bytes = path.as_bytes();
    let is_odd = |pair: &[u8]| matches!(pair, [b'/', b'/' | b'.']);
    if !ends_in_slash && !bytes.contains(&b'%') && !bytes.windows(2).any(is_odd) {
        return None;
    }
    let plain = plain(path);
    let mut parts: Vec<&str> = Vec::new();
    for part in plain.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    Some(format!("/{}", parts.join("/")))
}

fn is_gemini_call(path: &str) -> bool {
    let versioned = path.starts_with("/v1beta/") || path.starts_with("/v1/") || path.starts_with("/v1alpha/");
    versioned && (path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent"))
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderMap, HeaderName, HeaderValue};
    use loopbreaker_config::{Config, Dialect as Provider, Upstreams};
    use loopbreaker_dialect::Dialect;

    use super::{Destination, destination, is_streamed_by_path, model_in_path, other_spelling};

    fn headers(names: &[&'static str]) -> HeaderMap {
        let pair = |name: &&'static str| (HeaderName::from_static(name), HeaderValue::from_static("x"));
        names.iter().map(pair).collect()
    }

    fn to(path: &str, names: &[&'static str]) -> Option<(Provider, Option<Dialect>)> {
        destination(path, &headers(names), &Upstreams::default()).map(|to| (to.provider, to.dialect))
    }

    #[test]
    fn each_dialect_has_its_path() {
        let bearer = &["authorization"];
        assert_eq!(to("/v1/chat/completions", bearer), Some((Provider::OpenAi, Some(Dialect::Chat))));
        assert_eq!(to("/v1/responses", bearer), Some((Provider::OpenAi, Some(Dialect::Responses))));
        assert_eq!(to("/v1/messages", &["x-api-key"]), Some((Provider::Anthropic, Some(Dialect::Anthropic))));
        let gemini = Some((Provider::Gemini, Some(Dialect::Gemini)));
        assert_eq!(to("/v1beta/models/gemini-2.5-pro:generateContent", &[]), gemini);
        assert_eq!(to("/v1/models/g:streamGenerateContent?alt=sse", bearer), gemini);
    }

    #[test]
    fn a_path_has_another_spelling_only_where_servers_take_it_for_another() {
        for path in ["/", "/v1", "/v1/chat/completions", "/v1beta/models/gemini-2.5-pro:generateContent"] {
            assert_eq!(other_spelling(path), None, "{path}");
        }
        for path in [
            "/v1//models", "/v1/models/", "/v1/./models", "/v1/x/%2E./models", "/v1/mod%65ls",
            "/../v1/models",
        ] {
            assert_eq!(other_spelling(path).as_deref(), Some("/v1/models"), "{path}");
        }
    }

    #[test]
    fn a_path_that_is_spelled_in_another_way_speaks_the_same_dialect() {
        for path in ["/v1/chat/%63ompletions", "/v1/chat/completions/", "/v1/ch%61t/completions//"] {
            assert_eq!(to(path, &["authorization"]), Some((Provider::OpenAi, Some(Dialect::Chat))), "{path}");
        }
        let path = "/v1beta/models/gemini-2%2E5-pro%3AstreamGenerateContent";
        assert_eq!(to(path, &[]), Some((Provider::Gemini, Some(Dialect::Gemini))));
        assert_eq!(model_in_path(path).as_deref(), Some("gemini-2.5-pro"));
        assert!(is_streamed_by_path(path));
        // What is part of a name stays part of it.
        assert_eq!(to("/v1/chat%2Fcompletions", &["authorization"]), Some((Provider::OpenAi, None)));
        assert_eq!(to("/v1/chat/completions%", &["authorization"]), Some((Provider::OpenAi, None)));
    }

    #[test]
    fn a_shared_path_goes_where_its_credential_belongs() {
        assert_eq!(to("/v1/models", &["authorization"]), Some((Provider::OpenAi, None)));
        assert_eq!(
            to("/v1/models", &["anthropic-version", "authorization"]),
            Some((Provider::Anthropic, None))
        );
        assert_eq!(to("/v1/models", &["x-api-key"]), Some((Provider::Anthropic, None)));
        assert_eq!(to("/v1/files?key=abc", &[]), Some((Provider::Gemini, None)));
        assert_eq!(to("/upload/v1beta/files", &[]), Some((Provider::Gemini, None)));
    }

    #[test]
    fn a_path_in_one_dialect_with_only_the_credential_of_another_goes_to_its_owner_and_is_read_all_the_same()
    {
        assert_eq!(
            to("/v1/chat/completions", &["x-api-key"]),
            Some((Provider::Anthropic, Some(Dialect::Chat)))
        );
        assert_eq!(
            to("/v1/messages", &["x-goog-api-key"]),
            Some((Provider::Gemini, Some(Dialect::Anthropic)))
        );
    }

    #[test]
    fn a_header_too_many_carries_no_credential_to_another_host() {
        let chat = Some((Provider::OpenAi, Some(Dialect::Chat)));
        for more in ["x-api-key", "anthropic-version", "x-goog-api-key"] {
            assert_eq!(to("/v1/chat/completions", &["authorization", more]), chat, "{more}");
        }
        assert_eq!(to("/v1/chat/completions?key=1", &["authorization"]), chat);
        let sent = |path: &str| {
            destination(path, &headers(&["authorization"]), &Upstreams::default()).unwrap().path_and_query
        };
        assert_eq!(sent("/v1/chat/completions?a=b&key=1&c=d"), "/v1/chat/completions?a=b&c=d");
        assert_eq!(sent("/v1/chat/completions?key=1"), "/v1/chat/completions");
        let messages = Some((Provider::Anthropic, Some(Dialect::Anthropic)));
        assert_eq!(to("/v1/messages", &["x-api-key", "x-goog-api-key"]), messages);
    }

    #[test]
    fn openai_chat_at_geminis_host_stays_there() {
        let to = to("/v1beta/openai/chat/completions", &["authorization"]);
        assert_eq!(to, Some((Provider::Gemini, Some(Dialect::Chat))));
    }

    #[test]
    fn a_path_that_no_provider_serves_goes_nowhere() {
        for path in ["/", "/favicon.ico", "/v2/x", "/v1x"] {
            assert_eq!(to(path, &["authorization"]), None, "{path}");
        }
    }

    #[test]
    fn the_longest_prefix_wins_and_is_taken_off() {
        let text = "upstreams:\n  routes:\n    - { prefix: /groq/, base_url: \"https://api.groq.com/openai\", dialect: openai }\n    - { prefix: /groq/eu/, base_url: \"https://eu.groq.com\", dialect: openai }\n";
        let upstreams = Config::parse(text).unwrap().upstreams;
        let found =
            destination("/groq/v1/chat/completions?a=b", &headers(&["x-api-key"]), &upstreams).unwrap();
        let expected = Destination {
            dialect: Some(Dialect::Chat),
            provider: Provider::OpenAi,
            route: Some(0),
            path_and_query: "/v1/chat/completions?a=b".to_owned(),
        };
        assert_eq!(found, expected);
        assert_eq!(destination("/groq/eu/x", &headers(&[]), &upstreams).unwrap().route, Some(1));
    }

    #[test]
    fn nobody_climbs_out_of_the_folder_of_a_base_url() {
        let text = "upstreams:\n  openai: \"https://h.example/team-a\"\n  routes:\n    - { prefix: /groq/, base_url: \"https://api.groq.com/openai\", dialect: openai }\n";
        let upstreams = Config::parse(text).unwrap().upstreams;
        let goes = |path: &str| destination(path, &headers(&[]), &upstreams).is_some();
        for out in ["..", "x/../../y", "%2e%2E/y", ".%2e", "a/..%2fy", "a%2F..%5Cy", "..\\y", "..;a=b/y"] {
            assert!(!goes(&format!("/groq/{out}")), "{out}");
            assert!(!goes(&format!("/v1/{out}?a=b")), "{out}");
        }
        for inside in ["v1/models", "files/a..b", "files/...", "v1/a%20b", "v1/models?x=../y"] {
            assert!(goes(&format!("/groq/{inside}")) && goes(&format!("/v1/{inside}")), "{inside}");
        }
        let usual = destination("/v1/x/../y", &headers(&[]), &Upstreams::default());
        assert_eq!(usual.unwrap().path_and_query, "/v1/x/../y", "a whole host has no fence");
    }

    #[test]
    fn gemini_paths_name_model_and_stream() {
        assert_eq!(
            model_in_path("/v1beta/models/gemini-2.5-pro:generateContent").as_deref(),
            Some("gemini-2.5-pro")
        );
        assert_eq!(model_in_path("/v1/chat/completions"), None);
        assert!(is_streamed_by_path("/v1beta/models/g:streamGenerateContent"));
    }
}
