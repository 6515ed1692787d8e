//! Who calls: tenant, agent and the name of a session, from what clients already send.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::header::HeaderMap;
use loopbreaker_config::Dialect as Provider;
use loopbreaker_dialect::Facts;
use loopbreaker_telemetry::TenantClass;
use twox_hash::XxHash3_128;

use crate::secret::Secret;
use crate::sessions::RunName;
use crate::transcripts::Hashed;

/// Who pays: the boundary of all state.
#[derive(Debug, Clone)]
pub(crate) struct Tenant {
    pub(crate) name: Arc<str>,
    pub(crate) class: TenantClass,
    /// Keyed hash of the name: every other key of this tenant is made from it.
    pub(crate) key: u128,
    /// Hash of the name without a key, by which operators and other processes know it.
    pub(crate) tag: u64,
}

/// What a request's headers say about who sent it, gathered in one pass.
#[derive(Debug, Default)]
pub(crate) struct Caller<'r> {
    tenant: Option<&'r [u8]>,
    agent: Option<&'r str>,
    client: Option<&'r str>,
    credential: Option<(u8, &'r str)>,
    session: Option<(u8, &'r str)>,
}

impl<'r> Caller<'r> {
    /// Who sent a request to this provider. `tenant_header` is the name of the header that is trusted, if any is.
    pub(crate) fn of(
        headers: &'r HeaderMap,
        query: &'r str,
        tenant_header: Option<&str>,
        provider: Provider,
    ) -> Self {
        let mut caller = Self::default();
        for (name, value) in headers {
            let name = name.as_str();
            let kind = kind_of(name);
            let is_tenant = tenant_header == Some(name);
            if matches!(kind, Kind::Other) && !is_tenant {
                continue;
            }
            let value = value.as_bytes().trim_ascii();
            if is_tenant && is_name(value) {
                caller.tenant.get_or_insert(value);
            }
            let Ok(value) = std::str::from_utf8(value) else { continue };
            match kind {
                Kind::Agent if is_plausible(value) => caller.agent = Some(value),
                Kind::Client => caller.client = Some(value),
                Kind::Credential(credential) if !value.is_empty() => {
                    let secret = if credential == Credential::Authorization { token(value) } else { value };
                    first(&mut caller.credential, credential.rank(provider), secret);
                }
                Kind::Session(rank) if is_plausible(value) => first(&mut caller.session, rank, value),
                _ => {}
            }
        }
        if !query.is_empty()
            && let Some(key) =
                query.split('&').find_map(|pair| pair.strip_prefix("key=")).filter(|key| !key.is_empty())
        {
            first(&mut caller.credential, Credential::Query.rank(provider), key);
        }
        caller
    }

    /// The agent's name: its own header, else the client's name.
    pub(crate) fn agent(&self) -> &'r str {
        let name = self.agent.or_else(|| self.client.map(product)).unwrap_or_default();
        match name.len() {
            0 => "unknown",
            1..=MAX_NAME => name,
            _ => {
                let end = (0..=MAX_NAME).rev().find(|at| name.is_char_boundary(*at)).unwrap_or_default();
                &name[..end]
            }
        }
    }

    /// The session that the client names, if it does: its own header first, then those of other gateways and of
    /// agents, then the body's fields.
    pub(crate) fn session<'a>(&self, facts: &'a Facts) -> Option<&'a str>
    where
        'r: 'a,
    {
        let body = || facts.session.as_deref().filter(|id| is_plausible(id));
        // Agents that make a key for each conversation make a UUID; any other name is that of many conversations that
        // begin alike.
        let key = || facts.prompt_cache_key.as_deref().filter(|key| is_uuid(key));
        self.session.map(|(_, id)| id).or_else(body).or_else(key)
    }
}

/// The tenants that were seen lately, so that nobody's key is hashed again and again.
#[derive(Debug)]
pub(crate) struct Tenants {
    secret: Secret,
    seed: u64,
    known: Mutex<HashMap<u128, Tenant, BuildHasherDefault<Hashed>>>,
}

impl Tenants {
    /// More than this are hashed anew.
    const MAX_KNOWN: usize = 10_000;

    /// Tenants whose keys are hashed with this secret.
    pub(crate) fn new(secret: Secret) -> Self {
        let seed = secret.hash("tenants", &[]) as u64;
        Self { secret, seed, known: Mutex::default() }
    }

    /// Forgets all of them, since the secret is another.
    pub(crate) fn forget(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The tenant of a request.
    pub(crate) fn of(&self, caller: &Caller<'_>) -> Tenant {
        let (class, text) = match (caller.tenant, caller.credential) {
            (Some(name), _) => (TenantClass::Named, name),
            (None, Some((_, credential))) => (TenantClass::Key, credential.as_bytes()),
            (None, None) => (TenantClass::Anonymous, &b""[..]),
        };
        // A tenant that calls itself `anonymous` or `key_…` is not the one that is called so by us.
        let memo = XxHash3_128::oneshot_with_seed(self.seed ^ class as u64, text);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tenant) = known.get(&memo) {
            return tenant.clone();
        }
        let tenant = self.hashed(class, text);
        if known.len() >= Self::MAX_KNOWN {
            known.clear();
        }
        known.insert(memo, tenant.clone());
        tenant
    }

    fn hashed(&self, class: TenantClass, text: &[u8]) -> Tenant {
        let short = |kind: &str| (self.secret.hash(kind, &[text]) >> 64) as u64;
        let name: Arc<str> = match class {
            TenantClass::Named => match std::str::from_utf8(text) {
                Ok(name) if name.len() <= MAX_NAME => name.into(),
                // Whoever is named in a way that cannot be shown is somebody of their own all the same.
                _ => format!("tenant_{:016x}", short("tenant's name")).into(),
            },
            TenantClass::Key => format!("key_{:016x}", short("credential")).into(),
            TenantClass::Anonymous => "anonymous".into(),
        };
        let key = self.secret.hash("tenant", &[class.as_str().as_bytes(), name.as_bytes()]);
        let tag = RunName::tag(&name);
        Tenant { name, class, key, tag }
    }
}

/// What a header tells, and which of several that tell the same comes first.
enum Kind {
    Agent,
    Client,
    Credential(Credential),
    Session(u8),
    Other,
}

/// Where a credential stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Credential {
    Authorization,
    Anthropic,
    Gemini,
    Azure,
    Query,
}

impl Credential {
    /// Which of several comes first: the one that the provider looks at. With any other, who adds a random one to each
    /// request would be a new tenant each time.
    fn rank(self, provider: Provider) -> u8 {
        let is_own = match self {
            Self::Authorization => provider == Provider::OpenAi,
            Self::Anthropic => provider == Provider::Anthropic,
            Self::Gemini | Self::Query => provider == Provider::Gemini,
            Self::Azure => false,
        };
        if is_own { self as u8 } else { self as u8 + 10 }
    }
}

/// What stands behind the scheme of an `Authorization`, whose spelling and spaces make no other tenant.
fn token(value: &str) -> &str {
    let scheme_end = value.bytes().position(|byte| byte == b' ');
    scheme_end.map_or(value, |end| value[end..].trim_start())
}

fn kind_of(name: &str) -> Kind {
    let Some(own) = name.strip_prefix("x-") else {
        return match name {
            "user-agent" => Kind::Client,
            "authorization" => Kind::Credential(Credential::Authorization),
            "api-key" => Kind::Credential(Credential::Azure),
            // Those of other gateways.
            "helicone-session-id" => Kind::Session(4),
            "agent-session-id" => Kind::Session(7),
            // Those of agents.
            "session-id" | "session_id" => Kind::Session(10),
            "thread-id" | "thread_id" => Kind::Session(11),
            "conversation_id" => Kind::Session(12),
            _ => Kind::Other,
        };
    };
    match own {
        "agent-id" => Kind::Agent,
        "api-key" => Kind::Credential(Credential::Anthropic),
        "goog-api-key" => Kind::Credential(Credential::Gemini),
        // Our own, and those of other gateways.
        "session-id" => Kind::Session(0),
        "loopbreaker-session" => Kind::Session(1),
        "litellm-session-id" => Kind::Session(2),
        "litellm-trace-id" => Kind::Session(3),
        "bf-session-id" => Kind::Session(5),
        "portkey-trace-id" => Kind::Session(6),
        // Those of agents.
        "opencode-session" => Kind::Session(9),
        "codex-parent-thread-id" => Kind::Session(13),
        "session-affinity" => Kind::Session(14),
        "grok-conv-id" => Kind::Session(15),
        _ if own.ends_with("-session-id") => Kind::Session(8),
        _ => Kind::Other,
    }
}

/// Keeps the one that comes first.
fn first<'r>(kept: &mut Option<(u8, &'r str)>, rank: u8, value: &'r str) {
    if kept.is_none_or(|(before, _)| rank < before) {
        *kept = Some((rank, value));
    }
}

/// The name of a client: `OpenAI/Python 2.54.0` and `claude-cli/1.0.83 (external, cli)` without their versions.
fn product(client: &str) -> &str {
    let is_end = |byte| matches!(byte, b' ' | b'(');
    let product = &client[..client.bytes().position(is_end).unwrap_or(client.len())];
    match product.rsplit_once('/') {
        Some((name, version)) if version.starts_with(|first: char| first.is_ascii_digit()) => name,
        _ => product,
    }
}

/// Whether a value can be a name that is shown: neither empty nor a novel, and none of the words for no name at all.
fn is_plausible(name: &str) -> bool {
    name.len() <= MAX_NAME && is_name(name.as_bytes())
}

/// Whether this names anybody: it is there, and none of the words that stand for no name at all.
fn is_name(name: &[u8]) -> bool {
    let nothing = ["null", "none", "undefined", "unknown", "-"];
    !name.is_empty() && !nothing.iter().any(|word| name.eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether this is a UUID in its usual form.
fn is_uuid(name: &str) -> bool {
    let mut parts = name.split('-');
    let has_shape = [8, 4, 4, 4, 12].iter().all(|length| {
        parts
            .next()
            .is_some_and(|part| part.len() == *length && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
    });
    has_shape && parts.next().is_none()
}

const MAX_NAME: usize = 200;

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderMap, HeaderName, HeaderValue};

    use loopbreaker_dialect::Facts;

    use super::{Caller, Provider, Secret, Tenant, TenantClass, Tenants};

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    fn tenant(pairs: &[(&'static str, &'static str)], query: &str, trusted: Option<&str>) -> Tenant {
        tenant_at(Provider::OpenAi, pairs, query, trusted)
    }

    fn tenant_at(
        provider: Provider,
        pairs: &[(&'static str, &'static str)],
        query: &str,
        trusted: Option<&str>,
    ) -> Tenant {
        tenant_of(&headers(pairs), query, trusted, provider)
    }

    fn tenant_of(headers: &HeaderMap, query: &str, trusted: Option<&str>, provider: Provider) -> Tenant {
        // One secret for all, so that names can be compared.
        thread_local!(static TENANTS: Tenants = Tenants::new(Secret::random().unwrap()));
        TENANTS.with(|tenants| tenants.of(&Caller::of(headers, query, trusted, provider)))
    }

    fn agent(pairs: &[(&'static str, &'static str)]) -> String {
        Caller::of(&headers(pairs), "", None, Provider::OpenAi).agent().to_owned()
    }

    fn session(pairs: &[(&'static str, &'static str)]) -> Option<String> {
        Caller::of(&headers(pairs), "", None, Provider::OpenAi).session(&Facts::default()).map(str::to_owned)
    }

    #[test]
    fn a_trusted_header_names_the_tenant() {
        let acme = tenant(&[("x-tenant-id", "acme"), ("authorization", "Bearer k")], "", Some("x-tenant-id"));
        assert_eq!((&*acme.name, acme.class), ("acme", TenantClass::Named));
        let untrusted = tenant(&[("x-tenant-id", "acme"), ("authorization", "Bearer k")], "", None);
        assert_eq!(untrusted.class, TenantClass::Key);
    }

    #[test]
    fn tenants_are_apart_in_whatever_script_and_at_whatever_length_they_are_named() {
        let named = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert("x-tenant-id", HeaderValue::from_bytes(value).unwrap());
            headers.insert("authorization", HeaderValue::from_static("Bearer one-for-all"));
            tenant_of(&headers, "", Some("x-tenant-id"), Provider::OpenAi)
        };
        assert_eq!(&*named("münchen".as_bytes()).name, "münchen");
        let (long, longer) = ("x".repeat(201), "x".repeat(202));
        let names: [&[u8]; 6] = [
            "köln".as_bytes(),
            "münchen".as_bytes(),
            b"k\xf6ln",
            b"m\xfcnchen",
            long.as_bytes(),
            longer.as_bytes(),
        ];
        for (at, name) in names.iter().enumerate() {
            let tenant = named(name);
            assert_eq!(tenant.class, TenantClass::Named);
            assert!(tenant.name.len() <= 200);
            assert!(names[..at].iter().all(|other| named(other).key != tenant.key), "{:?}", tenant.name);
        }
    }

    #[test]
    fn a_session_and_an_agent_may_be_named_in_any_script() {
        let mut headers = HeaderMap::new();
        headers.insert("x-session-id", HeaderValue::from_bytes("büro-7".as_bytes()).unwrap());
        let agent = "ü".repeat(150);
        headers.insert("user-agent", HeaderValue::from_bytes(agent.as_bytes()).unwrap());
        let caller = Caller::of(&headers, "", None, Provider::OpenAi);
        assert_eq!(caller.session(&Facts::default()), Some("büro-7"));
        assert_eq!(caller.agent(), "ü".repeat(100));
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
    fn the_credential_that_the_provider_looks_at_is_the_tenants() {
        let random = [("authorization", "Bearer 1"), ("x-api-key", "2"), ("x-goog-api-key", "3")];
        let other = [("authorization", "Bearer 4"), ("x-api-key", "5"), ("x-goog-api-key", "6")];
        for (provider, own) in [(Provider::OpenAi, 0), (Provider::Anthropic, 1), (Provider::Gemini, 2)] {
            let mut same = other;
            same[own] = random[own];
            let key = |pairs| tenant_at(provider, pairs, "key=7", None).key;
            assert_eq!(key(&random), key(&same), "{provider:?}");
            assert_ne!(key(&random), key(&other), "{provider:?}");
        }
        let in_query = |pairs| tenant_at(Provider::Gemini, pairs, "key=7", None).key;
        assert_eq!(in_query(&random[..2]), in_query(&other[..2]));
    }

    #[test]
    fn the_spelling_of_the_scheme_makes_no_other_tenant() {
        let of = |value| tenant(&[("authorization", value)], "", None).key;
        assert_eq!(of("Bearer k"), of("bearer   k"));
        assert_ne!(of("Bearer k"), of("Bearer l"));
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
        assert_eq!(agent(&[("user-agent", "x/1"), ("x-agent-id", "planner")]), "planner");
        assert_eq!(agent(&[("user-agent", "claude-cli/1.0.83 (external, cli)")]), "claude-cli");
        assert_eq!(agent(&[("user-agent", "OpenAI/Python 2.54.0")]), "OpenAI/Python");
        assert_eq!(agent(&[]), "unknown");
    }

    #[test]
    fn our_own_session_header_comes_first_wherever_it_stands() {
        let all = [("x-claude-code-session-id", "c"), ("x-session-id", "s"), ("x-litellm-session-id", "l")];
        assert_eq!(session(&all).as_deref(), Some("s"));
        // An agent hands on what it was told.
        let told = [("x-litellm-session-id", "l"), ("x-loopbreaker-session", "lb-1")];
        assert_eq!(session(&told).as_deref(), Some("lb-1"));
        assert_eq!(session(&[("thread_id", "t"), ("x-acme-session-id", "a")]).as_deref(), Some("a"));
        assert_eq!(session(&[("thread_id", "t")]).as_deref(), Some("t"));
    }

    #[test]
    fn a_session_in_the_body_counts_where_no_header_names_one() {
        let facts = Facts { session: Some("b".into()), ..Facts::default() };
        assert_eq!(Caller::default().session(&facts), Some("b"));
        let named = headers(&[("x-session-id", "s")]);
        assert_eq!(Caller::of(&named, "", None, Provider::OpenAi).session(&facts), Some("s"));
    }

    #[test]
    fn a_cache_key_names_a_conversation_only_where_it_is_made_for_one() {
        let keyed = |key: &str| Facts { prompt_cache_key: Some(key.into()), ..Facts::default() };
        let uuid = "0199a213-81c0-7800-8aa1-bbab2a035a53";
        assert_eq!(Caller::default().session(&keyed(uuid)), Some(uuid));
        for many in ["support-bot-v3", "0199a213-81c0-7800-8aa1", "0199a213-81c0-7800-8aa1-bbab2a035a53-1"] {
            assert_eq!(Caller::default().session(&keyed(many)), None, "{many}");
        }
        let named = Facts { session: Some("b".into()), ..keyed(uuid) };
        assert_eq!(Caller::default().session(&named), Some("b"));
    }

    #[test]
    fn a_missing_name_is_never_a_name() {
        for value in ["", "null", "undefined", "None"] {
            assert_eq!(session(&[("x-session-id", value)]), None, "{value:?}");
        }
    }
}
