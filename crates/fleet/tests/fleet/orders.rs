//! What is decided at one process holds at the others.

use loopbreaker_fleet::{Ask, Decision, Heard, PauseState, Place};

use super::server::Redis;
use super::{Process, transcript, until};

const SESSION: &str = "lb-0000000000000000";

#[tokio::test]
async fn a_pause_holds_elsewhere_and_what_was_held_is_approved_by_resuming() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    one.fleet.decide(
        1,
        SESSION,
        Decision::Pause { millis: 60_000, held: None, ago: 0 },
        Some("pause it".to_owned()),
    );
    until(|| has_heard(&other, "pause it")).await;
    let told = other.ask(&transcript(1, &[10])).await;
    assert!(told.pause.is_some_and(|pause| !pause.is_own && matches!(pause.state, PauseState::Waiting(_))));
    assert!(!told.is_approved);
    one.fleet.decide(1, SESSION, Decision::Resume, Some("resume it".to_owned()));
    until(|| has_heard(&other, "resume it")).await;
    let told = one.ask(&transcript(1, &[10])).await;
    assert!(told.is_approved, "a client that comes back goes on");
    assert!(matches!(told.pause.unwrap().state, PauseState::Ended(_)));
    assert!(!one.ask(&transcript(1, &[10, 11])).await.is_approved);
    assert!(!has_heard(&one, "pause it"), "nobody hears himself");
}

#[tokio::test]
async fn the_transcript_that_a_session_was_paused_for_is_approved_by_resuming_and_only_for_that_session() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    one.ask(&transcript(1, &[10])).await;
    one.fleet.decide(1, SESSION, Decision::Pause { millis: 60_000, held: Some(10), ago: 0 }, None);
    one.fleet.decide(1, SESSION, Decision::Resume, Some("resume it".to_owned()));
    until(|| has_heard(&other, "resume it")).await;
    assert!(other.ask(&transcript(1, &[10])).await.is_approved);
    let place = Place::Named { key: 77, name: "another".to_owned() };
    let same_words = Ask { place, ..transcript(1, &[10]) };
    assert!(!other.ask(&same_words).await.is_approved);
}

#[tokio::test]
async fn what_was_said_does_not_stay_for_ever() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    one.fleet.decide(1, SESSION, Decision::Resume, Some("resume it".to_owned()));
    until(|| has_heard(&other, "resume it")).await;
    until(|| redis.command(&["TTL", "{lb}:orders"]).parse::<i64>().is_ok_and(|lasts| lasts > 0)).await;
}

/// What a process has heard of orders: their words, and whether they are from before its time.
fn orders(process: &Process) -> Vec<(String, bool)> {
    let heard = process.heard.lock().unwrap();
    let orders = heard.iter().filter_map(|heard| match heard {
        Heard::Order { message, is_old, .. } => Some((message.clone(), *is_old)),
        Heard::Setting { .. } | Heard::Secret(_) => None,
    });
    orders.collect()
}

/// Whether a process has heard this as it was said.
fn has_heard(process: &Process, message: &str) -> bool {
    orders(process).contains(&(message.to_owned(), false))
}

#[tokio::test]
async fn a_rejection_is_told_to_one_call() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    one.fleet.decide(1, SESSION, Decision::Pause { millis: 60_000, held: None, ago: 0 }, None);
    one.fleet.decide(1, SESSION, Decision::Reject("enough".to_owned()), Some("no".to_owned()));
    until(|| has_heard(&other, "no")).await;
    let first = other.ask(&transcript(1, &[10])).await.pause;
    assert_eq!(first.map(|pause| pause.state), Some(PauseState::Rejected("enough".to_owned())));
    let second = one.ask(&transcript(1, &[10])).await.pause;
    assert!(matches!(second.unwrap().state, PauseState::Ended(_)));
}

#[tokio::test]
async fn decisions_of_the_time_without_redis_come_before_those_that_were_made_later() {
    let mut redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    for turn in 0..5_u32 {
        redis.kill();
        let pause = Decision::Pause { millis: 60_000, held: None, ago: 0 };
        one.fleet.decide(1, SESSION, pause, Some(format!("pause {turn}")));
        redis.start_again();
        let resumed = format!("resume {turn}");
        one.fleet.decide(1, SESSION, Decision::Resume, Some(resumed.clone()));
        until(|| has_heard(&other, &resumed)).await;
        // Its link may not have noticed yet that there was another Redis before.
        let told = loop {
            if let Some(told) = other.link.ask(&transcript(1, &[10])).await {
                break told;
            }
            other.wait_until_there().await;
        };
        assert!(matches!(told.pause.unwrap().state, PauseState::Ended(_)), "turn {turn}");
    }
}

#[tokio::test]
async fn a_pause_that_is_told_late_does_not_undo_what_was_decided_since() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    let pause = |ago| Decision::Pause { millis: 60_000, held: None, ago };
    one.fleet.decide(1, SESSION, pause(0), None);
    one.fleet.decide(1, SESSION, Decision::Resume, None);
    one.fleet.decide(1, SESSION, pause(60_000), Some("it was paused".to_owned()));
    one.fleet.decide(1, SESSION, Decision::Say, Some("that is all".to_owned()));
    until(|| has_heard(&other, "that is all")).await;
    assert!(!has_heard(&other, "it was paused"));
    let told = other.ask(&transcript(1, &[10])).await.pause;
    assert!(matches!(told.unwrap().state, PauseState::Ended(_)));
}

#[tokio::test]
async fn what_is_no_text_makes_nobody_deaf() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    let garbage =
        r"return redis.call('XADD', '{lb}:orders', '*', 'from', '1', 'body', '\255\254', '\255', 'x')";
    redis.command(&["EVAL", garbage, "0"]);
    one.fleet.decide(1, SESSION, Decision::Say, Some("still there".to_owned()));
    until(|| has_heard(&other, "still there")).await;
}

#[tokio::test]
async fn who_starts_later_hears_of_earlier_orders_as_old_ones() {
    let redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    let witness = Process::join(&redis.url()).await;
    one.fleet.decide(1, SESSION, Decision::Say, Some("look at the log".to_owned()));
    until(|| !witness.heard.lock().unwrap().is_empty()).await;
    let late = Process::join(&redis.url()).await;
    until(|| orders(&late) == [("look at the log".to_owned(), true)]).await;
}

#[tokio::test]
async fn a_session_s_name_tells_whose_it_is() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    one.fleet.call(7, "acme");
    let started = std::time::Instant::now();
    while other.fleet.tenants_of(7).await != ["acme"] {
        assert!(started.elapsed().as_secs() < 30);
    }
    assert!(other.fleet.tenants_of(8).await.is_empty());
}

#[tokio::test]
async fn the_newest_of_a_setting_is_known_to_all_and_to_whoever_starts_later_and_is_told_once() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    for value in ["first", "second"] {
        one.fleet.publish("policy/a", value.to_owned());
    }
    until(|| settings(&other).last().is_some_and(|(_, value)| value == "second")).await;
    other.fleet.publish("policy/a", "third".to_owned());
    until(|| settings(&one).last().is_some_and(|(_, value)| value == "third")).await;
    let late = Process::join(&redis.url()).await;
    until(|| settings(&late) == [("policy/a".to_owned(), "third".to_owned())]).await;
    // The first two may have been written as one, and nobody tells what it was told.
    let told: u32 = redis.command(&["XLEN", "{lb}:orders"]).parse().unwrap();
    assert!((2..=3).contains(&told), "{told}");
}

#[tokio::test]
async fn a_setting_that_redis_has_lost_is_brought_back_and_stays_below_a_newer_one() {
    let mut redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    one.fleet.publish("a", "kept".to_owned());
    one.fleet.publish("b", "old".to_owned());
    until(|| settings(&other).len() >= 2).await;
    redis.kill();
    other.fleet.publish("b", "new".to_owned());
    redis.start_again();
    until(|| settings(&one).last().is_some_and(|(name, value)| name == "b" && value == "new")).await;
    let late = Process::join(&redis.url()).await;
    let all = [("a", "kept"), ("b", "new")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    until(|| settings(&late).iter().filter(|heard| all.contains(heard)).count() == 2).await;
}

/// What a process has heard of settings.
fn settings(process: &Process) -> Vec<(String, String)> {
    let heard = process.heard.lock().unwrap();
    let settings = heard.iter().filter_map(|heard| match heard {
        Heard::Setting { name, value } => Some((name.clone(), value.clone())),
        Heard::Order { .. } | Heard::Secret(_) => None,
    });
    settings.collect()
}
