//! Spans of a check on both sides of the socket.

use std::process::{Child, Command};

use serde_json::Value;
use tempfile::TempDir;

use crate::lab::{Bench, until};
use crate::provider::Provider;
use crate::talk::question;
use crate::wire::answer;

/// `loopbreaker sidecar` on a socket of its own.
struct Sidecar {
    child: Child,
    folder: TempDir,
}

impl Sidecar {
    fn start(variables: &[(&'static str, String)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_loopbreaker"));
        command.arg("sidecar").env("UDS_PATH", folder.path().join("embed.sock"));
        command.envs(variables.iter().map(|(name, value)| (*name, value)));
        let child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut sidecar = Self { child, folder };
        let mut line = String::new();
        let stdout = sidecar.child.stdout.as_mut().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
        let socket = sidecar.folder.path().join("embed.sock").display().to_string();
        assert!(line.starts_with(&format!("listening on {socket} (model: built in")), "{line}");
        assert!(line.contains(&format!("LOOP_EMBEDDING_SIDECAR_UDS={socket} loopbreaker serve")), "{line}");
        until("the sidecar listens", || sidecar.folder.path().join("embed.sock").exists());
        sidecar
    }

    fn config(&self) -> String {
        let socket = self.folder.path().join("embed.sock");
        format!("semantic: {{ backend: sidecar, sidecars: [\"{}\"], timeout: 10s }}", socket.display())
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        // It may have ended already, as a test that failed has it.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Every span that a collector was sent.
fn spans(collector: &Provider) -> Vec<Value> {
    let mut spans = Vec::new();
    for asked in collector.seen() {
        let body: Value = serde_json::from_slice(&asked.body).unwrap();
        spans.extend(body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone());
    }
    spans
}

#[test]
fn a_check_is_seen_in_the_gateway_and_below_it_in_the_sidecar() {
    let collector = Provider::answering(answer("200 OK", &[("content-type", "application/json")], b"{}"));
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json".to_owned()),
        ("OTEL_BSP_SCHEDULE_DELAY", "20".to_owned()),
    ];
    let sidecar = Sidecar::start(&variables);
    let mut bench = Bench::new().config(&sidecar.config());
    for (name, value) in variables {
        bench = bench.variable(name, value);
    }
    let lab = bench.start();
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let traceparent = format!("00-{trace}-b7ad6b7169203331-01");
    assert_eq!(lab.chat(&[("traceparent", &traceparent)], question("look at the logs")).status, 200);
    let of_kind = |kind: u8| spans(&collector).into_iter().find(|span| span["kind"] == kind);
    let mut found = Vec::new();
    until("all three spans are there", || {
        found = [3, 1, 2].into_iter().filter_map(of_kind).collect();
        found.len() == 3
    });
    let [request, check, served] = &found[..] else { panic!("three spans: {found:?}") };
    assert!(found.iter().all(|span| span["traceId"] == trace));
    assert_eq!(request["parentSpanId"], "b7ad6b7169203331");
    assert_eq!((&check["parentSpanId"], &check["name"]), (&request["spanId"], &Value::from("check_loop")));
    assert_eq!((&served["parentSpanId"], &served["name"]), (&check["spanId"], &Value::from("check_loop")));
}
