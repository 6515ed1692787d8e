//! Hostile and enormous texts are refused at once, with a clear message.

#![expect(clippy::expect_used, reason = "a text that loads against all expectation ends its test")]

use loopbreaker_config::{Config, Problem};

const TOO_DEEP: &str = "lists and maps are nested more than 64 levels deep";

/// The only problem of a text, found in a time that leaves no room for anything worse than linear work. The
/// limit is generous, since tests run beside each other on slow machines.
#[expect(clippy::disallowed_types, reason = "the crate owns no clock, the test of its speed needs one")]
fn refused(text: &str) -> Problem {
    let start = std::time::Instant::now();
    let mut problems = Config::parse(text).expect_err("the text is refused");
    assert!(start.elapsed().as_secs() < 5, "took {:?}", start.elapsed());
    assert_eq!(problems.len(), 1, "{:?}", problems.first());
    problems.remove(0)
}

#[test]
fn ten_thousand_open_brackets_are_refused_as_too_deep() {
    for bracket in ["[", "{", "{a: ", "[{a: ", "- ", "? ", "- ? "] {
        assert_eq!(refused(&bracket.repeat(10_000)).message, TOO_DEEP, "{bracket:?}");
    }
}

#[test]
fn block_maps_of_great_depth_are_refused_as_too_deep() {
    let text = (0..1_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect::<Vec<_>>().concat();
    let problem = refused(&text);
    assert_eq!((problem.message.as_str(), problem.line), (TOO_DEEP, 65));
}

#[test]
fn a_mebibyte_of_brackets_is_refused_at_once() {
    for bracket in ["[", "{", "- ", "[{"] {
        let text = bracket.repeat(1024 * 1024 / bracket.len());
        assert_eq!(refused(&text).message, TOO_DEEP, "{bracket:?}");
    }
}

#[test]
fn a_text_beyond_one_mebibyte_is_refused_by_its_size() {
    let problem = refused(&"#".repeat(1024 * 1024 + 1));
    assert_eq!(problem.message, "the config has 1048577 bytes, at most 1048576 (1 MiB) are read");
}

#[test]
fn a_billion_laughs_are_refused() {
    let mut text = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..=9 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        text.extend([format!("a{level}: &a{level} [{aliases}]\n")]);
    }
    assert_eq!(refused(&text).message, "anchors and aliases stand for more than 1 MiB of settings");
}

#[test]
fn many_aliases_of_one_long_text_are_refused() {
    let text = format!("a: &a {}\nsentinel:\n  bypass: [{}]\n", "x".repeat(500_000), "*a, ".repeat(10_000));
    assert_eq!(refused(&text).message, "anchors and aliases stand for more than 1 MiB of settings");
}

#[test]
fn anchors_inside_each_other_are_refused_before_they_fill_the_memory() {
    let open = (0..60).map(|n| format!("&a{n} [")).collect::<Vec<_>>().concat();
    let text = format!("a: {open}{}{}", "x,".repeat(200_000), "]".repeat(60));
    assert_eq!(refused(&text).message, "anchors and aliases stand for more than 1 MiB of settings");
}

#[test]
fn a_mebibyte_of_mistakes_is_listed_up_to_a_bound() {
    for (head, mistake) in
        [("", "a: 1\n"), ("sentinel:\n  bypass:\n", "  - \n"), ("sentinel:\n  bypass:\n", "  - 1\n")]
    {
        let text = format!("{head}{}", mistake.repeat((1024 * 1024 - head.len()) / mistake.len()));
        let problems = Config::parse(&text).unwrap_err();
        assert_eq!(problems.len(), 1_001);
        assert!(problems[1_000].message.starts_with("more than 1000 problems"), "{}", problems[1_000]);
    }
}

#[test]
fn a_long_sound_config_still_loads() {
    let tools = (0..20_000).map(|n| format!("    - tool_{n}\n")).collect::<Vec<_>>().concat();
    let config = Config::parse(&format!("sentinel:\n  bypass:\n{tools}")).unwrap();
    assert_eq!(config.detectors.sentinel.bypass.len(), 20_000);
}

#[test]
fn control_characters_are_refused_where_they_stand() {
    let problem = refused("sentinel:\n  bypass: [a\0b]\n");
    assert_eq!((problem.line, problem.column), (2, 13));
    assert_eq!(problem.message, "the character U+0000 cannot stand in a config");
    assert_eq!(refused("data_dir: \u{1b}[31m\n").column, 11);
}

#[test]
fn pages_of_the_users_own_text_are_not_repeated_in_messages() {
    for text in [
        format!("{}: 1", "k".repeat(100_000)),
        format!("sentinel: {{ default: {{ threshold: {} }} }}", "9".repeat(100_000)),
        format!("sentinel: {{ default: {{ threshold: {} }} }}", "x".repeat(100_000)),
        format!("sentinel: {{ bypass: {} }}", "x".repeat(100_000)),
        format!("semantic: {{ ttl: {}h }}", "1".repeat(100_000)),
        format!("listen: {}", "1".repeat(100_000)),
        format!("listen: !{} 127.0.0.1:1", "t".repeat(100_000)),
        format!("listen: {}", "x".repeat(100_000)),
        format!("upstreams: {{ openai: {} }}", "x".repeat(100_000)),
        format!("upstreams: {{ routes: [{{ prefix: {}, base_url: http://x }}] }}", "x".repeat(100_000)),
        format!("state: {}", "x".repeat(100_000)),
        format!("kill_switches: [{{ tenant: a, expires_at: {} }}]", "x".repeat(100_000)),
        format!("admin: {{ tenant_header: '{} ' }}", "x".repeat(100_000)),
        format!("policies: [{{ id: {}, spec: {{}} }}]", "x".repeat(100_000)),
        format!("policies: [{{ id: a, spec: {{ limit_keys: [{}] }} }}]", "x".repeat(100_000)),
        format!("policies: [{{ id: a, spec: {{ selector: {{ pathExact: {} }} }} }}]", "x".repeat(100_000)),
        format!("policy_files: [{}]", "x".repeat(100_000)),
        format!("entropy: {{ loop_below: {} }}", "9".repeat(100_000)),
        format!("redundancy: {{ tools: {{ ci: {{ ignore_result: ['({}'] }} }} }}", "x".repeat(100_000)),
    ] {
        let shown = refused(&text).to_string();
        assert!(shown.len() < 2_000, "{}", &shown[..2_000]);
    }
}
