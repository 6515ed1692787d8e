//! A gateway that another command can be pointed at.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use crate::binary::Desk;

/// `loopbreaker serve`, running until it is dropped.
pub(crate) struct Served {
    pub(crate) url: String,
    child: Child,
    /// It still has something to say, and ends when nobody listens.
    stdout: BufReader<ChildStdout>,
    _desk: Desk,
}

impl Served {
    pub(crate) fn new() -> Self {
        Self::start(Desk::new(), &[])
    }

    pub(crate) fn with(config: &str) -> Self {
        Self::start(Desk::with("loopbreaker.yaml", config), &[])
    }

    /// Starts it on any port, in this directory.
    pub(crate) fn start(desk: Desk, args: &[&str]) -> Self {
        let mut all = vec!["serve", "--listen", "127.0.0.1:0", "--log-format", "off", "--workers", "2"];
        all.extend(args);
        if !args.contains(&"--data-dir") {
            all.extend(["--data-dir", "data"]);
        }
        let mut child = desk.command(&all).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Self { url, child, stdout, _desk: desk }
    }

    /// Where its API is, when that has a port of its own.
    pub(crate) fn admin_url(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim().strip_prefix("health, metrics and API on ").unwrap().to_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
