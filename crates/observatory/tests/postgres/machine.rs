//! A real server: Debian's package, on a folder of its own, as a user without rights, gone with the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A server that ends with this value.
pub(crate) struct Server {
    pub(crate) folder: TempDir,
    /// While this is open the server runs, so it ends with the test however that ends.
    lifeline: Option<ChildStdin>,
    guard: Child,
}

impl Server {
    /// Makes a cluster and starts it with these settings.
    pub(crate) fn start(settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(folder.path()));
        }
        let data_text = data.to_str().unwrap();
        let initdb = programs().join("initdb");
        run(&mut unprivileged(&[
            initdb.to_str().unwrap(),
            "--pgdata",
            data_text,
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ]));
        let (guard, lifeline) = launch(folder.path(), settings);
        let server = Self { folder, lifeline: Some(lifeline), guard };
        server.wait();
        server
    }

    /// Stops it as an operator would; its data stays.
    pub(crate) fn stop(&mut self) {
        drop(self.lifeline.take());
        self.guard.wait().unwrap();
    }

    pub(crate) fn start_again(&mut self, settings: &[&str]) {
        let (guard, lifeline) = launch(self.folder.path(), settings);
        (self.guard, self.lifeline) = (guard, Some(lifeline));
        self.wait();
    }

    fn wait(&self) {
        let started = Instant::now();
        let is_ready = || {
            // The fourth line is its port.
            let pid = fs::read_to_string(self.folder.path().join("data/postmaster.pid")).unwrap_or_default();
            let Some(port) = pid.lines().nth(3) else { return false };
            let mut asking = Command::new(programs().join("pg_isready"));
            asking.arg("--host").arg(self.folder.path()).args(["--port", port, "--quiet"]);
            asking.status().unwrap().success()
        };
        while !is_ready() {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(started.elapsed() < Duration::from_secs(60), "the server did not start:\n{log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts the server under a shell that ends it when its input does.
fn launch(folder: &Path, settings: &[&str]) -> (Child, ChildStdin) {
    const GUARD: &str = r#"cd "$1"; shift; "$@" >>log 2>&1 & pid=$!
        cat >/dev/null; kill -INT $pid; wait $pid; [ -e forget ] && rm -rf "$PWD"; exit 0"#;
    let postgres = programs().join("postgres");
    let folder_text = folder.to_str().unwrap();
    let data = folder.join("data");
    let mut words = vec!["sh", "-c", GUARD, "sh", folder_text, postgres.to_str().unwrap(), "-D"];
    words.extend([data.to_str().unwrap(), "-k", folder_text]);
    let common = ["fsync=off", "max_connections=600", "listen_addresses="];
    for setting in common.iter().chain(settings) {
        words.extend(["-c", setting]);
    }
    let mut guard = unprivileged(&words).stdin(Stdio::piped()).spawn().unwrap();
    let lifeline = guard.stdin.take().unwrap();
    (guard, lifeline)
}

/// A command as a user without rights: the server refuses to run as root.
fn unprivileged(words: &[&str]) -> Command {
    let mut command;
    if is_root() {
        command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).args(words);
    } else {
        command = Command::new(words[0]);
        command.args(&words[1..]);
    }
    command.current_dir("/");
    command
}

pub(super) fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

pub(super) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// The folder with the newest server.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let found = versions.map(|entry| entry.path().join("bin")).filter(|bin| bin.join("initdb").exists());
    found.max().unwrap_or_else(|| panic!("PostgreSQL is missing: run `make setup`"))
}
