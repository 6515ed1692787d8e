//! The decision endpoint, for proxies that send their traffic themselves.

use crate::lab::Lab;
use crate::talk::{looping, question};
use crate::wire::Reply;

/// Asks about a request, told by headers.
fn about(lab: &Lab, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let mut all =
        vec![("x-original-method", "POST"), ("x-original-uri", path), ("x-original-host", "api.example.com")];
    all.extend(headers);
    lab.post("/v1/decision", &all, body)
}

fn verdict(reply: &Reply) -> (u16, String) {
    (reply.status, reply.header("x-loopbreaker-verdict").unwrap_or("none").to_owned())
}

#[test]
fn a_loop_climbs_the_same_ladder_and_nothing_is_sent() {
    let lab = Lab::new();
    let verdicts: Vec<_> = (1..=6)
        .map(|times| verdict(&about(&lab, "/v1/chat/completions", &[], &looping("fix it", times))))
        .collect();
    let told =
        [(200, "allow"), (200, "warn"), (200, "hint"), (200, "hint"), (200, "throttle"), (429, "reject")];
    assert_eq!(verdicts, told.map(|(status, verdict)| (status, verdict.to_owned())));
    assert_eq!(lab.sent(), 0);
}

#[test]
fn a_refusal_has_the_headers_and_the_shape_of_the_gateway() {
    let lab = Lab::new();
    for times in 1..=5 {
        about(&lab, "/v1/chat/completions", &[], &looping("fix it", times));
    }
    let reply = about(&lab, "/v1/chat/completions", &[], &looping("fix it", 6));
    assert_eq!((reply.status, reply.code().as_str()), (429, "loop_detected"));
    assert_eq!((reply.header("retry-after"), reply.header("x-should-retry")), (Some("60"), Some("false")));
    assert_eq!(reply.header("x-loopbreaker-loop"), Some("kind=repeat; count=6"));
    assert!(reply.header("x-loopbreaker-session").is_some());
}

#[test]
fn a_hint_comes_as_a_header_of_one_line() {
    let lab = Lab::new();
    let replies: Vec<_> =
        (1..=3).map(|times| about(&lab, "/v1/chat/completions", &[], &looping("fix it", times))).collect();
    assert_eq!(replies[1].header("x-loopbreaker-hint"), None);
    let hint = replies[2].header("x-loopbreaker-hint").unwrap();
    assert!(hint.starts_with("[Loopbreaker] ") && hint.is_ascii(), "{hint}");
}

#[test]
fn the_original_path_may_stand_behind_the_endpoint() {
    let lab = Lab::new();
    let verdicts: Vec<_> = (1..=6)
        .map(|times| verdict(&lab.post("/v1/decision/v1/chat/completions", &[], looping("fix it", times))).1)
        .collect();
    assert_eq!(verdicts, ["allow", "warn", "hint", "hint", "throttle", "reject"]);
}

#[test]
fn the_query_behind_the_original_path_is_part_of_it() {
    let lab = Lab::with(
        "policies: [{ id: p, spec: { rules: [{ id: r, key: tenant, requests: 1, period: 1h }] } }]",
    );
    let of = |key: &str| {
        let path = format!("/v1/decision/v1beta/models/g:generateContent?key={key}&deny=403");
        lab.post(&path, &[], r#"{"contents":[]}"#).status
    };
    assert_eq!(
        [of("AIza-one"), of("AIza-two"), of("AIza-one")],
        [200, 200, 403],
        "each key is a tenant of its own"
    );
}

#[test]
fn any_method_may_ask() {
    let lab = Lab::with("kill_switches: [{ tenant: acme }]");
    for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
        let headers = [
            ("x-original-method", "POST"),
            ("x-original-uri", "/v1/chat/completions"),
            ("x-tenant-id", "acme"),
        ];
        assert_eq!(lab.ask(method, "/v1/decision", &headers, "").status, 403, "{method}");
        assert_eq!(lab.ask(method, "/v1/decision", &headers[..2], "").status, 200, "{method}");
    }
}

#[test]
fn a_denial_can_have_the_status_that_a_proxy_understands() {
    let lab = Lab::with(
        "policies: [{ id: p, spec: { rules: [{ id: r, key: tenant, requests: 1, period: 1h }] } }]",
    );
    let ask =
        || lab.post("/v1/decision?deny=403", &[("x-original-uri", "/v1/chat/completions")], question("a"));
    let allowed = ask();
    assert_eq!((allowed.status, allowed.header("x-loopbreaker-status")), (200, None));
    let denied = ask();
    assert_eq!((denied.status, denied.header("x-loopbreaker-status")), (403, Some("429")));
    assert!(denied.header("retry-after").is_some() && denied.header("ratelimit").is_some());
    assert_eq!(denied.header("x-loopbreaker-verdict"), Some("reject"));
}

#[test]
fn a_client_behind_a_proxy_cannot_turn_a_refusal_into_a_permission() {
    let lab = Lab::with("kill_switches: [{ tenant: acme, route: /v1/chat/completions }]");
    let acme = ("x-tenant-id", "acme");
    for query in ["", "?deny=200", "?deny=204", "?a=b&deny=200", "?deny=503", "?deny=101"] {
        let path = format!("/v1/decision/v1/chat/completions{query}");
        assert_eq!(lab.post(&path, &[acme], question("a")).status, 403, "{path}");
        let elsewhere = [acme, ("x-original-uri", "/v1/models"), ("x-original-method", "GET")];
        assert_eq!(lab.post(&path, &elsewhere, question("a")).status, 403, "{path}");
    }
}

#[test]
fn without_a_body_it_says_so_and_checks_what_it_can() {
    let lab = Lab::with(
        "policies: [{ id: p, spec: { tool_loops: { enabled: true }, rules: [{ id: r, key: tenant, requests: 2, period: 1h }] } }]",
    );
    let statuses: Vec<_> = (0..3)
        .map(|_| {
            let reply = about(&lab, "/v1/chat/completions", &[], "");
            assert_eq!(reply.header("x-loopbreaker-degraded"), Some("body"));
            reply.status
        })
        .collect();
    assert_eq!(statuses, [200, 200, 429]);
    let with = about(&lab, "/v1/chat/completions", &[("x-tenant-id", "other")], &question("a"));
    assert_eq!(with.header("x-loopbreaker-degraded"), None);
}

#[test]
fn a_session_that_is_paused_is_denied_until_it_is_resumed() {
    let lab = Lab::new();
    let ask = |words: &str| {
        verdict(&about(&lab, "/v1/chat/completions", &[("x-session-id", "s")], &question(words)))
    };
    assert_eq!(ask("a"), (200, "allow".into()));
    lab.post("/api/v1/sessions/s/pause", &[], "");
    assert_eq!(ask("b"), (429, "pause".into()));
    lab.post("/api/v1/sessions/s/resume", &[], "");
    assert_eq!(ask("c"), (200, "allow".into()));
}

#[test]
fn the_hosts_of_policies_are_those_of_the_original() {
    let lab = Lab::with(
        "policies: [{ id: p, spec: { selector: { hosts: [api.example.com] }, rules: [{ id: r, requests: 1, period: 1h }] } }]",
    );
    let ask = || about(&lab, "/v1/chat/completions", &[], &question("a")).status;
    assert_eq!([ask(), ask()], [200, 429]);
    let elsewhere =
        || lab.post("/v1/decision", &[("x-original-uri", "/v1/chat/completions")], question("a")).status;
    assert_eq!([elsewhere(), elsewhere()], [200, 200]);
}

#[test]
fn in_shadow_everything_is_allowed_and_nothing_is_told() {
    let lab = Lab::with("global_shadow: true");
    for times in 1..=7 {
        let reply = about(&lab, "/v1/chat/completions", &[("x-session-id", "s")], &looping("fix it", times));
        assert_eq!((reply.status, reply.ours()), (200, vec!["x-loopbreaker-session".to_owned()]));
    }
    let without = about(&lab, "/v1/chat/completions", &[], "");
    assert_eq!((without.status, without.ours()), (200, vec!["x-loopbreaker-session".to_owned()]));
}

#[test]
fn decisions_are_counted_and_logged() {
    let lab = Lab::new();
    about(&lab, "/v1/chat/completions", &[("x-session-id", "s")], &looping("fix it", 3));
    assert_eq!(lab.metric(r#"loopbreaker_requests_total{dialect="chat",verdict="hint"}"#), 1.0);
    assert_eq!(lab.logged(1)[0]["session"], "s");
}
