//! Other spellings of a path.

use crate::lab::{Bench, Lab};
use crate::provider::Provider;
use crate::talk::{looping, question};
use crate::wire::answer;

#[test]
fn a_target_with_a_host_in_it_is_read_by_its_path() {
    let provider = Provider::answering(answer("200 OK", &[], b"{}"));
    let lab = Bench::new().upstream(provider.url()).start();
    let mut wire = lab.wire();
    wire.send(b"GET http://evil.example:99/v1/models?a=b HTTP/1.1\r\nhost: other.example\r\n\r\n");
    assert_eq!(wire.reply().status, 200);
    let head = &provider.seen()[0].head;
    assert_eq!(head.first, "GET /v1/models?a=b HTTP/1.1");
    assert_eq!(head.get("host"), Some(provider.address().to_string().as_str()));
}

#[test]
fn a_path_that_is_not_below_a_providers_goes_nowhere() {
    let lab = Lab::new();
    for path in [
        "//v1/chat/completions",
        "/./v1/chat/completions",
        "/%76%31/chat/completions",
        "/V1/chat/completions",
        "/v1;x/models",
    ] {
        assert_eq!(lab.post(path, &[], question("a")).status, 404, "{path}");
    }
    assert_eq!(lab.sent(), 0);
}

#[test]
fn our_own_endpoints_have_one_spelling() {
    let lab = Lab::new();
    for path in ["/livez/", "//livez", "/%6civez", "/api/v1/../v1/sessions", "/metrics/x", "/LIVEZ"] {
        assert_ne!(lab.get(path).status, 200, "{path}");
    }
}

/// Spellings of one path that many servers take for the same.
const SPELLINGS: [&str; 6] = [
    "/v1/chat/completions",
    "/v1/chat/completions/",
    "/v1//chat/completions",
    "/v1/chat/complet%69ons",
    "/v1/./chat/completions",
    "/v1/x/../chat/completions",
];

#[test]
fn a_kill_switch_and_a_budget_of_requests_hold_however_the_path_is_spelt() {
    let lab = Lab::with(
        "kill_switches: [{ tenant: acme }]\npolicies: [{ id: p, spec: { rules: [{ id: r, key: tenant, requests: 1, period: 1h }] } }]",
    );
    for path in SPELLINGS {
        assert_eq!(lab.post(path, &[("x-tenant-id", "acme")], question("a")).status, 403, "{path}");
    }
    let passed = SPELLINGS.iter().filter(|path| lab.post(path, &[], question("a")).status != 429).count();
    assert_eq!(passed, 1);
}

#[test]
fn a_policy_for_one_path_and_a_switch_for_one_path_hold_however_it_is_spelt() {
    for selector in ["pathExact: /v1/chat/completions", "pathPrefix: /v1/chat/"] {
        let lab = Lab::with(&format!(
            "kill_switches: [{{ tenant: acme, route: /v1/chat/completions }}]\npolicies: [{{ id: p, spec: {{ selector: \
             {{ {selector} }}, rules: [{{ id: r, key: tenant, requests: 1, period: 1h }}] }} }}]",
        ));
        for path in SPELLINGS {
            assert_eq!(lab.post(path, &[("x-tenant-id", "acme")], question("a")).status, 403, "{path}");
        }
        let passed = SPELLINGS.iter().filter(|path| lab.post(path, &[], question("a")).status != 429).count();
        assert_eq!(passed, 1, "{selector}");
        assert_ne!(lab.post("/v1/embeddings", &[], question("a")).status, 429, "{selector}");
    }
}

#[test]
fn a_query_or_a_fragment_does_not_hide_a_path() {
    let lab = Lab::new();
    for path in ["/v1/chat/completions?", "/v1/chat/completions?x=/v1/files", "/v1/chat/completions?a=b&c"] {
        let reply = lab.post(path, &[("x-session-id", path)], looping("fix it", 3));
        assert_eq!(reply.header("x-loopbreaker-verdict"), Some("hint"), "{path}");
    }
}
