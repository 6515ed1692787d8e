//! A credential is never sent to another provider's host.

use crate::lab::{Bench, Lab};
use crate::provider::Provider;
use crate::wire::{Asked, answer};

/// A gateway with a host for each provider.
struct Hosts {
    lab: Lab,
    openai: Provider,
    anthropic: Provider,
    gemini: Provider,
}

impl Hosts {
    fn new() -> Self {
        let host = || Provider::answering(answer("200 OK", &[], b"{}"));
        let (openai, anthropic, gemini) = (host(), host(), host());
        let config = format!(
            "upstreams: {{ openai: \"{}\", anthropic: \"{}\", gemini: \"{}\" }}",
            openai.url(),
            anthropic.url(),
            gemini.url()
        );
        Self { lab: Bench::new().config(&config).upstream("").start(), openai, anthropic, gemini }
    }

    /// How many requests each host has got.
    fn counts(&self) -> [usize; 3] {
        [&self.openai, &self.anthropic, &self.gemini].map(|host| host.seen().len())
    }
}

const OPENAI: (&str, &str) = ("authorization", "Bearer sk-openai");
const ANTHROPIC: (&str, &str) = ("x-api-key", "sk-ant");
const GEMINI: (&str, &str) = ("x-goog-api-key", "AIza-gemini");

#[test]
fn each_dialect_goes_to_its_host() {
    let hosts = Hosts::new();
    let post = |path: &str, header| hosts.lab.post(path, &[header], "{}").status;
    assert_eq!(post("/v1/chat/completions", OPENAI), 200);
    assert_eq!(post("/v1/responses", OPENAI), 200);
    assert_eq!(hosts.counts(), [2, 0, 0]);
    assert_eq!(post("/v1/messages", ANTHROPIC), 200);
    assert_eq!(post("/v1/messages", ("authorization", "Bearer oauth")), 200);
    assert_eq!(hosts.counts(), [2, 2, 0]);
    assert_eq!(post("/v1beta/models/g:generateContent", GEMINI), 200);
    assert_eq!(post("/v1/models/g:streamGenerateContent?key=AIza", ("x-none", "")), 200);
    assert_eq!(post("/v1beta/openai/chat/completions", ("authorization", "Bearer AIza")), 200);
    assert_eq!(post("/upload/v1beta/files", GEMINI), 200);
    assert_eq!(hosts.counts(), [2, 2, 4]);
}

#[test]
fn a_shared_path_goes_where_its_credential_belongs() {
    let hosts = Hosts::new();
    let get = |path: &str, headers: &[(&str, &str)]| hosts.lab.ask("GET", path, headers, "").status;
    get("/v1/models", &[OPENAI]);
    get("/v1/files", &[OPENAI]);
    assert_eq!(hosts.counts(), [2, 0, 0]);
    get("/v1/models", &[ANTHROPIC]);
    get("/v1/models", &[("authorization", "Bearer x"), ("anthropic-version", "2023-06-01")]);
    assert_eq!(hosts.counts(), [2, 2, 0]);
    get("/v1/models", &[GEMINI]);
    get("/v1/models?key=AIza", &[]);
    get("/v1/models?alt=sse&key=AIza", &[]);
    assert_eq!(hosts.counts(), [2, 2, 3]);
}

/// Whether a request carries a credential that belongs to another host.
fn is_foreign(asked: &Asked, own: &str) -> bool {
    let text = format!("{} {:?}", asked.head.first, asked.head.headers);
    ["sk-openai", "sk-ant", "AIza-gemini"].iter().any(|secret| *secret != own && text.contains(secret))
}

#[test]
fn whatever_path_and_credentials_are_mixed_none_reaches_another_host() {
    let hosts = Hosts::new();
    let paths = [
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/v1/models",
        "/v1beta/models",
        "/v1beta/models/g:generateContent",
        "/v1/models/g:generateContent",
        "/v1beta/openai/chat/completions",
        "/upload/v1beta/files",
        "/v1/files",
    ];
    // A bearer token alone may be that of a relay, wherever it goes.
    let credentials: [&[(&str, &str)]; 5] = [
        &[ANTHROPIC],
        &[GEMINI],
        &[ANTHROPIC, GEMINI],
        &[OPENAI, ANTHROPIC, GEMINI],
        &[ANTHROPIC, GEMINI, ("authorization", "Bearer sk-ant-oauth")],
    ];
    for path in paths {
        for headers in credentials {
            hosts.lab.post(path, headers, "{}");
            hosts.lab.post(&format!("{path}?key=AIza-gemini"), headers, "{}");
        }
    }
    for (host, own) in
        [(&hosts.openai, "sk-openai"), (&hosts.anthropic, "sk-ant"), (&hosts.gemini, "AIza-gemini")]
    {
        for asked in host.seen() {
            assert!(!is_foreign(&asked, own), "{own}'s host got {asked:?}");
        }
    }
}

#[test]
fn a_key_of_openai_does_not_go_along_to_whom_another_credential_leads() {
    let hosts = Hosts::new();
    let get = |path: &str, headers: &[(&str, &str)]| hosts.lab.ask("GET", path, headers, "").status;
    let hidden = ("sec-websocket-protocol", "realtime, openai-insecure-api-key.sk-openai");
    for own in [ANTHROPIC, GEMINI] {
        assert_eq!(get("/v1/models", &[OPENAI, own]), 200);
        assert_eq!(get("/v1/realtime", &[hidden, own]), 200);
    }
    assert_eq!(get("/v1/models?key=AIza-gemini", &[OPENAI]), 200);
    assert_eq!(hosts.counts(), [0, 2, 3]);
    for asked in [hosts.anthropic.seen(), hosts.gemini.seen()].concat() {
        let text = format!("{:?}", asked.head.headers);
        assert!(!text.contains("sk-openai"), "{text}");
    }
    assert_eq!(get("/v1/realtime", &[hidden]), 200);
    assert_eq!(hosts.openai.seen()[0].head.get("sec-websocket-protocol"), Some(hidden.1));
}

#[test]
fn a_route_gets_what_its_clients_send_it() {
    let (own, other) = (
        Provider::answering(answer("200 OK", &[], b"{}")),
        Provider::answering(answer("200 OK", &[], b"{}")),
    );
    let config = format!(
        "upstreams: {{ openai: \"{}\", routes: [{{ prefix: /groq/, base_url: \"{}/openai\", dialect: openai }}] }}",
        other.url(),
        own.url()
    );
    let lab = Bench::new().config(&config).upstream("").start();
    lab.post("/groq/v1/chat/completions?a=b", &[("authorization", "Bearer gsk")], "{}");
    assert_eq!((own.seen().len(), other.seen().len()), (1, 0));
    let head = &own.seen()[0].head;
    assert_eq!(head.first, "POST /openai/v1/chat/completions?a=b HTTP/1.1");
    assert_eq!(
        (head.get("authorization"), head.get("host")),
        (Some("Bearer gsk"), Some(own.address().to_string().as_str()))
    );
}

#[test]
fn a_host_that_the_client_names_is_never_connected_to() {
    let hosts = Hosts::new();
    let stranger = Provider::answering(answer("200 OK", &[], b"{}"));
    let at = stranger.address();
    for target in [format!("http://{at}/v1/models"), format!("http://{at}/v1/chat/completions")] {
        let mut wire = hosts.lab.wire();
        wire.send(
            format!("GET {target} HTTP/1.1\r\nhost: {at}\r\nauthorization: Bearer sk-openai\r\n\r\n")
                .as_bytes(),
        );
        wire.try_head();
    }
    let mut wire = hosts.lab.wire();
    wire.send(format!("CONNECT {at} HTTP/1.1\r\nhost: {at}\r\n\r\n").as_bytes());
    assert!(wire.try_head().is_none_or(|head| head.status() >= 400));
    hosts.lab.ask(
        "GET",
        "/v1/models",
        &[("host", &at.to_string()), ("x-forwarded-host", &at.to_string()), OPENAI],
        "",
    );
    assert_eq!(stranger.connections(), 0);
}

#[test]
fn our_own_headers_of_a_request_go_no_further() {
    let lab = Lab::new();
    lab.chat(&[("X-Loopbreaker-Session", "x"), ("x-loopbreaker-anything", "y"), ("x-loop", "z")], "{}");
    let seen = &lab.mock.requests()[0];
    assert!(seen.headers.iter().all(|(name, _)| !name.starts_with("x-loopbreaker")), "{:?}", seen.headers);
    assert_eq!(seen.header("x-loop"), Some("z"));
}

#[test]
fn a_provider_cannot_speak_in_our_name() {
    let headers = [
        ("x-loopbreaker-verdict", "reject"),
        ("x-loopbreaker-evil", "1"),
        ("x-loopbreaker-session", "theirs"),
    ];
    let provider = Provider::answering(answer("200 OK", &headers, b"{}"));
    let lab = Bench::new().upstream(provider.url()).start();
    let reply = lab.chat(&[("x-session-id", "mine")], "{}");
    assert_eq!(reply.header("x-loopbreaker-session"), Some("mine"));
    assert_eq!(reply.header("x-loopbreaker-verdict"), Some("allow"));
    assert_eq!(reply.header("x-loopbreaker-evil"), None);
}

#[test]
fn a_header_too_many_hides_no_loop() {
    for more in [("x-api-key", "k"), ("anthropic-version", "2023-06-01"), ("x-goog-api-key", "k")] {
        let lab = Lab::new();
        let verdicts: Vec<_> =
            (1..=6).map(|times| lab.verdict(&[more], crate::talk::looping("fix it", times)).1).collect();
        assert_eq!(verdicts.last().map(String::as_str), Some("reject"), "{more:?}: {verdicts:?}");
    }
}
