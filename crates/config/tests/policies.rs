//! Policies: their parts, their rules, their files.

#![expect(clippy::expect_used, reason = "a config that does not load ends its test")]

use loopbreaker::{Action, Ladder, ToolPattern};
use loopbreaker_config::{
    ChantAction, Config, Limit, LimitKey, Mode, PathPattern, Policy, Problem, Quantity, Rule, Similarity,
    Window,
};

fn load(text: &str) -> Config {
    Config::parse(text).expect("the config is sound")
}

/// Loads a config whose policy files are the rest of the arguments.
fn load_with(text: &str, files: &[(&str, &str)]) -> Result<Config, Vec<Problem>> {
    Config::parse_with(text, &mut |name| {
        let found = files.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "there is no such file".to_owned())
    })
}

fn rule(text: &str) -> Rule {
    let config = format!("policies: [{{ id: a, spec: {{ limit_keys: [agent, tenant], rules: [{text}] }} }}]");
    load(&config).policies.remove(0).rules.remove(0)
}

const fn limit(quantity: Quantity, amount: u64, window: Window) -> Limit {
    Limit { quantity, amount, window }
}

#[test]
fn the_policy_of_the_contract_is_read_whole() {
    let config = load(include_str!("good/policies.yaml"));
    let Policy { id, mode, selector, limit_keys, loop_detection, tool_loops, semantic, chant, cache, rules } =
        &config.policies[0];
    assert_eq!((&**id, *mode, cache), ("agents", Mode::Enforce, &None));
    assert_eq!(
        (&selector.paths[..], &selector.methods[..]),
        (&[PathPattern::Prefix("/v1/".into())][..], &["POST".to_owned()][..])
    );
    assert_eq!(limit_keys[..], [LimitKey::Tenant]);
    let identical = loop_detection.expect("it is enabled");
    assert_eq!((identical.config.window_seconds(), identical.config.threshold()), (60, 5));
    assert_eq!((identical.action, identical.similarity), (Action::Reject, Similarity::Exact));
    assert_eq!(tool_loops.as_ref().map(|it| &it.ladder), Some(&Ladder::default()));
    assert_eq!(semantic.map(|it| (it.threshold, it.action)), Some((0.95, Action::Hint)));
    assert_eq!(*chant, Some(ChantAction::Cut));

    let read: Vec<_> =
        rules.iter().map(|rule| (&*rule.id, &rule.keys[0], rule.limits[0], rule.on_exceed)).collect();
    let minute = Window::Seconds(60);
    let expected = [
        ("rpm", &LimitKey::Tenant, limit(Quantity::Requests, 600, minute), Action::Reject),
        ("tpm", &LimitKey::Tenant, limit(Quantity::Tokens, 200_000, minute), Action::Reject),
        ("budget", &LimitKey::Session, limit(Quantity::CostUsd, 5_000_000, Window::Session), Action::Pause),
        (
            "daily",
            &LimitKey::Tenant,
            limit(Quantity::CostUsd, 100_000_000, Window::Seconds(86_400)),
            Action::Reject,
        ),
    ];
    assert_eq!(read, expected);
    assert_eq!((&rules[0].warn_at[..], &rules[2].warn_at[..]), (&[][..], &[0.8][..]));
}

#[test]
fn without_policies_the_default_one_is_in_force() {
    let config = Config::default();
    assert_eq!(*config.policies_in_force(), [Policy::default_policy()]);

    let written = load(include_str!("good/policies.yaml")).policies.remove(0);
    let default = Policy::default_policy();
    assert_eq!(
        (default.selector.paths, default.selector.methods),
        (vec![PathPattern::Dialects], written.selector.methods)
    );
    assert_eq!((default.limit_keys, default.tool_loops), (written.limit_keys, written.tool_loops));
    assert_eq!((default.semantic, default.chant), (written.semantic, written.chant));
    let (default, written) =
        (default.loop_detection.expect("it is on"), written.loop_detection.expect("it is on"));
    assert_eq!(
        (default.config, default.action, default.once_in_flight),
        (written.config, Action::Warn, true)
    );
    assert!(!written.once_in_flight);
}

#[test]
fn one_written_policy_replaces_the_default_one() {
    let config = load("policies: [{ id: mine, spec: {} }]");
    let in_force = config.policies_in_force();
    assert_eq!((in_force.len(), &*in_force[0].id), (1, "mine"));
}

#[test]
fn the_threshold_of_the_semantic_section_is_that_of_every_policy_that_names_none() {
    let text = "semantic: { threshold: 0.8 }\npolicies:\n  - { id: a, spec: { semantic: { enabled: true } } }\n  - { id: b, spec: { semantic: { enabled: true, threshold: 0.9, action: reject } } }\n";
    let read: Vec<_> = load(text)
        .policies
        .iter()
        .map(|policy| policy.semantic.map(|it| (it.threshold, it.action)))
        .collect();
    assert_eq!(read, [Some((0.8, Action::Hint)), Some((0.9, Action::Reject))]);
    let default = load("semantic: { threshold: 0.8 }");
    assert_eq!(default.policies_in_force()[0].semantic.map(|it| it.threshold), Some(0.8));
}

#[test]
fn a_part_that_is_missing_or_not_enabled_is_off() {
    let policy =
        &load("policies: [{ id: a, spec: { chant: { enabled: false }, cache: { enabled: false } } }]")
            .policies[0];
    assert_eq!((policy.chant, &policy.cache, policy.loop_detection), (None, &None, None));
    assert_eq!((&policy.tool_loops, policy.semantic), (&None, None));
}

#[test]
fn a_rule_without_a_key_counts_by_the_first_of_its_policy() {
    assert_eq!(rule("{ id: r, requests_per_minute: 5 }").keys, [LimitKey::Agent]);
    let text = "policies: [{ id: a, spec: { rules: [{ id: r, requests_per_minute: 5 }] } }]";
    assert_eq!(load(text).policies[0].rules[0].keys, [LimitKey::Tenant]);
}

#[test]
fn a_rule_may_count_by_several_keys_and_limit_several_things() {
    let rule = rule("{ id: r, key: [tenant, 'query:team'], requests_per_minute: 5, tokens: 70, period: 2h }");
    assert_eq!(rule.keys, [LimitKey::Tenant, LimitKey::Query("team".into())]);
    let expected = [
        limit(Quantity::Requests, 5, Window::Seconds(60)),
        limit(Quantity::Tokens, 70, Window::Seconds(7_200)),
    ];
    assert_eq!(rule.limits, expected);
}

#[test]
fn money_is_counted_in_millionths_of_a_dollar() {
    let micros = |text: &str| rule(&format!("{{ id: r, cost_usd: {text}, period: 1d }}")).limits[0].amount;
    let read = ["5.00", "100", "0.1", "0.000001", "1e9", "19.99"].map(micros);
    assert_eq!(read, [5_000_000, 100_000_000, 100_000, 1, 1_000_000_000_000_000, 19_990_000]);
}

#[test]
fn a_session_is_counted_for_as_long_as_it_lives_unless_a_period_is_written() {
    assert_eq!(rule("{ id: r, key: session, tokens: 5 }").limits[0].window, Window::Session);
    assert_eq!(rule("{ id: r, key: session, tokens: 5, period: session }").limits[0].window, Window::Session);
    assert_eq!(
        rule("{ id: r, key: session, tokens: 5, period: 1h }").limits[0].window,
        Window::Seconds(3_600)
    );
}

#[test]
fn warnings_come_in_stages_smallest_first() {
    assert_eq!(
        rule("{ id: r, requests_per_minute: 5, warn_at: [0.9, 0.5, 0.9, 1] }").warn_at,
        [0.5, 0.9, 1.0]
    );
}

#[test]
fn every_kind_of_key_is_read_and_written_alike() {
    for key in ["tenant", "session", "agent", "model", "header:x-team", "query:team", "jwt:org_id"] {
        assert_eq!(
            rule(&format!("{{ id: r, key: '{key}', requests_per_minute: 5 }}")).keys[0].to_string(),
            key
        );
    }
}

#[test]
fn a_cache_has_the_defaults_of_the_contract() {
    let policy =
        load("policies: [{ id: a, spec: { cache: { enabled: true, tools: [read_*] } } }]").policies.remove(0);
    let cache = policy.cache.expect("it is on");
    assert_eq!((cache.ttl.as_secs(), cache.max_bytes), (300, 64 << 20));
    assert_eq!((cache.similarity, cache.allow_sampled), (Similarity::Exact, false));
    assert_eq!(cache.tools, [ToolPattern::new("read_*")]);
}

#[test]
fn the_policy_of_the_design_document_loads_unchanged() {
    let config = load(include_str!("good/seed-policy.json"));
    let policy = &config.policies[0];
    assert_eq!(policy.selector.paths, [PathPattern::Exact("/v1/chat/completions".into())]);
    assert_eq!(policy.loop_detection.map(|it| it.action), Some(Action::Reject));
    assert_eq!(config.notices, []);
}

#[test]
fn an_action_that_is_not_written_rejects_as_in_the_design_document() {
    let text = "policies: [{ id: a, spec: { loop_detection: { enabled: true, window_seconds: 30, threshold_identical_requests: 3 } } }]";
    assert_eq!(load(text).policies[0].loop_detection.map(|it| it.action), Some(Action::Reject));
}

#[test]
fn policies_of_files_follow_those_of_the_config_in_the_order_of_the_files() {
    let files = [
        ("one.json", r#"{ "id": "one", "spec": { "mode": "shadow" } }"#),
        ("list.yaml", "- { id: two, spec: {} }\n- { id: three, spec: {} }\n"),
        (
            "bundle.yaml",
            "policies: [{ id: four, spec: {} }]\nkill_switches: [{ tenant: acme }]\nglobal_shadow: true\n",
        ),
        ("empty.yaml", "# nothing yet\n"),
    ];
    let text = "policy_files: [one.json, list.yaml, bundle.yaml, empty.yaml]\npolicies: [{ id: zero, spec: {} }]\nkill_switches: [{ tenant: mine }]\n";
    let config = load_with(text, &files).expect("the config is sound");
    let ids: Vec<_> = config.policies.iter().map(|policy| &*policy.id).collect();
    assert_eq!(ids, ["zero", "one", "two", "three", "four"]);
    let tenants: Vec<_> = config.kill_switches.iter().map(|switch| &*switch.value).collect();
    assert_eq!(tenants, ["mine", "acme"]);
    assert!(config.global_shadow.enabled);
}

#[test]
fn what_is_wrong_in_a_file_carries_its_name_and_follows_what_is_wrong_in_the_config() {
    let files = [
        ("a.yaml", "id: a\nspec: { mode: on }\n"),
        ("b.json", "{ \"id\": \"b\", \"spec\": {\n"),
        ("c.yaml", "policies:\n  - id: mine\n    spec: { chants: {} }\n"),
    ];
    let text = "policies: [{ id: mine, spec: {} }]\npolicy_files: [a.yaml, missing.yaml, b.json, c.yaml]\nreject: { status: 1 }\n";
    let problems = load_with(text, &files).expect_err("four files are wrong");
    let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
    let expected = [
        "2:24: policy_files[1]: the policy file \"missing.yaml\" could not be read: there is no such file\n  hint: check the path, or write its policies below `policies:`",
        "3:19: reject.status: the status 1 is not possible here\n  hint: write 400, 403 or 429",
        "a.yaml:2:15: spec.mode: \"on\" is not known here\n  hint: accepted here: `enforce`, `shadow`, `off`",
        "b.json:1:22: spec: this `{` is not closed\n  hint: add the `}`, and indent every line up to it",
        "c.yaml:2:9: policies[0].id: the policy \"mine\" stands twice, first on line 1\n  hint: give one of them another name",
        "c.yaml:3:13: policies[0].spec.chants: unknown key \"chants\"\n  hint: did you mean `chant`?",
    ];
    assert_eq!(told, expected);
}

#[test]
fn an_id_that_stands_in_two_files_is_told_with_both_places() {
    let files = [("a.yaml", "\nid: same\nspec: {}\n"), ("b.yaml", "id: same\nspec: {}\n")];
    let problems = load_with("policy_files: [a.yaml, b.yaml]", &files).expect_err("the id stands twice");
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].file.as_deref(), Some("b.yaml"));
    assert_eq!(problems[0].message, "the policy \"same\" stands twice, first on line 2 of \"a.yaml\"");
}

#[test]
fn a_notice_in_a_file_carries_its_name_too() {
    let files = [("a.yaml", "id: a\nspec: { chant: {} }\n")];
    let config = load_with("policy_files: [a.yaml]", &files).expect("the config is sound");
    assert_eq!(config.notices[0].file.as_deref(), Some("a.yaml"));
}

#[test]
fn a_file_cannot_name_further_files() {
    let problems = load_with("policy_files: [a.yaml]", &[("a.yaml", "policy_files: [a.yaml]")]);
    assert_eq!(problems.expect_err("the key is unknown there")[0].path, "policy_files");
}

#[test]
fn there_is_a_bound_on_the_number_of_files() {
    let text = format!("policy_files: [{}]", "a, ".repeat(257));
    let problems = load_with(&text, &[("a", "# nothing")]).expect_err("there are too many");
    assert_eq!(problems[0].message, "257 policy files are named, at most 256 are read");
}
