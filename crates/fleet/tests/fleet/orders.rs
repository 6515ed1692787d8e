//! What is decided at one process holds at the others.

use loopbreaker_fleet::{Decision, Heard, PauseState};

use super::server::Redis;
use super::{Process, transcript, until};

const SESSION: &str = "lb-0000000000000000";

#[tokio::test]
async fn a_pause_holds_elsewhere_and_what_was_held_is_approved_by_resuming() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    one.fleet.decide(1, SESSION, Decision::Pause(60_000), Some("pause it".to_owned()));
    until(|| other.heard.lock().unwrap().contains(&order("pause it"))).await;
    let told = other.ask(&transcript(1, &[10])).await;
    assert!(told.pause.is_some_and(|pause| !pause.is_own && matches!(pause.state, PauseState::Waiting(_))));
    assert!(!told.is_approved);
    one.fleet.decide(1, SESSION, Decision::Resume, Some("resume it".to_owned()));
    until(|| other.heard.lock().unwrap().contains(&order("resume it"))).await;
    let told = one.ask(&transcript(1, &[10])).await;
    assert_eq!((told.pause, told.is_approved), (None, true), "a client that comes back goes on");
    assert!(!one.ask(&transcript(1, &[10, 11])).await.is_approved);
    assert!(
        !one.heard.lock().unwrap().iter().any(|heard| *heard == order("pause it")),
        "nobody hears himself"
    );
}

fn order(message: &str) -> Heard {
    Heard::Order { message: message.to_owned(), is_old: false }
}

#[tokio::test]
async fn a_rejection_is_told_to_one_call() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    one.fleet.decide(1, SESSION, Decision::Pause(60_000), None);
    one.fleet.decide(1, SESSION, Decision::Reject("enough".to_owned()), Some("no".to_owned()));
    until(|| other.heard.lock().unwrap().contains(&order("no"))).await;
    let first = other.ask(&transcript(1, &[10])).await.pause;
    assert_eq!(first.map(|pause| pause.state), Some(PauseState::Rejected("enough".to_owned())));
    assert_eq!(one.ask(&transcript(1, &[10])).await.pause, None);
}

#[tokio::test]
async fn who_starts_later_hears_of_earlier_orders_as_old_ones() {
    let redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    let witness = Process::join(&redis.url()).await;
    one.fleet.decide(1, SESSION, Decision::Say, Some("look at the log".to_owned()));
    until(|| !witness.heard.lock().unwrap().is_empty()).await;
    let late = Process::join(&redis.url()).await;
    let old = Heard::Order { message: "look at the log".to_owned(), is_old: true };
    until(|| late.heard.lock().unwrap().contains(&old)).await;
}

#[tokio::test]
async fn a_session_s_name_tells_whose_it_is() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    one.fleet.call(7, 42);
    let started = std::time::Instant::now();
    while other.fleet.tenants_of(7).await != [42] {
        assert!(started.elapsed().as_secs() < 30);
    }
    assert!(other.fleet.tenants_of(8).await.is_empty());
}
