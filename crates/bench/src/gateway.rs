//! The gateway beside nginx and `HAProxy`: the same growing transcripts through each of them, in turns.
//!
//! Whoever carries the requests has the first core and one worker; the load and the upstream share the second. What
//! counts is the processor time per request, divided by that of nginx in the same round.

pub(crate) mod answer;
pub(crate) mod load;
mod report;
pub(crate) mod targets;
mod training;
pub(crate) mod transcripts;

use std::cell::RefCell;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use loopbreaker_mock::Mock;

use load::{Fleet, Until};
pub use report::{Held, Measured, Memory, Report, Told, replace_block};
use targets::{Setup, Target};
pub use training::train;
pub use transcripts::{Request, Shape, Workload};

/// One table row per target: what is sent, and how.
#[derive(Debug)]
pub struct Row {
    /// A name without spaces, for command lines.
    pub name: &'static str,
    /// What is sent, in words.
    pub about: &'static str,
    /// How long the transcripts are.
    pub shape: &'static Shape,
    /// Connections that are open at the same time.
    pub connections: usize,
    /// Whether the answer is a stream of fifty events.
    pub streamed: bool,
    /// Whether each request changes a byte near its start, so that nothing known can be taken up.
    pub changes_early: bool,
    /// Requests per second in all; `None` when each connection sends its next one as soon as it has its answer.
    pub paced: Option<u32>,
    /// The most that we may take, as a multiple of what nginx takes.
    pub at_most: Option<f64>,
}

/// Bodies from 0.3 kB to 4.5 kB.
const SMALL: Shape = Shape { system: 140, task: 40, result: 8, tools: 10, turns: 20 };
/// Bodies from 1 kB to 130 kB: every turn brings some 7 kB.
const LARGE: Shape = Shape { system: 80, task: 400, result: 6_600, tools: 400, turns: 20 };
/// Bodies from 46 kB to 84 kB: a long prompt that all sessions share, and some 2 kB more with every turn.
const PROMPTED: Shape = Shape { system: 40_000, task: 1_000, result: 1_800, tools: 5_000, turns: 20 };

/// Everything that is measured beside the peers.
pub const ROWS: &[Row] = &[
    Row::new("2k-c1", "2 kB, 1 connection", &SMALL, 1).at_most(1.3),
    Row::new("2k-c64", "2 kB, 64 connections", &SMALL, 64).at_most(1.3),
    Row::new("2k-miss", "2 kB, 64 connections, nothing can be taken up", &SMALL, 64).changing_early(),
    Row::new("2k-paced", "2 kB, 64 connections, 4,000 requests a second in all", &SMALL, 64).paced(4_000),
    Row::new("64k-c1", "64 kB, 1 connection", &LARGE, 1).at_most(1.6),
    Row::new("64k-c64", "64 kB, 64 connections", &LARGE, 64).at_most(1.6),
    Row::new("64k-miss", "64 kB, 64 connections, nothing can be taken up", &LARGE, 64).changing_early(),
    Row::new("64k-paced", "64 kB, 64 connections, 1,000 requests a second in all", &LARGE, 64).paced(1_000),
    Row::new(
        "64k-prompt",
        "64 kB, 64 connections, of which 40 kB are a prompt that all share",
        &PROMPTED,
        64,
    ),
    Row::new("sse", "2 kB, 16 connections, the answer a stream of 50 events", &SMALL, 16)
        .streamed()
        .at_most(1.4),
];

impl Row {
    /// The most that we may take with the default log, where there is a floor at all.
    pub const AT_MOST_LOGGING: f64 = 2.0;

    const fn new(name: &'static str, about: &'static str, shape: &'static Shape, connections: usize) -> Self {
        Self {
            name,
            about,
            shape,
            connections,
            streamed: false,
            changes_early: false,
            paced: None,
            at_most: None,
        }
    }

    /// Whether nobody has more to do than it can: then the median latency is that of a request, and not the length of
    /// a queue.
    pub const fn is_unhurried(&self) -> bool {
        self.connections == 1 || self.paced.is_some()
    }

    const fn streamed(self) -> Self {
        Self { streamed: true, ..self }
    }

    const fn changing_early(self) -> Self {
        Self { changes_early: true, ..self }
    }

    const fn paced(self, per_second: u32) -> Self {
        Self { paced: Some(per_second), ..self }
    }

    const fn at_most(self, ratio: f64) -> Self {
        Self { at_most: Some(ratio), ..self }
    }
}

/// How long everything is measured.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Of each round and target.
    pub round: Duration,
    /// Rounds of each row.
    pub rounds: usize,
    /// Sessions that go on side by side.
    pub sessions: usize,
    /// Sessions that memory is measured with.
    pub held: u64,
}

/// Measures what has `part` in its name. Progress is told on the way, since it takes minutes.
///
/// With `only`, the targets of these names take part, beside nginx and the upstream itself.
pub fn measure(
    effort: Effort,
    part: &str,
    only: Option<&str>,
    progress: &mut impl Write,
) -> io::Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let folder = tempfile::tempdir()?;
    let mock = Mock::fixed().start("127.0.0.1:0")?;
    let upstream = mock.addr();
    let load_before = targets::load_average()?;
    let mut report = Report {
        peers: format!(
            "nginx {}, HAProxy {}",
            targets::version("nginx", "-v")?,
            targets::version("haproxy", "-v")?
        ),
        ..Report::default()
    };
    let rows: Vec<&Row> = ROWS.iter().filter(|row| row.name.contains(part)).collect();
    if !rows.is_empty() {
        let redis = Target::redis(folder.path())?;
        let mut targets = start_all(folder.path(), upstream, &redis)?;
        targets.retain(|target| {
            let always = matches!(target.name, "nginx" | "direct");
            always || only.is_none_or(|only| only.split(';').any(|name| name == target.name))
        });
        for row in rows {
            writeln!(progress, "{}: {} rounds of {:?}", row.about, effort.rounds, effort.round)?;
            report.measured.push(runtime.block_on(measure_row(row, effort, &targets))?);
        }
    }
    if "memory".contains(part) {
        writeln!(progress, "memory: {} sessions, {HELD_TURNS:?} requests each", effort.held)?;
        report.memory = Some(runtime.block_on(measure_memory(effort, folder.path(), upstream))?);
    }
    report.load_average = (load_before, targets::load_average()?);
    Ok(report)
}

fn start_all(folder: &Path, upstream: SocketAddr, redis: &Target) -> io::Result<Vec<Target>> {
    Ok(vec![
        Target::nginx(folder, upstream)?,
        Target::haproxy(folder, upstream)?,
        Target::bare(folder, upstream)?,
        Target::loopbreaker(folder, upstream, Setup::Quiet)?,
        Target::loopbreaker(folder, upstream, Setup::Shared(redis.address.port()))?,
        Target::loopbreaker(folder, upstream, Setup::Usual)?,
        Target::direct(upstream),
    ])
}

async fn measure_row(row: &'static Row, effort: Effort, targets: &[Target]) -> io::Result<Measured> {
    let workload = || Workload::new(row.shape, effort.sessions, row.streamed, row.changes_early);
    let mut told: Vec<Told> = targets.iter().map(|target| Told::new(target.name)).collect();
    let works: Vec<_> = targets.iter().map(|_| Rc::new(RefCell::new(workload()))).collect();
    let upstream =
        targets.last().map(|direct| direct.address).ok_or_else(|| io::Error::other("no upstream"))?;
    let expected = load::answer_len(upstream, &workload().next_request()).await?;
    let fleet =
        |at: usize| Fleet::connect(targets[at].address, row.connections, expected, Rc::clone(&works[at]));
    for (at, target) in targets.iter().enumerate() {
        // Every session is known when the measurement begins.
        fleet(at).await?.run(Until::Requests(effort.sessions as u64), None).await?;
        target.empty_log()?;
        told[at].resumed = hits(target)?;
    }
    let (mut requests, mut bytes) = (0, 0);
    for round in 0..effort.rounds {
        for turn in 0..targets.len() {
            // Nobody always comes first.
            let at = (turn + round) % targets.len();
            let fleet = fleet(at).await?;
            let before = targets[at].cpu()?;
            let done = fleet.run(Until::Elapsed(effort.round), row.paced).await?;
            let used = targets[at].cpu()?.zip(before).map(|(after, before)| after.saturating_sub(before));
            requests += done.latencies.len() as u64;
            bytes += done.bytes;
            told[at].add(used, done);
            targets[at].empty_log()?;
        }
    }
    for (told, target) in told.iter_mut().zip(targets) {
        let before = told.resumed;
        told.resumed =
            hits(target)?.zip(before).map(|(after, before)| (after.0 - before.0, after.1 - before.1));
        told.resident = target.resident()?;
    }
    Ok(Measured { row, told, mean_bytes: bytes as f64 / requests.max(1) as f64 })
}

/// Requests of which only the new part was read, and those that were read whole.
fn hits(target: &Target) -> io::Result<Option<(f64, f64)>> {
    if !target.name.starts_with("loopbreaker") {
        return Ok(None);
    }
    let metric = |result| target.metric(&format!(r#"loopbreaker_resume_total{{result="{result}"}}"#));
    Ok(Some((metric("hit")?, metric("miss")?)))
}

/// What is in force where memory is measured: everything that is kept for a session, its budget too.
const EVERYTHING: &str = r"policies:
  - id: agents
    spec:
      selector: { pathPrefix: /v1/, methods: [POST] }
      loop_detection: { enabled: true, window_seconds: 60, threshold_identical_requests: 5, action: warn }
      tool_loops: { enabled: true, ladder: [hint, hint, throttle, reject] }
      chant: { enabled: true, action: cut }
      rules:
        - { id: budget, key: session, cost_usd: 5.00, warn_at: 0.8 }
";

/// Requests of each session where memory is measured: every session ends somewhere else with each of them, and more
/// than these are not remembered.
const HELD_TURNS: [usize; 2] = [1, 3];

async fn measure_memory(effort: Effort, folder: &Path, upstream: SocketAddr) -> io::Result<Memory> {
    let idle = {
        let target = Target::as_installed(folder, upstream)?;
        // What is made only after the start is there by now.
        tokio::time::sleep(Duration::from_millis(500)).await;
        target.resident()?
    };
    let mut held = Vec::new();
    for turns in HELD_TURNS {
        let target = Target::loopbreaker(folder, upstream, Setup::With(EVERYTHING))?;
        let mut work = Workload::new(&Shape { turns, ..SMALL }, effort.sessions, false, false);
        let expected = load::answer_len(upstream, &work.next_request()).await?;
        let fleet = Fleet::connect(target.address, 64, expected, Rc::new(RefCell::new(work))).await?;
        let done = fleet.run(Until::Requests(effort.held * turns as u64), None).await?;
        held.push(Held {
            turns,
            sessions: effort.held,
            remembered: target.metric("loopbreaker_sessions")?,
            resident: target.resident()?,
            per_second: done.latencies.len() as f64 / done.elapsed.as_secs_f64(),
        });
    }
    Ok(Memory { idle, held })
}
