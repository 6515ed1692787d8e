//! A process that dies at any moment has lost nothing that it acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use loopbreaker_observatory::Observatory;
use serde_json::Value;

use crate::server::{exchange, id, in_session, serve};

/// Names the folder in which the other process serves.
const FOLDER: &str = "LOOPBREAKER_TEST_SERVES_IN";
/// How often it is killed; the long target sets more.
const ROUNDS: &str = "LOOPBREAKER_TEST_KILLS";

/// What the other process runs; without its folder there is nothing to serve.
#[test]
fn the_server_that_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let observatory = Arc::new(Observatory::open(crate::backend::options(folder)).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        // A file that has its name has its content: it is written under another one first.
        let unfinished = folder.join("address.unfinished");
        let address = format!("{} {}", listener.local_addr().unwrap(), std::process::id());
        std::fs::write(&unfinished, address).unwrap();
        std::fs::rename(unfinished, folder.join("address")).unwrap();
        serve(listener, observatory).await;
    });
}

/// The other process; it is gone at the latest when its handle is.
pub(crate) struct Serving {
    child: Child,
    /// The process that serves: another one than the child where that only looks on.
    pid: u32,
    pub(crate) address: SocketAddr,
}

impl Serving {
    pub(crate) fn start(folder: &Path) -> Self {
        Self::start_under(folder, &[])
    }

    /// Starts it under a command that looks on.
    pub(crate) fn start_under(folder: &Path, words: &[&str]) -> Self {
        let address = folder.join("address");
        drop(std::fs::remove_file(&address));
        let program = std::env::current_exe().unwrap();
        let words = words.iter().map(OsStr::new).chain([program.as_os_str()]);
        let words = words.chain(["kill::the_server_that_is_killed", "--exact"].map(OsStr::new));
        let words: Vec<&OsStr> = words.collect();
        let child = Command::new(words[0])
            .args(&words[1..])
            .env(FOLDER, folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{words:?}: {error}: run `make setup`"));
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut serving = Self { pid: child.id(), child, address: nowhere };
        let started = Instant::now();
        loop {
            if let Ok(text) = std::fs::read_to_string(&address) {
                let (address, pid) = text.split_once(' ').unwrap();
                (serving.address, serving.pid) = (address.parse().unwrap(), pid.parse().unwrap());
                return serving;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "the server did not start");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Serving {
    /// The process has no chance to tidy up.
    fn drop(&mut self) {
        drop(Command::new("kill").args(["-9", &self.pid.to_string()]).status());
        if self.pid == self.child.id() {
            drop(self.child.kill());
        }
        self.child.wait().unwrap();
    }
}

#[test]
fn every_acknowledged_log_is_there_once_after_kills_in_the_middle() {
    let folder = tempfile::tempdir().unwrap();
    // Whatever the store stands on is there before the first server, and after the last.
    crate::backend::options(folder.path());
    let rounds: u32 = std::env::var(ROUNDS).ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let next = Arc::new(AtomicU32::new(0));
    let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
    let unanswered = Arc::new(Mutex::new(Vec::new()));
    for round in 0..rounds {
        let serving = Serving::start(folder.path());
        let address = serving.address;
        let over = Arc::new(AtomicBool::new(false));
        let again: Vec<u32> = std::mem::take(&mut *unanswered.lock().unwrap());
        let goal = acknowledged.lock().unwrap().len() + 60 + 17 * (round as usize % 5);
        let senders: Vec<_> = (0..4)
            .map(|sender| {
                let (next, over) = (Arc::clone(&next), Arc::clone(&over));
                let (acknowledged, unanswered) = (Arc::clone(&acknowledged), Arc::clone(&unanswered));
                // What was not answered is sent again: it may be new or a duplicate, never a conflict.
                let mut again: Vec<u32> = again.iter().skip(sender).step_by(4).copied().collect();
                std::thread::spawn(move || {
                    while !over.load(Ordering::Relaxed) || !again.is_empty() {
                        let number = again.pop().unwrap_or_else(|| next.fetch_add(1, Ordering::Relaxed));
                        let log = in_session(number, &format!("run-{}", number % 7)).to_string();
                        match exchange(address, "POST", "/decision-logs", &[], &log) {
                            Ok((200 | 201, ..)) => {
                                acknowledged.lock().unwrap().insert(number);
                            }
                            Ok((status, _, body)) => panic!("{status} {body}"),
                            Err(_) => {
                                unanswered.lock().unwrap().push(number);
                                unanswered.lock().unwrap().append(&mut again);
                                return;
                            }
                        }
                    }
                })
            })
            .collect();
        let started = Instant::now();
        while acknowledged.lock().unwrap().len() < goal {
            assert!(started.elapsed() < Duration::from_secs(60), "the server takes nothing in");
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(serving);
        over.store(true, Ordering::Relaxed);
        for sender in senders {
            sender.join().unwrap();
        }
    }

    let serving = Serving::start(folder.path());
    let address = serving.address;
    let (_, _, body) = exchange(address, "GET", "/export", &[], "").unwrap();
    let sessions = exchange(address, "GET", "/sessions", &[], "").unwrap().2;
    drop(serving);
    let kept = times_kept(&body);
    assert!(kept.values().all(|count| *count == 1), "one is there twice");
    for number in acknowledged.lock().unwrap().iter() {
        assert!(kept.contains_key(&id(*number)), "{number} was acknowledged and is lost");
    }
    let sessions: Value = serde_json::from_str(&sessions).unwrap();
    let steps: u64 = sessions["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| session["steps"].as_u64().unwrap())
        .sum();
    assert_eq!(steps, kept.len() as u64, "what is counted is what is there");
}

/// How often each step stands in an export.
pub(crate) fn times_kept(exported: &str) -> BTreeMap<String, u32> {
    let mut kept = BTreeMap::new();
    for line in exported.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        *kept.entry(line["log"]["meta"]["trace_id"].as_str().unwrap().to_owned()).or_insert(0) += 1;
    }
    kept
}
