//! Sends traffic to the `loopbreaker` beside it, so that a build which notes its own ways has something to note.
//! `scripts/optimised.sh` uses it.

use std::io::{self, Write};
use std::process::ExitCode;

use loopbreaker_bench::gateway::train;

fn main() -> ExitCode {
    match train(&mut io::stderr()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(io::stderr(), "train: {error}").unwrap_or_default();
            ExitCode::FAILURE
        }
    }
}
