//! Health, readiness and metrics.

use loopbreaker_mock::{Turn, Usage};

use crate::lab::{Lab, until};
use crate::talk::{looping, looping_in_every_dialect, question};

#[test]
fn it_is_alive_and_ready_as_soon_as_it_listens() {
    let lab = Lab::new();
    let alive = lab.get("/livez");
    assert_eq!((alive.status, alive.text().as_str()), (200, "ok\n"));
    let ready = lab.get("/readyz");
    assert_eq!((ready.status, ready.header("content-type")), (200, Some("application/json")));
    let ready = ready.json();
    assert_eq!(ready["status"], "ready");
    assert_eq!(ready["degraded"], serde_json::json!([]));
    assert_eq!(ready["parts"]["gateway"], "ok");
    assert_eq!(ready["parts"]["state"], "memory");
    assert_eq!(ready["parts"]["policies"], 1);
}

#[test]
fn health_is_asked_by_get_and_head() {
    let lab = Lab::new();
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(lab.ask("HEAD", path, &[], "").status, 200, "{path}");
    }
}

#[test]
fn metrics_count_what_happened() {
    let lab = Lab::new();
    lab.mock.script([Turn::text("ok").usage(Usage {
        input: 100,
        cache_read: 20,
        output: 30,
        ..Usage::default()
    })]);
    for times in 1..=6 {
        lab.chat(&[], looping("fix it", times));
    }
    for (path, body) in looping_in_every_dialect(1).into_iter().skip(1) {
        lab.post(path, &[("x-tenant-id", "acme")], body);
    }
    lab.get("/v1/models");
    let count = |dialect: &str, verdict: &str| {
        lab.metric(&format!("loopbreaker_requests_total{{dialect=\"{dialect}\",verdict=\"{verdict}\"}}"))
    };
    assert_eq!(
        ["allow", "warn", "hint", "throttle", "reject"].map(|verdict| count("chat", verdict)),
        [1.0, 1.0, 2.0, 1.0, 1.0]
    );
    assert_eq!(
        ["anthropic", "gemini", "responses", "other"].map(|dialect| count(dialect, "allow")),
        [1.0; 4]
    );
    assert_eq!(
        lab.metric(r#"loopbreaker_findings_total{kind="repeat",severity="loop",mode="enforce"}"#),
        4.0
    );
    assert_eq!(
        lab.metric(r#"loopbreaker_findings_total{kind="repeat",severity="warning",mode="enforce"}"#),
        1.0
    );
    assert_eq!(lab.metric("loopbreaker_overhead_seconds_count"), 10.0);
    let tokens = |kind: &str| {
        lab.metric(&format!(
            "loopbreaker_tokens_total{{dialect=\"chat\",kind=\"{kind}\",tenant_class=\"key\"}}"
        ))
    };
    assert_eq!(["input", "cache_read", "output"].map(tokens), [500.0, 100.0, 150.0]);
    assert!(lab.metric(r#"loopbreaker_cost_usd_total{dialect="chat",tenant_class="key"}"#) > 0.0);
    assert!(
        lab.metric(r#"loopbreaker_tokens_total{dialect="anthropic",kind="input",tenant_class="named"}"#)
            > 0.0
    );
    assert_eq!(lab.metric("loopbreaker_held"), 0.0);
    assert!(lab.metric("loopbreaker_sessions") >= 2.0);
}

#[test]
fn our_own_time_is_told_without_that_of_the_provider() {
    let lab = Lab::new();
    lab.mock.script([Turn::text("late").delay_ms(500)]);
    lab.chat(&[], question("a"));
    let sum = lab.metric("loopbreaker_overhead_seconds_sum");
    assert!(sum > 0.0 && sum < 0.25, "{sum}");
    let line = &lab.logged(1)[0];
    assert!(line["duration_ms"].as_u64().unwrap() >= 500);
    assert!(line["overhead_us"].as_u64().unwrap() < 250_000);
}

#[test]
fn metrics_are_in_the_format_of_prometheus() {
    let lab = Lab::new();
    lab.chat(&[], question("a"));
    let reply = lab.get("/metrics");
    assert!(reply.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    let text = reply.text();
    assert!(text.ends_with('\n'));
    let mut families = std::collections::BTreeSet::new();
    let mut samples = std::collections::BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(families.insert(name.to_owned()), "twice: {line}");
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(samples.insert(name.to_owned()), "twice: {line}");
            let bare = name.split('{').next().unwrap();
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| bare.strip_suffix(end))
                .filter(|name| families.contains(*name));
            assert!(families.contains(family.unwrap_or(bare)), "no type before {line}");
        }
    }
    assert!(samples.len() < 1_000, "labels are bounded: {}", samples.len());
}

#[test]
fn a_line_of_the_log_tells_session_and_verdict() {
    let lab = Lab::new();
    lab.chat(
        &[("x-session-id", "run-17"), ("x-agent-id", "planner"), ("x-tenant-id", "acme")],
        looping("fix it", 3),
    );
    let line = &lab.logged(1)[0];
    for (name, value) in [
        ("session", "run-17"),
        ("agent", "planner"),
        ("tenant", "acme"),
        ("verdict", "hint"),
        ("dialect", "chat"),
        ("method", "POST"),
        ("path", "/v1/chat/completions"),
        ("model", "gpt-4o"),
    ] {
        assert_eq!(line[name], value, "{name}");
    }
    assert_eq!((&line["status"], &line["findings"][0]["kind"]), (&200.into(), &"repeat".into()));
    assert_eq!(line["upstream"], lab.mock.addr().to_string());
}

#[test]
fn what_is_not_understood_is_said_to_be_degraded() {
    let lab = Lab::new();
    lab.chat(&[], "this is no JSON");
    until("it is counted", || lab.metric(r#"loopbreaker_degraded_total{part="body"}"#) == 1.0);
    assert_eq!(lab.logged(1)[0]["degraded"], serde_json::json!(["body"]));
}

#[test]
fn what_no_provider_serves_is_404_and_says_what_is_served() {
    let lab = Lab::new();
    for path in ["/index", "/favicon.ico", "/v2/x", "/v1x", "/api/v1/", "/api/v2/sessions"] {
        let reply = lab.get(path);
        assert_eq!(reply.status, 404, "{path}");
        assert!(reply.json().get("error").is_some(), "{path}");
    }
    assert_eq!(lab.sent(), 0);
}
