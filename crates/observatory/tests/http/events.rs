//! What happens is told live.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::server::{Server, in_session, open};

struct Told {
    id: u64,
    kind: String,
    data: Value,
}

/// Reads events off a stream.
struct Listener(BufReader<TcpStream>);

impl Listener {
    fn start(server: &Server, topics: &str, last: Option<u64>) -> Self {
        let last = last.map(|last| last.to_string());
        let headers: Vec<(&str, &str)> =
            last.as_deref().map(|last| ("last-event-id", last)).into_iter().collect();
        let stream = open(server.address, "GET", &format!("/events?topics={topics}"), &headers, "").unwrap();
        let mut listener = Self(BufReader::new(stream));
        // The first bytes of the body say that the subscription stands.
        while !listener.line().starts_with("retry:") {}
        listener
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the stream ended");
        line.trim_end().to_owned()
    }

    fn next(&mut self) -> Told {
        let mut told = Told { id: 0, kind: String::new(), data: Value::Null };
        loop {
            let line = self.line();
            if let Some(id) = line.strip_prefix("id: ") {
                told.id = id.parse().unwrap();
            } else if let Some(kind) = line.strip_prefix("event: ") {
                kind.clone_into(&mut told.kind);
            } else if let Some(data) = line.strip_prefix("data: ") {
                told.data = serde_json::from_str(data).unwrap();
                return told;
            }
        }
    }
}

#[test]
fn events_come_with_topic_kind_and_number() {
    let server = Server::start();
    let mut listener = Listener::start(&server, "sessions,graph", None);
    server.accept(&in_session(1, "run"));
    let graph = listener.next();
    assert_eq!((graph.kind.as_str(), &graph.data["topic"]), ("graph", &json!("graph")));
    let session = listener.next();
    assert_eq!(session.kind, "session");
    assert_eq!(session.data["event"]["session_id"], "run");
    assert!(session.id > graph.id);
}

#[test]
fn a_listener_that_comes_back_goes_on_where_it_was() {
    let server = Server::start();
    let mut listener = Listener::start(&server, "graph", None);
    for number in 0..4 {
        server.accept(&in_session(number, "run"));
    }
    let first = listener.next();
    drop(listener);
    let mut again = Listener::start(&server, "graph", Some(first.id));
    let numbers: Vec<u64> = (0..3).map(|_| again.next().id).collect();
    assert!(numbers.iter().all(|number| *number > first.id));
    assert!(numbers.is_sorted());
}

#[test]
fn a_listener_from_before_the_kept_range_gets_one_gap() {
    let server = Server::start_with(|options| options.events_kept = 2);
    for number in 0..4 {
        server.accept(&in_session(number, "run"));
    }
    let mut listener = Listener::start(&server, "", Some(1));
    assert_eq!(listener.next().kind, "gap");
    assert_ne!(listener.next().kind, "gap");
}

#[test]
fn numbers_go_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let last_after = |number| {
        let server = Server::start_with(|options| *options = crate::backend::options(folder.path()));
        let mut listener = Listener::start(&server, "graph", None);
        server.accept(&in_session(number, "run"));
        listener.next().id
    };
    assert!(last_after(1) < last_after(2));
}

#[test]
fn an_unknown_topic_is_refused() {
    let server = Server::start();
    assert_eq!(server.get("/events?topics=weather").0, 400);
}

#[test]
fn a_refused_log_is_told_by_its_hash() {
    let server = Server::start();
    let mut listener = Listener::start(&server, "violations", None);
    server.post("/decision-logs", &json!({}));
    let told = listener.next();
    assert_eq!(told.data["event"]["violations"].as_array().unwrap().len(), 7);
    assert_eq!(told.data["event"]["payload_sha256"].as_str().unwrap().len(), 64);
}
