//! What happened, as plain numbers.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::reading::How;

/// Counts of everything that a checker did.
#[derive(Debug, Default)]
pub struct Counters {
    counts: [AtomicU64; How::ALL.len()],
    latency: Latency,
}

/// How long checks took.
#[derive(Debug, Default)]
struct Latency {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

/// Upper bounds of the latency's buckets, in milliseconds.
const BOUNDS: [u64; 8] = [1, 2, 5, 10, 20, 30, 50, 100];

/// The counters at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// How checks ended, each with its number, in an order that never changes.
    pub checks: Vec<(How, u64)>,
    /// Checks that took at most so many milliseconds (the last bound is none), each alone and not added up.
    pub latency: Vec<(Option<u64>, u64)>,
    /// Microseconds of all checks together.
    pub latency_micros: u64,
}

impl Counters {
    /// The numbers now.
    pub fn now(&self) -> Counts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let bounds = BOUNDS.into_iter().map(Some).chain([None]);
        Counts {
            checks: How::ALL.into_iter().zip(self.counts.iter().map(read)).collect(),
            latency: bounds.zip(self.latency.buckets.iter().map(read)).collect(),
            latency_micros: read(&self.latency.micros),
        }
    }

    pub(crate) fn count(&self, how: How, took: Duration) {
        if let Some(at) = How::ALL.iter().position(|known| *known == how) {
            self.counts[at].fetch_add(1, Ordering::Relaxed);
        }
        let millis = took.as_secs_f64() * 1_000.0;
        let bucket = BOUNDS.iter().position(|bound| millis <= *bound as f64).unwrap_or(BOUNDS.len());
        self.latency.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.latency.micros.fetch_add(micros, Ordering::Relaxed);
    }
}

impl Counts {
    /// How many checks ended so.
    pub fn of(&self, how: How) -> u64 {
        self.checks.iter().find(|(known, _)| *known == how).map_or(0, |(_, count)| *count)
    }

    /// The numbers in Prometheus' text format, under these names and with the unit that they have there.
    pub fn prometheus(&self, prefix: &str) -> String {
        let mut text = format!("# TYPE {prefix}_checks_total counter\n");
        for (how, count) in &self.checks {
            let (result, reason) = (how.name(), how.reason().unwrap_or_default());
            writeln!(text, "{prefix}_checks_total{{result=\"{result}\",reason=\"{reason}\"}} {count}")
                .unwrap_or_default();
        }
        writeln!(text, "# TYPE {prefix}_check_seconds histogram").unwrap_or_default();
        let mut total = 0;
        for (bound, count) in &self.latency {
            total += count;
            let bound = bound.map_or("+Inf".to_owned(), |millis| (millis as f64 / 1_000.0).to_string());
            writeln!(text, "{prefix}_check_seconds_bucket{{le=\"{bound}\"}} {total}").unwrap_or_default();
        }
        let seconds = self.latency_micros as f64 / 1e6;
        writeln!(text, "{prefix}_check_seconds_sum {seconds}\n{prefix}_check_seconds_count {total}")
            .unwrap_or_default();
        text
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Counters;
    use crate::reading::{Degraded, How, Skipped};

    #[test]
    fn every_way_a_check_ends_is_counted_apart() {
        let counters = Counters::default();
        for (how, times) in
            [(How::Exact, 3), (How::Skipped(Skipped::Busy), 2), (How::Degraded(Degraded::Timeout), 1)]
        {
            for _ in 0..times {
                counters.count(how, Duration::from_millis(3));
            }
        }
        let now = counters.now();
        assert_eq!((now.of(How::Exact), now.of(How::Embedded)), (3, 0));
        assert_eq!(now.latency[2], (Some(5), 6));
        let text = now.prometheus("loopbreaker_semantic");
        assert!(
            text.contains("loopbreaker_semantic_checks_total{result=\"skipped\",reason=\"busy\"} 2\n"),
            "{text}"
        );
        assert!(text.contains("loopbreaker_semantic_check_seconds_bucket{le=\"0.005\"} 6\n"), "{text}");
        assert!(text.contains("loopbreaker_semantic_check_seconds_count 6\n"), "{text}");
    }
}
