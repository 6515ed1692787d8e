//! Parts of our own that fail.

use std::os::unix::fs::PermissionsExt as _;

use crate::lab::{Bench, Lab, until};
use crate::talk::{looping, question};

#[test]
fn a_bug_in_a_detector_stops_no_request() {
    let lab = Bench::new().variable("LOOPBREAKER_TEST_FAULTS", "1").start();
    let reply = lab.chat(&[("x-test-detector-panic", "1")], looping("fix it", 6));
    assert_eq!(reply.status, 200);
    assert_eq!(lab.mock.requests()[0].body, looping("fix it", 6).as_bytes());
    assert_eq!(lab.metric("loopbreaker_panics_total"), 1.0);
    assert_eq!(lab.metric(r#"loopbreaker_degraded_total{part="detector"}"#), 1.0);
    assert_eq!(lab.logged(1)[0]["degraded"], serde_json::json!(["detector"]));
    assert_eq!(
        lab.verdict(&[], looping("another", 3)),
        (200, "hint".into()),
        "the next request is judged as ever"
    );
}

#[test]
fn the_fault_of_a_test_is_none_of_users() {
    let lab = Lab::new();
    assert_eq!(lab.verdict(&[("x-test-detector-panic", "1")], looping("fix it", 3)), (200, "hint".into()));
    assert_eq!(lab.metric("loopbreaker_panics_total"), 0.0);
}

#[test]
fn a_log_that_is_closed_stops_nothing() {
    let lab = Bench::new().log_closed().start();
    for index in 0..50 {
        assert_eq!(lab.chat(&[], question(&format!("question {index}"))).status, 200);
    }
    until("lost lines are counted", || {
        lab.metric("loopbreaker_log_lines_dropped_total") > 0.0
            || lab.metric(r#"loopbreaker_degraded{part="log"}"#) == 1.0
    });
    assert_eq!(lab.get("/readyz").status, 200);
}

#[test]
fn a_log_that_nobody_reads_stops_nothing() {
    let lab = Bench::new().log_ignored().start();
    let mut wire = lab.wire();
    // A pipe holds 64 KiB, and a line has about 400 bytes.
    for index in 0..600 {
        let body = question(&format!("question {index}"));
        wire.send(&crate::wire::request("POST", "/v1/chat/completions", &[], body.as_bytes()));
        assert_eq!(wire.reply().status, 200);
    }
}

#[test]
fn a_data_folder_that_cannot_be_used_only_costs_what_it_is_for() {
    let lab = Bench::new().file("data", "this is a file").start();
    assert_eq!(lab.chat(&[], question("hello")).status, 200);
    let ready = lab.get("/readyz");
    assert_eq!((ready.status, &ready.json()["degraded"]), (200, &serde_json::json!(["store", "data_dir"])));
    assert_eq!(lab.metric(r#"loopbreaker_degraded{part="data_dir"}"#), 1.0);
    until("it is logged", || lab.log().contains("data folder cannot be used"));
}

#[test]
fn a_data_folder_that_can_be_used_later_keeps_what_it_is_for_without_a_restart() {
    let lab = Bench::new().file("data", "this is a file").start();
    let session =
        |lab: &Lab| lab.chat(&[], question("hello")).header("x-loopbreaker-session").unwrap().to_owned();
    let first = session(&lab);
    std::fs::remove_file(lab.path("data")).unwrap();
    until("the folder is used", || lab.readiness()["degraded"] == serde_json::json!([]));
    assert_eq!(std::fs::read(lab.path("data/secret")).unwrap().len(), 32);
    assert_eq!(session(&lab), first, "the secret of this process is the one that is kept");
    assert!(lab.log().contains("ids and logins last over a restart from now on"), "{}", lab.log());
}

#[test]
fn a_broken_secret_only_costs_what_it_is_for() {
    let lab = Bench::new().file("secret", "short").arg("--data-dir").arg(".").start();
    assert_eq!(lab.chat(&[], question("hello")).status, 200);
    assert_eq!(lab.readiness()["degraded"], serde_json::json!(["data_dir"]));
}

#[test]
fn what_is_kept_is_private() {
    let lab = Lab::new();
    let mode = |name: &str| std::fs::metadata(lab.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("data"), 0o700);
    assert_eq!(mode("data/secret"), 0o600);
}

#[test]
fn a_port_that_is_taken_is_told_with_what_to_do() {
    let lab = Lab::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // Another gateway has opened its port for several listeners, which must not let in one of another process.
    for address in [taken.local_addr().unwrap(), lab.address] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_loopbreaker"))
            .args(["serve", "--listen", &address.to_string(), "--data-dir", "other"])
            .current_dir(lab.path("."))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{address}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("--listen"));
    }
}
