//! `loopbreaker completions`.

use std::io::{self, Write as _};

use clap::CommandFactory as _;

use crate::args::{Args, CompletionsArgs};
use crate::exit::Exit;
use crate::failure::Failure;

pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    // The generator panics when it cannot write, so it writes to memory first.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "loopbreaker", &mut script);
    let mut out = io::stdout().lock();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Exit::Fine)
}
