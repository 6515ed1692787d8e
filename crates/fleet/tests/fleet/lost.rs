//! Redis has lost what it knew of a session: what those remember who ask holds, and is known to all again.

use loopbreaker_fleet::{After, Aftermath, Ask, Chance, RefusedBefore, Remembered};

use super::server::Redis;
use super::{Process, refused, transcript};

/// A request that shows one loop, from somebody who remembers this.
fn looping(links: &[u128], remembered: Remembered) -> Ask {
    Ask { is_loop: true, strikes: vec![(77, 1)], remembered, ..transcript(1, links) }
}

fn nothing() -> Remembered {
    Remembered::default()
}

fn struck(strikes: u32) -> Remembered {
    Remembered { refused: None, strikes: vec![(77, strikes)] }
}

fn refused_before(tip: u128, left_millis: u64, chance: Chance) -> Remembered {
    Remembered { refused: Some(RefusedBefore { tip, left_millis, chance }), strikes: Vec::new() }
}

#[tokio::test]
async fn a_refusal_holds_for_whoever_remembers_it_and_then_for_all() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    // The other one comes first, and remembers nothing.
    assert_eq!(other.ask(&looping(&[10, 11], nothing())).await.after, After::Judge);
    let remembers = looping(&[10, 11], refused_before(11, 40_000, Chance::Kept));
    for (process, ask) in [(&one, &remembers), (&other, &looping(&[10, 11], nothing()))] {
        let after = process.ask(ask).await.after;
        assert!(matches!(after, After::Refuse(left) if (1..=40_000).contains(&left)), "{after:?}");
    }
    assert_eq!(one.ask(&looping(&[10, 11, 12], nothing())).await.after, After::Judge, "it has changed");
}

#[tokio::test]
async fn the_higher_strike_wins_whoever_asks_first() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    assert_eq!(other.ask(&looping(&[10, 11], struck(2))).await.strikes, [2]);
    assert_eq!(one.ask(&looping(&[10, 11], struck(3))).await.strikes, [3]);
    assert_eq!(other.ask(&looping(&[10, 11], struck(2))).await.strikes, [3]);
}

#[tokio::test]
async fn a_last_chance_is_given_once_and_used_up_although_it_was_lost() {
    let redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    let kept = looping(&[10, 11], refused_before(11, 0, Chance::Kept));
    assert_eq!(one.ask(&kept).await.after, After::LetThrough);
    assert_eq!(one.ask(&kept).await.after, After::Judge, "it has had it");
    let next =
        |session: u128, chance| looping(&[session, session + 2], refused_before(session + 1, 0, chance));
    assert_eq!(one.ask(&next(20, Chance::Newest)).await.strikes, [u32::MAX]);
    assert_eq!(one.ask(&next(30, Chance::Past)).await.strikes, [1], "the session has gone on since");
    assert_eq!(one.ask(&next(40, Chance::Kept)).await.strikes, [1], "it changed before it had one");
}

#[tokio::test]
async fn what_was_before_another_refusal_is_over() {
    let redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    one.ask(&looping(&[10, 11], nothing())).await;
    one.link.leave(Aftermath { tenant: 1, refused: Some(refused(10, 11, 60_000)), ..Aftermath::default() });
    one.link.written().await;
    let outdated = Remembered { strikes: vec![(77, 5)], ..refused_before(12, 60_000, Chance::Kept) };
    let told = one.ask(&looping(&[10, 12], outdated)).await;
    assert_eq!((told.after, told.strikes), (After::Judge, vec![1]));
    assert_eq!(
        one.ask(&looping(&[10, 13], struck(5))).await.strikes,
        [1],
        "nor does it remember that refusal"
    );
    let same = Remembered { strikes: vec![(77, 5)], ..refused_before(11, 60_000, Chance::Kept) };
    assert_eq!(one.ask(&looping(&[10, 14], same)).await.strikes, [5], "these came after it");
}

#[tokio::test]
async fn every_loop_that_is_remembered_is_known_to_whoever_goes_on_from_an_answer() {
    let redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    let remembered = Remembered { refused: None, strikes: vec![(77, 2), (78, 1)] };
    let ask = Ask { thread: Some(900), remembered, ..transcript(1, &[10, 11]) };
    assert_eq!(one.ask(&ask).await.kept, [(77, 2), (78, 1)]);
}
