//! What the log costs the calls of the gateway.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use loopbreaker_mock::Mock;
use serde_json::json;

use crate::client::Client;
use crate::logs::Logs;
use crate::program::Program;

/// The slowest call of a hundred.
pub(crate) struct Calls {
    pub(crate) without_log: Duration,
    pub(crate) with_log: Duration,
    /// With the log, while agents send their own logs to it as well.
    pub(crate) beside_ingest: Duration,
    /// How many of those were kept per second.
    pub(crate) ingested: f64,
}

/// Rounds of each, in turns: a machine that is busy for a moment is so for all of them.
const ROUNDS: usize = 10;
/// Time between two calls: 500 a second. Calls as fast as they can be answered would be more logs than any floor asks for,
/// and leave no room for those that are sent beside them.
const PACE: Duration = Duration::from_millis(2);
/// Logs of one request beside the calls, and how often one is sent: 5,000 logs a second.
const LINES: u64 = 100;
const EVERY: Duration = Duration::from_millis(20);

pub(crate) fn measure(calls: usize, logs: &Logs) -> io::Result<Calls> {
    let mock = Mock::fixed().start("127.0.0.1:0")?;
    let folders = (tempfile::tempdir()?, tempfile::tempdir()?);
    let without = Program::start(folders.0.path(), Some(mock.addr()), "off")?;
    let with = Program::start(folders.1.path(), Some(mock.addr()), "sqlite")?;
    let (mut plain, mut logged, mut beside) = (Vec::new(), Vec::new(), Vec::new());
    // Made before anything is measured: what it costs to write them is no cost of the log.
    let requests = (PACE * calls as u32).as_millis() / EVERY.as_millis() + ROUNDS as u128;
    let bodies: Vec<String> = (0..requests as u64)
        .map(|at| {
            (at * LINES..(at + 1) * LINES).map(|number| logs.log(number)).collect::<Vec<_>>().join("\n")
        })
        .collect();
    let (next, mut ingesting) = (AtomicUsize::new(0), Duration::ZERO);
    for round in 0..ROUNDS {
        let mut first = round * calls;
        let mut some = |program: &Program, times: &mut Vec<Duration>| {
            let numbers = first..first + calls / ROUNDS;
            first = numbers.end;
            ask(program, numbers, times)
        };
        some(&without, &mut plain)?;
        some(&with, &mut logged)?;
        let (stop, started) = (AtomicBool::new(false), Instant::now());
        thread::scope(|scope| {
            let sender = scope.spawn(|| ingest(&with, &bodies, &next, &stop));
            let asked = some(&with, &mut beside);
            stop.store(true, Ordering::Release);
            asked.and(sender.join().unwrap_or_else(|_| Err(io::Error::other("the sender panicked"))))
        })?;
        ingesting += started.elapsed();
    }
    let slowest = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times.get(times.len() * 99 / 100).copied().unwrap_or_default()
    };
    Ok(Calls {
        without_log: slowest(plain),
        with_log: slowest(logged),
        beside_ingest: slowest(beside),
        ingested: next.into_inner() as f64 * LINES as f64 / ingesting.as_secs_f64(),
    })
}

/// Asks one question after the other, at a steady pace, and notes how long each takes.
fn ask(program: &Program, numbers: std::ops::Range<usize>, times: &mut Vec<Duration>) -> io::Result<()> {
    let mut client = Client::connect(program.address)?;
    let mut due = Instant::now();
    for number in numbers {
        let body = request(number).to_string();
        due += PACE;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let asked = Instant::now();
        let (status, answer) = client.ask("POST", "/v1/chat/completions", "application/json", &body)?;
        if status != 200 {
            return Err(io::Error::other(format!("{status} {answer}")));
        }
        times.push(asked.elapsed());
    }
    Ok(())
}

/// Sends logs as lines, so many a second and no more, until it is to stop.
fn ingest(program: &Program, bodies: &[String], next: &AtomicUsize, stop: &AtomicBool) -> io::Result<()> {
    let mut client = Client::connect(program.address)?;
    let mut due = Instant::now();
    while let Some(body) = bodies.get(next.load(Ordering::Relaxed))
        && !stop.load(Ordering::Acquire)
    {
        let (status, answer) = client.post("/decision-logs", "application/x-ndjson", body)?;
        if status != 200 || !answer.contains("\"rejected\":0") {
            let start: String = answer.chars().take(300).collect();
            return Err(io::Error::other(format!("{status} {start}")));
        }
        next.fetch_add(1, Ordering::Relaxed);
        due += EVERY;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// A conversation with two calls and their results.
fn request(number: usize) -> serde_json::Value {
    let call = |id: String, command: String| {
        json!({ "id": id, "type": "function", "function": {
            "name": "bash", "arguments": json!({ "command": command }).to_string(),
        } })
    };
    json!({ "model": "gpt-4o", "messages": [
        { "role": "user", "content": format!("repair project {number}") },
        { "role": "assistant", "content": null, "tool_calls": [call(format!("a{number}"), format!("ls {number}"))] },
        { "role": "tool", "tool_call_id": format!("a{number}"), "content": "Makefile src" },
        { "role": "assistant", "content": null, "tool_calls": [call(format!("b{number}"), format!("make {number}"))] },
        { "role": "tool", "tool_call_id": format!("b{number}"), "content": "1 error" },
    ] })
}
