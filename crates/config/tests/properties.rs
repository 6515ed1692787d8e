//! What holds for every text and every sound config.

#![expect(clippy::expect_used, reason = "what the generators make is sound by construction")]

use std::fmt::Write as _;

use loopbreaker::{SentinelConfig, SentinelLimit, ToolPattern};
use loopbreaker_config::{Config, Problem};
use proptest::prelude::*;

/// Texts that look like configs far more often than random characters do.
fn config_like() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "sentinel", "default", "threshold", "window_size", "overrides", "bypass", "entropy",
            "loop_below", "redundancy", "tools", "effect", "semantic", "ttl", "policies", "spec",
            "tool_loops", "ladder", "rules", "id", "key", "cost_usd", "period", "warn_at", "algorithm",
            "algorithm_config", "limit_keys", "upstreams", "routes", "kill_switches", "bundle_version",
        ]),
        prop::sample::select(vec![
            ": ", ":", "\n", "\n  ", "\n    ", "\t", " ", "- ", "? ", "[", "]", "{", "}", ",", "&a ", "*a",
            "!!str ", "!t", "---", "...", "%YAML 1.2\n", "%TAG ! x\n", "|\n", ">-\n", "#", "\"", "'", "\\",
            "\r", "\r\n", "\u{FEFF}", "\0", "\u{85}", "\u{2028}", "ü", "日", "<<: ",
        ]),
        prop::sample::select(vec![
            "0",
            "1",
            "3",
            "-1",
            "3.5",
            ".nan",
            ".inf",
            "null",
            "~",
            "true",
            "yes",
            "1h",
            "50ms",
            "5%",
            "hint",
            "read",
            "tenant",
            "session",
            "token_bucket",
            "2027-01-01T00:00:00Z",
            "https://a",
        ]),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn sentinel() -> impl Strategy<Value = SentinelConfig> {
    let limit =
        (1..=50_u32, 0..=50_u32, prop::option::of(any::<String>())).prop_map(|(threshold, more, reason)| {
            let limit = SentinelLimit::new(threshold, threshold + more).expect("the window is not smaller");
            match reason {
                Some(reason) => limit.because(reason),
                None => limit,
            }
        });
    let tool = "[ -~ü日]{1,12}";
    let overrides = prop::collection::btree_map(tool, limit, 0..5);
    let bypass = prop::collection::vec(tool, 0..5);
    ((1..=50_u32, 0..=50_u32), overrides, bypass).prop_map(|((threshold, more), overrides, bypass)| {
        SentinelConfig {
            default: SentinelLimit::new(threshold, threshold + more).expect("the window is not smaller"),
            overrides: overrides.into_iter().map(|(tool, limit)| (ToolPattern::new(tool), limit)).collect(),
            bypass: bypass.into_iter().map(ToolPattern::new).collect(),
        }
    })
}

/// A config text with these settings, every text in double quotes.
fn write(config: &SentinelConfig) -> String {
    let SentinelConfig { default, overrides, bypass } = config;
    let numbers = |limit: &SentinelLimit| {
        format!("threshold: {}, window_size: {}", limit.threshold(), limit.window_size())
    };
    let mut text = format!("sentinel:\n  default: {{ {} }}\n  overrides: {{\n", numbers(default));
    for (tool, limit) in overrides {
        let reason = limit.reason().map(|reason| format!(", reason: {}", quoted(reason))).unwrap_or_default();
        writeln!(text, "    {}: {{ {}{reason} }},", quoted(tool.as_str()), numbers(limit))
            .expect("a string grows");
    }
    text.push_str("   }\n  bypass:\n");
    for tool in bypass {
        writeln!(text, "    - {}", quoted(tool.as_str())).expect("a string grows");
    }
    if bypass.is_empty() {
        text.push_str("    []\n");
    }
    text
}

fn quoted(text: &str) -> String {
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        ' '..='~' => c.to_string(),
        _ => format!("\\U{:08x}", u32::from(c)),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

fn is_presentable(problem: &Problem) -> bool {
    problem.line >= 1 && problem.column >= 1 && !problem.message.is_empty() && !problem.message.contains('\n')
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_with_presentable_problems(text in any::<String>()) {
        if let Err(problems) = Config::parse(&text) {
            prop_assert!(!problems.is_empty() && problems.iter().all(is_presentable), "{problems:?}");
        }
    }

    #[test]
    fn any_config_like_text_is_read_or_refused_with_presentable_problems(text in config_like()) {
        match Config::parse(&text) {
            Ok(config) => prop_assert!(!config.explain().is_empty()),
            Err(problems) => prop_assert!(!problems.is_empty() && problems.iter().all(is_presentable), "{problems:?}"),
        }
    }

    #[test]
    fn a_sentinel_config_survives_being_written_and_read(config in sentinel()) {
        let text = write(&config);
        let read = Config::parse(&text);
        prop_assert_eq!(read.map(|config| config.detectors.sentinel), Ok(config), "{}", text);
    }
}
