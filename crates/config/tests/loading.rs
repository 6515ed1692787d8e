//! Configs that load, and what they mean.

#![expect(clippy::expect_used, reason = "a config that does not load ends its test")]

use std::time::Duration;

use loopbreaker::{Action, DetectorsConfig, Effect, SentinelLimit, ToolPattern};
use loopbreaker_config::{Config, SemanticBackend, SemanticHistory, SemanticScope};

fn load(text: &str) -> Config {
    Config::parse(text).expect("the config is sound")
}

#[test]
fn an_empty_config_has_every_default() {
    for text in ["", "\n", "# only a comment\n", "---\n", "{}", "\u{FEFF}", "\r\n\r\n"] {
        assert_eq!(load(text), Config::default(), "{text:?}");
    }
    assert_eq!(Config::default().detectors, DetectorsConfig::default());
}

#[test]
fn the_sentinel_config_of_the_design_document_loads_unchanged() {
    let config = load(include_str!("good/agent-sentinel-config.yaml"));
    let limit =
        |threshold, window_size, reason| SentinelLimit::new(threshold, window_size).unwrap().because(reason);
    let expected = [
        ("search_web", limit(2, 5, "Search should converge quickly; tight limit.")),
        ("poll_job_status", limit(20, 50, "Polling requires repeated calls; loose limit.")),
        ("get_user_profile", limit(5, 15, "Moderate repetition allowed for caching.")),
    ]
    .map(|(tool, limit)| (ToolPattern::new(tool), limit));
    assert_eq!(config.detectors.sentinel.default, SentinelLimit::default());
    assert_eq!(config.detectors.sentinel.overrides, expected);
    assert_eq!(config.notices, []);
}

#[test]
fn the_config_with_every_key_loads_and_is_the_default() {
    let config = load(include_str!("good/every-key.yaml"));
    assert_eq!(config.detectors, DetectorsConfig::default());
    assert_eq!(config.semantic, Config::default().semantic);
}

#[test]
fn the_policies_of_the_gateway_page_load() {
    let config = load(include_str!("good/policies.yaml"));
    assert_eq!(config.detectors, DetectorsConfig::default());
    assert_eq!(config.notices, []);
}

#[test]
fn own_values_reach_the_detectors() {
    let Config { detectors, semantic, .. } = load(include_str!("good/own-values.yaml"));
    assert_eq!(detectors.sentinel.default, SentinelLimit::new(4, 12).unwrap());
    assert_eq!(detectors.sentinel.bypass, [ToolPattern::new("*_status"), ToolPattern::new("wait")]);
    let entropy = detectors.entropy;
    assert_eq!((entropy.window_size, entropy.include_input), (6, false));
    assert_eq!(detectors.redundancy.window(), 32);
    let (tools, profile) = &detectors.redundancy.tools()[0];
    assert_eq!((tools.as_str(), profile.effect), ("ci_*", Some(Effect::Poll)));
    assert_eq!(
        (&profile.loop_key[..], &profile.ignore_result[..]),
        (&["branch".to_owned()][..], &["took \\d+ ms".to_owned()][..])
    );
    assert_eq!((detectors.semantic.size, detectors.semantic.ttl_millis), (7, 1_800_000));
    assert_eq!((semantic.backend, semantic.timeout), (SemanticBackend::Sidecar, Duration::from_millis(80)));
    assert_eq!((semantic.scope, semantic.history), (SemanticScope::Full, SemanticHistory::Tenant));
}

#[test]
fn json_indented_by_tabs_gives_the_same_types_as_yaml() {
    let json = include_str!("good/own-values.json");
    assert!(json.contains("\n\t\t"));
    assert_eq!(load(json), load(include_str!("good/own-values.yaml")));
}

#[test]
fn line_endings_and_a_byte_order_mark_make_no_difference() {
    let text = include_str!("good/own-values.yaml");
    assert_eq!(load(&text.replace('\n', "\r\n")), load(text));
    assert_eq!(load(&format!("\u{FEFF}{text}")), load(text));
}

#[test]
fn brackets_may_span_lines_and_close_below_their_key() {
    let config = load("sentinel: {\n  bypass: [\n    poll_job,\n  ]\n}\n");
    assert_eq!(config.detectors.sentinel.bypass, [ToolPattern::new("poll_job")]);
}

#[test]
fn an_override_takes_what_it_does_not_say_from_the_default() {
    let config = load(include_str!("good/own-values.yaml"));
    assert_eq!(config.detectors.sentinel.overrides[1].1, SentinelLimit::new(8, 12).unwrap());
}

#[test]
fn a_threshold_of_one_loads_with_a_notice_at_its_value() {
    let config = load(
        "sentinel:\n  default: { threshold: 1 }\n  overrides:\n    pay: { threshold: 1 }\n    buy: {}\n",
    );
    assert_eq!(config.detectors.sentinel.default.threshold(), 1);
    let told: Vec<_> =
        config.notices.iter().map(|notice| (notice.line, notice.column, notice.path.as_str())).collect();
    let expected = [(2, 25, "sentinel.default.threshold"), (4, 23, "sentinel.overrides.pay.threshold")];
    assert_eq!(told, expected);
    assert!(config.notices[0].message.contains("blocks every repeat"), "{}", config.notices[0]);
}

#[test]
fn the_ladder_in_force_is_that_of_the_first_policy_that_looks_for_tool_loops() {
    let config = load(include_str!("good/own-values.yaml"));
    let rungs = [Action::Hint, Action::Throttle, Action::Pause, Action::Reject];
    assert_eq!(config.detectors.ladder.rungs(), rungs);
}

#[test]
fn a_policy_that_is_off_gives_no_ladder() {
    let text = "policies: [{ id: a, spec: { mode: off, tool_loops: { enabled: true, ladder: [reject] } } }]";
    assert_eq!(load(text).detectors.ladder, DetectorsConfig::default().ladder);
}

#[test]
fn a_part_of_a_policy_without_its_switch_is_off_with_a_notice() {
    let config = load("policies:\n  - id: a\n    spec:\n      tool_loops:\n        ladder: [reject]\n");
    assert_eq!(config.detectors.ladder, DetectorsConfig::default().ladder);
    assert_eq!(config.notices[0].path, "policies[0].spec.tool_loops");
    assert_eq!(config.notices[0].message, "this is off, since `enabled` is missing");
}

#[test]
fn aliases_repeat_what_their_anchor_says() {
    let text = "sentinel:\n  default: &limit { threshold: 5 }\n  overrides: { a: *limit, b: *limit }\n";
    let overrides = load(text).detectors.sentinel.overrides;
    assert!(overrides.iter().all(|(_, limit)| limit.threshold() == 5));
    assert_eq!(overrides.len(), 2);
}

#[test]
fn every_thing_in_force_is_explained_by_one_sentence() {
    let explained = load(include_str!("good/own-values.yaml")).explain();
    let expected = include_str!("good/own-values.explained");
    assert_eq!(explained.join("\n") + "\n", expected);
}

#[test]
fn the_defaults_are_explained_too() {
    let explained = Config::default().explain();
    let expected = include_str!("good/defaults.explained");
    assert_eq!(explained.join("\n") + "\n", expected);
}
