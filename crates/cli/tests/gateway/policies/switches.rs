//! Kill switches that operators throw and release while requests run.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::lab::{Lab, until};
use crate::talk::question;

const SWITCHES: &str = "/api/v1/kill-switches";

fn throw(lab: &Lab, id: &str, switch: &Value) -> Value {
    let reply = lab.ask("PUT", &format!("{SWITCHES}/{id}"), &[], switch.to_string());
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

fn release(lab: &Lab, id: &str) -> u16 {
    lab.ask("DELETE", &format!("{SWITCHES}/{id}"), &[], "").status
}

fn asked_by(lab: &Lab, tenant: &str) -> u16 {
    lab.chat(&[("x-tenant-id", tenant)], question("a")).status
}

#[test]
fn a_switch_holds_from_the_next_request_on_until_it_is_released() {
    let lab = Lab::new();
    assert_eq!(asked_by(&lab, "acme"), 200);
    let thrown = throw(&lab, "acme", &json!({ "reason": "runaway crawler" }));
    assert_eq!((&thrown["key"], &thrown["value"]), (&json!("tenant"), &json!("acme")));
    assert_eq!((&thrown["source"], &thrown["on"]), (&json!("override"), &json!(true)));
    let refused = lab.chat(&[("x-tenant-id", "acme")], question("a"));
    assert_eq!((refused.status, refused.code().as_str()), (403, "kill_switch"));
    assert!(refused.text().contains("runaway crawler"), "{}", refused.text());
    assert_eq!(asked_by(&lab, "other"), 200);
    for path in [SWITCHES, "/api/v1/policies"] {
        let listed = lab.get(path).json()["kill_switches"].clone();
        assert_eq!(listed, json!([thrown]), "{path}");
    }
    assert_eq!(release(&lab, "acme"), 200);
    assert_eq!(asked_by(&lab, "acme"), 200);
    assert_eq!(release(&lab, "acme"), 404);
}

#[test]
fn a_switch_survives_reloads_and_restarts_and_says_when_it_ends() {
    let lab = Lab::with("kill_switches: [{ tenant: written }]");
    throw(&lab, "crawlers", &json!({ "scope_key": "agent", "scope_value": "crawler" }));
    let agent = [("x-agent-id", "crawler")];
    lab.reconfigure("kill_switches: [{ tenant: rewritten }]");
    until("the new config is in force", || asked_by(&lab, "rewritten") == 403);
    assert_eq!((asked_by(&lab, "written"), lab.chat(&agent, question("a")).status), (200, 403));
    let again = lab.restarted();
    assert_eq!((asked_by(&again, "rewritten"), again.chat(&agent, question("a")).status), (403, 403));
    let file_is_told = again.ask("DELETE", &format!("{SWITCHES}/rewritten"), &[], "");
    assert_eq!((file_is_told.status, file_is_told.json()["error"].clone()), (409, json!("in_file")));

    let soon = SystemTime::now() + Duration::from_secs(2);
    let seconds = soon.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let made = std::process::Command::new("date")
        .args(["-u", "-d", &format!("@{seconds}"), "+%Y-%m-%dT%H:%M:%SZ"])
        .output()
        .unwrap();
    let end = String::from_utf8(made.stdout).unwrap();
    throw(&again, "brief", &json!({ "tenant": "brief", "expires_at": end.trim() }));
    assert_eq!(asked_by(&again, "brief"), 403);
    until("it has ended by itself", || asked_by(&again, "brief") == 200);
    let listed = again.get(SWITCHES).json();
    let brief = listed["kill_switches"].as_array().unwrap().iter().find(|switch| switch["id"] == "brief");
    assert_eq!(brief.unwrap()["on"], false);
}

#[test]
fn a_switch_with_a_mistake_changes_nothing_and_says_where_it_is() {
    let lab = Lab::new();
    let reply = lab.ask("PUT", &format!("{SWITCHES}/acme"), &[], r#"{"expires":"2030-01-01T00:00:00Z"}"#);
    assert_eq!((reply.status, &reply.json()["violations"][0]["field"]), (422, &json!("expires")));
    assert!(reply.text().contains("expires_at"), "it says what was meant: {}", reply.text());
    assert_eq!(asked_by(&lab, "acme"), 200);
}
