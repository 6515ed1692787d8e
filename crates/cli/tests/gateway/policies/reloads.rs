//! A config that changes while requests run.

use loopbreaker_mock::Turn;
use rustix::process::Signal;

use crate::lab::{Bench, Lab, until};
use crate::talk::question;
use crate::wire::request;

const LOADED: &str = r#"loopbreaker_config_reloads_total{result="loaded"}"#;
const REFUSED: &str = r#"loopbreaker_config_reloads_total{result="refused"}"#;

const KILLED: &str = "kill_switches: [{ tenant: acme }]";
const STREAMED: &str = r#"{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

fn as_acme(lab: &Lab) -> u16 {
    lab.chat(&[("x-tenant-id", "acme")], question("a")).status
}

#[test]
fn a_changed_file_is_put_in_force() {
    let lab = Lab::with("holdout: 0%");
    assert_eq!(as_acme(&lab), 200);
    lab.reconfigure(KILLED);
    until("the kill switch is in force", || as_acme(&lab) == 403);
    assert_eq!(lab.metric(LOADED), 1.0);
}

#[test]
fn a_signal_puts_the_file_in_force_at_once() {
    let lab = Lab::with("holdout: 0%");
    lab.reconfigure(KILLED);
    lab.signal(Signal::HUP);
    until("the kill switch is in force", || as_acme(&lab) == 403);
}

#[test]
fn a_changed_policy_file_is_put_in_force() {
    let lab = Bench::new().file("p.yaml", "[]").config("policy_files: [p.yaml]").start();
    let ask = || lab.chat(&[("x-session-id", "s")], question("a")).status;
    assert_eq!([ask(), ask()], [200, 200]);
    std::fs::write(
        lab.path("p.yaml"),
        "{ id: p, spec: { rules: [{ id: r, key: tenant, requests: 1, period: 1h }] } }",
    )
    .unwrap();
    until("the policy is in force", || lab.metric(LOADED) > 0.0);
    assert_eq!([ask(), ask()], [200, 429]);
}

#[test]
fn a_reload_drops_no_open_stream() {
    let lab = Lab::with("holdout: 0%");
    lab.mock.script([Turn::text("one two three four five six seven eight").chunk_delay_ms(100)]);
    let mut wire = lab.wire();
    wire.send(&request("POST", "/v1/chat/completions", &[], STREAMED.as_bytes()));
    wire.head();
    let mut text = String::from_utf8(wire.chunk().unwrap()).unwrap();
    lab.reconfigure(KILLED);
    lab.signal(Signal::HUP);
    until("the kill switch is in force", || as_acme(&lab) == 403);
    while let Some(piece) = wire.chunk() {
        text.push_str(&String::from_utf8(piece).unwrap());
    }
    assert!(text.ends_with("data: [DONE]\n\n"));
    wire.send(&request("POST", "/v1/chat/completions", &[("x-tenant-id", "acme")], question("b").as_bytes()));
    assert_eq!(wire.reply().status, 403, "the connection goes on, under the new config");
}

#[test]
fn a_bad_config_changes_nothing_and_is_told() {
    let lab = Lab::with(KILLED);
    lab.reconfigure("kill_switches: [{ tennant: other }]");
    until("the reload was refused", || lab.metric(REFUSED) == 1.0);
    assert_eq!(as_acme(&lab), 403, "the old config stays");
    let ready = lab.get("/readyz");
    assert_eq!((ready.status, &ready.json()["status"]), (200, &"degraded".into()));
    assert_eq!(ready.json()["degraded"], serde_json::json!(["config"]));
    assert_eq!(lab.metric(r#"loopbreaker_degraded{part="config"}"#), 1.0);
    until("the log tells why", || lab.log().contains("tennant"));

    lab.reconfigure("holdout: 0%");
    until("the good one is in force", || as_acme(&lab) == 200);
    assert_eq!(lab.readiness()["status"], "ready");
}

#[test]
fn a_config_that_is_gone_for_a_moment_changes_nothing() {
    let lab = Lab::with(KILLED);
    std::fs::rename(lab.path("loopbreaker.yaml"), lab.path("away.yaml")).unwrap();
    lab.signal(Signal::HUP);
    until("the reload was refused", || lab.metric(REFUSED) == 1.0);
    assert_eq!(as_acme(&lab), 403);
    std::fs::rename(lab.path("away.yaml"), lab.path("loopbreaker.yaml")).unwrap();
    lab.signal(Signal::HUP);
    until("it is back", || lab.readiness()["status"] == "ready");
    assert_eq!(as_acme(&lab), 403);
}

#[test]
fn a_config_from_stdin_cannot_be_read_again_and_stays() {
    let lab = Bench::new().config_from_stdin(KILLED).start();
    assert_eq!(as_acme(&lab), 403);
    lab.signal(Signal::HUP);
    until("the reload was refused", || lab.metric(REFUSED) == 1.0);
    assert_eq!(as_acme(&lab), 403);
}

#[test]
fn what_waits_for_a_restart_is_named_and_not_told_as_done() {
    let lab = Lab::with("holdout: 0%");
    lab.reconfigure("holdout: 0%\nstate: redis://127.0.0.1:1");
    until("it says so", || lab.log().contains("only after a restart"));
    assert!(lab.log().contains(r#""keys":"state""#), "{}", lab.log());
    assert_eq!(lab.get("/readyz").json()["parts"]["state"], "memory");
}

#[test]
fn counters_survive_a_reload() {
    let budget = "policies: [{ id: p, spec: { rules: [{ id: r, key: tenant, requests: 2, period: 1h }] } }]";
    let lab = Lab::with(budget);
    assert_eq!(lab.chat(&[], question("a")).status, 200);
    lab.reconfigure(&format!("{budget}\nholdout: 1%"));
    until("the new config is in force", || lab.metric(LOADED) == 1.0);
    assert_eq!(lab.chat(&[], question("b")).status, 200);
    assert_eq!(lab.chat(&[], question("c")).status, 429);
}

#[test]
fn reloads_under_load_fail_no_request() {
    let lab = Lab::with("holdout: 0%");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (stop, lab) = (&stop, &lab);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|client| {
                scope.spawn(move || {
                    let mut wire = lab.wire();
                    let mut count = 0;
                    while !stop.load(std::sync::atomic::Ordering::Acquire) {
                        count += 1;
                        let body = question(&format!("client {client} question {count}"));
                        wire.send(&request("POST", "/v1/chat/completions", &[], body.as_bytes()));
                        assert_eq!(wire.reply().status, 200);
                    }
                    count
                })
            })
            .collect();
        for round in 1..=20 {
            lab.reconfigure(&format!("holdout: {round}%\nentropy: {{ window_size: {} }}", 4 + round % 2));
            lab.signal(Signal::HUP);
            until("one more config is in force", || lab.metric(LOADED) >= f64::from(round));
        }
        stop.store(true, std::sync::atomic::Ordering::Release);
        let sent: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
        assert!(sent >= 20);
    });
}
