//! Selectors, keys and policy files.

use crate::lab::{Bench, Lab};
use crate::talk::{looping, question};

/// The statuses of so many equal requests.
fn statuses(lab: &Lab, count: usize, ask: impl Fn(&Lab) -> u16) -> Vec<u16> {
    (0..count).map(|_| ask(lab)).collect()
}

/// A policy that refuses the second equal request, with this selector.
fn second_refused(selector: &str) -> String {
    format!(
        "policies: [{{ id: p, spec: {{ selector: {selector}, loop_detection: {{ enabled: true, window_seconds: 60, \
         threshold_identical_requests: 2, action: reject }} }} }}]"
    )
}

#[test]
fn an_exact_path_fits_only_itself() {
    let lab = Lab::with(&second_refused("{ pathExact: /v1/chat/completions }"));
    assert_eq!(statuses(&lab, 2, |lab| lab.chat(&[], question("a")).status), [200, 429]);
    let anthropic =
        |lab: &Lab| lab.post("/v1/messages", &[], r#"{"model":"c","max_tokens":9,"messages":[]}"#).status;
    assert_eq!(statuses(&lab, 3, anthropic), [200; 3]);
}

#[test]
fn a_prefix_fits_what_is_below_it() {
    let lab = Lab::with(&second_refused("{ pathPrefix: /v1/ }"));
    assert_eq!(statuses(&lab, 2, |lab| lab.get("/v1/models").status), [200, 429]);
    assert_eq!(statuses(&lab, 3, |lab| lab.get("/v1beta/models").status), [200; 3]);
}

#[test]
fn methods_narrow_a_policy_down() {
    let lab = Lab::with(&second_refused("{ pathPrefix: /, methods: [POST] }"));
    assert_eq!(statuses(&lab, 3, |lab| lab.get("/v1/models").status), [200; 3]);
    assert_eq!(statuses(&lab, 2, |lab| lab.chat(&[], question("a")).status), [200, 429]);
}

#[test]
fn tenants_narrow_a_policy_down() {
    let lab = Lab::with(&second_refused("{ tenants: [\"team-*\"] }"));
    let as_tenant =
        |name: &'static str| move |lab: &Lab| lab.chat(&[("x-tenant-id", name)], question("a")).status;
    assert_eq!(statuses(&lab, 2, as_tenant("team-a")), [200, 429]);
    assert_eq!(statuses(&lab, 3, as_tenant("other")), [200; 3]);
}

#[test]
fn models_narrow_a_policy_down_in_the_body_and_in_the_path() {
    let lab = Lab::with(&second_refused("{ models: [\"gpt-4o*\", gemini-2.5-pro] }"));
    let with_model = |model: &'static str| {
        move |lab: &Lab| lab.chat(&[], format!(r#"{{"model":"{model}","messages":[]}}"#)).status
    };
    assert_eq!(statuses(&lab, 2, with_model("gpt-4o-mini")), [200, 429]);
    assert_eq!(statuses(&lab, 3, with_model("o3")), [200; 3]);
    let gemini = |model: &'static str| {
        move |lab: &Lab| {
            lab.post(&format!("/v1beta/models/{model}:generateContent"), &[], r#"{"contents":[]}"#).status
        }
    };
    assert_eq!(statuses(&lab, 2, gemini("gemini-2.5-pro")), [200, 429]);
    assert_eq!(statuses(&lab, 3, gemini("gemini-2.5-flash")), [200; 3]);
}

#[test]
fn hosts_narrow_a_policy_down() {
    let lab = Lab::with(&second_refused("{ hosts: [llm.example.com] }"));
    let at = |host: &'static str| move |lab: &Lab| lab.chat(&[("host", host)], question("a")).status;
    assert_eq!(statuses(&lab, 2, at("LLM.example.com:4141")), [200, 429]);
    assert_eq!(statuses(&lab, 3, at("127.0.0.1")), [200; 3]);
}

#[test]
fn limit_keys_tell_equal_requests_apart() {
    let keys = [
        ("session", "x-session-id"),
        ("agent", "x-agent-id"),
        ("\"header:x-team\"", "x-team"),
        ("tenant", "x-tenant-id"),
    ];
    for (key, header) in keys {
        let lab = Lab::with(&format!(
            "policies: [{{ id: p, spec: {{ limit_keys: [{key}], loop_detection: {{ enabled: true, \
             window_seconds: 60, threshold_identical_requests: 2, action: reject }} }} }}]"
        ));
        let with = |value: &'static str| move |lab: &Lab| lab.chat(&[(header, value)], question("a")).status;
        assert_eq!(statuses(&lab, 1, with("one")), [200], "{key}");
        assert_eq!(statuses(&lab, 1, with("two")), [200], "{key}");
        assert_eq!(statuses(&lab, 1, with("one")), [429], "{key}");
    }
}

#[test]
fn a_query_value_may_be_a_limit_key() {
    let lab = Lab::with(
        "policies: [{ id: p, spec: { rules: [{ id: r, key: \"query:team\", requests: 1, period: 1h }] } }]",
    );
    let of = |team: &str| lab.post(&format!("/v1/chat/completions?team={team}"), &[], question("a")).status;
    assert_eq!([of("a"), of("b"), of("a")], [200, 200, 429]);
}

#[test]
fn a_policy_file_of_the_seed_loads_unchanged() {
    let seed = r#"{
      "id": "llm-policy",
      "spec": {
        "selector": { "pathExact": "/v1/chat/completions" },
        "loop_detection": {
          "enabled": true,
          "window_seconds": 60,
          "threshold_identical_requests": 5,
          "action": "reject",
          "similarity": "exact"
        },
        "rules": []
      }
    }"#;
    let lab = Bench::new().file("llm-policy.json", seed).config("policy_files: [llm-policy.json]").start();
    assert_eq!(statuses(&lab, 6, |lab| lab.chat(&[], question("a")).status), [200, 200, 200, 200, 429, 429]);
    let refused = lab.chat(&[], question("a"));
    assert_eq!(refused.header("retry-after"), Some("60"));
}

#[test]
fn the_same_policy_inline_as_json_or_yaml_does_the_same() {
    let json = r#"{"policies":[{"id":"p","spec":{"selector":{"pathExact":"/v1/chat/completions"},"loop_detection":{"enabled":true,"window_seconds":60,"threshold_identical_requests":3}}}]}"#;
    let yaml = "policies:\n  - id: p\n    spec:\n      selector:\n        pathExact: /v1/chat/completions\n      loop_detection:\n        enabled: true\n        window_seconds: 60\n        threshold_identical_requests: 3\n";
    for config in [json, yaml] {
        let lab = Lab::with(config);
        assert_eq!(statuses(&lab, 4, |lab| lab.chat(&[], question("a")).status), [200, 200, 429, 429]);
    }
}

#[test]
fn every_policy_is_evaluated_and_the_strictest_wins() {
    let lab = Lab::with(
        "policies:\n  \
         - { id: soft, spec: { loop_detection: { enabled: true, window_seconds: 60, threshold_identical_requests: 2, action: warn } } }\n  \
         - { id: hard, spec: { loop_detection: { enabled: true, window_seconds: 60, threshold_identical_requests: 3, action: reject } } }\n",
    );
    let verdicts: Vec<_> = (0..3).map(|_| lab.verdict(&[], question("a"))).collect();
    assert_eq!(verdicts, [(200, "allow".into()), (200, "warn".into()), (429, "reject".into())]);
}

#[test]
fn a_part_that_a_policy_does_not_name_is_off() {
    let lab = Lab::with("policies: [{ id: p, spec: { chant: { enabled: true } } }]");
    for times in 1..8 {
        assert_eq!(lab.verdict(&[("x-session-id", "s")], looping("fix it", times)), (200, "allow".into()));
    }
}
