//! Real servers, started by the tests: one, or six as a cluster.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running Redis that ends with this value.
pub(crate) struct Redis {
    child: Child,
    pub(crate) port: u16,
    folder: tempfile::TempDir,
    arguments: Vec<String>,
}

impl Redis {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(arguments: &[&str]) -> Self {
        let redis = Self::launch(arguments);
        redis.wait_until_up();
        redis
    }

    fn launch(arguments: &[&str]) -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let child = spawn(port, folder.path(), &arguments);
        Self { child, port, folder, arguments }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again on the same port, with nothing in it.
    pub(crate) fn start_again(&mut self) {
        self.child = spawn(self.port, self.folder.path(), &self.arguments);
        self.wait_until_up();
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(sent.unwrap().success());
    }

    /// Runs one command and gives its answer as text.
    pub(crate) fn command(&self, parts: &[&str]) -> String {
        let output =
            Command::new("redis-cli").arg("-p").arg(self.port.to_string()).args(parts).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn wait_until_up(&self) {
        wait(|| self.command(&["PING"]) == "PONG");
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        drop(self.child.wait());
    }
}

/// Three primaries, each with a replica.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Redis>,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let options =
            ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0"];
        let nodes: Vec<Redis> = (0..6).map(|_| Redis::with(&options)).collect();
        let addresses = nodes.iter().map(|node| format!("127.0.0.1:{}", node.port));
        let created = Command::new("redis-cli")
            .args(["--cluster", "create"])
            .args(addresses)
            .args(["--cluster-replicas", "1", "--cluster-yes"])
            .output()
            .unwrap();
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stdout));
        let cluster = Self { nodes };
        let is_ok = |node: &Redis| node.command(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
        wait(|| cluster.nodes.iter().all(is_ok));
        cluster
    }

    pub(crate) fn url(&self) -> String {
        let nodes: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        format!("redis+cluster://{}", nodes.join(","))
    }

    pub(crate) fn slot_of(&self, key: &str) -> u32 {
        self.nodes[0].command(&["CLUSTER", "KEYSLOT", key]).parse().unwrap()
    }

    /// The primary that holds a key.
    pub(crate) fn primary_of(&mut self, key: &str) -> &mut Redis {
        let slot = self.slot_of(key);
        let nodes = self.nodes[0].command(&["CLUSTER", "NODES"]);
        let holds = |line: &&str| {
            line.split(' ').skip(8).any(|range| {
                let (from, to) = range.split_once('-').unwrap_or((range, range));
                matches!((from.parse::<u32>(), to.parse::<u32>()), (Ok(from), Ok(to)) if (from..=to).contains(&slot))
            })
        };
        let line = nodes.lines().find(holds).unwrap();
        let port = line.split([':', '@']).nth(1).unwrap().parse::<u16>().unwrap();
        self.nodes.iter_mut().find(|node| node.port == port).unwrap()
    }
}

/// Waits until something is so, for at most half a minute.
pub(crate) fn wait(is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(30), "it does not become so");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn spawn(port: u16, folder: &std::path::Path, arguments: &[String]) -> Child {
    Command::new("redis-server")
        .args([
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--port",
            &port.to_string(),
            "--dir",
        ])
        .arg(folder)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server is missing: run `make setup`")
}

/// A port that is free, and so is the one that a cluster adds 10,000 to.
fn free_port() -> u16 {
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if port < 50_000 && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok() {
            return port;
        }
    }
}
