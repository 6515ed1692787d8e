//! Real servers, started by the tests, each with a port and a folder of its own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running Redis that ends with this value.
pub(crate) struct Redis {
    child: Child,
    pub(crate) port: u16,
    folder: tempfile::TempDir,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Stack,
}

impl Redis {
    /// Debian's own server, or any that is on the path.
    pub(crate) fn plain() -> Self {
        Self::start(Kind::Plain, &[])
    }

    pub(crate) fn plain_with(arguments: &[&str]) -> Self {
        Self::start(Kind::Plain, arguments)
    }

    /// Redis Stack with its search module.
    pub(crate) fn stack() -> Self {
        Self::start(Kind::Stack, &[])
    }

    fn start(kind: Kind, arguments: &[&str]) -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let child = launch(kind, port, folder.path(), arguments);
        let redis = Self { child, port, folder, kind };
        redis.wait_until_up();
        redis
    }

    /// The address of its list store.
    pub(crate) fn list(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The address of its vector store.
    pub(crate) fn hnsw(&self) -> String {
        format!("{}?vector=hnsw", self.list())
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again on the same port, with nothing in it.
    pub(crate) fn start_again(&mut self) {
        self.child = launch(self.kind, self.port, self.folder.path(), &[]);
        self.wait_until_up();
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Runs one command and gives its answer as text.
    pub(crate) fn command(&self, parts: &[&str]) -> String {
        let output =
            Command::new("redis-cli").arg("-p").arg(self.port.to_string()).args(parts).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn wait_until_up(&self) {
        let started = Instant::now();
        while self.command(&["PING"]) != "PONG" {
            assert!(started.elapsed() < Duration::from_secs(20), "the server does not come up");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        drop(self.child.wait());
    }
}

fn launch(kind: Kind, port: u16, folder: &Path, arguments: &[&str]) -> Child {
    let mut command = match kind {
        Kind::Plain => Command::new("redis-server"),
        Kind::Stack => {
            let stack = services().join("redis-stack");
            assert!(stack.join("run").exists(), "Redis Stack is missing: run `make setup`");
            let mut command = Command::new(stack.join("run"));
            command.arg("--loadmodule").arg(stack.join("lib/redisearch.so"));
            command
        }
    };
    command.args([
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
        "--port",
        &port.to_string(),
        "--dir",
    ]);
    command.arg(folder).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("redis-server is missing: run `make setup`")
}

/// Where `scripts/redis-stack.sh` puts what it fetches.
fn services() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("services")
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Sends a signal to one process.
pub(crate) fn signal(process: u32, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &process.to_string()]).status().unwrap();
    assert!(sent.success());
}
