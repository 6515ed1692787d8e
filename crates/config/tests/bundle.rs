//! Policy bundles of Fairvisor edge.

#![expect(clippy::expect_used, reason = "a bundle that does not load ends its test")]

use loopbreaker::Action;
use loopbreaker_config::{Config, Limit, LimitKey, Mode, PathPattern, Quantity, Rule, Window};
use proptest::prelude::*;

fn bundle() -> Config {
    Config::parse(include_str!("good/bundle.json")).expect("the bundle is sound")
}

/// The rules that one rule of a bundle becomes.
fn rules(algorithm: &str, numbers: &str) -> Vec<Rule> {
    let rule = format!(
        r#"{{ "name": "r", "limit_keys": ["jwt:org"], "algorithm": "{algorithm}", "algorithm_config": {{ {numbers} }} }}"#
    );
    let text = format!(
        r#"{{ "bundle_version": 1, "policies": [{{ "id": "a", "spec": {{ "rules": [{rule}] }} }}] }}"#
    );
    Config::parse(&text).expect("the bundle is sound").policies.remove(0).rules
}

fn limits(algorithm: &str, numbers: &str) -> Vec<(Quantity, u64, Window)> {
    let limits = rules(algorithm, numbers).remove(0).limits;
    limits.into_iter().map(|Limit { quantity, amount, window }| (quantity, amount, window)).collect()
}

const fn requests(amount: u64, seconds: u32) -> (Quantity, u64, Window) {
    (Quantity::Requests, amount, Window::Seconds(seconds))
}

const fn tokens(amount: u64, seconds: u32) -> (Quantity, u64, Window) {
    (Quantity::Tokens, amount, Window::Seconds(seconds))
}

#[test]
fn a_whole_bundle_is_a_config() {
    let config = bundle();
    assert_eq!(config.notices, []);
    let [chat, webhooks] = &config.policies[..] else { panic!("{:?}", config.policies) };
    let paths = [PathPattern::Exact("/v1/chat/completions".into()), PathPattern::Prefix("/v1/embed".into())];
    assert_eq!(
        (&chat.selector.paths[..], &chat.selector.hosts[..]),
        (&paths[..], &["api.example.com".to_owned()][..])
    );
    assert_eq!(chat.loop_detection.map(|it| (it.config.threshold(), it.action)), Some((3, Action::Reject)));
    let ids: Vec<_> = chat.rules.iter().map(|rule| &*rule.id).collect();
    assert_eq!(ids, ["per-key-rate", "org-tokens", "team-budget", "team-budget/throttle"]);
    assert_eq!(webhooks.mode, Mode::Shadow);
    assert_eq!(config.global_shadow.reason.as_deref(), Some("first week"));
}

#[test]
fn one_policy_or_a_list_of_them_is_a_config_too() {
    let policy = r#"{ "id": "llm-policy", "spec": { "selector": { "pathExact": "/v1/chat/completions" },
        "tool_loops": { "enabled": true, "ladder": ["reject"] }, "rules": [] } }"#;
    let below = Config::parse(&format!(r#"{{ "policies": [{policy}] }}"#)).expect("the policy is sound");
    assert_eq!(Config::parse(policy), Ok(below.clone()));
    assert_eq!(Config::parse(&format!("[{policy}]")), Ok(below));

    let problems =
        Config::parse("id: a\nspec: {}\nlisten: 127.0.0.1:1\n").expect_err("it is one or the other");
    assert_eq!((problems.len(), problems[0].line, &*problems[0].path), (1, 3, "listen"));
    assert!(Config::parse("- {}").is_err(), "a policy has an id");
}

#[test]
fn a_bundle_can_be_a_policy_file_as_well() {
    let mut load = |_: &str| Ok(include_str!("good/bundle.json").to_owned());
    let config = Config::parse_with("policy_files: [bundle.json]", &mut load).expect("the bundle is sound");
    assert_eq!(config, bundle());
}

#[test]
fn keys_are_claims_headers_and_parameters() {
    let rules = bundle().policies.remove(0).rules;
    assert_eq!(rules[0].keys, [LimitKey::JwtClaim("org_id".into()), LimitKey::Header("x-api-key".into())]);
    assert_eq!(rules[2].keys, [LimitKey::Query("team".into())]);
}

#[test]
fn a_bucket_becomes_a_window_as_long_as_it_takes_to_fill() {
    assert_eq!(limits("token_bucket", r#""tokens_per_second": 50, "burst": 100"#), [requests(100, 2)]);
    assert_eq!(limits("token_bucket", r#""rps": 20, "burst": 30"#), [requests(40, 2)]);
    assert_eq!(limits("token_bucket", r#""rps": 0.5, "burst": 1"#), [requests(1, 2)]);
    assert_eq!(limits("token_bucket", r#""rps": 1, "burst": 600"#), [requests(600, 600)]);
}

#[test]
fn a_request_that_costs_more_fills_the_bucket_faster() {
    let numbers = r#""tokens_per_second": 50, "burst": 100, "cost_source": "fixed", "fixed_cost": 5"#;
    assert_eq!(limits("token_bucket", numbers), [requests(20, 2)]);
}

#[test]
fn tokens_are_limited_per_minute_and_per_day() {
    assert_eq!(limits("token_bucket_llm", r#""tokens_per_minute": 100000"#), [tokens(100_000, 60)]);
    let both = r#""tokens_per_minute": 120000, "tokens_per_day": 2000000, "burst_tokens": 120000"#;
    assert_eq!(limits("token_bucket_llm", both), [tokens(120_000, 60), tokens(2_000_000, 86_400)]);
    let burst = r#""tokens_per_minute": 60000, "burst_tokens": 90000"#;
    assert_eq!(limits("token_bucket_llm", burst), [tokens(90_000, 90)]);
}

#[test]
fn a_budget_of_fixed_costs_counts_requests_and_its_stages_warn_and_throttle() {
    let rules = bundle().policies.remove(0).rules;
    let week = Window::Seconds(7 * 86_400);
    let requests = |amount| Limit { quantity: Quantity::Requests, amount, window: week };
    let [.., budget, throttle] = &rules[..] else { panic!("{rules:?}") };
    assert_eq!((&budget.limits[..], budget.on_exceed), (&[requests(2_500)][..], Action::Reject));
    assert_eq!(budget.warn_at, [0.5, 0.8]);
    // The 2375th request reaches 95 percent, so 2374 pass before it.
    assert_eq!((&throttle.limits[..], throttle.on_exceed), (&[requests(2_374)][..], Action::Throttle));
    assert_eq!((&throttle.keys, &throttle.warn_at[..]), (&budget.keys, &[][..]));
}

#[test]
fn kill_switches_name_what_they_look_at() {
    let switches = bundle().kill_switches;
    assert_eq!(
        (&switches[0].key, &*switches[0].value),
        (&LimitKey::Header("x-tenant-id".into()), "tenant-42")
    );
    assert_eq!(switches[1].path.as_deref(), Some("/v1/embed/all"));
}

#[test]
fn what_loads_but_acts_otherwise_is_mentioned() {
    let text = r#"{
        "bundle_version": 1,
        "expires_at": "2030-01-01T00:00:00Z",
        "policies": [{ "id": "a", "spec": { "rules": [
            { "name": "r", "limit_keys": [], "algorithm": "token_bucket_llm", "algorithm_config": { "tokens_per_minute": 5, "default_max_completion": 800 } }
        ] } }]
    }"#;
    let config = Config::parse(text).expect("the bundle is sound");
    let told: Vec<_> = config.notices.iter().map(|notice| &*notice.path).collect();
    assert_eq!(told, ["expires_at", "policies[0].spec.rules[0].algorithm_config.default_max_completion"]);
    assert_eq!(config.policies[0].rules[0].keys, []);
}

#[test]
fn the_keys_of_a_bundle_are_unknown_in_a_config_that_is_none() {
    let problems = Config::parse("issued_at: 2026-01-01T00:00:00Z").expect_err("there is no bundle_version");
    assert_eq!(problems[0].message, "unknown key \"issued_at\"");
}

#[test]
fn a_bundle_is_explained_in_our_words() {
    let explained =
        bundle().explain().into_iter().filter(|line| line.starts_with("policy") || line.starts_with("kill"));
    assert_eq!(explained.collect::<Vec<_>>().join("\n") + "\n", include_str!("good/bundle.explained"));
}

proptest! {
    /// What the module's documentation promises, for every bucket.
    #[test]
    fn a_window_keeps_the_rate_of_its_bucket_and_lets_its_burst_pass(rate in 1..100_000_u32, more in 0..100_000_u32) {
        let (rate, burst) = (f64::from(rate) / 10.0, f64::from(rate + more) / 10.0);
        prop_assume!(burst >= 1.0);
        let numbers = format!(r#""rps": {rate}, "burst": {burst}"#);
        let [(Quantity::Requests, amount, Window::Seconds(seconds))] = limits("token_bucket", &numbers)[..] else {
            panic!("{numbers}");
        };
        let (amount, seconds) = (amount as f64, f64::from(seconds));
        prop_assert!(amount >= burst.floor(), "{amount} in {seconds}s");
        prop_assert!((amount - rate * seconds).abs() <= 0.5 + 1e-6, "{amount} in {seconds}s");
        prop_assert!(amount <= burst + rate + 0.5, "{amount} in {seconds}s");
    }

    #[test]
    fn a_minute_of_tokens_stays_a_minute(per_minute in 1..10_000_000_u64) {
        prop_assert_eq!(limits("token_bucket_llm", &format!(r#""tokens_per_minute": {per_minute}"#)), [tokens(per_minute, 60)]);
    }
}
