use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use loopbreaker::{Action, DetectorName, Kind, Severity};

use super::{Metrics, ReloadResult, Resume, SpanResult, UpstreamError};
use crate::{Degraded, Dialect, FindingNote, Mode, Part, Record, TenantClass, Tokens};

/// A page as a strict reader of the text format sees it: series in full, and the type of each family.
struct Page {
    samples: BTreeMap<String, f64>,
    kinds: BTreeMap<String, String>,
}

impl Page {
    /// Reads a page; panics at the first thing that the format does not allow.
    fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line has no end");
        let mut page = Self { samples: BTreeMap::new(), kinds: BTreeMap::new() };
        let mut helped = HashSet::new();
        let mut family = String::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                assert!(is_name(name) && !help.is_empty() && help.ends_with('.'), "{line}");
                assert!(helped.insert(name.to_owned()), "two HELP lines for {name}");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(helped.contains(name), "TYPE before HELP: {line}");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert!(kind != "counter" || name.ends_with("_total"), "{line}");
                assert_eq!(page.kinds.insert(name.to_owned(), kind.to_owned()), None, "{line}");
                name.clone_into(&mut family);
            } else {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let name = series.split('{').next().unwrap();
                let is_histogram = page.kinds[&family] == "histogram";
                let belongs = match name.strip_prefix(&family).unwrap_or("?") {
                    "" => !is_histogram,
                    "_bucket" | "_sum" | "_count" => is_histogram,
                    _ => false,
                };
                assert!(belongs, "{line} stands in the family of {family}");
                assert_labels(&series[name.len()..]);
                let value: f64 = value.parse().unwrap();
                assert!(value.is_finite() && value >= 0.0, "{line}");
                assert_eq!(page.samples.insert(series.to_owned(), value), None, "twice: {series}");
            }
        }
        page
    }

    #[track_caller]
    fn assert(&self, series: &str, value: f64) {
        let found = self.samples.get(series).unwrap_or_else(|| panic!("no {series}"));
        assert!((found - value).abs() < 1e-12, "{series} is {found}");
    }
}

fn is_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
}

/// `{name="value",name="value"}`, or nothing.
fn assert_labels(text: &str) {
    if text.is_empty() {
        return;
    }
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap();
    let mut names = HashSet::new();
    let mut rest = inner;
    loop {
        let (name, value) = rest.split_once("=\"").unwrap();
        assert!(is_name(name) && names.insert(name), "{text}");
        let mut characters = value.char_indices();
        let end = loop {
            match characters.next().unwrap() {
                (_, '\\') => assert!(matches!(characters.next(), Some((_, '\\' | '"' | 'n'))), "{text}"),
                (end, '"') => break end,
                (_, character) => assert!(!character.is_control(), "{text}"),
            }
        };
        match value[end + 1..].strip_prefix(',') {
            Some(more) => rest = more,
            None => return assert_eq!(&value[end + 1..], "", "{text}"),
        }
    }
}

fn note(kind: Kind, severity: Severity, mode: Mode) -> FindingNote {
    let detector = DetectorName::Redundancy;
    FindingNote { kind, severity, mode, detector, count: 3, period: 1, policy: "agents".into() }
}

#[test]
fn a_request_is_counted_under_its_own_labels_and_no_others() {
    let metrics = Metrics::default();
    metrics.observe(&Record {
        dialect: Dialect::Anthropic,
        verdict: Action::Throttle,
        tenant_class: TenantClass::Named,
        tokens: Some(Tokens { input: 10, cache_read: 20, cache_write: 30, output: 40, reasoning: 50 }),
        cost_micros: 1_250_001,
        findings: vec![
            note(Kind::Cycle, Severity::Loop, Mode::Enforce),
            note(Kind::Chant, Severity::Warning, Mode::Shadow),
        ],
        degraded: Degraded::from(Part::Hint),
        overhead: Duration::from_micros(80),
        ..Record::default()
    });
    let page = Page::read(&metrics.render());
    let expected = [
        (r#"loopbreaker_requests_total{dialect="anthropic",verdict="throttle"}"#, 1.0),
        (r#"loopbreaker_findings_total{kind="cycle",severity="loop",mode="enforce"}"#, 1.0),
        (r#"loopbreaker_findings_total{kind="chant",severity="warning",mode="shadow"}"#, 1.0),
        (r#"loopbreaker_tokens_total{dialect="anthropic",kind="input",tenant_class="named"}"#, 10.0),
        (r#"loopbreaker_tokens_total{dialect="anthropic",kind="cache_read",tenant_class="named"}"#, 20.0),
        (r#"loopbreaker_tokens_total{dialect="anthropic",kind="cache_write",tenant_class="named"}"#, 30.0),
        (r#"loopbreaker_tokens_total{dialect="anthropic",kind="output",tenant_class="named"}"#, 40.0),
        (r#"loopbreaker_tokens_total{dialect="anthropic",kind="reasoning",tenant_class="named"}"#, 50.0),
        (r#"loopbreaker_cost_usd_total{dialect="anthropic",tenant_class="named"}"#, 1.250_001),
        (r#"loopbreaker_degraded_total{part="hint"}"#, 1.0),
    ];
    for (series, value) in expected {
        page.assert(series, value);
    }
    let families = ["requests", "findings", "tokens", "cost_usd", "degraded"];
    let counted = page.samples.iter().filter(|(series, value)| {
        **value > 0.0
            && families.iter().any(|family| series.starts_with(&format!("loopbreaker_{family}_total")))
    });
    assert_eq!(counted.count(), expected.len(), "something else was counted too");
}

#[test]
fn our_own_time_is_a_histogram_in_seconds() {
    let metrics = Metrics::default();
    for micros in [3, 80, 80, 2_000_000] {
        metrics.observe(&Record { overhead: Duration::from_micros(micros), ..Record::default() });
    }
    let page = Page::read(&metrics.render());
    let bucket = |bound: &str, count| {
        page.assert(&format!("loopbreaker_overhead_seconds_bucket{{le=\"{bound}\"}}"), count);
    };
    bucket("0.000005", 1.0);
    bucket("0.000075", 1.0);
    bucket("0.0001", 3.0);
    bucket("1", 3.0);
    bucket("+Inf", 4.0);
    page.assert("loopbreaker_overhead_seconds_count", 4.0);
    page.assert("loopbreaker_overhead_seconds_sum", 2.000_163);
}

#[test]
fn every_series_is_there_before_anything_happened() {
    let page = Page::read(&Metrics::default().render());
    let of = |family: &str| page.samples.keys().filter(|series| series.starts_with(family)).count();
    assert_eq!(of("loopbreaker_requests_total"), 5 * 6);
    assert_eq!(of("loopbreaker_findings_total"), 13 * 2 * 2);
    assert_eq!(of("loopbreaker_tokens_total"), 5 * 5 * 3);
    assert_eq!(of("loopbreaker_cost_usd_total"), 5 * 3);
    assert_eq!(of("loopbreaker_degraded{"), Part::ALL.len());
    assert_eq!(of("loopbreaker_degraded_total"), Part::ALL.len());
    assert_eq!(of("loopbreaker_upstream_errors_total"), 7);
    assert!(page.samples.len() < 300, "labels must stay bounded");
}

#[test]
fn what_is_not_a_request_is_counted_by_name() {
    let metrics = Arc::new(Metrics::default());
    metrics.upstream_error(UpstreamError::Timeout);
    metrics.panicked();
    metrics.reloaded(ReloadResult::Refused);
    metrics.resumed(Resume::Hit);
    metrics.resumed(Resume::Hit);
    metrics.resumed(Resume::Miss);
    metrics.set_sessions(17);
    metrics.drop_lines(3);
    metrics.count_spans(SpanResult::Dropped, 5);
    let page = Page::read(&metrics.render());
    page.assert(r#"loopbreaker_upstream_errors_total{reason="timeout"}"#, 1.0);
    page.assert("loopbreaker_panics_total", 1.0);
    page.assert(r#"loopbreaker_config_reloads_total{result="refused"}"#, 1.0);
    page.assert(r#"loopbreaker_config_reloads_total{result="loaded"}"#, 0.0);
    page.assert(r#"loopbreaker_resume_total{result="hit"}"#, 2.0);
    page.assert(r#"loopbreaker_resume_total{result="miss"}"#, 1.0);
    page.assert("loopbreaker_sessions", 17.0);
    page.assert("loopbreaker_log_lines_dropped_total", 3.0);
    page.assert(r#"loopbreaker_spans_total{result="dropped"}"#, 5.0);
}

#[test]
fn a_part_is_degraded_until_it_recovers() {
    let metrics = Metrics::default();
    metrics.set_degraded(Part::State, true);
    assert_eq!(metrics.degraded().collect::<Vec<_>>(), [Part::State]);
    Page::read(&metrics.render()).assert(r#"loopbreaker_degraded{part="state"}"#, 1.0);
    metrics.set_degraded(Part::State, false);
    assert_eq!(metrics.degraded().count(), 0);
    Page::read(&metrics.render()).assert(r#"loopbreaker_degraded{part="state"}"#, 0.0);
}

#[test]
fn a_request_is_held_as_long_as_its_guard_lives() {
    let metrics = Arc::new(Metrics::default());
    let (first, second) = (metrics.hold(), metrics.hold());
    assert_eq!(metrics.held(), 2);
    drop(first);
    Page::read(&metrics.render()).assert("loopbreaker_held", 1.0);
    drop(second);
    assert_eq!(metrics.held(), 0);
}

#[test]
fn the_process_tells_its_version_and_start() {
    let page = Page::read(&Metrics::default().render());
    page.assert(concat!("loopbreaker_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"}"), 1.0);
    assert!(page.samples["process_start_time_seconds"] > 1.7e9);
    assert!(page.samples["process_resident_memory_bytes"] > 1e5);
}

#[test]
fn no_request_is_lost_between_threads() {
    let metrics = Metrics::default();
    let record = Record { tokens: Some(Tokens { input: 1, ..Tokens::default() }), ..Record::default() };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..10_000).for_each(|_| metrics.observe(&record)));
        }
    });
    let page = Page::read(&metrics.render());
    page.assert(r#"loopbreaker_requests_total{dialect="other",verdict="allow"}"#, 80_000.0);
    page.assert(
        r#"loopbreaker_tokens_total{dialect="other",kind="input",tenant_class="anonymous"}"#,
        80_000.0,
    );
    page.assert("loopbreaker_overhead_seconds_count", 80_000.0);
}
