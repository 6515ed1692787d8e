//! What was sent, and what came back.

use std::time::Duration;

/// Counts of a minute, or of all of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Microseconds of each answer that nobody held back.
    micros: Vec<u32>,
    /// Answers that were held back on purpose.
    held: u64,
    /// Requests without an answer.
    pub(crate) failed: u64,
    /// Healthy requests that were answered with anything but the provider's answer.
    pub(crate) mistaken: u64,
    /// Loops that ran to their end.
    pub(crate) loops: u64,
    /// Those of them that were not judged as loops are.
    pub(crate) missed: u64,
    /// The first few that went wrong, in words.
    pub(crate) troubles: Vec<String>,
}

impl Tally {
    /// More troubles than these say nothing new.
    const MAX_TROUBLES: usize = 5;

    pub(crate) fn answered(&mut self, after: Duration) {
        self.micros.push(u32::try_from(after.as_micros()).unwrap_or(u32::MAX));
    }

    pub(crate) const fn held(&mut self) {
        self.held += 1;
    }

    pub(crate) fn trouble(&mut self, what: String) {
        if self.troubles.len() < Self::MAX_TROUBLES {
            self.troubles.push(what);
        }
    }

    pub(crate) const fn requests(&self) -> u64 {
        self.micros.len() as u64 + self.held
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.micros.extend(other.micros);
        self.held += other.held;
        self.failed += other.failed;
        self.mistaken += other.mistaken;
        self.loops += other.loops;
        self.missed += other.missed;
        other.troubles.into_iter().for_each(|trouble| self.trouble(trouble));
    }

    /// In words.
    pub(crate) fn told(&mut self, elapsed: Duration) -> String {
        self.micros.sort_unstable();
        let at = |per_mille: usize| {
            let index = (self.micros.len() * per_mille / 1_000).min(self.micros.len().saturating_sub(1));
            f64::from(self.micros.get(index).copied().unwrap_or(0)) / 1e3
        };
        format!(
            "{} requests, {:.0}/s; p50 {:.2} ms, p99 {:.1} ms, slowest {:.0} ms; {} loops, {} missed; {} failed, \
             {} mistaken",
            self.requests(),
            self.requests() as f64 / elapsed.as_secs_f64(),
            at(500),
            at(990),
            at(1_000),
            self.loops,
            self.missed,
            self.failed,
            self.mistaken,
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Tally;

    #[test]
    fn minutes_add_up() {
        let mut all = Tally::default();
        for millis in [3, 1, 2] {
            let mut minute = Tally { loops: 1, ..Tally::default() };
            minute.answered(Duration::from_millis(millis));
            minute.held();
            minute.trouble("no answer".to_owned());
            all.add(minute);
        }
        assert_eq!((all.requests(), all.loops, all.troubles.len()), (6, 3, 3));
        let told = all.told(Duration::from_secs(2));
        assert!(
            told.starts_with("6 requests, 3/s; p50 2.00 ms, p99 3.0 ms, slowest 3 ms; 3 loops"),
            "{told}"
        );
    }
}
