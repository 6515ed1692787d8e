//! Why a command gave up, and what to do next.

use std::fmt;
use std::io::{self, Write as _};

use anstyle::{AnsiColor, Style};

use crate::exit::Exit;
use crate::terminal::printable;

/// Why a command gave up.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something that the person at the keyboard can mend.
    Told {
        /// What happened and why, in lower case.
        message: String,
        /// What to do next.
        hint: String,
    },
    /// What was to be said could not be written.
    Output(io::Error),
}

impl Failure {
    pub(crate) fn told(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Told { message: message.into(), hint: hint.into() }
    }

    /// Tells it on stderr, and says how the process ends.
    pub(crate) fn report(&self) -> Exit {
        match self {
            Self::Told { message, hint } => tell(message, hint),
            // Whoever reads our output has enough of it, as in `loopbreaker replay … | head`.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return Exit::Fine,
            Self::Output(error) => {
                tell(&format!("the output could not be written: {error}"), "is the disk full?");
            }
        }
        Exit::Problem
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Told { message, .. } => f.write_str(message),
            Self::Output(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Writes `error: …` and, after a blank line, `hint: …` to stderr.
pub(crate) fn tell(message: &str, hint: &str) {
    // Each line by itself: a list of problems stays one.
    let lines: Vec<_> = message.split('\n').map(printable).collect();
    say(&format!("{ERROR}error:{ERROR:#} {}\n", lines.join("\n")));
    if !hint.is_empty() {
        say(&format!("\n{HINT}hint:{HINT:#} {}\n", printable(hint)));
    }
}

/// Writes `warning: …` to stderr.
pub(crate) fn warn(message: &str) {
    say(&format!("{WARNING}warning:{WARNING:#} {}\n", printable(message)));
}

/// Writes to stderr. When that is closed there is nobody left to tell, so its errors are dropped.
pub(crate) fn say(text: &str) {
    drop(anstream::stderr().write_all(text.as_bytes()));
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();
