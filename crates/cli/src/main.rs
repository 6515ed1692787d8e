//! The `loopbreaker` binary: what the library sees, on the command line.

mod args;
mod audit;
mod check;
mod completions;
mod config_file;
mod demo;
mod exit;
mod failure;
mod http;
mod number;
mod probe;
mod replay;
mod serve;
mod sidecar;
mod terminal;
mod told;

use std::process::ExitCode;

use args::{Args, Command};
use clap::Parser as _;

/// Memory that many threads ask for and give back all the time is what this allocator is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Sidecar(_) => sidecar::run(),
        Command::Replay(args) => replay::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Probe(args) => probe::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Completions(args) => completions::run(&args),
    };
    outcome.unwrap_or_else(|failure| failure.report()).into()
}
