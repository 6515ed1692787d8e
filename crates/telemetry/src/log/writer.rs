//! The thread that writes lines.

use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::time::Duration;

use super::{Entry, LogFormat, human, json};
use crate::metrics::Metrics;
use crate::part::Part;
use crate::queue::{Gathered, Outlet, Pace};

/// Formats entries and writes them in batches.
pub(super) struct Writer {
    format: LogFormat,
    out: Box<dyn Write + Send>,
    metrics: Arc<Metrics>,
    /// Lines that are not written yet; the head of the first one may be.
    pending: Vec<u8>,
}

impl Writer {
    /// Lines that are formatted before they are written.
    const MAX_BATCH: usize = 1_024;
    /// What is kept of lines that cannot be written.
    const MAX_PENDING: usize = 1 << 20;
    /// A line may be this late: at 20,000 requests a second one wake-up then serves 100 lines.
    const GATHERING: Duration = Duration::from_millis(5);
    /// How soon lines that could not be written are tried again, when no new ones come.
    const RETRY: Duration = Duration::from_secs(1);

    pub(super) fn new(format: LogFormat, out: Box<dyn Write + Send>, metrics: Arc<Metrics>) -> Self {
        Self { format, out, metrics, pending: Vec::new() }
    }

    /// Writes until nobody can put in anything any more.
    pub(super) fn run(mut self, lines: &Outlet<Entry>) {
        let mut batch = Vec::new();
        loop {
            let idle = (!self.pending.is_empty()).then_some(Self::RETRY);
            let pace = Pace { idle, within: Self::GATHERING, tick: Self::GATHERING };
            let gathered = lines.gather(&mut batch, Self::MAX_BATCH, &pace);
            batch.drain(..).for_each(|entry| self.format(&entry));
            self.write();
            match gathered {
                Gathered::Batch => {}
                Gathered::Flush(flush) => flush.done(self.pending.is_empty()),
                Gathered::Closed => return self.give_up(),
            }
        }
    }

    fn format(&mut self, entry: &Entry) {
        if self.pending.len() >= Self::MAX_PENDING {
            self.metrics.drop_lines(1);
            return;
        }
        let line = &mut self.pending;
        match (self.format, entry) {
            (LogFormat::Human { colour }, Entry::Request(record)) => {
                human::push_request(line, record, colour);
            }
            (LogFormat::Human { colour }, Entry::Event(event)) => human::push_event(line, event, colour),
            (_, Entry::Request(record)) => json::push_request(line, record),
            (_, Entry::Event(event)) => json::push_event(line, event),
        }
    }

    /// Writes what is pending, as far as the other side takes it.
    fn write(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let mut written = 0;
        let mut trouble = false;
        while written < self.pending.len() && !trouble {
            match self.out.write(&self.pending[written..]) {
                Ok(0) => trouble = true,
                Ok(count) => written += count,
                Err(error) => trouble = error.kind() != ErrorKind::Interrupted,
            }
        }
        trouble |= self.out.flush().is_err();
        self.pending.drain(..written);
        self.metrics.set_degraded(Part::Log, trouble);
        if trouble {
            self.metrics.count_degraded(Part::Log);
        }
        if self.pending.is_empty() {
            self.pending.shrink_to(Self::MAX_PENDING / 8);
        }
    }

    fn give_up(&self) {
        let lines = self.pending.split(|byte| *byte == b'\n').count() - 1;
        self.metrics.drop_lines(lines as u64);
    }
}
