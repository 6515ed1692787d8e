//! A real server: Debian's package, on a folder of its own, as a user without rights, gone with the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use loopbreaker_observatory::Options;
use postgres::{Client, NoTls};
use tempfile::TempDir;

/// The store of a folder: a database that its file `url` names, made with the first call.
pub(crate) fn options(folder: &Path) -> Options {
    let note = folder.join("url");
    let url = fs::read_to_string(&note).unwrap_or_else(|_| {
        let url = server().new_database();
        fs::write(&note, &url).unwrap();
        url
    });
    Options::url(url)
}

/// The server that most tests share.
pub(crate) fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = Server::start(&[]);
        // Nobody drops what is static: whoever guards the server removes its folder.
        fs::write(server.folder.path().join("forget"), "").unwrap();
        server
    })
}

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

    pub(crate) fn url(&self, database: &str) -> String {
        let folder = self.folder.path().to_str().unwrap().replace('/', "%2F");
        format!("postgres://postgres@/{database}?host={folder}")
    }

    pub(crate) fn new_database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        apart(|| self.client("postgres").unwrap().batch_execute(&format!("CREATE DATABASE {name}")).unwrap());
        self.url(&name)
    }

    pub(crate) fn client(&self, database: &str) -> Result<Client, postgres::Error> {
        Client::connect(&self.url(database), NoTls)
    }

    /// A client of a server that listens on another port: its socket is named after it.
    pub(crate) fn client_at(&self, port: u16) -> Client {
        Client::connect(&format!("{}&port={port}", self.url("postgres")), NoTls).unwrap()
    }

    fn wait(&self) {
        let started = Instant::now();
        let running = || {
            // Its second line is its start, the fourth its port.
            let pid = fs::read_to_string(self.folder.path().join("data/postmaster.pid")).ok()?;
            let port: u16 = pid.lines().nth(3)?.parse().ok()?;
            Client::connect(&format!("{}&port={port}", self.url("postgres")), NoTls).ok()
        };
        while apart(|| running().is_none()) {
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

/// On a thread of its own: the client waits, which a thread of a runtime must not.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join()).unwrap()
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

/// Files that the server reads, and that nobody else may.
pub(crate) fn give_to_server(files: &[&Path]) {
    use std::os::unix::fs::PermissionsExt;
    for file in files {
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(file));
        }
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// The folder with the newest server.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let found = versions.map(|entry| entry.path().join("bin")).filter(|bin| bin.join("initdb").exists());
    found.max().unwrap_or_else(|| panic!("PostgreSQL is missing: run `make setup`"))
}
