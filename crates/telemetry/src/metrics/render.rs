//! The text format of Prometheus.

use std::fmt::{self, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::time::SystemTime;

use loopbreaker::{Action, Kind, Severity};

use super::histogram::Histogram;
use super::label::{CacheUse, Label, ReloadResult, Resume, SpanResult, TokenKind, Unit, UpstreamError};
use super::process::Resources;
use super::{Counters, Metrics, finding_index};
use crate::decimal::Decimal;
use crate::part::Part;
use crate::record::{Dialect, Mode, TenantClass};

/// Writes every family, those with nothing to tell too: a rate needs to have seen the zero.
pub(crate) fn render(metrics: &Metrics) -> String {
    let mut page = Page(String::with_capacity(32 * 1_024));
    traffic(&mut page, metrics);
    own_time(&mut page, metrics);
    health(&mut page, metrics);
    process(&mut page, metrics);
    page.0
}

fn traffic(page: &mut Page, metrics: &Metrics) {
    let name = "loopbreaker_requests_total";
    page.counter(name, "Requests that are over, by dialect and verdict.");
    for dialect in Dialect::ALL {
        for verdict in Action::ALL {
            let count = &metrics.traffic[dialect.index()].requests[verdict.index()];
            let labels = [("dialect", dialect.name()), ("verdict", verdict.name())];
            page.sample(name, &labels, count.load(Relaxed));
        }
    }
    let name = "loopbreaker_findings_total";
    page.counter(name, "What the detectors found, and whether its policy acts or only looks.");
    for kind in Kind::ALL {
        for severity in Severity::ALL {
            for mode in Mode::ALL {
                let labels = [("kind", kind.name()), ("severity", severity.name()), ("mode", mode.name())];
                let count = &metrics.findings[finding_index(*kind, *severity, *mode)];
                page.sample(name, &labels, count.load(Relaxed));
            }
        }
    }
    let name = "loopbreaker_tokens_total";
    page.counter(name, "Tokens by what they are priced as; kinds do not overlap.");
    for (dialect, class) in dialects_and_classes() {
        for kind in TokenKind::ALL {
            let count = &metrics.traffic[dialect.index()].spent[class.index()].tokens[kind.index()];
            let labels = [("dialect", dialect.name()), ("kind", kind.name()), ("tenant_class", class.name())];
            page.sample(name, &labels, count.load(Relaxed));
        }
    }
    let name = "loopbreaker_cost_usd_total";
    page.counter(name, "What requests cost, in US dollars.");
    for (dialect, class) in dialects_and_classes() {
        let micros = &metrics.traffic[dialect.index()].spent[class.index()].cost_micros;
        let labels = [("dialect", dialect.name()), ("tenant_class", class.name())];
        page.sample(name, &labels, Decimal { units: micros.load(Relaxed), digits: 6 });
    }
}

fn dialects_and_classes() -> impl Iterator<Item = (Dialect, TenantClass)> {
    Dialect::ALL.iter().flat_map(|dialect| TenantClass::ALL.iter().map(|class| (*dialect, *class)))
}

fn own_time(page: &mut Page, metrics: &Metrics) {
    let name = "loopbreaker_overhead_seconds";
    page.family(
        name,
        "histogram",
        "Our own time per request: without the provider, the client and any hold.",
    );
    let reading = metrics.overhead.read();
    for (micros, count) in Histogram::BOUNDS_MICROS.into_iter().zip(reading.cumulative) {
        let bound = Decimal { units: micros, digits: 6 }.to_string();
        page.sample("loopbreaker_overhead_seconds_bucket", &[("le", &bound)], count);
    }
    page.sample("loopbreaker_overhead_seconds_bucket", &[("le", "+Inf")], reading.count);
    let sum = Decimal { units: reading.sum_nanos, digits: 9 };
    page.sample("loopbreaker_overhead_seconds_sum", &[], sum);
    page.sample("loopbreaker_overhead_seconds_count", &[], reading.count);
    page.gauge("loopbreaker_held", "Requests that are held now.");
    page.sample("loopbreaker_held", &[], metrics.held());
    page.gauge("loopbreaker_sessions", "Sessions that are alive.");
    page.sample("loopbreaker_sessions", &[], metrics.sessions.load(Relaxed));
    let help = "Transcripts that were taken up where the session's last request ended.";
    page.counters::<Resume, _>("loopbreaker_resume_total", help, "result", &metrics.resumes);
    let help = "What the result cache did for requests that it may serve.";
    page.counters::<CacheUse, _>("loopbreaker_cache_total", help, "result", &metrics.cache);
    page.gauge("loopbreaker_cache_bytes", "Answers that are kept to be given again.");
    page.sample("loopbreaker_cache_bytes", &[], metrics.cache_bytes.load(Relaxed));
}

fn health(page: &mut Page, metrics: &Metrics) {
    let name = "loopbreaker_degraded";
    page.gauge(name, "Whether requests go without this part now.");
    for part in Part::ALL {
        let missing = metrics.degraded[part.index()].load(Relaxed);
        page.sample(name, &[("part", part.name())], u8::from(missing));
    }
    let help = "Requests and other work that went on without this part.";
    page.counters::<Part, _>("loopbreaker_degraded_total", help, "part", &metrics.degraded_total);
    let name = "loopbreaker_upstream_errors_total";
    let help = "Requests that a provider did not answer properly.";
    page.counters::<UpstreamError, _>(name, help, "reason", &metrics.upstream_errors);
    let name = "loopbreaker_overspent_total";
    page.counter(name, "What was spent beyond a budget while shared state was away.");
    for unit in Unit::ALL {
        let digits = if *unit == Unit::Usd { 6 } else { 0 };
        let units = metrics.overspent[unit.index()].load(Relaxed);
        page.sample(name, &[("unit", unit.name())], Decimal { units, digits });
    }
    let name = "loopbreaker_config_reloads_total";
    let help = "Attempts to load the config again.";
    page.counters::<ReloadResult, _>(name, help, "result", &metrics.reloads);
    page.counter("loopbreaker_panics_total", "Panics that were caught.");
    page.sample("loopbreaker_panics_total", &[], metrics.panics.load(Relaxed));
    let name = "loopbreaker_log_lines_dropped_total";
    page.counter(name, "Log lines that were lost: the queue was full, or they could not be written.");
    page.sample(name, &[], metrics.lines_dropped());
    let help = "Spans by how they ended.";
    page.counters::<SpanResult, _>("loopbreaker_spans_total", help, "result", &metrics.spans);
}

fn process(page: &mut Page, metrics: &Metrics) {
    page.gauge("loopbreaker_build_info", "The version that runs.");
    page.sample("loopbreaker_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.gauge("process_start_time_seconds", "When the process started, in seconds since 1970.");
    let started = metrics.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    page.sample(
        "process_start_time_seconds",
        &[],
        Decimal { units: u64::try_from(started.as_millis()).unwrap_or(u64::MAX), digits: 3 },
    );
    if let Some(resources) = Resources::read() {
        page.gauge("process_resident_memory_bytes", "Memory that is resident.");
        page.sample("process_resident_memory_bytes", &[], resources.resident_bytes);
        page.gauge("process_open_fds", "Files and sockets that are open.");
        page.sample("process_open_fds", &[], resources.open_files);
        page.counter("process_cpu_seconds_total", "User and system time.");
        let seconds = Decimal { units: resources.cpu_ticks, digits: 2 };
        page.sample("process_cpu_seconds_total", &[], seconds);
    }
}

/// The text so far.
struct Page(String);

impl Page {
    fn counter(&mut self, name: &str, help: &str) {
        self.family(name, "counter", help);
    }

    fn gauge(&mut self, name: &str, help: &str) {
        self.family(name, "gauge", help);
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.put(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// A whole family of counters with one label.
    fn counters<L: Label, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        counters: &Counters<N>,
    ) {
        self.counter(name, help);
        for (value, counter) in L::ALL.iter().zip(counters) {
            self.sample(name, &[(label, value.name())], counter.load(Relaxed));
        }
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl fmt::Display) {
        self.0.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let before = if at == 0 { '{' } else { ',' };
            self.put(format_args!("{before}{label}=\"{}\"", Escaped(text)));
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        self.put(format_args!(" {value}\n"));
    }

    fn put(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        self.0.write_fmt(text).unwrap_or_default();
    }
}

/// A label's value as the format wants it.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '\\' => f.write_str("\\\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str("\\n"),
            other => f.write_char(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Escaped;

    #[test]
    fn what_would_end_a_label_is_escaped() {
        assert_eq!(Escaped("a\"b\\c\nd").to_string(), "a\\\"b\\\\c\\nd");
    }
}
