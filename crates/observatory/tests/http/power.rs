//! A disk that is cut off, full or broken, as the system calls show it: `strace` looks on, and lets them fail.

use std::path::Path;

use serde_json::Value;

use crate::kill::{Serving, times_kept};
use crate::server::{exchange, id, in_session};

fn post(serving: &Serving, number: u32) -> (u16, Value) {
    let log = in_session(number, "run").to_string();
    let (status, _, body) = exchange(serving.address, "POST", "/decision-logs", &[], &log).unwrap();
    (status, serde_json::from_str(&body).unwrap())
}

fn get(serving: &Serving, path: &str) -> Value {
    let (_, _, body) = exchange(serving.address, "GET", path, &[], "").unwrap();
    serde_json::from_str(&body).unwrap_or(Value::String(body))
}

#[test]
fn no_log_is_acknowledged_before_its_journal_is_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let calls = "trace=pwrite64,fdatasync,fsync,write,writev,sendto,sendmsg";
    let words = ["strace", "-f", "-y", "-e", calls, "-o", trace.to_str().unwrap()];
    let serving = Serving::start_under(folder.path(), &words);
    for number in 0..20 {
        assert_eq!(post(&serving, number).0, 201);
    }
    drop(serving);
    let seen = std::fs::read_to_string(&trace).unwrap();
    let (mut written, mut synced, mut answers) = (false, false, 0);
    for line in seen.lines() {
        if line.contains("pwrite64(") && line.contains("log.db-wal>") {
            (written, synced) = (true, false);
        } else if is_sync_of_the_journal(line) {
            synced = written;
        } else if line.contains("HTTP/1.1 201") {
            answers += 1;
            assert!(synced, "an answer before the disk was asked to keep it:\n{line}");
            (written, synced) = (false, false);
        }
    }
    assert_eq!(answers, 20, "{seen}");
}

/// The end of a call that puts the journal on disk; another thread's call may stand in its middle.
fn is_sync_of_the_journal(line: &str) -> bool {
    let ended = !line.contains("<unfinished") && line.trim_end().ends_with("= 0");
    ended && (line.contains("sync(") && line.contains("log.db-wal>") || line.contains("sync resumed>"))
}

/// Serves with a call that fails from its nth time on; says what was acknowledged before that, and the reason after.
fn fails_with(folder: &Path, fault: &str) -> (Vec<u32>, String) {
    let inject = format!("inject={fault}");
    let (call, _) = fault.split_once(':').unwrap();
    let words = ["strace", "-f", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject];
    let serving = Serving::start_under(folder, &words);
    let mut acknowledged = Vec::new();
    for number in 0..2_000 {
        match post(&serving, number) {
            (201, _) => acknowledged.push(number),
            (503, answer) => {
                assert_eq!(answer["error"], "store_unavailable");
                let degraded = &get(&serving, "/config")["store"];
                assert_eq!(degraded["state"], "degraded", "the state is shown");
                return (acknowledged, answer["reason"].as_str().unwrap().to_owned());
            }
            (status, answer) => panic!("{status} {answer}"),
        }
    }
    panic!("nothing failed");
}

/// After a restart with a disk that works: everything acknowledged is there once, and what was refused can be sent
/// again, whether the disk has kept it after all or not.
fn nothing_is_lost(folder: &Path, acknowledged: &[u32]) {
    let serving = Serving::start(folder);
    let refused = acknowledged.len() as u32;
    let (status, answer) = post(&serving, refused);
    assert!([200, 201].contains(&status), "{status} {answer}");
    let (_, _, exported) = exchange(serving.address, "GET", "/export", &[], "").unwrap();
    let kept = times_kept(&exported);
    assert_eq!(kept.len(), acknowledged.len() + 1);
    assert!(kept.values().all(|count| *count == 1));
    assert!(acknowledged.iter().all(|number| kept.contains_key(&id(*number))));
}

#[test]
fn a_disk_that_fills_up_loses_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    drop(Serving::start(folder.path()));
    let (acknowledged, reason) = fails_with(folder.path(), "pwrite64:error=ENOSPC:when=200+");
    assert_eq!(reason, "disk_full");
    assert!(!acknowledged.is_empty());
    nothing_is_lost(folder.path(), &acknowledged);
}

#[test]
fn a_disk_that_cannot_keep_what_it_took_acknowledges_nothing() {
    let folder = tempfile::tempdir().unwrap();
    drop(Serving::start(folder.path()));
    let (acknowledged, reason) = fails_with(folder.path(), "fsync,fdatasync:error=EIO:when=12+");
    assert_eq!(reason, "failed");
    assert!(!acknowledged.is_empty());
    nothing_is_lost(folder.path(), &acknowledged);
}
