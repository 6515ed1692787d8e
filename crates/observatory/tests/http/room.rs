//! More traffic than a disk can take, and a disk that takes none for a while.

use std::time::{Duration, Instant};

use loopbreaker_observatory::{Observatory, Options};
use loopbreaker_record::Status;
use rusqlite::{Connection, TransactionBehavior};

use crate::server::Server;
use crate::traffic::{call, settle};

#[test]
fn what_finds_no_room_is_dropped_and_counted_and_nobody_waits() {
    let server = Server::start();
    let started = std::time::Instant::now();
    let mut dropped = 0;
    for number in 0..60_000 {
        if !server.observatory.note(call(number, Status::Pending)) {
            dropped += 1;
        }
    }
    assert!(started.elapsed().as_secs() < 20, "building 60,000 logs takes a while, writing them much longer");
    assert_eq!(server.observatory.health().dropped(), dropped);
    server.observatory.flush();
    settle(&server);
    let (_, overview) = server.get("/overview");
    assert_eq!(overview["dropped"], dropped);
    assert_eq!(server.get("/sessions/run").1["steps"], 60_000 - dropped);
}

#[test]
fn a_store_that_works_again_is_known_to_although_nothing_is_to_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let observatory = Observatory::open(Options::at(path.clone())).unwrap();
    let mut other = Connection::open(path).unwrap();
    let held = other.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    assert!(observatory.note(call(0, Status::Pending)));
    until("it fails", || observatory.health().failure().is_some());
    held.rollback().unwrap();
    until("it is tried again", || observatory.health().failure().is_none());
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
