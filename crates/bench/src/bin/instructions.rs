//! Runs one operation many times, for a tool that counts instructions: `scripts/bench-instructions.sh` runs it for
//! two counts and takes the difference, so that what happens before and after does not count.

use std::io::Write as _;
use std::process::ExitCode;

use loopbreaker_bench::scenarios;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["list"] => list(),
        [scenario, contender, count] => count.parse().ok().and_then(|count| run(scenario, contender, count)),
        _ => None,
    };
    if done.is_some() {
        return ExitCode::SUCCESS;
    }
    let usage = "usage: instructions list | instructions <scenario> <contender> <count>";
    writeln!(std::io::stderr(), "{usage}").unwrap_or_default();
    ExitCode::FAILURE
}

/// One line for each scenario and contender.
fn list() -> Option<()> {
    let mut out = std::io::stdout().lock();
    for scenario in scenarios() {
        for contender in scenario.contenders {
            writeln!(out, "{} {}", scenario.name, contender.name).ok()?;
        }
    }
    Some(())
}

fn run(scenario: &str, contender: &str, count: usize) -> Option<()> {
    let scenario = scenarios().find(|other| other.name == scenario)?;
    let contender = scenario.contenders.iter().find(|other| other.name == contender)?;
    let mut operation = (contender.prepare)();
    (0..count).for_each(|_| operation());
    Some(())
}
