//! A plain request goes another way than one that is not. Nobody can tell which, neither its client nor the provider.

use proptest::prelude::*;

use crate::lab::Bench;
use crate::provider::Provider;
use crate::wire::{Wire, answer};

/// What a request may say about itself; most of it is plain.
const LINES: [&str; 21] = [
    "Accept: */*",
    "accept-encoding: gzip",
    "Authorization: Bearer sk-1",
    "authorization: Bearer sk-2",
    "Connection: keep-alive",
    "connection: close",
    "connection: x-hop",
    "x-hop: 1",
    "X-One: a",
    "x-one:b ",
    "x-one:\t",
    "X-Latin: \u{e9}",
    "cookie: a=1; loopbreaker=secret",
    "te: trailers",
    "upgrade: h2c",
    "host: other",
    "x-bad : 1",
    " folded",
    "content-length: 0",
    "transfer-encoding: identity",
    "x-loopbreaker-verdict: allow",
];

/// A request, and what follows it on its connection.
#[derive(Debug, Clone)]
struct Script {
    first: String,
    lines: Vec<&'static str>,
    body: Body,
}

#[derive(Debug, Clone, Copy)]
enum Body {
    None,
    Length,
    Chunked,
}

impl Script {
    fn bytes(&self) -> Vec<u8> {
        let (framing, body) = match self.body {
            Body::None => ("", ""),
            Body::Length => ("Content-Length: 2\r\n", "{}"),
            Body::Chunked => ("Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
        };
        let lines = self.lines.iter().map(|line| format!("{line}\r\n")).collect::<Vec<_>>().concat();
        let text = format!("{} HTTP/1.1\r\nHost: here\r\n{framing}{lines}\r\n{body}", self.first);
        text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect()
    }
}

fn scripts() -> impl Strategy<Value = Vec<Script>> {
    let first = prop_oneof![
        Just("POST /v1/chat/completions"),
        Just("POST /v1/files?a=b"),
        Just("PUT /v1/files/1"),
        Just("GET /v1/models"),
        Just("DELETE /v1/files/1"),
        Just("GET /nowhere"),
    ];
    let lines = proptest::sample::subsequence(LINES.to_vec(), 0..5);
    let body = prop_oneof![Just(Body::None), Just(Body::Length), Just(Body::Length), Just(Body::Chunked)];
    let script =
        (first, lines, body).prop_map(|(first, lines, body)| Script { first: first.into(), lines, body });
    // The second is much like the first, so that it may be read by what is known of that.
    (script, proptest::sample::select(LINES.to_vec()), any::<bool>()).prop_map(
        |(script, line, is_changed)| {
            let mut second = script.clone();
            if is_changed {
                second.lines.pop();
                second.lines.push(line);
            }
            vec![script.clone(), second, script]
        },
    )
}

/// What comes back of each request, and what the provider saw of it.
fn told(provider: &Provider, mut wire: Wire, scripts: &[Script]) -> Vec<String> {
    let mut told = Vec::new();
    for script in scripts {
        let before = provider.seen().len();
        let is_sent = wire.try_send(&script.bytes());
        let reply = wire.try_reply().filter(|_| is_sent);
        let seen = provider.seen().split_off(before);
        let seen: Vec<_> =
            seen.iter().map(|asked| (&asked.head.first, &asked.head.headers, &asked.body)).collect();
        let closes = reply.as_ref().map(|reply| reply.header("connection").map(str::to_owned));
        told.push(format!(
            "{:?} {closes:?} {seen:?}",
            reply.as_ref().map(|reply| (reply.status, &reply.body))
        ));
        if reply.is_none_or(|reply| reply.status >= 400 || closes.flatten().is_some()) {
            break;
        }
    }
    told
}

#[test]
fn neither_client_nor_provider_can_tell_which_way_a_request_went() {
    let provider = Provider::answering(answer("200 OK", &[("x-request-id", "1")], b"{}"));
    let lab = Bench::new().upstream(provider.url()).start();
    let config = ProptestConfig { cases: 200, ..ProptestConfig::default() };
    proptest!(config, |(scripts in scripts())| {
        let short = told(&provider, lab.wire(), &scripts);
        // After a request for ourselves hyper serves a connection to its end.
        let mut long = lab.wire();
        long.send(b"GET /livez HTTP/1.1\r\nhost: here\r\n\r\n");
        prop_assert_eq!(long.reply().status, 200);
        let long = told(&provider, long, &scripts);
        prop_assert_eq!(short, long);
    });
}
