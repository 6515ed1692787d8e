//! Measures the gateway beside nginx and `HAProxy`, and says what the floors say: exit code 1 when one is missed.
//! `scripts/bench-gateway.sh` builds what it needs and binds it to a core.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use loopbreaker_bench::gateway::{Effort, Report, measure, replace_block};

const USAGE: &str = "usage: gateway-report [--markdown FILE] [part of a row's name, or memory]";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            writeln!(io::stderr(), "gateway-report: {error}").unwrap_or_default();
            ExitCode::from(2)
        }
    }
}

/// Measures; `true` when every floor holds.
fn run() -> io::Result<bool> {
    let (mut part, mut markdown) = (String::new(), None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--markdown" => markdown = Some(arguments.next().ok_or_else(|| io::Error::other(USAGE))?),
            flag if flag.starts_with('-') => return Err(io::Error::other(USAGE)),
            _ => part = argument,
        }
    }
    let effort = Effort {
        round: Duration::from_secs_f64(setting("BENCH_SECONDS", 1.0)?),
        rounds: setting("BENCH_ROUNDS", 11)?,
        sessions: setting("BENCH_SESSIONS", 1_000)?,
        held: setting("BENCH_HELD", 1_000_000)?,
    };
    let only = std::env::var("BENCH_ONLY").ok();
    let report = measure(effort, &part, only.as_deref(), &mut io::stderr())?;
    write!(io::stdout(), "{report}")?;
    if let Some(file) = markdown {
        write_markdown(&file, &report)?;
    }
    Ok(report.holds())
}

/// A number that the environment gives, or the usual one.
fn setting<T: std::str::FromStr>(name: &str, usual: T) -> io::Result<T> {
    let Ok(text) = std::env::var(name) else { return Ok(usual) };
    text.parse().map_err(|_| io::Error::other(format!("{name} is no such number: {text}")))
}

fn write_markdown(file: &str, report: &Report) -> io::Result<()> {
    let text = std::fs::read_to_string(file)?;
    let replaced = replace_block(&text, "gateway", &report.to_string())
        .ok_or_else(|| io::Error::other(format!("{file} has no line `<!-- gateway -->`")))?;
    std::fs::write(file, replaced)
}
