//! Starts the binary in an empty directory, apart from the settings of whoever runs the tests.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A directory with files, in which the binary runs.
pub(crate) struct Desk {
    dir: TempDir,
}

/// What one call left behind.
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn with(name: &str, content: impl AsRef<[u8]>) -> Self {
        let desk = Self::new();
        desk.put(name, content);
        desk
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The names of all files, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loopbreaker"));
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "TERM"] {
            command.env_remove(name);
        }
        for name in ["LOOPBREAKER_CONFIG", "LOOPBREAKER_DATA_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR"] {
            command.env_remove(name);
        }
        command.args(args).current_dir(self.dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        Outcome::of(&mut self.command(args))
    }

    pub(crate) fn run_with_stdin(&self, args: &[&str], input: &[u8]) -> Outcome {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input).unwrap();
        drop(stdin);
        Outcome::from(child.wait_with_output().unwrap())
    }
}

impl Outcome {
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::from(command.output().unwrap())
    }

    /// Stdout as one JSON value per line.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl From<std::process::Output> for Outcome {
    fn from(output: std::process::Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// One run that calls `ls` this often, with the same answer each time.
pub(crate) fn repeats(id: &str, times: usize) -> String {
    let step = r#"{"tool":"bash","args":{"command":"ls"},"result":"a b","tokens":10,"cost_usd":0.1}"#;
    format!("{{\"id\":\"{id}\",\"steps\":[{}]}}\n", vec![step; times].join(","))
}
