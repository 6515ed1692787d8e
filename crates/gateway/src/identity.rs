//! Who calls: tenant, agent and the name of a session, from what clients already send.

use std::sync::Arc;

use hyper::header::{AUTHORIZATION, HeaderMap, USER_AGENT};
use loopbreaker_dialect::Facts;
use loopbreaker_telemetry::TenantClass;

use crate::secret::Secret;

/// Who pays: the boundary of all state.
#[derive(Debug, Clone)]
pub(crate) struct Tenant {
    pub(crate) name: Arc<str>,
    pub(crate) class: TenantClass,
    /// Keyed hash of the name: every other key of this tenant is made from it.
    pub(crate) key: u128,
}

impl Tenant {
    /// The tenant of a request. `header` is the name of the header that is trusted, if any is.
    pub(crate) fn of(headers: &HeaderMap, query: &str, header: Option<&str>, secret: &Secret) -> Self {
        let named = header.and_then(|name| text(headers, name)).filter(|name| is_plausible(name));
        let (name, class): (Arc<str>, _) = match (named, credential(headers, query)) {
            (Some(name), _) => (name.into(), TenantClass::Named),
            (None, Some(credential)) => {
                let hash = secret.hash("credential", &[credential.as_bytes()]);
                (format!("key_{:016x}", (hash >> 64) as u64).into(), TenantClass::Key)
            }
            (None, None) => ("anonymous".into(), TenantClass::Anonymous),
        };
        // A tenant that calls itself `anonymous` or `key_…` is not the one that is called so by us.
        let key = secret.hash("tenant", &[class.as_str().as_bytes(), name.as_bytes()]);
        Self { name, class, key }
    }
}

/// The agent's name: its own header, else the client's name.
pub(crate) fn agent(headers: &HeaderMap) -> Arc<str> {
    let named = text(headers, "x-agent-id").filter(|name| is_plausible(name));
    let client = || {
        let client = headers.get(USER_AGENT)?.to_str().ok()?;
        // `OpenAI/Python 2.54.0`, `claude-cli/1.0.83 (external, cli)`: the words before the version.
        let end = client.find([' ', '(']).unwrap_or(client.len());
        let product = &client[..end];
        let name = match product.rsplit_once('/') {
            Some((name, version)) if version.starts_with(|first: char| first.is_ascii_digit()) => name,
            _ => product,
        };
        (!name.is_empty()).then_some(name)
    };
    named.or_else(client).unwrap_or("unknown").chars().take(MAX_NAME).collect::<String>().into()
}

/// The session that the client names, if it does: its own header first, then those of other gateways and of agents,
/// then the body's fields.
pub(crate) fn session<'a>(headers: &'a HeaderMap, facts: Option<&'a Facts>) -> Option<&'a str> {
    let explicit = EXPLICIT.iter().find_map(|name| text(headers, name).filter(|id| is_plausible(id)));
    let vendor = || {
        let mut all = headers.iter();
        all.find_map(|(name, value)| {
            let name = name.as_str();
            let of_vendor = name.starts_with("x-") && name.ends_with("-session-id");
            of_vendor.then(|| value.to_str().ok()).flatten().filter(|id| is_plausible(id))
        })
    };
    let agents = || AGENTS.iter().find_map(|name| text(headers, name).filter(|id| is_plausible(id)));
    let body = || facts.and_then(|facts| facts.session.as_deref()).filter(|id| is_plausible(id));
    explicit.or_else(vendor).or_else(agents).or_else(body)
}

/// What the request carries to be let in by the provider.
fn credential<'a>(headers: &'a HeaderMap, query: &'a str) -> Option<&'a str> {
    let headers = [AUTHORIZATION.as_str(), "x-api-key", "x-goog-api-key", "api-key"]
        .into_iter()
        .find_map(|name| text(headers, name).filter(|value| !value.is_empty()));
    headers
        .or_else(|| query.split('&').find_map(|pair| pair.strip_prefix("key=")).filter(|key| !key.is_empty()))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// Whether a value can be a name: neither empty nor a novel, and none of the words that stand for no name at all.
fn is_plausible(name: &str) -> bool {
    let nothing = ["null", "none", "undefined", "unknown", "-"];
    !name.is_empty() && name.len() <= MAX_NAME && !nothing.iter().any(|word| name.eq_ignore_ascii_case(word))
}

const MAX_NAME: usize = 200;

/// Headers of our own and of other gateways.
const EXPLICIT: [&str; 7] = [
    "x-session-id",
    "x-litellm-session-id",
    "x-litellm-trace-id",
    "helicone-session-id",
    "x-bf-session-id",
    "x-portkey-trace-id",
    "agent-session-id",
];

/// Headers of coding agents that are not called `x-<vendor>-session-id`.
const AGENTS: [&str; 9] = [
    "x-opencode-session",
    "session-id",
    "thread-id",
    "session_id",
    "thread_id",
    "conversation_id",
    "x-codex-parent-thread-id",
    "x-session-affinity",
    "x-grok-conv-id",
];

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderMap, HeaderName, HeaderValue};

    use super::{Secret, Tenant, TenantClass, agent, session};

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    fn tenant(pairs: &[(&'static str, &'static str)], query: &str, trusted: Option<&str>) -> Tenant {
        // One secret for all, so that names can be compared.
        thread_local!(static SECRET: Secret = Secret::random().unwrap());
        SECRET.with(|secret| Tenant::of(&headers(pairs), query, trusted, secret))
    }

    #[test]
    fn a_trusted_header_names_the_tenant() {
        let acme = tenant(&[("x-tenant-id", "acme"), ("authorization", "Bearer k")], "", Some("x-tenant-id"));
        assert_eq!((&*acme.name, acme.class), ("acme", TenantClass::Named));
        let untrusted = tenant(&[("x-tenant-id", "acme"), ("authorization", "Bearer k")], "", None);
        assert_eq!(untrusted.class, TenantClass::Key);
    }

    #[test]
    fn the_credential_is_never_part_of_the_name() {
        let one = tenant(&[("x-api-key", "sk-secret")], "", None);
        assert!(one.name.starts_with("key_") && !one.name.contains("secret"));
        assert_eq!(one.key, tenant(&[("x-api-key", "sk-secret")], "", None).key);
        assert_ne!(one.key, tenant(&[("x-api-key", "sk-secreu")], "", None).key);
        assert_ne!(tenant(&[], "key=a&x=1", None).key, tenant(&[], "key=b&x=1", None).key);
    }

    #[test]
    fn nobody_can_call_themselves_by_our_own_names() {
        let nobody = tenant(&[], "", None);
        assert_eq!(&*nobody.name, "anonymous");
        let pretender = tenant(&[("x-tenant-id", "anonymous")], "", Some("x-tenant-id"));
        assert_ne!(nobody.key, pretender.key);
    }

    #[test]
    fn keys_whose_crc32_collides_are_two_tenants() {
        // Both have the CRC-32 0x4ddb0c25.
        assert_ne!(
            tenant(&[("x-tenant-id", "plumless")], "", Some("x-tenant-id")).key,
            tenant(&[("x-tenant-id", "buckeroo")], "", Some("x-tenant-id")).key
        );
    }

    #[test]
    fn an_agent_is_known_by_its_header_or_its_client() {
        assert_eq!(&*agent(&headers(&[("x-agent-id", "planner"), ("user-agent", "x/1")])), "planner");
        assert_eq!(&*agent(&headers(&[("user-agent", "claude-cli/1.0.83 (external, cli)")])), "claude-cli");
        assert_eq!(&*agent(&headers(&[("user-agent", "OpenAI/Python 2.54.0")])), "OpenAI/Python");
        assert_eq!(&*agent(&headers(&[])), "unknown");
    }

    #[test]
    fn our_own_session_header_comes_first() {
        let all = headers(&[
            ("x-claude-code-session-id", "c"),
            ("x-litellm-session-id", "l"),
            ("x-session-id", "s"),
        ]);
        assert_eq!(session(&all, None), Some("s"));
        assert_eq!(session(&headers(&[("x-acme-session-id", "a")]), None), Some("a"));
        assert_eq!(session(&headers(&[("thread_id", "t")]), None), Some("t"));
    }

    #[test]
    fn a_missing_name_is_never_a_name() {
        for value in ["", "null", "undefined", "None"] {
            assert_eq!(session(&headers(&[("x-session-id", value)]), None), None, "{value:?}");
        }
    }
}
