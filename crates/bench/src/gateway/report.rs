//! Tables of what was measured, and what the floors say to it.

use std::fmt;
use std::time::Duration;

use super::Row;
use super::load::Done;
use super::targets::{SHARED, USUAL};

/// Everything that was measured in one run.
#[derive(Debug, Default)]
pub struct Report {
    /// Which peers.
    pub peers: String,
    /// The rows, each with every target.
    pub measured: Vec<Measured>,
    /// Memory.
    pub memory: Option<Memory>,
    /// The machine's load before and after.
    pub load_average: (f64, f64),
}

/// One row.
#[derive(Debug)]
pub struct Measured {
    /// What was sent.
    pub row: &'static Row,
    /// What came of it, by target; nginx is the first.
    pub told: Vec<Told>,
    /// Bytes of a body, on average.
    pub mean_bytes: f64,
}

/// What one target did in one row.
#[derive(Debug)]
pub struct Told {
    /// Who.
    pub name: &'static str,
    /// Requests that were taken up from earlier ones and those that were read whole, where that is known.
    pub resumed: Option<(f64, f64)>,
    /// Resident memory after the row.
    pub resident: u64,
    /// Microseconds of processor time per request, of each round.
    cpu: Vec<f64>,
    /// Requests per second, of each round.
    rates: Vec<f64>,
    /// Nanoseconds of each request.
    latencies: Vec<u64>,
}

/// What is held.
#[derive(Debug)]
pub struct Memory {
    /// Resident memory before the first request.
    pub idle: u64,
    /// With sessions.
    pub held: Vec<Held>,
}

/// What is held for sessions.
#[derive(Debug)]
pub struct Held {
    /// Requests that each has sent.
    pub turns: usize,
    /// How many there were.
    pub sessions: u64,
    /// How many of them are remembered.
    pub remembered: f64,
    /// Resident memory after the last request.
    pub resident: u64,
    /// How fast requests came.
    pub per_second: f64,
}

impl Told {
    pub(super) const fn new(name: &'static str) -> Self {
        Self { name, resumed: None, resident: 0, cpu: Vec::new(), rates: Vec::new(), latencies: Vec::new() }
    }

    /// Takes a round in.
    pub(super) fn add(&mut self, used: Option<Duration>, done: Done) {
        let requests = done.latencies.len().max(1) as f64;
        self.cpu.extend(used.map(|used| used.as_secs_f64() * 1e6 / requests));
        self.rates.push(requests / done.elapsed.as_secs_f64());
        self.latencies.extend(done.latencies);
    }

    /// Processor time as a multiple of what another one took in the same rounds.
    fn ratios(&self, other: &Self) -> Quartiles {
        Quartiles::of(self.cpu.iter().zip(&other.cpu).map(|(ours, theirs)| ours / theirs).collect())
    }

    /// The time within which so many of a hundred requests were answered.
    fn latency(&self, percent: usize) -> Duration {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let at = sorted.len().saturating_sub(1) * percent / 100;
        Duration::from_nanos(sorted.get(at).copied().unwrap_or(0))
    }
}

/// The middle of some values, and that of each half.
struct Quartiles {
    first: f64,
    median: f64,
    third: f64,
}

impl Quartiles {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let value = |at: usize| values.get(at).copied().unwrap_or(f64::NAN);
        let at = |quarter: usize| {
            let place = quarter * values.len().saturating_sub(1);
            let (low, high) = (value(place / 4), value(place.div_ceil(4)));
            low + (high - low) * (place % 4) as f64 / 4.0
        };
        Self { first: at(1), median: at(2), third: at(3) }
    }
}

impl fmt::Display for Quartiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} [{:.2}–{:.2}]", self.median, self.first, self.third)
    }
}

/// Something that must not be more than it may.
struct Floor {
    what: String,
    measured: f64,
    at_most: f64,
    unit: &'static str,
}

impl Floor {
    fn holds(&self) -> bool {
        self.measured <= self.at_most
    }
}

impl Report {
    /// Whether every floor holds that was measured.
    pub fn holds(&self) -> bool {
        self.floors().iter().all(Floor::holds)
    }

    fn floors(&self) -> Vec<Floor> {
        let mut floors = Vec::new();
        for Measured { row, told, .. } in &self.measured {
            let [nginx, others @ ..] = &told[..] else { continue };
            let ours = |name: &str| others.iter().find(|told| told.name == name);
            if let (true, Some(alone), Some(together)) =
                (row.is_unhurried(), ours("loopbreaker"), ours(SHARED))
            {
                let millis = |told: &Told| told.latency(50).as_secs_f64() * 1e3;
                floors.push(Floor {
                    what: format!("{}, what Redis adds to p50", row.about),
                    measured: millis(together) - millis(alone),
                    at_most: 0.3,
                    unit: " ms",
                });
            }
            let Some(at_most) = row.at_most else { continue };
            for told in others.iter().filter(|told| ["loopbreaker", USUAL].contains(&told.name)) {
                let logs = told.name == USUAL;
                floors.push(Floor {
                    what: format!("{}{}", row.about, if logs { ", default log" } else { "" }),
                    measured: told.ratios(nginx).median,
                    at_most: if logs { at_most.max(Row::AT_MOST_LOGGING) } else { at_most },
                    unit: " ×",
                });
            }
        }
        let memory = |what: String, bytes: u64, at_most| Floor {
            what,
            measured: bytes as f64 / 1e6,
            at_most,
            unit: " MB",
        };
        if let Some(Memory { idle, held }) = &self.memory {
            floors.push(memory("resident memory before the first request".to_owned(), *idle, 40.0));
            // Fewer sessions than a million stand for nothing.
            for held in held.iter().filter(|held| held.sessions >= 1_000_000) {
                let what = format!("{} sessions, requests of each: {}", held.sessions, held.turns);
                floors.push(memory(what, held.resident, 1_000.0));
            }
        }
        floors
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = self.load_average;
        writeln!(f, "{}. Load average {before:.1} before, {after:.1} after.\n", self.peers)?;
        if !self.measured.is_empty() {
            writeln!(
                f,
                "| what is sent | to | CPU × nginx [quartiles] | CPU µs | requests/s | p50 | p99 | RSS |"
            )?;
            writeln!(f, "|---|---|--:|--:|--:|--:|--:|--:|")?;
        }
        for measured in &self.measured {
            write!(f, "{measured}")?;
        }
        if let Some(Memory { idle, held }) = &self.memory {
            writeln!(f, "\n| sessions | requests of each | remembered | resident | requests/s |")?;
            writeln!(f, "|--:|--:|--:|--:|--:|")?;
            writeln!(f, "| 0 | | 0 | {} MB | |", idle / 1_000_000)?;
            for Held { turns, sessions, remembered, resident, per_second } in held {
                let megabytes = resident / 1_000_000;
                writeln!(f, "| {sessions} | {turns} | {remembered} | {megabytes} MB | {per_second:.0} |")?;
            }
        }
        writeln!(f, "\n| floor | measured | at most | |")?;
        writeln!(f, "|---|--:|--:|---|")?;
        for floor in self.floors() {
            let verdict = if floor.holds() { "✓" } else { "✗" };
            let Floor { what, measured, at_most, unit } = floor;
            writeln!(f, "| {what} | {measured:.2}{unit} | {at_most:.2}{unit} | {verdict} |")?;
        }
        Ok(())
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, told) in self.told.iter().enumerate() {
            let about = if at == 0 {
                format!("{} (on average {:.1} kB)", self.row.about, self.mean_bytes / 1e3)
            } else {
                told.resumed.map_or_else(String::new, |(hits, misses)| {
                    format!("taken up: {:.1} %", hits * 100.0 / (hits + misses).max(1.0))
                })
            };
            let (ratio, cpu) = if told.cpu.is_empty() {
                (String::new(), String::new())
            } else {
                (
                    told.ratios(&self.told[0]).to_string(),
                    format!("{:.1}", Quartiles::of(told.cpu.clone()).median),
                )
            };
            let rate = Quartiles::of(told.rates.clone()).median;
            let (p50, p99) = (millis(told.latency(50)), millis(told.latency(99)));
            let resident =
                if told.resident == 0 { String::new() } else { format!("{} MB", told.resident / 1_000_000) };
            let name = told.name;
            writeln!(f, "| {about} | {name} | {ratio} | {cpu} | {rate:.0} | {p50} | {p99} | {resident} |")?;
        }
        Ok(())
    }
}

fn millis(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1e3)
}

/// The text with what stands between the two marks replaced; `None` when it has no such marks.
pub fn replace_block(text: &str, name: &str, block: &str) -> Option<String> {
    let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let start = text.find(&open)? + open.len();
    let end = start + text[start..].find(&close)?;
    Some(format!("{}\n{}\n\n{}", &text[..start], block.trim_end(), &text[end..]))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{ROWS, Row};
    use super::{Done, Held, Measured, Memory, Quartiles, Report, SHARED, Told, replace_block};

    fn told(name: &'static str, micros: &[u64]) -> Told {
        let mut told = Told::new(name);
        for micros in micros {
            let done =
                Done { latencies: vec![1_000; 10], elapsed: Duration::from_secs(1), ..Done::default() };
            told.add(Some(Duration::from_micros(micros * 10)), done);
        }
        told
    }

    fn report(ours: &[u64], logging: &[u64]) -> Report {
        let told = vec![
            told("nginx", &[10, 20]),
            told("loopbreaker", ours),
            told("loopbreaker, default log", logging),
        ];
        Report { measured: vec![Measured { row: &ROWS[0], told, mean_bytes: 2e3 }], ..Report::default() }
    }

    #[test]
    fn a_ratio_is_taken_within_a_round() {
        assert!(report(&[13, 26], &[20, 40]).holds());
        assert!(!report(&[14, 28], &[20, 40]).holds());
        assert!(!report(&[13, 26], &[21, 42]).holds());
    }

    #[test]
    fn what_redis_adds_is_measured_where_nobody_waits_in_a_queue() {
        let added = |row: &'static Row| {
            let slow = Done { latencies: vec![400_000], elapsed: Duration::from_secs(1), ..Done::default() };
            let mut shared = Told::new(SHARED);
            shared.add(None, slow);
            let told = vec![told("nginx", &[10]), told("loopbreaker", &[10]), shared];
            Report { measured: vec![Measured { row, told, mean_bytes: 2e3 }], ..Report::default() }
        };
        for row in ROWS {
            assert_eq!(added(row).holds(), !row.is_unhurried(), "{}", row.name);
        }
    }

    #[test]
    fn memory_has_floors_too() {
        let held =
            |resident| Held { turns: 3, sessions: 1_000_000, remembered: 1e6, resident, per_second: 1e4 };
        let report = |idle, resident| Report {
            memory: Some(Memory { idle, held: vec![held(resident)] }),
            ..Report::default()
        };
        assert!(report(40_000_000, 1_000_000_000).holds());
        assert!(!report(41_000_000, 1_000_000_000).holds());
        assert!(!report(40_000_000, 1_100_000_000).holds());
    }

    #[test]
    fn quartiles_lie_between_values() {
        let Quartiles { first, median, third } = Quartiles::of(vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!([first, median, third].map(|value| format!("{value:.2}")), ["1.75", "2.50", "3.25"]);
    }

    #[test]
    fn only_what_stands_between_the_marks_is_replaced() {
        let text = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n";
        let replaced = replace_block(text, "x", "new\n").unwrap();
        assert_eq!(replaced, "a\n<!-- x -->\n\nnew\n\n<!-- end of x -->\nb\n");
        assert_eq!(replace_block(&replaced, "x", "new").unwrap(), replaced);
        assert_eq!(replace_block(text, "y", ""), None);
    }
}
