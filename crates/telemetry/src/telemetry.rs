//! One record, seen three ways.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::log::{Level, Log, LogFormat};
use crate::metrics::Metrics;
use crate::record::Record;
use crate::spans::{SpanSettings, Spans};

/// Metrics, log and spans of one process; cheap to clone, shared by all its threads.
///
/// ```
/// use std::time::Duration;
/// use loopbreaker_telemetry::{LogFormat, Record, Telemetry};
///
/// let telemetry = Telemetry::start(LogFormat::Json, Box::new(std::io::sink()), |_| None);
/// telemetry.record(Record { session: "run-17".into(), ..Record::default() });
/// assert!(telemetry.shutdown(Duration::from_secs(5)));
/// ```
#[derive(Debug, Clone)]
pub struct Telemetry {
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Lines.
    pub log: Log,
    /// Spans for a collector.
    pub spans: Spans,
}

impl Telemetry {
    /// Starts the threads that write and export. The variables of OpenTelemetry are asked for by their names; what is
    /// wrong with them is told in the log, and never keeps the process from starting.
    pub fn start(
        format: LogFormat,
        out: Box<dyn Write + Send>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let metrics = Arc::new(Metrics::default());
        let log = Log::start(format, out, Arc::clone(&metrics));
        let (settings, problems) = SpanSettings::read(variable);
        for problem in problems {
            log.event(Level::Warn, "spans are not set up as asked", &[("problem", &problem.to_string())]);
        }
        let spans = match settings {
            Some(settings) => Spans::start(settings, &log, &metrics),
            None => Spans::off(),
        };
        Self { metrics, log, spans }
    }

    /// Only metrics, no threads.
    pub fn quiet() -> Self {
        let metrics = Arc::new(Metrics::default());
        Self { log: Log::off(Arc::clone(&metrics)), spans: Spans::off(), metrics }
    }

    /// Tells of a request that is over. Never waits.
    #[inline]
    pub fn record(&self, record: Record) {
        self.metrics.observe(&record);
        if self.log.is_on() || self.spans.is_on() {
            self.write(record);
        }
    }

    fn write(&self, record: Record) {
        let record = Arc::new(record.bounded());
        self.log.request(&record);
        self.spans.request(&record);
    }

    /// Writes and exports what is queued; false when that took too long or could not be done.
    pub fn shutdown(&self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        // Spans first: what goes wrong with them is a line of its own.
        let spans = self.spans.flush(within);
        let lines = self.log.flush(deadline.saturating_duration_since(Instant::now()));
        spans && lines
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::Telemetry;
    use crate::{LogFormat, Record};

    const PATIENCE: Duration = Duration::from_secs(20);

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Sink {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    #[test]
    fn a_record_is_counted_and_written() {
        let sink = Sink::default();
        let telemetry = Telemetry::start(LogFormat::Json, Box::new(sink.clone()), |_| None);
        telemetry.record(Record { session: "s".repeat(10_000).into(), ..Record::default() });
        assert!(telemetry.shutdown(PATIENCE));
        assert!(telemetry.metrics.render().contains("loopbreaker_overhead_seconds_count 1\n"));
        assert_eq!(sink.text().lines().count(), 1);
        assert!(sink.text().len() < 1_000, "what a client chose is cut");
    }

    #[test]
    fn without_a_log_and_spans_there_are_still_metrics() {
        let telemetry = Telemetry::quiet();
        telemetry.record(Record::default());
        assert!(telemetry.shutdown(Duration::ZERO));
        assert!(telemetry.metrics.render().contains("loopbreaker_overhead_seconds_count 1\n"));
    }

    #[test]
    fn a_wrong_variable_is_told_and_keeps_nothing_from_starting() {
        let sink = Sink::default();
        let variable = |name: &str| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| "nonsense".to_owned());
        let telemetry = Telemetry::start(LogFormat::Json, Box::new(sink.clone()), variable);
        assert!(telemetry.shutdown(PATIENCE) && !telemetry.spans.is_on());
        assert!(sink.text().contains("OTEL_EXPORTER_OTLP_ENDPOINT is no address"), "{}", sink.text());
    }

    #[test]
    fn a_collector_that_is_away_is_told_once_in_the_log() {
        let sink = Sink::default();
        let nobody = "http://127.0.0.1:1".to_owned();
        let variable = |name: &str| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| nobody.clone());
        let telemetry = Telemetry::start(LogFormat::Json, Box::new(sink.clone()), variable);
        for _ in 0..3 {
            telemetry.record(Record::default());
            assert!(!telemetry.shutdown(PATIENCE));
        }
        assert_eq!(sink.text().matches("spans are not delivered").count(), 1, "{}", sink.text());
        assert_eq!(sink.text().matches("\"event\":\"request\"").count(), 3);
    }
}
