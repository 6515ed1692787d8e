//! A server that neither answers nor goes away: it stands still, or the network between swallows every byte.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use loopbreaker_observatory::{Caller, Observatory, Options, StoreError};

use crate::backend::Server;
use crate::proxy::{Fault, Proxy};
use crate::reach::arrival;

/// Nobody waits longer for an answer, whatever it is: a place in the queue, the answer, and a busy machine.
const ANSWERED_WITHIN: Duration = Duration::from_secs(15);
/// The store is shown as failed within this: the limit of a statement, and a busy machine.
const SHOWN_WITHIN: Duration = Duration::from_secs(10);
/// A server that is back is used again within this.
const BACK_WITHIN: Duration = Duration::from_secs(30);

/// All processes of a server, stopped until this is dropped.
struct Stopped(Vec<String>);

impl Stopped {
    fn all_of(server: &Server) -> Self {
        let pid = fs::read_to_string(server.folder.path().join("data/postmaster.pid")).unwrap();
        let first = pid.lines().next().unwrap().trim().to_owned();
        signal("-STOP", std::slice::from_ref(&first));
        let mut all: Vec<String> = children(&first);
        signal("-STOP", &all);
        all.push(first);
        Self(all)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal("-CONT", &self.0);
    }
}

fn children(of: &str) -> Vec<String> {
    let found = fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // Behind the name, which may hold anything, stand the state and the parent.
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)) == Some(of)
    });
    found.map(|entry| entry.file_name().to_str().unwrap().to_owned()).collect()
}

fn signal(which: &str, processes: &[String]) {
    // One that has ended in the meantime needs no signal.
    drop(Command::new("kill").arg(which).args(processes).output().unwrap());
}

fn steps(server: &Server) -> i64 {
    let count = || {
        let mut client = server.client("postgres").unwrap();
        client.query_one("SELECT count(*) FROM steps", &[]).unwrap().get(0)
    };
    std::thread::scope(|scope| scope.spawn(count).join()).unwrap()
}

/// Sends a log until it is acknowledged; says whether it was known before.
async fn until_kept(observatory: &Observatory, number: u8) -> bool {
    let started = Instant::now();
    loop {
        match observatory.ingest(arrival(number)).await {
            Ok(answer) => return answer.unwrap().duplicate,
            Err(error) => assert!(started.elapsed() < BACK_WITHIN, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn until_failed(observatory: &Observatory) -> StoreError {
    let started = Instant::now();
    loop {
        if let Some(error) = observatory.health().failure() {
            return error;
        }
        assert!(started.elapsed() < SHOWN_WITHIN, "the store is not shown as failed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn posted(observatory: &Observatory, number: u8) -> (u16, String) {
    use http_body_util::BodyExt;
    let body = serde_json::to_vec(&arrival(number).log).unwrap();
    let body = http_body_util::Full::new(bytes::Bytes::from(body));
    let request = hyper::Request::post("/api/v1/decision-logs").body(body).unwrap();
    let reply = observatory.handle(request, &Caller::local()).await;
    let status = reply.status().as_u16();
    let body = reply.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// Waits until so many commits have come through: that of the start, that of the first chores, and ours.
async fn until_commits(proxy: &Proxy, count: u32) {
    let started = Instant::now();
    while proxy.commits() < count {
        assert!(started.elapsed() < BACK_WITHIN, "{} commits", proxy.commits());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_server_that_stands_still_is_shown_as_failed_although_nobody_asks_for_anything() {
    let own = Server::start(&[]);
    let observatory = Observatory::open(Options::url(own.url("postgres"))).unwrap();
    let stopped = Stopped::all_of(&own);
    let error = until_failed(&observatory).await;
    assert!(matches!(error, StoreError::Unreachable(_)), "{error}");
    drop(stopped);
    assert!(!until_kept(&observatory, 1).await);
    assert_eq!(observatory.health().failure(), None);
}

#[tokio::test]
async fn whoever_waits_for_a_server_that_stands_still_is_answered_and_it_comes_back_by_itself() {
    let own = Server::start(&[]);
    let observatory = Observatory::open(Options::url(own.url("postgres"))).unwrap();
    observatory.ingest(arrival(1)).await.unwrap().unwrap();
    observatory.verify_audit().await.unwrap();
    let stopped = Stopped::all_of(&own);
    let started = Instant::now();
    let (written, read) = tokio::join!(posted(&observatory, 2), observatory.verify_audit());
    assert!(started.elapsed() < ANSWERED_WITHIN, "{:?}", started.elapsed());
    assert_eq!(written.0, 503, "{}", written.1);
    assert!(written.1.contains("store_unavailable"), "{}", written.1);
    assert!(read.is_err());
    assert!(observatory.health().unwritten() >= 1);
    let started = Instant::now();
    // While it is known to be away, nobody waits long.
    posted(&observatory, 3).await;
    assert!(started.elapsed() < ANSWERED_WITHIN, "{:?}", started.elapsed());
    drop(stopped);
    assert!(until_kept(&observatory, 1).await, "what was acknowledged is there");
    until_kept(&observatory, 2).await;
    until_kept(&observatory, 3).await;
    assert_eq!(steps(&own), 3, "each once");
    observatory.verify_audit().await.unwrap();
}

#[tokio::test]
async fn a_connection_that_swallows_everything_is_given_up_and_made_again() {
    let own = Server::start(&[]);
    let proxy = Proxy::before(&own);
    let observatory = Observatory::open(Options::url(proxy.url("postgres"))).unwrap();
    observatory.ingest(arrival(1)).await.unwrap().unwrap();
    proxy.set(Fault::Everything);
    let started = Instant::now();
    let failed = observatory.ingest(arrival(2)).await.unwrap_err();
    assert!(started.elapsed() < ANSWERED_WITHIN, "{failed}");
    until_failed(&observatory).await;
    proxy.set(Fault::None);
    assert!(until_kept(&observatory, 1).await);
    until_kept(&observatory, 2).await;
    assert_eq!(steps(&own), 2);
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_not_acknowledged_and_its_repeat_is_known() {
    let own = Server::start(&[]);
    let proxy = Proxy::before(&own);
    let observatory = Observatory::open(Options::url(proxy.url("postgres"))).unwrap();
    until_commits(&proxy, 2).await;
    proxy.set(Fault::AfterCommit);
    let failed = observatory.ingest(arrival(1)).await.unwrap_err().to_string();
    assert!(failed.contains("send it again"), "{failed}");
    proxy.set(Fault::None);
    assert!(until_kept(&observatory, 1).await, "the server had done it");
    assert_eq!(steps(&own), 1);
}

#[tokio::test]
async fn a_commit_that_never_arrived_left_nothing_and_its_lock_does_not_stay() {
    let own = Server::start(&[]);
    let proxy = Proxy::before(&own);
    let observatory = Observatory::open(Options::url(proxy.url("postgres"))).unwrap();
    let other = Observatory::open(Options::url(own.url("postgres"))).unwrap();
    until_commits(&proxy, 2).await;
    proxy.set(Fault::BeforeCommit);
    // The server never learns that this writer has gone: its transaction is open, and holds the lock.
    let (cut, of_another) = tokio::join!(observatory.ingest(arrival(1)), async {
        until_commits(&proxy, 3).await;
        other.ingest(arrival(2)).await
    });
    assert!(cut.is_err());
    assert!(of_another.is_ok(), "one that stands still takes nothing from the others: {of_another:?}");
    proxy.set(Fault::None);
    assert!(!until_kept(&observatory, 1).await, "it was not kept the first time");
    assert_eq!(steps(&own), 2);
}
