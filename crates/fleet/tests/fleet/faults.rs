//! Redis dies, stops, forgets its scripts, fails over: nobody waits past the limit, and everything comes back by itself.

use std::time::{Duration, Instant};

use loopbreaker_fleet::{
    After, Aftermath, Ask, AttemptMissed, AttemptOver, ChargeOver, Fleet, Overspent, SharedKey, Unit,
};

use super::server::{Cluster, Redis, wait};
use super::{Process, attempt, charge, refused, times, transcript, until, used};

/// What a busy machine may add to a limit before it is somebody's fault.
const SLACK: Duration = Duration::from_millis(250);

#[tokio::test]
async fn while_redis_is_dead_nobody_waits_and_what_was_used_is_added_when_it_is_back() {
    let mut redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    let mut ask = transcript(1, &[10]);
    ask.charges = vec![charge(9, 100, 1)];
    assert!(one.ask(&ask).await.is_reserved);
    redis.kill();
    until(|| {
        // The first one finds out.
        !one.link.is_there() || futures_lite(&one, &ask)
    })
    .await;
    let asked = Instant::now();
    assert_eq!(one.link.ask(&ask).await, None);
    assert!(asked.elapsed() < SLACK);
    spend_five_three_times(&one);
    redis.start_again();
    one.wait_until_there().await;
    let started = Instant::now();
    ask.charges[0].estimate = 0;
    while one.ask(&ask).await.standings[0].used != 15 {
        assert!(started.elapsed() < Duration::from_secs(30), "the debt is not paid");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let states = one.states.lock().unwrap().clone();
    assert!(states.len() >= 2 && states[0].is_some() && states[states.len() - 1].is_none(), "{states:?}");
}

#[tokio::test]
async fn a_redis_that_answers_but_takes_nothing_is_away_until_it_does_and_what_was_used_meanwhile_is_paid() {
    for (take_nothing, take_again) in
        [(["REPLICAOF", "127.0.0.1", "1"].as_slice(), ["REPLICAOF", "NO", "ONE"].as_slice()), OUT_OF_MEMORY]
    {
        let redis = Redis::start();
        let one = Process::join(&redis.url()).await;
        let mut ask = transcript(1, &[10]);
        ask.charges = vec![charge(9, 100, 5)];
        assert!(one.ask(&ask).await.is_reserved);
        redis.command(take_nothing);
        assert_eq!(one.link.ask(&ask).await, None);
        spend_five_three_times(&one);
        let is_away = || one.states.lock().unwrap().last().is_some_and(Option::is_some);
        let watched = Instant::now();
        while watched.elapsed() < Duration::from_millis(700) {
            assert!(
                is_away() && !one.link.is_there(),
                "that it answers does not bring it back: {take_nothing:?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        redis.command(take_again);
        one.wait_until_there().await;
        ask.charges[0].estimate = 0;
        let started = Instant::now();
        while one.ask(&ask).await.standings[0].used != 20 {
            assert!(started.elapsed() < Duration::from_secs(30), "the debt is not paid: {take_nothing:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test]
async fn why_redis_stays_away_is_told_when_it_is_another_reason_than_why_it_went() {
    let redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    redis.command(&["CONFIG", "SET", "requirepass", "changed"]);
    redis.command(&["-a", "changed", "CLIENT", "KILL", "TYPE", "normal"]);
    assert_eq!(one.link.ask(&transcript(1, &[10])).await, None, "the first that asks finds out");
    until(|| {
        let states = one.states.lock().unwrap();
        states.iter().flatten().any(|reason| reason.to_lowercase().contains("auth"))
    })
    .await;
    let told = one.states.lock().unwrap().iter().flatten().count();
    assert!(told <= 8, "each reason is told once: {told}");
    redis.command(&["-a", "changed", "CONFIG", "SET", "requirepass", ""]);
    one.wait_until_there().await;
    assert_eq!(one.states.lock().unwrap().last(), Some(&None));
}

/// How a server is made to have no memory left, and to have enough again.
const OUT_OF_MEMORY: (&[&str], &[&str]) =
    (&["CONFIG", "SET", "maxmemory", "1"], &["CONFIG", "SET", "maxmemory", "0"]);

/// Three requests are over that have used what nobody could reserve.
fn spend_five_three_times(one: &Process) {
    for _ in 0..3 {
        one.link.leave(Aftermath { tenant: 1, charges: vec![used(9, 100, 5)], ..Aftermath::default() });
    }
}

#[tokio::test]
async fn attempts_and_refusals_of_the_time_without_redis_are_known_everywhere_when_it_is_back() {
    // Once with what it had, once without.
    for arguments in [["--appendonly", "yes"].as_slice(), &[]] {
        let mut redis = Redis::with(arguments);
        let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
        let sent = |id: u64| Ask { attempts: vec![attempt(5, id)], ..transcript(1, &[10]) };
        let kept = one.ask(&sent(1)).await.attempts[0].times * u32::from(!arguments.is_empty());
        redis.kill();
        until_lost(&one).await;
        let window = SharedKey::new(5, None);
        let missed = |id, age| AttemptMissed {
            window: window.clone(),
            window_millis: 60_000,
            id,
            made: Instant::now().checked_sub(Duration::from_secs(age)).unwrap(),
        };
        for (id, age) in [(2, 0), (3, 59), (4, 61)] {
            one.link.leave(Aftermath { tenant: 1, missed: vec![missed(id, age)], ..Aftermath::default() });
        }
        one.link.leave(Aftermath {
            tenant: 1,
            refused: Some(refused(20, 22, 60_000)),
            ..Aftermath::default()
        });
        redis.start_again();
        other.wait_until_there().await;
        let asks = Ask { is_loop: true, ..transcript(1, &[20, 21, 22]) };
        let started = Instant::now();
        while !matches!(other.link.ask(&asks).await, Some(told) if matches!(told.after, After::Refuse(_))) {
            assert!(started.elapsed() < Duration::from_secs(30), "the refusal is not known: {arguments:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(other.ask(&asks).await.key, 20, "it is still the same session");
        let counted = times(&other.ask(&sent(9)).await);
        assert_eq!(counted, [kept + 2 + 1], "those that are in the window, and this one: {arguments:?}");
    }
}

#[tokio::test]
async fn an_attempt_that_ends_while_redis_is_away_is_on_its_way_no_more_when_it_is_back() {
    let redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    let sampled = |id| Ask {
        attempts: vec![loopbreaker_fleet::AttemptAsk { once_in_flight: true, ..attempt(5, id) }],
        ..transcript(1, &[10])
    };
    assert_eq!(times(&one.ask(&sampled(1)).await), [1]);
    redis.command(&["REPLICAOF", "127.0.0.1", "1"]);
    until_lost(&one).await;
    let over = AttemptOver { window: SharedKey::new(5, None), id: 1, taken_back: false };
    one.link.leave(Aftermath { tenant: 1, attempts: vec![over], ..Aftermath::default() });
    redis.command(&["REPLICAOF", "NO", "ONE"]);
    one.wait_until_there().await;
    let on_their_way = "return #redis.call('KEYS', 'lb:*:f:*')";
    wait(|| redis.command(&["EVAL", on_their_way, "0"]) == "0");
    assert_eq!(times(&one.ask(&sampled(2)).await), [2]);
}

#[tokio::test]
async fn a_reservation_whose_request_ended_while_redis_was_away_is_settled_when_it_is_back() {
    // Once with what it had, once without: then what was really used is all that counts.
    for arguments in [["--appendonly", "yes"].as_slice(), &[]] {
        let mut redis = Redis::with(arguments);
        let one = Process::join(&redis.url()).await;
        let mut ask = transcript(1, &[10]);
        ask.charges = vec![charge(9, 100, 80)];
        let reserved = one.ask(&ask).await;
        redis.kill();
        until_lost(&one).await;
        let settled = ChargeOver { estimate: 80, at: reserved.at, ..used(9, 100, 7) };
        for charge in [used(9, 100, 3), settled] {
            one.link.leave(Aftermath { tenant: 1, charges: vec![charge], ..Aftermath::default() });
        }
        redis.start_again();
        one.wait_until_there().await;
        ask.charges[0].estimate = 0;
        let started = Instant::now();
        while one.ask(&ask).await.standings[0].used != 10 {
            assert!(started.elapsed() < Duration::from_secs(30), "it is not settled: {arguments:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test]
async fn what_is_written_twice_counts_once() {
    let redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    for number in [7, 7, 8] {
        let charges = vec![used(9, 100, 5)];
        one.link.leave(Aftermath { tenant: 1, number, charges, ..Aftermath::default() });
    }
    one.link.written().await;
    let mut ask = transcript(1, &[10]);
    ask.charges = vec![charge(9, 100, 0)];
    assert_eq!(one.ask(&ask).await.standings[0].used, 10);
}

#[tokio::test]
async fn what_was_used_while_nobody_could_be_asked_leaves_the_window_with_its_age() {
    let redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    for ago in [30, 59, 61, 10] {
        let used = Instant::now().checked_sub(Duration::from_secs(ago)).unwrap();
        let charges = vec![ChargeOver { used, ..used_up(ago) }];
        one.link.leave(Aftermath { tenant: 1, charges, ..Aftermath::default() });
    }
    one.link.written().await;
    let mut ask = transcript(1, &[10]);
    ask.charges = vec![charge(9, 100, 1)];
    let stood = one.ask(&ask).await.standings[0];
    assert_eq!(stood.used, 30 + 59 + 10);
    // A single one fits when the oldest have gone.
    assert!(stood.reset_millis <= 2_000, "{stood:?}");
}

fn used_up(amount: u64) -> ChargeOver {
    used(9, 100, amount)
}

#[tokio::test]
async fn what_was_spent_beyond_a_budget_while_redis_was_away_is_told_exactly_once() {
    let mut redis = Redis::with(&["--appendonly", "yes"]);
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    let mut ask = transcript(1, &[10]);
    ask.charges = vec![charge(9, 20, 5)];
    assert!(one.ask(&ask).await.is_reserved);
    redis.kill();
    for process in [&one, &other] {
        until_lost(process).await;
        // Each of them lets 15 more through: all that it knows to be left.
        for actual in [10, 5] {
            let charges = vec![used(9, 20, actual)];
            process.link.leave(Aftermath { tenant: 1, charges, ..Aftermath::default() });
        }
    }
    redis.start_again();
    ask.charges[0].estimate = 0;
    let told = || -> Vec<Overspent> {
        [&one, &other].iter().flat_map(|process| process.overspent.lock().unwrap().clone()).collect()
    };
    until(|| !told().is_empty()).await;
    assert_eq!(told(), [Overspent { unit: Unit::Requests, amount: 15 }]);
    assert_eq!(one.ask(&ask).await.standings[0].used, 35);
}

/// Asks in the background, so that a dead connection is noticed.
fn futures_lite(one: &Process, ask: &loopbreaker_fleet::Ask) -> bool {
    let (link, ask) = (std::sync::Arc::clone(&one.link), ask.clone());
    tokio::spawn(async move { link.ask(&ask).await });
    false
}

#[tokio::test]
async fn a_redis_that_stands_still_costs_the_limit_once_and_late_answers_are_undone() {
    let redis = Redis::start();
    let one = Process::join_with(&redis.url(), Duration::from_millis(50));
    one.wait_until_there().await;
    let mut ask = transcript(1, &[10]);
    ask.charges = vec![charge(9, 100, 1)];
    // A busy machine may take longer than that for the first answer, so another one asks first.
    assert!(Process::join(&redis.url()).await.ask(&ask).await.is_reserved);
    one.wait_until_there().await;
    redis.signal("STOP");
    let asked = Instant::now();
    assert_eq!(one.link.ask(&ask).await, None);
    assert!(
        asked.elapsed() >= Duration::from_millis(50) && asked.elapsed() < Duration::from_millis(50) + SLACK
    );
    let asked = Instant::now();
    for _ in 0..100 {
        assert_eq!(one.link.ask(&ask).await, None);
    }
    assert!(asked.elapsed() < SLACK, "the others do not even try");
    redis.signal("CONT");
    one.wait_until_there().await;
    let other = Process::join(&redis.url()).await;
    ask.charges[0].estimate = 0;
    let started = Instant::now();
    while other.ask(&ask).await.standings[0].used != 1 {
        assert!(started.elapsed() < Duration::from_secs(30), "what came too late stays counted");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_redis_that_forgot_its_scripts_is_told_them_again() {
    let redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    one.ask(&transcript(1, &[10])).await;
    redis.command(&["SCRIPT", "FLUSH"]);
    assert!(!one.ask(&transcript(1, &[10, 11])).await.is_new);
}

#[tokio::test]
async fn a_replica_that_refuses_to_write_is_left_and_found_again_when_it_may() {
    let redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    one.ask(&transcript(1, &[10])).await;
    redis.command(&["REPLICAOF", "127.0.0.1", "1"]);
    until_lost(&one).await;
    redis.command(&["REPLICAOF", "NO", "ONE"]);
    one.wait_until_there().await;
    let started = Instant::now();
    while one.link.ask(&transcript(1, &[10, 11])).await.is_none() {
        assert!(started.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn until_lost(one: &Process) {
    let started = Instant::now();
    while one.link.ask(&transcript(1, &[10])).await.is_some() {
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}

#[tokio::test]
async fn who_starts_without_redis_finds_it_and_the_common_secret_later() {
    // It comes back with what it had, so whoever is there first finds the secret.
    let mut redis = Redis::with(&["--appendonly", "yes"]);
    let first = Process::join(&redis.url()).await;
    redis.kill();
    let late = Process::join_with(&redis.url(), super::PATIENT);
    assert_ne!(late.secret, first.secret);
    redis.start_again();
    late.wait_until_there().await;
    until(|| late.heard.lock().unwrap().contains(&loopbreaker_fleet::Heard::Secret(first.secret))).await;
}

#[tokio::test]
async fn while_a_slot_moves_nothing_begins_anew_and_then_all_of_it_is_there() {
    let mut cluster = Cluster::start();
    let one = Process::join(&cluster.url()).await;
    let mut ask = transcript(1, &[10]);
    ask.charges = vec![charge(9, 100, 7)];
    let first = one.ask(&ask).await;
    let key = "lb:{0000000000000001}:";
    let (from, to) = cluster.begin_to_move(key);
    assert_eq!(one.link.ask(&ask).await, None, "nobody can tell what counts now");
    assert!(one.link.is_there(), "other tenants are where they were");
    let mut elsewhere = transcript(2, &[20]);
    elsewhere.charges = vec![charge(9, 100, 1)];
    assert!(one.ask(&elsewhere).await.is_reserved);
    one.link.leave(Aftermath { tenant: 1, charges: vec![used(9, 100, 5)], ..Aftermath::default() });
    one.link.written().await;
    let slot = cluster.slot_of(key).to_string();
    let counted = cluster.at(to).command(&["CLUSTER", "COUNTKEYSINSLOT", &slot]);
    assert_eq!(counted, "0", "what is written there would be in the way of what comes");
    cluster.end_the_move(key, (from, to));
    ask.charges[0].estimate = 0;
    let started = Instant::now();
    let moved = loop {
        match one.link.ask(&ask).await {
            // What was used meanwhile is owed, and comes a moment later.
            Some(told) if told.standings[0].used == 12 => break told,
            _ => assert!(started.elapsed() < Duration::from_secs(30), "it does not come back whole"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!((moved.key, moved.is_new), (first.key, false));
}

#[tokio::test]
async fn a_primary_that_dies_is_followed_to_its_replica() {
    let mut cluster = Cluster::start();
    let one = Process::join(&cluster.url()).await;
    let first = one.ask(&transcript(1, &[10])).await;
    // MOVED: the other half of the cluster takes over without a failure.
    let key = "lb:{0000000000000001}:";
    let dead = cluster.primary_of(key).port;
    cluster.primary_of(key).kill();
    wait(|| {
        let alive = cluster.nodes.iter().find(|node| node.port != dead).unwrap();
        let nodes = alive.command(&["CLUSTER", "NODES"]);
        nodes.lines().filter(|line| line.contains("master") && !line.contains("fail")).count() == 3
    });
    let started = Instant::now();
    let again = loop {
        if let Some(told) = one.link.ask(&transcript(1, &[10, 11])).await {
            break told;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "the new primary is not found");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(again.key, first.key, "the replica has it all");
    assert!(Fleet::LIMIT <= Duration::from_millis(5));
}
