//! More traffic than a disk can take.

use loopbreaker_record::Status;

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
