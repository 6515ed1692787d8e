//! Policies, kill switches and thresholds that are changed at one gateway and hold at all, each with a log of its own.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{gateways, is_whole, sharing};
use crate::lab::{Bench, Lab, until};
use crate::redis::Redis;
use crate::talk::{looping, question};

const POLICIES: &str = "/api/v1/policies";
const THRESHOLDS: &str = "/api/v1/config/detectors";

/// The policy that is in force when the config has none.
fn default_policy(lab: &Lab) -> Value {
    let listed = lab.get(POLICIES).json();
    listed["policies"].as_array().unwrap().iter().find(|policy| policy["id"] == "default").unwrap().clone()
}

fn mode(lab: &Lab) -> Value {
    default_policy(lab)["mode"].clone()
}

/// Sets the mode of that policy, as an operator does.
fn set_mode(lab: &Lab, mode: &str) {
    let mut policy = default_policy(lab);
    policy["spec"]["mode"] = mode.into();
    put(lab, &format!("{POLICIES}/default"), &json!({ "spec": policy["spec"] }));
}

fn put(lab: &Lab, path: &str, change: &Value) {
    let reply = lab.ask("PUT", path, &[("content-type", "application/json")], change.to_string());
    assert_eq!(reply.status, 200, "{}", reply.text());
}

/// What becomes of an agent that has asked the same thing three times.
fn judged(lab: &Lab, task: &str) -> String {
    lab.verdict(&[], looping(task, 3)).1
}

/// Waits until something is so everywhere, which must not take longer than a second.
fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let asked = Instant::now();
    until(what, &mut is_so);
    assert!(asked.elapsed() < Duration::from_secs(1), "{what} took {:?}", asked.elapsed());
}

#[test]
fn a_policy_that_is_set_at_one_holds_at_all_within_a_second_and_at_one_that_was_away() {
    let redis = Redis::start();
    let mut labs = gateways(&redis.url(), "");
    let away = labs.pop().unwrap();
    away.signal(Signal::TERM);
    assert_eq!(judged(&labs[1], "a"), "hint");
    set_mode(&labs[0], "off");
    soon("the policy is off at the other", || mode(&labs[1]) == "off");
    assert_ne!(judged(&labs[1], "b"), "hint");

    let third = away.restarted();
    until("it is off at the one that was away", || mode(&third) == "off");
    let fourth = Bench::new().config(&sharing(&redis.url(), "")).start();
    until("it is off at one that has never been there", || mode(&fourth) == "off");
    assert_ne!(judged(&fourth, "c"), "hint");

    set_mode(&third, "enforce");
    for (turn, lab) in labs.iter().chain([&fourth]).enumerate() {
        soon("the policy is enforced again", || mode(lab) == "enforce");
        assert_eq!(judged(lab, &format!("d{turn}")), "hint");
    }
    assert_eq!(labs[0].ask("DELETE", &format!("{POLICIES}/default"), &[], "").status, 200);
    for lab in labs.iter().chain([&third, &fourth]) {
        soon("the config's own is in force again", || default_policy(lab)["overridden"] == false);
    }

    // Three changes were made, so three were told: whoever takes one over tells nobody of it.
    assert_eq!(redis.command(&["XLEN", "{lb}:orders"]), "3");
    let entries = labs[1].get("/api/v1/audit").json()["entries"].clone();
    let audited: Vec<&Value> = entries.as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert_eq!(audited, ["policy", "policy", "policy"]);
}

#[test]
fn thresholds_that_are_changed_at_one_hold_at_another_and_can_be_taken_back_there() {
    let redis = Redis::start();
    let labs = gateways(&redis.url(), "");
    let effect = |lab: &Lab| {
        lab.get("/api/v1/config").json()["detectors"]["redundancy"]["tools"]["bash"]["effect"].clone()
    };
    // Each try is a run of its own.
    let mut runs = 0;
    let mut judges = |lab: &Lab, verdict: &str| {
        soon("it judges so", || {
            runs += 1;
            judged(lab, &format!("run {runs}")) == verdict
        });
    };
    put(&labs[0], THRESHOLDS, &json!({ "redundancy": { "tools": { "bash": { "effect": "poll" } } } }));
    for lab in &labs {
        judges(lab, "allow");
        assert_eq!(effect(lab), "poll");
    }
    assert_eq!(labs[2].ask("DELETE", THRESHOLDS, &[], "").status, 200);
    for lab in &labs {
        judges(lab, "hint");
        assert!(effect(lab).is_null());
    }
}

#[test]
fn a_kill_switch_that_is_thrown_at_one_holds_at_all_within_a_second_and_at_those_that_start_later() {
    let redis = Redis::start();
    let mut labs = gateways(&redis.url(), "");
    // One that keeps no log has to stop a runaway all the same.
    labs.push(Bench::new().config(&sharing(&redis.url(), "log: { url: off }")).start());
    let away = labs.remove(2);
    away.signal(Signal::TERM);
    let status = |lab: &Lab| lab.chat(&[("x-tenant-id", "acme")], question("a")).status;
    let switch = "/api/v1/kill-switches/acme";
    put(&labs[0], switch, &json!({ "reason": "runaway" }));
    assert_eq!(status(&labs[0]), 403);
    for lab in &labs {
        soon("the switch holds at the others", || status(lab) == 403);
        assert_eq!(lab.chat(&[("x-tenant-id", "other")], question("a")).status, 200);
    }
    let third = away.restarted();
    until("it holds at the one that was away", || status(&third) == 403);
    let fourth = Bench::new().config(&sharing(&redis.url(), "log: { url: off }")).start();
    until("it holds at one that has never been there", || status(&fourth) == 403);

    assert_eq!(third.ask("DELETE", switch, &[], "").status, 200);
    for lab in labs.iter().chain([&third, &fourth]) {
        soon("the switch is released", || status(lab) == 200);
    }
    assert_eq!(redis.command(&["XLEN", "{lb}:orders"]), "2", "each change is told once");
    let entries = labs[1].get("/api/v1/audit").json()["entries"].clone();
    let audited: Vec<&Value> = entries.as_array().unwrap().iter().map(|entry| &entry["reason"]).collect();
    assert_eq!(audited, ["acme: runaway", "acme"]);
}

#[test]
fn what_is_changed_while_redis_is_away_is_told_when_it_is_back_and_what_it_lost_is_brought_back() {
    let mut redis = Redis::start();
    let labs = gateways(&redis.url(), "");
    put(&labs[0], THRESHOLDS, &json!({ "entropy": { "loop_below": 0.4 } }));
    let loop_below =
        |lab: &Lab| lab.get("/api/v1/config").json()["detectors"]["entropy"]["loop_below"].clone();
    for lab in &labs {
        until("it is known to all", || loop_below(lab) == 0.4);
    }
    redis.kill();
    set_mode(&labs[1], "shadow");
    assert_eq!((mode(&labs[1]), mode(&labs[0])), (json!("shadow"), json!("enforce")));
    redis.start_again();
    for lab in &labs {
        until("it has found Redis again", || is_whole(lab));
        until("what was changed meanwhile is in force", || mode(lab) == "shadow");
        assert_eq!(loop_below(lab), 0.4);
    }
    let late = Bench::new().config(&sharing(&redis.url(), "")).start();
    until("both are known to one that starts now", || mode(&late) == "shadow" && loop_below(&late) == 0.4);
}
