//! Measures the observatory of a running program: how many logs a second it keeps, how fast it answers with millions
//! of them, and what it costs the calls of the gateway beside it. Exit code 1 when a floor is missed.
//! `scripts/bench-observatory.sh` builds what it needs.

mod client;
mod gateway;
mod logs;
mod program;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use client::Client;
use logs::Logs;
use program::Program;

/// What is asked for, each with its floor.
const LOGS_PER_SECOND: f64 = 5_000.0;
const SLOWEST_ANSWER: Duration = Duration::from_millis(100);
const SLOWER_CALL: Duration = Duration::from_millis(1);

/// Agents that send at the same time.
const SENDERS: u64 = 64;
/// Lines of one request while the store is filled.
const LINES: u64 = 5_000;
/// How often each question is asked.
const QUESTIONS: usize = 101;

fn main() -> ExitCode {
    match run(&mut io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            writeln!(io::stderr(), "observatory-report: {error}").unwrap_or_default();
            ExitCode::from(2)
        }
    }
}

/// Measures; `true` when every floor holds.
fn run(out: &mut dyn Write) -> io::Result<bool> {
    let steps: u64 = setting("BENCH_STEPS", 10_000_000)?;
    let seconds: u64 = setting("BENCH_SECONDS", 20)?;
    let folder = tempfile::tempdir()?;
    let mut holds = true;
    writeln!(out, "| what | measured | floor | ratio |\n|---|---|---|---|")?;

    let program = Program::start(folder.path(), None, "sqlite")?;
    let logs = Logs::new();
    let (kept, took) = send_for(&program, &logs, Duration::from_secs(seconds))?;
    let rate = kept as f64 / took.as_secs_f64();
    holds &= rate >= LOGS_PER_SECOND;
    let ratio = rate / LOGS_PER_SECOND;
    writeln!(
        out,
        "| logs kept per second, one per request, {SENDERS} agents, for {} s | {rate:.0} | {LOGS_PER_SECOND} | {ratio:.2} |",
        took.as_secs()
    )?;

    let started = Instant::now();
    fill(&program, &logs, kept, steps)?;
    let filled = steps.saturating_sub(kept) as f64 / started.elapsed().as_secs_f64();
    writeln!(out, "| logs kept per second, {LINES} lines per request | {filled:.0} | | |")?;
    let bytes = program.bytes_on_disk()?;
    writeln!(out, "| store with {} steps | {:.2} GB | | |", steps.max(kept), bytes as f64 / 1e9)?;

    for (what, path) in [
        ("GET /sessions", "/sessions?limit=50".to_owned()),
        ("GET /sessions, loops only", "/sessions?state=loop&limit=50".to_owned()),
        ("search, a frequent word", "/search?q=parser&limit=50".to_owned()),
        ("search, a rare word", format!("/search?q={}&limit=50", Logs::rare_word())),
        ("search, two words and a filter", "/search?q=parser+missing&status=failure&limit=50".to_owned()),
        ("search by agent", "/search?agent=agent-7&limit=50".to_owned()),
        ("search by a tool that nobody used", "/search?tool=nothing&limit=50".to_owned()),
        ("GET /overview", "/overview".to_owned()),
    ] {
        let mut client = Client::connect(program.address)?;
        let mut times = Vec::with_capacity(QUESTIONS);
        for _ in 0..QUESTIONS {
            let asked = Instant::now();
            let (status, answer) = client.get(&path)?;
            if status != 200 {
                return Err(io::Error::other(format!("{path}: {status} {answer}")));
            }
            times.push(asked.elapsed());
        }
        times.sort_unstable();
        let (median, slowest) = (times[QUESTIONS / 2], times[QUESTIONS * 99 / 100]);
        holds &= slowest < SLOWEST_ANSWER;
        writeln!(
            out,
            "| {what}: median, p99 | {:.1} ms, {:.1} ms | < {} ms | {:.2} |",
            millis(median),
            millis(slowest),
            SLOWEST_ANSWER.as_millis(),
            slowest.as_secs_f64() / SLOWEST_ANSWER.as_secs_f64()
        )?;
    }
    drop(program);

    let calls = gateway::measure(setting("BENCH_CALLS", 4_000)?, &logs)?;
    let beside = format!("with it and {:.0} logs/s beside", calls.ingested);
    for (what, time) in [("with the log", calls.with_log), (beside.as_str(), calls.beside_ingest)] {
        let slower = time.saturating_sub(calls.without_log);
        holds &= slower < SLOWER_CALL;
        writeln!(
            out,
            "| p99 of a gateway call without the log, {what} | {:.2} ms, {:.2} ms | < {} ms more | {:.2} |",
            millis(calls.without_log),
            millis(time),
            SLOWER_CALL.as_millis(),
            slower.as_secs_f64() / SLOWER_CALL.as_secs_f64()
        )?;
    }
    Ok(holds)
}

/// Every agent sends one log after the other, each after the last was answered; says how many were kept.
fn send_for(program: &Program, logs: &Logs, time: Duration) -> io::Result<(u64, Duration)> {
    let next = AtomicU64::new(0);
    let started = Instant::now();
    let sent: io::Result<Vec<u64>> = thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|_| {
                scope.spawn(|| -> io::Result<u64> {
                    let mut client = Client::connect(program.address)?;
                    let mut kept = 0;
                    while started.elapsed() < time {
                        let log = logs.log(next.fetch_add(1, Ordering::Relaxed));
                        let (status, answer) = client.post("/decision-logs", "application/json", &log)?;
                        if status != 201 {
                            return Err(io::Error::other(format!("{status} {answer}")));
                        }
                        kept += 1;
                    }
                    Ok(kept)
                })
            })
            .collect();
        let broken = |_| Err(io::Error::other("a sender panicked"));
        senders.into_iter().map(|sender| sender.join().unwrap_or_else(broken)).collect()
    });
    Ok((sent?.into_iter().sum(), started.elapsed()))
}

/// Sends logs as lines until there are enough.
fn fill(program: &Program, logs: &Logs, from: u64, to: u64) -> io::Result<()> {
    let mut client = Client::connect(program.address)?;
    let mut next = from;
    while next < to {
        let until = to.min(next + LINES);
        let lines: Vec<String> = (next..until).map(|number| logs.log(number)).collect();
        let (status, answer) = client.post("/decision-logs", "application/x-ndjson", &lines.join("\n"))?;
        if status != 200 || !answer.contains("\"rejected\":0") {
            let start: String = answer.chars().take(300).collect();
            return Err(io::Error::other(format!("{status} {start}")));
        }
        next = until;
        if next % 500_000 < LINES {
            writeln!(io::stderr(), "{next} steps")?;
        }
    }
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A number that the environment gives, or the usual one.
fn setting<T: std::str::FromStr>(name: &str, usual: T) -> io::Result<T> {
    let Ok(text) = std::env::var(name) else { return Ok(usual) };
    text.parse().map_err(|_| io::Error::other(format!("{name} is no such number: {text}")))
}
