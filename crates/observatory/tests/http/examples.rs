//! The examples of the documentation do what they say.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::server::Server;

fn run(server: &Server, program: &str, name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/decision-logs");
    let api = format!("http://{}/api/v1", server.address);
    let output = Command::new(program).arg(folder.join(name)).arg(api).output().unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name}: {said}{complained}");
    said.into_owned()
}

#[test]
fn curl_sends_one_log_and_several() {
    let server = Server::start();
    let said = run(&server, "sh", "send.sh");
    assert!(said.contains(r#""accepted":3"#), "{said}");
    let (_, session) = server.get("/sessions/example-curl");
    assert_eq!((&session["steps"], &session["agents"]), (&json!(4), &json!(["builder-1"])));
    let (_, graph) = server.get("/sessions/example-curl/graph");
    assert_eq!(graph["edges"].as_array().unwrap().len(), 3);
}

#[test]
fn python_sends_logs_until_it_is_told_that_it_loops() {
    let server = Server::start();
    let said = run(&server, "python3", "send.py");
    assert_eq!(said.lines().count(), 6, "{said}");
    assert!(said.contains("step 5: entropy 0.2, loop"), "{said}");
    assert_eq!(server.get("/sessions/example-python").1["state"], "loop");
}
