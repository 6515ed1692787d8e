//! Whose a credential is: it goes to the host of its owner, and to no other.
//!
//! A header says by its name whose it is. A bearer token says it by how it begins, and so does the key that a browser
//! hides among the protocols of a web socket. A route gets everything, as its owner wants it, and so does a host that
//! the config names for both providers: that is a relay.

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use loopbreaker_config::{BaseUrl, Dialect as Provider, Upstreams};

use crate::headers::{self, X_API_KEY, X_GOOG_API_KEY};
use crate::route::{Destination, has_key};

/// Headers in which other providers expect their credentials.
pub(crate) fn of_others(to: &Destination) -> &'static [HeaderName] {
    let [anthropic, gemini] = &OWN;
    match (to.route, to.provider) {
        (Some(_), _) => &[],
        (None, Provider::OpenAi) => &OWN,
        (None, Provider::Anthropic) => std::slice::from_ref(gemini),
        (None, Provider::Gemini) => std::slice::from_ref(anthropic),
    }
}

/// The headers that only Anthropic and only Gemini look at.
static OWN: [HeaderName; 2] = [X_API_KEY, X_GOOG_API_KEY];

/// Leaves out what belongs to others than whom a request goes to.
pub(crate) fn leave_foreign_out(headers: &mut HeaderMap, to: &Destination, upstreams: &Upstreams) {
    headers::leave_out(headers, of_others(to));
    if to.route.is_some() {
        return;
    }
    let going = Going { to: to.provider, upstreams, has_own: has_own(headers, to) };
    let is_stray =
        |value: &HeaderValue| value.to_str().ok().and_then(bearer).is_some_and(|token| going.strays(token));
    let hides_a_key = may_hide_a_key(headers) && going.is_elsewhere(Provider::OpenAi);
    if !hides_a_key && !headers.get_all(AUTHORIZATION).iter().any(is_stray) {
        return;
    }
    // To take one out would move the last one into its place, and the order is the sender's.
    let stays = |name: &HeaderName, value: &HeaderValue| *name != AUTHORIZATION || !is_stray(value);
    let kept = headers.iter().filter(|(name, value)| stays(name, value)).filter_map(|(name, value)| {
        let value =
            if hides_a_key && name == SEC_WEBSOCKET_PROTOCOL { without_keys(value)? } else { value.clone() };
        Some((name.clone(), value))
    });
    *headers = kept.collect();
}

/// Where a request goes, as far as it concerns tokens.
struct Going<'u> {
    to: Provider,
    upstreams: &'u Upstreams,
    /// Whether it has a credential that is surely meant for there.
    has_own: bool,
}

impl Going<'_> {
    /// Whether a token would come to a host that is not its owner's.
    fn strays(&self, token: &str) -> bool {
        let Some(owner) = owner_of(token).filter(|owner| self.is_elsewhere(*owner)) else { return false };
        match owner {
            Provider::Anthropic => true,
            // Relays give out keys that begin so, too. At the provider's own host it is of no use; elsewhere it may be
            // the one that counts, unless that stands beside it.
            Provider::OpenAi => self.has_own || self.is_usual_host(),
            // Google's tokens are for every service that it runs, other models among them.
            Provider::Gemini => self.is_usual_host(),
        }
    }

    /// Whether another host than the one that this goes to is this provider's.
    fn is_elsewhere(&self, owner: Provider) -> bool {
        let (here, there) = (base(self.upstreams, self.to), base(self.upstreams, owner));
        (here.host(), here.port()) != (there.host(), there.port())
    }

    fn is_usual_host(&self) -> bool {
        base(self.upstreams, self.to).host() == base(&Upstreams::default(), self.to).host()
    }
}

/// Where a provider is.
const fn base(upstreams: &Upstreams, provider: Provider) -> &BaseUrl {
    match provider {
        Provider::OpenAi => &upstreams.openai,
        Provider::Anthropic => &upstreams.anthropic,
        Provider::Gemini => &upstreams.gemini,
    }
}

/// Whether a request has the credential of the provider that it goes to, beside a bearer token.
fn has_own(headers: &HeaderMap, to: &Destination) -> bool {
    match to.provider {
        Provider::OpenAi => false,
        Provider::Anthropic => headers.contains_key(X_API_KEY),
        Provider::Gemini => {
            let query = to.path_and_query.split_once('?').map_or("", |(_, query)| query);
            headers.contains_key(X_GOOG_API_KEY) || has_key(query)
        }
    }
}

/// Whose a token is, where it says so.
fn owner_of(token: &str) -> Option<Provider> {
    let owners = [
        ("sk-ant-", Provider::Anthropic),
        ("sk-", Provider::OpenAi),
        ("AIza", Provider::Gemini),
        ("ya29.", Provider::Gemini),
    ];
    owners.into_iter().find(|(begin, _)| token.starts_with(begin)).map(|(_, owner)| owner)
}

/// The token of an `Authorization`.
fn bearer(value: &str) -> Option<&str> {
    let value = value.trim_ascii();
    let (scheme, token) = value.split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case("bearer ").then(|| token.trim_ascii_start())
}

/// How a browser, which cannot set headers, names its key when it opens a web socket to `OpenAI`.
const HIDDEN_KEY: &[u8] = b"openai-insecure-api-key.";

fn may_hide_a_key(headers: &HeaderMap) -> bool {
    headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().any(|value| protocols(value).any(is_hidden_key))
}

fn protocols(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

fn is_hidden_key(protocol: &[u8]) -> bool {
    protocol.get(..HIDDEN_KEY.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(HIDDEN_KEY))
}

/// The protocols without the keys; nothing when none is left.
fn without_keys(value: &HeaderValue) -> Option<HeaderValue> {
    if !protocols(value).any(is_hidden_key) {
        return Some(value.clone());
    }
    let kept: Vec<&[u8]> = protocols(value).filter(|protocol| !is_hidden_key(protocol)).collect();
    HeaderValue::from_bytes(&kept.join(&b", "[..])).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderMap, HeaderName, HeaderValue};
    use loopbreaker_config::{Config, Upstreams};

    use super::leave_foreign_out;
    use crate::route::destination;

    const OPENAI: (&str, &str) = ("authorization", "Bearer sk-proj-1");
    const ANTHROPIC: (&str, &str) = ("x-api-key", "sk-ant-1");
    const GEMINI: (&str, &str) = ("x-goog-api-key", "AIza1");

    /// The values of the headers that go on.
    fn sent(upstreams: &Upstreams, path: &str, pairs: &[(&'static str, &'static str)]) -> Vec<String> {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let mut headers: HeaderMap = pairs.iter().map(pair).collect();
        let to = destination(path, &headers, upstreams).unwrap();
        leave_foreign_out(&mut headers, &to, upstreams);
        headers.values().map(|value| value.to_str().unwrap().to_owned()).collect()
    }

    fn of(text: &str) -> Upstreams {
        Config::parse(text).unwrap().upstreams
    }

    #[test]
    fn a_token_goes_to_no_provider_but_its_own() {
        let usual = Upstreams::default();
        assert_eq!(sent(&usual, "/v1/models", &[OPENAI, ANTHROPIC]), ["sk-ant-1"]);
        assert_eq!(
            sent(&usual, "/v1/models", &[("accept", "a"), OPENAI, GEMINI, ("z", "b")]),
            ["a", "AIza1", "b"]
        );
        assert_eq!(sent(&usual, "/v1/models?key=AIza", &[OPENAI]), [""; 0]);
        assert_eq!(sent(&usual, "/v1/chat/completions", &[("authorization", "bearer  sk-ant-1")]), [""; 0]);
        assert_eq!(sent(&usual, "/v1/models", &[("authorization", "Bearer ya29.a")]), [""; 0]);
        // Alone it is of no use at the host of another.
        assert_eq!(sent(&usual, "/v1/messages", &[OPENAI]), [""; 0]);
    }

    #[test]
    fn a_token_that_may_be_for_the_provider_stays() {
        let usual = Upstreams::default();
        for (path, token) in [
            ("/v1/models", "Bearer sk-proj-1"),
            ("/v1/models", "Bearer of-a-relay"),
            ("/v1/messages", "Bearer sk-ant-oat01-1"),
            ("/v1beta/models/g:generateContent", "Bearer ya29.a"),
            ("/v1beta/openai/chat/completions", "Bearer AIza1"),
            ("/v1/chat/completions", "Basic sk-ant-1"),
        ] {
            assert_eq!(sent(&usual, path, &[("authorization", token)]), [token], "{path}");
        }
        let both = sent(&usual, "/v1/messages", &[("authorization", "Bearer oauth"), ANTHROPIC]);
        assert_eq!(both, ["Bearer oauth", "sk-ant-1"]);
    }

    #[test]
    fn a_relay_gets_the_keys_that_it_gives_out() {
        let relay = of("upstreams: { anthropic: \"https://relay.example\" }");
        assert_eq!(sent(&relay, "/v1/messages", &[OPENAI]), ["Bearer sk-proj-1"]);
        assert_eq!(sent(&relay, "/v1/messages", &[OPENAI, ANTHROPIC]), ["sk-ant-1"]);
        let of_both = of("upstreams: { openai: \"https://r.example/v1\", anthropic: \"https://r.example\" }");
        assert_eq!(sent(&of_both, "/v1/messages", &[OPENAI, ANTHROPIC]), ["Bearer sk-proj-1", "sk-ant-1"]);
        let vertex = of("upstreams: { openai: \"https://x-aiplatform.googleapis.com/v1\" }");
        let token = ("authorization", "Bearer ya29.a");
        assert_eq!(sent(&vertex, "/v1/chat/completions", &[token]), ["Bearer ya29.a"]);
        let route = of(
            "upstreams: { routes: [{ prefix: /r/, base_url: \"https://r.example\", dialect: anthropic }] }",
        );
        assert_eq!(sent(&route, "/r/v1/messages", &[OPENAI, ANTHROPIC]), ["Bearer sk-proj-1", "sk-ant-1"]);
    }

    #[test]
    fn a_key_among_the_protocols_of_a_web_socket_goes_to_openai_only() {
        let usual = Upstreams::default();
        let hidden = ("sec-websocket-protocol", "realtime, OpenAI-insecure-api-key.sk-1,openai-beta.v1");
        assert_eq!(sent(&usual, "/v1/realtime", &[hidden]), [hidden.1]);
        assert_eq!(
            sent(&usual, "/v1/realtime", &[hidden, ANTHROPIC]),
            ["realtime, openai-beta.v1", "sk-ant-1"]
        );
        let only = ("sec-websocket-protocol", "openai-insecure-api-key.sk-1");
        assert_eq!(sent(&usual, "/v1/realtime", &[only, GEMINI]), ["AIza1"]);
    }
}
