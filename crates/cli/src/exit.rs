//! How a command ended, for scripts and CI.

use std::process::ExitCode;

/// How a command ended. Usage errors end with 2, and are told by clap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked.
    Fine,
    /// A config or an input is wrong, or could not be read.
    Problem,
    /// A loop was found, and the caller wants to fail on loops.
    Loop,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Fine => 0,
            Exit::Problem => 1,
            Exit::Loop => 3,
        })
    }
}
