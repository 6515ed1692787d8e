//! A long day: one gateway as it is installed, looping and healthy agents at a steady rate, and an eye on what grows.
//!
//! The load and the upstream are this process; the gateway is another one, whose memory, threads and descriptors are
//! read from `/proc` every second.

mod agents;
mod tally;
mod vitals;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

use loopbreaker_mock::Mock;
use serde_json::Value;
use tokio::task::LocalSet;

use crate::gateway::load;
use crate::gateway::targets::{self, Target};
use crate::gateway::{Shape, Workload};
use agents::{Healthy, Looping};
use tally::Tally;
use vitals::Vitals;

/// How long, and how much.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// How long requests are sent.
    pub length: Duration,
    /// Requests per second, of healthy and looping agents together.
    pub rate: f64,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    effort: Effort,
    total: Tally,
    elapsed: Duration,
    /// What was seen every second after the warm-up.
    seen: Vec<Vitals>,
    /// Before the first request.
    idle: Vitals,
    /// After the last one, when everybody has hung up.
    after: Vitals,
    /// Sessions that were remembered at the end of the warm-up, and at the end.
    sessions: (f64, f64),
    /// Log entries that could not be written, as `/readyz` says.
    unwritten: u64,
    load_average: (f64, f64),
}

/// Transcripts of up to 25 kB: long runs, as those of coding agents are.
const SHAPE: Shape = Shape { system: 400, task: 80, result: 60, tools: 200, turns: 100 };
/// Runs of healthy agents that go on side by side.
const SESSIONS: usize = 1_000;
/// Connections of healthy agents.
const CONNECTIONS: usize = 64;
/// Of so many requests one is sent by a looping agent.
const LOOPING_SHARE: f64 = 0.05;
/// What a looping agent waits between two requests.
const LOOPING_PACE: Duration = Duration::from_millis(250);

/// Runs it, with a line a minute.
pub fn run(effort: Effort, progress: &mut impl Write) -> io::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let folder = tempfile::tempdir()?;
    let mock = Mock::fixed().start("127.0.0.1:0")?;
    let target = Target::as_installed(folder.path(), mock.addr())?;
    let load_before = targets::load_average()?;
    let idle = Vitals::of(&target)?;
    let mut work = Workload::new(&SHAPE, SESSIONS, false, false);
    let expected = runtime.block_on(load::answer_len(mock.addr(), &work.next_request()))?;

    let started = Instant::now();
    let (minute, total) = (Rc::new(RefCell::new(Tally::default())), Tally::default());
    let mut outcome = Outcome {
        effort,
        total,
        elapsed: Duration::ZERO,
        seen: Vec::new(),
        idle,
        after: idle,
        sessions: (0.0, 0.0),
        unwritten: 0,
        load_average: (load_before, load_before),
    };
    let local = LocalSet::new();
    let deadline = started + effort.length;
    let loopers = (effort.rate * LOOPING_SHARE * agents::seconds_per_request(LOOPING_PACE)).ceil().max(1.0);
    let every = Duration::from_secs_f64(CONNECTIONS as f64 / (effort.rate * (1.0 - LOOPING_SHARE)));
    let work = Rc::new(RefCell::new(work));
    let mut running = Vec::new();
    for at in 0..CONNECTIONS {
        let first = started + every.mul_f64(at as f64 / CONNECTIONS as f64);
        let healthy = Healthy { address: target.address, work: Rc::clone(&work), expected, every, first };
        running.push(local.spawn_local(healthy.run(deadline, Rc::clone(&minute))));
    }
    let runs = Rc::new(Cell::new(0));
    for at in (0_u32..).take_while(|at| f64::from(*at) < loopers) {
        let first = started + LOOPING_PACE.mul_f64(f64::from(at) / loopers);
        let looping = Looping { address: target.address, runs: Rc::clone(&runs), every: LOOPING_PACE, first };
        running.push(local.spawn_local(looping.run(deadline, Rc::clone(&minute))));
    }
    let watching = watch(&target, started, &minute, &mut outcome, progress);
    runtime.block_on(local.run_until(watching))?;
    runtime.block_on(local.run_until(async {
        for one in running {
            one.await.map_err(io::Error::other)?;
        }
        Ok::<(), io::Error>(())
    }))?;
    outcome.total.add(minute.take());
    outcome.elapsed = started.elapsed();
    outcome.sessions.1 = target.metric("loopbreaker_sessions")?;
    outcome.unwritten = unwritten(&target)?;
    // Whoever is still there after this has been forgotten.
    std::thread::sleep(SILENCE);
    outcome.after = Vitals::of(&target)?;
    outcome.load_average.1 = targets::load_average()?;
    Ok(outcome)
}

/// Looks at the gateway every second, and tells every minute what it has seen.
async fn watch(
    target: &Target,
    started: Instant,
    minute: &RefCell<Tally>,
    outcome: &mut Outcome,
    progress: &mut impl Write,
) -> io::Result<()> {
    let warm = outcome.effort.warm_up();
    let (mut told, mut second) = (0, 0_u64);
    while started.elapsed() < outcome.effort.length {
        second += 1;
        tokio::time::sleep_until((started + Duration::from_secs(second)).into()).await;
        let vitals = Vitals::of(target)?;
        if started.elapsed() >= warm {
            if outcome.seen.is_empty() {
                outcome.sessions.0 = target.metric("loopbreaker_sessions")?;
            }
            outcome.seen.push(vitals);
        }
        if second % 60 == 0 {
            told += 1;
            let mut tally = minute.take();
            let sessions = target.metric("loopbreaker_sessions")?;
            let load = targets::load_average()?;
            writeln!(
                progress,
                "minute {told}: {}; {vitals}; {sessions} sessions, {} log entries not written; load {load}",
                tally.told(Duration::from_secs(60)),
                unwritten(target)?,
            )?;
            outcome.total.add(tally);
            target.empty_log()?;
        }
    }
    Ok(())
}

/// Log entries that had no room or could not be written.
fn unwritten(target: &Target) -> io::Result<u64> {
    let page = target.page("/readyz")?;
    let body = page.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let ready: Value = serde_json::from_str(body).map_err(io::Error::other)?;
    Ok(ready["parts"]["store"]["unwritten"].as_u64().unwrap_or(0))
}

impl Effort {
    /// Caches are filled for half of the time: at 2,000 requests/s the transcripts, 256 MB, and the runs of the
    /// journal, 20,000, are at their bounds after ten minutes. What grows later grows for good.
    fn warm_up(self) -> Duration {
        self.length / 2
    }
}

impl Outcome {
    /// Each floor, with what was seen, and whether it holds.
    fn floors(&self) -> Vec<(String, bool)> {
        let rate = self.total.requests() as f64 / self.elapsed.as_secs_f64();
        let slope = vitals::slope(&self.seen, |vitals| vitals.resident as f64);
        let minutes = self.seen.len() as f64 / 60.0;
        let grown = slope * minutes;
        let new_sessions = (self.sessions.1 - self.sessions.0).max(0.0);
        let spread = |of: fn(&Vitals) -> u64| {
            let all = || self.seen.iter().map(of);
            (all().min().unwrap_or(0), all().max().unwrap_or(0), self.seen.last().map_or(0, of))
        };
        let (descriptors, threads) = (spread(|vitals| vitals.descriptors), spread(|vitals| vitals.threads));
        vec![
            (
                format!("{rate:.0} requests/s of {:.0} that were asked for", self.effort.rate),
                rate >= self.effort.rate * 0.98,
            ),
            (format!("{} requests failed", self.total.failed), self.total.failed == 0),
            (
                format!("{} healthy requests were taken for a loop", self.total.mistaken),
                self.total.mistaken == 0,
            ),
            (
                format!(
                    "{} of {} loops were missed, or stopped at another step",
                    self.total.missed, self.total.loops
                ),
                self.total.missed == 0 && self.total.loops > 0,
            ),
            (
                format!(
                    "memory: {:+.2} MB a minute after the warm-up, {:.1} MB in all; {new_sessions:.0} sessions more \
                     are remembered, which may take 1 kB each",
                    slope / 1e6,
                    grown / 1e6
                ),
                grown <= new_sessions * 1e3 + FLAT,
            ),
            (
                format!(
                    "descriptors: {} to {} while it ran, {} at the end; {} before and {} after it",
                    descriptors.0,
                    descriptors.1,
                    descriptors.2,
                    self.idle.descriptors,
                    self.after.descriptors
                ),
                descriptors.2 <= descriptors.0 + SWAY && self.after.descriptors <= descriptors.0,
            ),
            (format!("threads: {} to {}", threads.0, threads.1), threads.1 <= threads.0 + 2),
        ]
    }

    /// Whether every floor holds.
    pub fn holds(&self) -> bool {
        self.floors().iter().all(|(_, holds)| *holds)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { total, seen, idle, load_average: (before, after), .. } = self;
        let minutes = self.elapsed.as_secs_f64() / 60.0;
        writeln!(
            f,
            "{minutes:.1} minutes: {}. Load of the machine {before} before, {after} after; {} log entries not \
             written. Resident memory: {} MB idle, {} MB after the warm-up, {} MB at the end.\n",
            total.clone().told(self.elapsed),
            self.unwritten,
            idle.resident / 1_000_000,
            seen.first().map_or(0, |vitals| vitals.resident / 1_000_000),
            seen.last().map_or(0, |vitals| vitals.resident / 1_000_000),
        )?;
        writeln!(f, "| seen | floor |\n|---|---|")?;
        for (seen, holds) in self.floors() {
            writeln!(f, "| {seen} | {} |", if holds { "✓" } else { "✗ missed" })?;
        }
        for trouble in &total.troubles {
            writeln!(f, "\n- {trouble}")?;
        }
        Ok(())
    }
}

/// Growth that is no growth: the allocator and the database's page cache sway by as much.
const FLAT: f64 = 8e6;
/// Connections to the provider come and go.
const SWAY: u64 = 32;
const SILENCE: Duration = Duration::from_secs(10);
