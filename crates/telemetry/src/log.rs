//! Log lines: one per request and one per event, written by a thread of their own.

mod clock;
mod human;
mod json;
mod plain;
mod writer;

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::mask::mask_and_cut;
use crate::metrics::Metrics;
use crate::part::Part;
use crate::queue::{Queue, queue};
use crate::record::Record;
use writer::Writer;

/// The log: puts lines into a queue and never waits.
///
/// When the queue is full, a line is dropped and counted; when the lines cannot be written (a closed pipe, a full
/// disk), they are kept for a while and tried again, then dropped and counted. Formatting, masking of credentials and
/// escaping of control characters happen on the writing thread.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use loopbreaker_telemetry::{Level, Log, LogFormat, Metrics};
///
/// let log = Log::start(LogFormat::Json, Box::new(std::io::sink()), Arc::new(Metrics::default()));
/// log.event(Level::Info, "config reloaded", &[("policies", "3")]);
/// assert!(log.flush(Duration::from_secs(5)));
/// ```
#[derive(Debug, Clone)]
pub struct Log {
    /// Absent when the log is off.
    queue: Option<Queue<Entry>>,
    metrics: Arc<Metrics>,
}

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// For eyes; with colours on a terminal.
    Human {
        /// Whether to write colours.
        colour: bool,
    },
    /// No lines at all.
    Off,
}

impl LogFormat {
    /// The format of this name: `json`, `human` or `off`. Colours are the terminal's.
    pub fn parse(name: &str, colour: bool) -> Option<Self> {
        match name {
            "json" => Some(Self::Json),
            "human" => Some(Self::Human { colour }),
            "off" => Some(Self::Off),
            _ => None,
        }
    }

    /// What is written when nothing was asked for: lines for eyes on a terminal, JSON elsewhere.
    pub fn usual(is_terminal: bool, colour: bool) -> Self {
        if is_terminal { Self::Human { colour } } else { Self::Json }
    }
}

/// How much an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Good to know.
    Info,
    /// Something goes on without a part of ours.
    Warn,
    /// Something has to be done.
    Error,
}

impl Level {
    /// The level's name in lines.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// What is written: a request or an event.
#[derive(Debug)]
enum Entry {
    Request(Arc<Record>),
    Event(Box<Event>),
}

/// Something that happened to the process.
#[derive(Debug)]
struct Event {
    at: SystemTime,
    level: Level,
    what: &'static str,
    fields: Vec<(&'static str, Box<str>)>,
}

impl Log {
    /// How many lines may wait: 0.4 seconds of 20,000 requests a second.
    const CAPACITY: usize = 8_192;
    /// The longest value of an event's field.
    const MAX_VALUE: usize = 1_024;

    /// A log that writes to `out` from now on.
    pub fn start(format: LogFormat, out: Box<dyn Write + Send>, metrics: Arc<Metrics>) -> Self {
        if format == LogFormat::Off {
            return Self::off(metrics);
        }
        let (lines, outlet) = queue(Self::CAPACITY);
        let writer = Writer::new(format, out, Arc::clone(&metrics));
        let thread = std::thread::Builder::new().name("log".to_owned());
        if thread.spawn(move || writer.run(&outlet)).is_err() {
            metrics.set_degraded(Part::Log, true);
            return Self::off(metrics);
        }
        Self { queue: Some(lines), metrics }
    }

    /// A log that writes nothing.
    pub fn off(metrics: Arc<Metrics>) -> Self {
        Self { queue: None, metrics }
    }

    /// Tells of something that happened to the process: a fixed sentence, and what changes in fields of its own.
    pub fn event(&self, level: Level, what: &'static str, fields: &[(&'static str, &str)]) {
        if !self.is_on() {
            return;
        }
        let fields = fields.iter().map(|(name, value)| (*name, mask_and_cut(value, Self::MAX_VALUE).into()));
        let fields = fields.collect();
        self.put(Entry::Event(Box::new(Event { at: SystemTime::now(), level, what, fields })));
    }

    /// Tells of a request that is over.
    pub(crate) fn request(&self, record: &Arc<Record>) {
        if self.is_on() {
            self.put(Entry::Request(Arc::clone(record)));
        }
    }

    /// Whether lines are written at all.
    pub fn is_on(&self) -> bool {
        self.queue.is_some()
    }

    /// Waits until every line up to now is written; false when that took too long or could not be done.
    pub fn flush(&self, within: Duration) -> bool {
        self.queue.as_ref().is_none_or(|queue| queue.flush(within))
    }

    fn put(&self, entry: Entry) {
        if let Some(queue) = &self.queue
            && !queue.offer(entry)
        {
            self.metrics.drop_lines(1);
        }
    }
}

#[cfg(test)]
mod tests;
