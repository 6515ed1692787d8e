//! The `loopbreaker` binary: what the library sees, on the command line.

mod args;
mod check;
mod completions;
mod config_file;
mod demo;
mod exit;
mod failure;
mod number;
mod replay;
mod terminal;

use std::process::ExitCode;

use args::{Args, Command};
use clap::Parser as _;

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::Replay(args) => replay::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Completions(args) => completions::run(&args),
    };
    outcome.unwrap_or_else(|failure| failure.report()).into()
}
