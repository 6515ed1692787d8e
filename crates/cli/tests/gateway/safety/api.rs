//! Who may pause, resume and reject.

use bytes::Bytes;
use http_body_util::Full;

use crate::faithful::over_http2;
use crate::lab::{Bench, Lab, until};
use crate::talk::question;
use crate::wire::{Reply, Wire, request};

const PAUSE: &str = "/api/v1/sessions/s/pause";

/// A lab in which the session `s` is known.
fn known(lab: Lab) -> Lab {
    assert_eq!(lab.chat(&[("x-session-id", "s")], question("a")).status, 200);
    lab
}

fn pause(lab: &Lab, headers: &[(&str, &str)]) -> u16 {
    lab.post(PAUSE, headers, "").status
}

/// SHA-256 of `open sesame` and of `just looking`.
const OPERATOR: &str = "41ef4bb0b23661e66301aac36066912dac037827b4ae63a7b1165a5aa93ed4eb";
const VIEWER: &str = "c446d158ec492362b92e7d5529e1d63eba9eaec6aeb4e319584f2fc90bfaf661";

fn with_tokens() -> String {
    format!(
        "admin: {{ tokens: [{{ role: operator, sha256: \"{OPERATOR}\" }}, {{ role: viewer, sha256: \"{VIEWER}\" }}] }}"
    )
}

#[test]
fn without_tokens_this_machine_may() {
    let lab = known(Lab::new());
    for host in ["127.0.0.1", "localhost:4141", "[::1]:80", "127.0.0.53"] {
        assert_eq!(pause(&lab, &[("host", host)]), 200, "{host}");
    }
    let own = [("host", "localhost:4141"), ("origin", "http://localhost:4141")];
    assert_eq!(pause(&lab, &own), 200);
    for origin in ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:8443"] {
        assert_eq!(pause(&lab, &[("host", "127.0.0.1:4141"), ("origin", origin)]), 403, "{origin}");
        let read = lab.ask("GET", "/api/v1/sessions", &[("origin", origin)], "");
        assert_eq!(read.status, 200, "{origin}");
    }
}

#[test]
fn a_foreign_web_page_may_not() {
    let lab = known(Lab::new());
    let hosts = [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "10.0.0.1",
        "127.evil",
        "0.0.0.0",
    ];
    for host in hosts {
        assert_eq!(pause(&lab, &[("host", host)]), 403, "{host}");
        let page = lab.ask("GET", "/", &[("host", host)], "");
        assert_eq!((page.status, page.text().contains("admin.tokens")), (403, true), "{host}");
    }
    let origins = [
        "http://evil.example",
        "null",
        "http://127.0.0.1.evil.example",
        "http://localhost@evil.example",
        "file://",
    ];
    for origin in origins {
        assert_eq!(pause(&lab, &[("host", "127.0.0.1:4141"), ("origin", origin)]), 403, "{origin}");
    }
    assert_eq!(lab.chat(&[("x-session-id", "s")], question("b")).status, 200, "it was never paused");
}

#[test]
fn a_foreign_name_may_not_over_http2_either() {
    let lab = known(Lab::new());
    let ask = |host: &str| {
        let request =
            hyper::Request::post(format!("http://{host}{PAUSE}")).body(Full::<Bytes>::default()).unwrap();
        over_http2(lab.address, vec![request])[0].0.status.as_u16()
    };
    assert_eq!(ask("evil.example"), 403);
    assert_eq!(ask("127.0.0.1"), 200);
}

#[test]
fn with_tokens_only_an_operator_may() {
    let lab = known(Lab::with(&with_tokens()));
    assert_eq!(pause(&lab, &[]), 401);
    assert_eq!(pause(&lab, &[("authorization", "Bearer wrong")]), 401);
    assert_eq!(pause(&lab, &[("authorization", "open sesame")]), 401);
    assert_eq!(pause(&lab, &[("authorization", "Bearer ")]), 401);
    assert_eq!(
        lab.post(&format!("{PAUSE}?token=open%20sesame"), &[], "").status,
        401,
        "tokens never stand in a URL"
    );
    assert_eq!(
        pause(&lab, &[("authorization", &format!("Bearer {OPERATOR}"))]),
        401,
        "the hash is not the token"
    );
    assert_eq!(pause(&lab, &[("authorization", "Bearer just looking")]), 403);
    assert_eq!(pause(&lab, &[("authorization", "Bearer open sesame")]), 200);
    assert_eq!(pause(&lab, &[("authorization", "Bearer open sesame"), ("host", "gateway.example")]), 200);
}

#[test]
fn orders_that_make_no_sense_are_refused() {
    let lab = known(Lab::new());
    assert_eq!(lab.post("/api/v1/sessions/nobody/pause", &[], "").status, 404);
    assert_eq!(lab.post("/api/v1/sessions/s/explode", &[], "").status, 404);
    assert_eq!(lab.ask("GET", PAUSE, &[], "").status, 405);
    assert_eq!(lab.post("/api/v1/sessions/s/reject", &[], "{broken").status, 400);
    assert_eq!(lab.post("/api/v1/sessions/s/reject", &[], "x".repeat(1 << 20)).status, 413);
    let twice = [lab.post(PAUSE, &[], "").json(), lab.post(PAUSE, &[], "").json()];
    assert_eq!((twice[0].get("note"), twice[1]["note"].as_str()), (None, Some("it is paused already")));
}

#[test]
fn a_session_of_two_tenants_is_not_paused_by_mistake() {
    let lab = Lab::new();
    for tenant in ["one", "two"] {
        lab.chat(&[("x-tenant-id", tenant), ("x-session-id", "s")], question("a"));
    }
    assert_eq!(pause(&lab, &[]), 409);
}

/// Asks a gateway that listens on every address.
fn ask(address: std::net::SocketAddr, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
    let mut wire = Wire::connect(([127, 0, 0, 1], address.port()).into());
    wire.send(&request(method, path, headers, b""));
    wire.reply()
}

#[test]
fn a_port_that_others_can_reach_serves_the_gateway_only() {
    let lab = Bench::new().arg("--listen").arg("0.0.0.0:0").start();
    for path in ["/metrics", "/readyz", PAUSE] {
        assert_eq!(ask(lab.address, "POST", path, &[]).status, 404, "{path}");
    }
    assert_eq!(ask(lab.address, "GET", "/v1/models", &[]).status, 200);
}

#[test]
fn a_port_that_others_can_reach_does_not_believe_the_tenants_header() {
    let config = "kill_switches: [{ tenant: acme }]";
    let lab = Bench::new().config(config).arg("--listen").arg("0.0.0.0:0").start();
    assert_eq!(ask(lab.address, "GET", "/v1/models", &[("x-tenant-id", "acme")]).status, 200);
    let trusting = format!("{config}\nadmin: {{ trust_tenant_header: true }}");
    let lab = Bench::new().config(&trusting).arg("--listen").arg("0.0.0.0:0").start();
    assert_eq!(ask(lab.address, "GET", "/v1/models", &[("x-tenant-id", "acme")]).status, 403);
}

#[test]
fn tokens_that_a_reload_takes_away_open_no_door_to_others() {
    let lab = Bench::new().config(&with_tokens()).arg("--listen").arg("0.0.0.0:0").start();
    ask(lab.address, "GET", "/v1/models", &[("x-session-id", "s")]);
    let token = ("authorization", "Bearer open sesame");
    assert_eq!(ask(lab.address, "POST", PAUSE, &[token]).status, 200);
    lab.reconfigure("holdout: 0%");
    until("the new config is in force", || lab.log().contains("config reloaded"));
    let status = ask(lab.address, "POST", PAUSE, &[("host", "localhost")]).status;
    assert!([401, 403, 404].contains(&status), "{status}");
}

#[test]
fn a_port_for_operators_that_others_can_reach_has_no_api_without_tokens() {
    let mut lab = Bench::new().config("admin_listen: 0.0.0.0:0").start();
    let admin = lab.admin_address();
    lab.chat(&[("x-session-id", "s")], question("a"));
    let status = ask(admin, "POST", PAUSE, &[("host", "localhost")]).status;
    assert!([401, 403, 404].contains(&status), "{status}");
    assert_eq!(ask(admin, "GET", "/livez", &[]).status, 200);
}

#[test]
fn a_port_for_operators_takes_health_and_api_away_from_the_other() {
    let mut lab = Bench::new().config("admin_listen: 127.0.0.1:0").start();
    let admin = lab.admin_address();
    lab.chat(&[("x-session-id", "s")], question("a"));
    for path in ["/livez", "/readyz", "/metrics", PAUSE] {
        assert_eq!(lab.post(path, &[], "").status, 404, "{path}");
    }
    assert_eq!(ask(admin, "GET", "/livez", &[]).status, 200);
    assert_eq!(ask(admin, "GET", "/metrics", &[]).status, 200);
    assert_eq!(ask(admin, "POST", PAUSE, &[]).status, 200);
    assert_eq!(ask(admin, "GET", "/v1/models", &[]).status, 404, "no traffic there");
    assert_eq!(lab.post("/v1/decision", &[("x-original-uri", "/v1/models")], "").status, 200);
}
