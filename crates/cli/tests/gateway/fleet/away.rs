//! Redis is away: everybody goes on, and afterwards what happened meanwhile is known to all.

use std::time::{Duration, Instant};

use loopbreaker_mock::Turn;

use super::is_whole;
use crate::lab::{Bench, Lab, until};
use crate::redis::Redis;
use crate::talk::{Chat, question};

/// Two gateways that have found this Redis.
fn two(redis: &Redis, config: &str) -> Vec<Lab> {
    let config = format!("state: \"{}\"\n{config}", redis.url());
    let labs: Vec<Lab> = (0..2).map(|_| Bench::new().config(&config).start()).collect();
    wait_for(&labs);
    labs
}

/// Waits until all of them have found Redis.
fn wait_for(labs: &[Lab]) {
    for lab in labs {
        until("it has found Redis", || is_whole(lab));
    }
}

/// How many keys of this kind Redis has, and how much is in them.
fn counted(redis: &Redis, kind: &str) -> String {
    let script = format!(
        "local n = 0 for _, k in ipairs(redis.call('KEYS', 'lb:*:{kind}:*')) do n = n + redis.call('ZCARD', k) end return n"
    );
    redis.command(&["EVAL", &script, "0"])
}

#[test]
fn while_redis_is_away_requests_go_on_at_once_and_afterwards_all_is_as_before() {
    let mut redis = Redis::start();
    let policy = "policies: [{ id: p, spec: { rules: [{ id: r, key: tenant, requests: 40, period: 1h }] } }]";
    let labs = two(&redis, policy);
    let ask = |lab: &Lab, words: &str| lab.chat(&[], question(words)).status;
    assert_eq!([ask(&labs[0], "one"), ask(&labs[1], "two")], [200, 200]);
    redis.kill();
    for turn in 0..10 {
        assert_eq!(ask(&labs[turn % 2], &format!("away {turn}")), 200);
    }
    assert_eq!(labs[0].metric("loopbreaker_degraded{part=\"state\"}"), 1.0);
    let ready = labs[0].get("/readyz");
    assert_eq!(ready.status, 200);
    assert!(ready.text().contains("state"), "{}", ready.text());
    redis.start_again();
    wait_for(&labs);
    // What was used while it was away is counted: ten of forty are gone, and Redis has forgotten the first two.
    let mut through = 0;
    let started = Instant::now();
    for turn in 0.. {
        match ask(&labs[turn % 2], &format!("back {turn}")) {
            200 => through += 1,
            429 => break,
            other => panic!("{other}"),
        }
        assert!(started.elapsed() < Duration::from_secs(30));
    }
    assert!((28..=32).contains(&through), "{through} got through");
}

#[test]
fn a_redis_that_stands_still_holds_nobody_up() {
    let redis = Redis::start();
    let lab = Bench::new().config(&format!("state: \"{}\"", redis.url())).start();
    until("it has found Redis", || is_whole(&lab));
    redis.signal("STOP");
    let began = Instant::now();
    for turn in 0..50 {
        assert_eq!(lab.chat(&[], question(&format!("turn {turn}"))).status, 200);
    }
    // The first few wait for 5 ms each, the others do not even try.
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    redis.signal("CONT");
    until("it has found Redis again", || is_whole(&lab));
}

#[test]
fn equal_requests_of_the_time_without_redis_are_counted_together_when_it_is_back() {
    let mut redis = Redis::start();
    let loops = "{ enabled: true, window_seconds: 600, threshold_identical_requests: 20, action: reject }";
    let labs = two(&redis, &format!("policies: [{{ id: p, spec: {{ loop_detection: {loops} }} }}]"));
    let ask = |lab: &Lab| lab.chat(&[], question("the same")).status;
    redis.kill();
    for _ in 0..19 {
        assert_eq!(ask(&labs[0]), 200);
    }
    assert_eq!(ask(&labs[1]), 200);
    redis.start_again();
    wait_for(&labs);
    until("all are known", || counted(&redis, "w") == "20");
    // Each of its threads finds Redis by itself.
    let asked = (1..=18).find(|_| ask(&labs[1]) == 429);
    assert!(asked.is_some(), "it refuses long before it has seen twenty of them itself");
}

#[test]
fn an_attempt_that_the_provider_failed_without_redis_is_not_counted_when_it_is_back() {
    let mut redis = Redis::start();
    let loops = "{ enabled: true, window_seconds: 600, threshold_identical_requests: 20, action: reject }";
    let labs = two(&redis, &format!("policies: [{{ id: p, spec: {{ loop_detection: {loops} }} }}]"));
    let ask = || labs[0].chat(&[], question("the same")).status;
    redis.kill();
    let statuses = [500, 429, 200, 503];
    labs[0]
        .mock
        .script(statuses.map(|status| if status == 200 { Turn::text("yes") } else { Turn::status(status) }));
    assert_eq!(statuses.map(|_| ask()), statuses);
    redis.start_again();
    wait_for(&labs);
    // All that is owed to a tenant is written in one step.
    until("the one that counts is known", || counted(&redis, "w") != "0");
    assert_eq!(counted(&redis, "w"), "1");
}

#[test]
fn an_attempt_whose_question_was_answered_too_late_is_counted_once() {
    let redis = Redis::start();
    let loops = "{ enabled: true, window_seconds: 600, threshold_identical_requests: 20, action: reject }";
    let labs = two(&redis, &format!("policies: [{{ id: p, spec: {{ loop_detection: {loops} }} }}]"));
    redis.signal("STOP");
    for lab in &labs {
        assert_eq!(lab.chat(&[], question("the same")).status, 200);
    }
    redis.signal("CONT");
    wait_for(&labs);
    until("both are counted", || counted(&redis, "w") == "2");
    // What came too late has been taken back by now, or comes back with this.
    assert_eq!(labs[0].chat(&[], question("another")).status, 200);
    until("all are counted", || counted(&redis, "w") == "3");
}

#[test]
fn a_pause_holds_although_redis_has_lost_it() {
    let redis = Redis::start();
    let labs = two(&redis, "pause: { hold: 200ms }");
    let session = [("x-session-id", "run-17")];
    let ask = |lab: &Lab| lab.chat(&session, question("a")).status;
    assert_eq!([ask(&labs[0]), ask(&labs[1])], [200, 200]);
    assert_eq!(labs[0].post("/api/v1/sessions/run-17/pause", &[], "").status, 200);
    for lab in &labs {
        until("it is held", || ask(lab) == 429);
    }
    redis.command(&["FLUSHALL"]);
    for lab in labs.iter().cycle().take(6) {
        assert_eq!(ask(lab), 429, "nobody has decided");
    }
    assert_eq!(labs[1].post("/api/v1/sessions/run-17/resume", &[], "").status, 200);
    for lab in &labs {
        until("it goes on", || ask(lab) == 200);
    }
}

#[test]
fn a_transcript_that_was_refused_without_redis_is_refused_everywhere_when_it_is_back() {
    let mut redis = Redis::start();
    let labs = two(&redis, "");
    redis.kill();
    let looping = |times| (0..times).fold(Chat::new("mend it"), |chat, _| chat.call("ls", "a"));
    let statuses: Vec<u16> = (1..=6).map(|times| labs[0].chat(&[], looping(times).body()).status).collect();
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    redis.start_again();
    wait_for(&labs);
    until("the other one refuses it as well", || labs[1].chat(&[], looping(6).body()).status == 429);
    let again = labs[1].chat(&[], looping(6).body());
    let wait: u64 = again.header("retry-after").unwrap().parse().unwrap();
    assert!(again.status == 429 && wait <= 60, "{wait}");
}

#[test]
fn what_is_spent_beyond_a_budget_without_redis_is_counted() {
    let mut redis = Redis::with(&["--appendonly", "yes"]);
    let policy = "policies: [{ id: p, spec: { rules: [{ id: r, key: tenant, requests: 6, period: 1h }] } }]";
    let labs = two(&redis, policy);
    let ask = |lab: &Lab, words: &str| lab.chat(&[], question(words)).status;
    assert_eq!([ask(&labs[0], "a"), ask(&labs[1], "b")], [200, 200]);
    until("both are settled", || labs.iter().all(|lab| lab.metric("loopbreaker_held") == 0.0));
    redis.kill();
    let mut through = 2;
    for lab in &labs {
        let turns = (0..10).map(|turn| ask(lab, &format!("away {turn}")));
        through += turns.filter(|status| *status == 200).count();
    }
    assert!((7..=12).contains(&through), "each goes on with what it knew to be left: {through}");
    redis.start_again();
    wait_for(&labs);
    let overspent = || -> f64 {
        labs.iter().map(|lab| lab.metric("loopbreaker_overspent_total{unit=\"requests\"}")).sum()
    };
    until("it is counted", || overspent() > 0.0);
    until("all of it is counted", || overspent() == (through - 6) as f64);
    assert_eq!(ask(&labs[0], "more"), 429);
    assert_eq!(overspent(), (through - 6) as f64);
}
