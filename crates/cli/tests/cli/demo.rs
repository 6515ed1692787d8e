use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::binary::Desk;
use crate::golden;

#[test]
fn six_agents_run_through_the_gateway_and_the_output_is_always_the_same() {
    let outcome = Desk::new().run(&["demo", "--fast", "--exit"]);
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""));
    golden::check("demo.txt", &outcome.stdout);
    assert_eq!(Desk::new().run(&["demo", "--fast", "--exit"]).stdout, outcome.stdout);
}

#[test]
fn json_has_one_object_per_agent() {
    let outcome = Desk::new().run(&["demo", "--fast", "--exit", "--json"]);
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""));
    golden::check("demo.jsonl", &outcome.stdout);
}

#[test]
fn agents_that_run_at_once_meet_the_same_as_one_by_one() {
    let by_id = |args: &[&str]| {
        let mut runs = Desk::new().run(args).lines();
        runs.sort_by_key(|run| run["id"].as_str().unwrap().to_owned());
        runs
    };
    let at_once = by_id(&["demo", "--exit", "--json"]);
    assert_eq!(at_once.len(), 6);
    assert_eq!(at_once, by_id(&["demo", "--fast", "--exit", "--json"]));
}

#[test]
fn all_four_dialects_are_spoken() {
    let runs = Desk::new().run(&["demo", "--fast", "--exit", "--json"]).lines();
    for dialect in ["chat", "responses", "anthropic", "gemini"] {
        assert!(runs.iter().any(|run| run["dialect"] == dialect), "{dialect}");
    }
}

#[test]
fn it_leaves_no_file_behind() {
    let desk = Desk::new();
    desk.run(&["demo", "--fast", "--exit"]);
    assert_eq!(desk.files(), Vec::<String>::new());
}

#[test]
fn the_gateway_stays_until_it_is_told_to_end_whoever_has_the_usual_port() {
    // Whether or not it can be taken here, it is taken.
    let _taken = TcpListener::bind("127.0.0.1:4141");
    let mut child = Desk::new().command(&["demo", "--fast", "--json"]).spawn().unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("the gateway stays at") {
        line.clear();
        assert!(talk.read_line(&mut line).unwrap() > 0, "it ended by itself");
    }
    let address = line.split("http://").nth(1).unwrap().split(';').next().unwrap();
    assert!(!address.ends_with(":4141"));

    let metrics = get(address, "/metrics");
    for dialect in ["chat", "responses", "anthropic", "gemini"] {
        assert!(metrics.contains(&format!("loopbreaker_requests_total{{dialect=\"{dialect}\"")), "{metrics}");
    }
    let ready: Value =
        serde_json::from_str(get(address, "/readyz").split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(ready["status"], "ready");

    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.split(|byte| *byte == b'\n').count()), (Some(0), 7));
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
