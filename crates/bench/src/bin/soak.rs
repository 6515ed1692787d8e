//! Half an hour of steady traffic: exit code 1 when anything fails, grows or is missed. `scripts/soak.sh` builds what it
//! needs. `SOAK_MINUTES` and `SOAK_RATE` say how long and how fast.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use loopbreaker_bench::gateway::replace_block;
use loopbreaker_bench::soak::{Effort, run};

const USAGE: &str = "usage: soak [--markdown FILE]";

fn main() -> ExitCode {
    match soak() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            writeln!(io::stderr(), "soak: {error}").unwrap_or_default();
            ExitCode::from(2)
        }
    }
}

/// Runs it; `true` when every floor holds.
fn soak() -> io::Result<bool> {
    let mut arguments = std::env::args().skip(1);
    let markdown = match (arguments.next().as_deref(), arguments.next(), arguments.next()) {
        (None, None, None) => None,
        (Some("--markdown"), Some(file), None) => Some(file),
        _ => return Err(io::Error::other(USAGE)),
    };
    let minutes = setting("SOAK_MINUTES", 30.0)?;
    let effort =
        Effort { length: Duration::from_secs_f64(minutes * 60.0), rate: setting("SOAK_RATE", 2_000.0)? };
    let outcome = run(effort, &mut io::stderr())?;
    write!(io::stdout(), "{outcome}")?;
    if let Some(file) = markdown {
        let text = std::fs::read_to_string(&file)?;
        let replaced = replace_block(&text, "soak", &outcome.to_string())
            .ok_or_else(|| io::Error::other(format!("{file} has no line `<!-- soak -->`")))?;
        std::fs::write(file, replaced)?;
    }
    Ok(outcome.holds())
}

/// A number above zero that the environment gives, or the usual one.
fn setting(name: &str, usual: f64) -> io::Result<f64> {
    let Ok(text) = std::env::var(name) else { return Ok(usual) };
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| io::Error::other(format!("{name} is no number above zero: {text}")))
}
