//! A gateway as its users run it: the real binary, a scripted provider behind it, and eyes on both.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use loopbreaker_mock::Mock;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::wire::{Reply, Wire, request};

/// How long anything may take that does not depend on luck.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A running gateway and the provider behind it.
pub(crate) struct Lab {
    pub(crate) mock: Mock,
    pub(crate) address: SocketAddr,
    child: Child,
    stdout: BufReader<ChildStdout>,
    log: Arc<Mutex<String>>,
    folder: TempDir,
    /// A log that nobody reads.
    _ignored: Option<ChildStderr>,
}

/// How a gateway is started.
pub(crate) struct Bench {
    mock: Mock,
    folder: TempDir,
    config: Option<String>,
    stdin: Option<String>,
    upstream: Option<String>,
    args: Vec<String>,
    variables: Vec<(&'static str, String)>,
    logs: Logs,
}

/// What becomes of its log.
enum Logs {
    Read,
    Closed,
    Ignored,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            mock: Mock::start("127.0.0.1:0").unwrap(),
            folder: tempfile::tempdir().unwrap(),
            config: None,
            stdin: None,
            upstream: None,
            args: Vec::new(),
            variables: Vec::new(),
            logs: Logs::Read,
        }
    }

    /// With a config file. `{mock}` in it stands for the provider's address.
    pub(crate) fn config(mut self, text: &str) -> Self {
        self.config = Some(text.to_owned());
        self
    }

    /// With a config that comes from stdin.
    pub(crate) fn config_from_stdin(mut self, text: &str) -> Self {
        self.stdin = Some(text.to_owned());
        self
    }

    /// With this upstream in place of the scripted provider; an empty one leaves it to the config.
    pub(crate) fn upstream(mut self, url: impl Into<String>) -> Self {
        self.upstream = Some(url.into());
        self
    }

    pub(crate) fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub(crate) fn variable(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// With a file beside the config.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        fs::write(self.folder.path().join(name), text).unwrap();
        self
    }

    /// With a folder beside the config.
    pub(crate) fn folder(self, name: &str) -> Self {
        fs::create_dir_all(self.folder.path().join(name)).unwrap();
        self
    }

    /// With a log that nobody reads: its pipe is closed at once.
    pub(crate) fn log_closed(mut self) -> Self {
        self.logs = Logs::Closed;
        self
    }

    /// With a log that nobody reads: its pipe stays open, and is soon full.
    pub(crate) fn log_ignored(mut self) -> Self {
        self.logs = Logs::Ignored;
        self
    }

    pub(crate) fn start(self) -> Lab {
        let Self { mock, folder, config, stdin, upstream, args, variables, logs } = self;
        let mut command = Command::new(env!("CARGO_BIN_EXE_loopbreaker"));
        command.arg("serve").args(&args).current_dir(folder.path());
        if !args.iter().any(|arg| arg == "--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        if !args.iter().any(|arg| arg == "--data-dir") {
            command.args(["--data-dir", "data"]);
        }
        let upstream = upstream.unwrap_or_else(|| mock.url());
        if !upstream.is_empty() {
            command.args(["--upstream", &upstream]);
        }
        if let Some(text) = config {
            fs::write(folder.path().join(CONFIG), text.replace("{mock}", &mock.url())).unwrap();
            command.args(["-c", CONFIG]);
        }
        if stdin.is_some() {
            command.args(["-c", "-"]);
        }
        for name in ["LOOPBREAKER_CONFIG", "LOOPBREAKER_DATA_DIR", "NO_COLOR"] {
            command.env_remove(name);
        }
        command.envs(variables).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();

        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(stdin.unwrap_or_default().as_bytes()).unwrap();
        drop(pipe);

        let log = Arc::new(Mutex::new(String::new()));
        let stderr = child.stderr.take().unwrap();
        let mut ignored = None;
        match logs {
            Logs::Read => follow(stderr, Arc::clone(&log)),
            Logs::Closed => drop(stderr),
            Logs::Ignored => ignored = Some(stderr),
        }
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let Some(address) = line.trim().strip_prefix("listening on http://") else {
            // Whatever it said on its way out is what there is to know.
            child.wait().unwrap();
            panic!("the gateway did not start: {line:?}\n{}", log.lock().unwrap());
        };
        Lab { mock, address: address.parse().unwrap(), child, stdout, log, folder, _ignored: ignored }
    }
}

impl Lab {
    /// A gateway without any config.
    pub(crate) fn new() -> Self {
        Bench::new().start()
    }

    /// A gateway with a config; `{mock}` in it stands for the provider's address.
    pub(crate) fn with(config: &str) -> Self {
        Bench::new().config(config).start()
    }

    pub(crate) fn wire(&self) -> Wire {
        Wire::connect(self.address)
    }

    /// Sends one request on a connection of its own.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> Reply {
        let mut wire = self.wire();
        wire.send(&request(method, path, headers, body.as_ref()));
        if method == "HEAD" { wire.head().into_reply() } else { wire.reply() }
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[], "")
    }

    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Reply {
        self.ask("POST", path, headers, body)
    }

    /// A chat completion with a key.
    pub(crate) fn chat(&self, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Reply {
        let mut all = vec![("authorization", "Bearer sk-test"), ("content-type", "application/json")];
        all.extend(headers);
        self.post("/v1/chat/completions", &all, body)
    }

    /// The verdict on a chat completion, as its header tells it, and the status.
    pub(crate) fn verdict(&self, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> (u16, String) {
        let reply = self.chat(headers, body);
        (reply.status, reply.header("x-loopbreaker-verdict").unwrap_or("none").to_owned())
    }

    /// How many requests reached the provider.
    pub(crate) fn sent(&self) -> usize {
        self.mock.requests().len()
    }

    /// The value of a metric, by its name with its labels.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let page = self.get("/metrics").text();
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("there is no {name} in\n{page}")).parse().unwrap()
    }

    pub(crate) fn readiness(&self) -> Value {
        self.get("/readyz").json()
    }

    /// Everything that was logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// The lines of requests, once there are so many.
    pub(crate) fn logged(&self, count: usize) -> Vec<Value> {
        let mut lines = Vec::new();
        until("the log has the lines", || {
            let log = self.log();
            let whole = log.rfind('\n').map_or("", |end| &log[..end]);
            let all = whole.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            lines = all.filter(|line| line["event"] == "request").collect();
            lines.len() >= count
        });
        lines
    }

    /// Where health, metrics and the API are, when they have a port of their own.
    pub(crate) fn admin_address(&mut self) -> SocketAddr {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim().rsplit_once('/').unwrap().1.parse().unwrap()
    }

    /// Replaces the config file.
    pub(crate) fn reconfigure(&self, text: &str) {
        // As editors do it: written beside, then moved over the old one.
        let beside = self.path("beside.yaml");
        fs::write(&beside, text.replace("{mock}", &self.mock.url())).unwrap();
        fs::rename(beside, self.path(CONFIG)).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until it has ended.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the gateway ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Ends it as a machine does that goes down, and starts it again with what it had kept.
    pub(crate) fn restarted(mut self) -> Self {
        self.signal(Signal::TERM);
        self.ended();
        let mut bench = Bench::new().upstream(self.mock.url());
        copy(&self.path("data"), &bench.folder.path().join("data"));
        if let Ok(config) = fs::read_to_string(self.path(CONFIG)) {
            bench = bench.config(&config);
        }
        bench.start().served_by(self)
    }

    /// The provider goes on serving although the gateway before it has gone.
    fn served_by(mut self, mut before: Self) -> Self {
        std::mem::swap(&mut self.mock, &mut before.mock);
        self
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // It may have ended already, as the test wanted.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Waits until something is so, and fails when it never is.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "it never came to this: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn follow(mut pipe: impl Read + Send + 'static, log: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        let mut piece = [0; 4_096];
        while let Ok(read @ 1..) = pipe.read(&mut piece) {
            log.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..read]));
        }
    });
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

const CONFIG: &str = "loopbreaker.yaml";
