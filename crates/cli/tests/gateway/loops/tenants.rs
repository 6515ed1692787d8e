//! Two tenants never influence each other.

use serde_json::Value;

use crate::lab::{Bench, Lab, until};
use crate::provider::Provider;
use crate::talk::{Chat, looping, question};
use crate::wire::answer;

/// The statuses of a transcript that goes round, for one tenant.
fn climb(lab: &Lab, header: (&str, &str)) -> Vec<String> {
    (1..=6).map(|times| lab.verdict(&[header], looping("the same task", times)).1).collect()
}

const WHOLE_LADDER: [&str; 6] = ["allow", "warn", "hint", "hint", "throttle", "reject"];

#[test]
fn tenants_that_send_the_same_bodies_climb_their_own_ladders() {
    let lab = Lab::new();
    // Both names have the same CRC-32.
    assert_eq!(climb(&lab, ("x-tenant-id", "plumless")), WHOLE_LADDER);
    assert_eq!(climb(&lab, ("x-tenant-id", "buckeroo")), WHOLE_LADDER);
    assert_eq!(climb(&lab, ("authorization", "Bearer sk-other")), WHOLE_LADDER);
}

#[test]
fn a_session_of_the_same_name_is_another_one() {
    let lab = Lab::new();
    for tenant in ["plumless", "buckeroo"] {
        let headers = [("x-tenant-id", tenant), ("x-session-id", "main")];
        let verdicts: Vec<_> = (1..=6).map(|times| lab.verdict(&headers, looping("task", times)).1).collect();
        assert_eq!(verdicts, WHOLE_LADDER, "{tenant}");
    }
}

#[test]
fn sessions_that_say_the_same_are_each_written_down_whole() {
    let lab = Lab::new();
    let steps = |session: &str| {
        let headers = [("x-session-id", session)];
        for times in 1..=4 {
            let commands = (0..times).map(|n| (format!("cat {n}.txt"), format!("text number {n}")));
            let chat =
                commands.fold(Chat::new("read them"), |chat, (call, result)| chat.call(&call, &result));
            assert_eq!(lab.verdict(&headers, chat.body()).0, 200);
        }
        let mut told = Vec::new();
        until("its calls are written down", || {
            let steps = lab.get(&format!("/api/v1/sessions/{session}/steps")).json()["steps"].clone();
            let words = |step: &Value| {
                let log = &step["log"];
                format!("{} {}", log["action"]["tool_input"], log["action"]["status"])
            };
            told = steps.as_array().map_or(Vec::new(), |steps| steps.iter().map(words).collect());
            told.iter().filter(|step| step.contains("cat")).count() == 4
        });
        told.retain(|step| step.contains("cat"));
        told
    };
    let first = steps("one");
    assert!(first.iter().all(|step| step.ends_with("\"success\"")), "{first:?}");
    assert_eq!(steps("two"), first);
    assert_eq!(steps("three"), first);
}

#[test]
fn interleaved_tenants_do_not_add_up() {
    let lab = Lab::with(
        "policies: [{ id: p, spec: { loop_detection: { enabled: true, window_seconds: 60, threshold_identical_requests: 3, action: reject } } }]",
    );
    for round in 0..2 {
        for tenant in ["plumless", "buckeroo"] {
            let reply = lab.chat(&[("x-tenant-id", tenant)], question("a"));
            assert_eq!(reply.status, 200, "{tenant} {round}");
        }
    }
    assert_eq!(lab.chat(&[("x-tenant-id", "plumless")], question("a")).status, 429);
    assert_eq!(lab.chat(&[("x-tenant-id", "third")], question("a")).status, 200);
}

#[test]
fn derived_sessions_of_two_tenants_have_different_names() {
    let lab = Lab::new();
    let name = |tenant| {
        let reply = lab.chat(&[("x-tenant-id", tenant)], question("the same"));
        reply.header("x-loopbreaker-session").unwrap().to_owned()
    };
    assert_ne!(name("plumless"), name("buckeroo"));
}

#[test]
fn a_tenant_cannot_take_the_name_of_one_that_has_only_a_key() {
    let lab = Lab::with(
        "policies: [{ id: p, spec: { rules: [{ id: r, key: tenant, requests: 1, period: 1h }] } }]",
    );
    let key = [("authorization", "Bearer sk-victim")];
    assert_eq!(lab.post("/v1/chat/completions", &key, question("a")).status, 200);
    let name = lab.logged(1)[0]["tenant"].as_str().unwrap().to_owned();
    assert!(name.starts_with("key_"), "{name}");
    let other = lab.post("/v1/chat/completions", &[("x-tenant-id", &name)], question("a"));
    assert_eq!(other.status, 200, "its budget is another one");
}

/// A path, the credential that its provider looks at, and a header that it does not look at.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

#[test]
fn a_credential_that_the_provider_does_not_look_at_makes_no_other_tenant() {
    let provider = Provider::answering(answer("200 OK", &[], b"{}"));
    let config = "policies: [{ id: p, spec: { rules: [{ id: r, key: tenant, requests: 1, period: 1h }] } }]";
    let lab = Bench::new().config(config).upstream(provider.url()).start();
    let gemini = "/v1beta/models/g:generateContent";
    let cases: [Case<'_>; 5] = [
        (gemini, &[("x-goog-api-key", "AIza-1")], "x-api-key"),
        (gemini, &[("x-goog-api-key", "AIza-2")], "authorization"),
        ("/v1beta/models/g:generateContent?key=AIza-3", &[], "x-api-key"),
        ("/v1/messages", &[("x-api-key", "sk-ant-1")], "authorization"),
        ("/v1/chat/completions", &[("authorization", "Bearer sk-1")], "api-key"),
    ];
    for (path, own, added) in cases {
        let statuses = ["first", "second", "third"].map(|random| {
            let mut headers = own.to_vec();
            headers.push((added, random));
            lab.post(path, &headers, "{}").status
        });
        assert_eq!(statuses, [200, 429, 429], "{path} with another {added} each time");
    }
    let spelt = ["Bearer sk-2", "bearer sk-2", "BEARER   sk-2"]
        .map(|value| lab.post("/v1/chat/completions", &[("authorization", value)], "{}").status);
    assert_eq!(spelt, [200, 429, 429]);
}

#[test]
fn requests_without_any_identity_are_told_apart_by_what_they_say() {
    let lab = Lab::new();
    let name = |words: &str| {
        let reply = lab.post("/v1/chat/completions", &[], question(words));
        reply.header("x-loopbreaker-session").unwrap().to_owned()
    };
    assert_ne!(name("one task"), name("another task"));
    for nothing in ["null", "undefined", "", "none", "-"] {
        let reply = lab.post("/v1/chat/completions", &[("x-session-id", nothing)], question(nothing));
        assert!(reply.header("x-loopbreaker-session").unwrap().starts_with("lb-"), "{nothing:?}");
    }
}

#[test]
fn the_tenant_header_can_have_another_name() {
    let lab = Lab::with("admin: { tenant_header: X-Org }\nkill_switches: [{ tenant: acme }]");
    assert_eq!(lab.chat(&[("x-org", "acme")], question("a")).status, 403);
    assert_eq!(lab.chat(&[("x-tenant-id", "acme")], question("a")).status, 200);
}
