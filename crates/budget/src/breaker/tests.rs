//! When the breaker opens, and who gets through.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use loopbreaker::Timestamp;
use proptest::prelude::*;

use super::{Breaker, Open};

fn at(second: u64) -> Timestamp {
    Timestamp::from_secs(second)
}

fn breaker() -> Breaker {
    Breaker::new(3, Duration::from_secs(30))
}

/// A breaker that opened at second zero.
fn opened() -> Breaker {
    let breaker = breaker();
    fail(&breaker, 3, 0);
    breaker
}

fn fail(breaker: &Breaker, times: usize, second: u64) {
    for _ in 0..times {
        breaker.failure(breaker.allow(at(second)).unwrap(), at(second));
    }
}

#[test]
fn it_opens_after_so_many_failures_in_a_row() {
    let breaker = breaker();
    fail(&breaker, 2, 0);
    assert!(breaker.is_closed());
    fail(&breaker, 1, 0);
    assert!(!breaker.is_closed());
    assert_eq!(breaker.allow(at(0)).unwrap_err(), Open { retry_after_secs: 30 });
}

#[test]
fn a_success_in_between_starts_the_count_again() {
    let breaker = breaker();
    fail(&breaker, 2, 0);
    breaker.success(breaker.allow(at(1)).unwrap(), at(1));
    fail(&breaker, 2, 2);
    assert!(breaker.is_closed());
}

#[test]
fn an_answer_that_says_nothing_neither_counts_nor_clears() {
    let breaker = breaker();
    fail(&breaker, 2, 0);
    breaker.release(breaker.allow(at(1)).unwrap(), at(1));
    assert!(breaker.is_closed());
    fail(&breaker, 1, 2);
    assert!(!breaker.is_closed());
}

#[test]
fn it_says_how_long_to_wait_in_whole_seconds() {
    let breaker = opened();
    let wait = |millis| breaker.allow(Timestamp::from_millis(millis)).unwrap_err().retry_after_secs;
    assert_eq!([wait(1), wait(1_000), wait(29_001), wait(29_999)], [30, 29, 1, 1]);
}

#[test]
fn one_probe_at_a_time_is_let_through() {
    let breaker = opened();
    let probe = breaker.allow(at(30)).unwrap();
    assert!(probe.is_probe());
    assert_eq!(breaker.allow(at(31)).unwrap_err(), Open { retry_after_secs: 1 });
    breaker.success(probe, at(32));
    assert!(!breaker.allow(at(32)).unwrap().is_probe());
}

#[test]
fn a_probe_that_fails_opens_it_again() {
    let breaker = opened();
    breaker.failure(breaker.allow(at(30)).unwrap(), at(35));
    assert_eq!(breaker.allow(at(36)).unwrap_err(), Open { retry_after_secs: 29 });
    assert!(breaker.allow(at(65)).unwrap().is_probe());
}

#[test]
fn a_lost_probe_makes_room_for_the_next() {
    let breaker = opened();
    let lost = breaker.allow(at(30)).unwrap();
    assert!(breaker.allow(at(59)).is_err());
    let next = breaker.allow(at(60)).unwrap();
    breaker.success(lost, at(61));
    assert!(!breaker.is_closed(), "the lost one came back too late to say anything");
    breaker.success(next, at(62));
    assert!(breaker.is_closed());
}

#[test]
fn a_probe_that_says_nothing_makes_room_at_once() {
    let breaker = opened();
    breaker.release(breaker.allow(at(30)).unwrap(), at(31));
    assert!(breaker.allow(at(31)).unwrap().is_probe());
}

#[test]
fn outcomes_from_before_do_not_count() {
    let breaker = breaker();
    let (slow_failure, slow_success) = (breaker.allow(at(0)).unwrap(), breaker.allow(at(0)).unwrap());
    fail(&breaker, 3, 1);
    breaker.success(slow_success, at(2));
    assert!(!breaker.is_closed());
    breaker.success(breaker.allow(at(31)).unwrap(), at(31));
    fail(&breaker, 2, 32);
    breaker.failure(slow_failure, at(33));
    assert!(breaker.is_closed());
}

#[test]
fn a_clock_that_jumps_back_does_not_keep_it_open() {
    let breaker = breaker();
    fail(&breaker, 3, 1_000_000);
    assert_eq!(breaker.allow(at(10)).unwrap_err(), Open { retry_after_secs: 30 });
    assert!(breaker.allow(at(40)).unwrap().is_probe());
}

#[test]
fn no_failures_at_all_means_one() {
    let breaker = Breaker::new(0, Duration::ZERO);
    fail(&breaker, 1, 0);
    assert!(breaker.allow(at(0)).unwrap().is_probe());
}

#[test]
fn sixty_four_threads_get_one_probe() {
    let breaker = opened();
    let probes = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                if breaker.clone().allow(at(30)).is_ok() {
                    probes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(probes.into_inner(), 1);
}

proptest! {
    #[test]
    fn it_does_what_a_plain_description_says(
        events in proptest::collection::vec((0_u64..20, 0_u8..4), 1..200),
    ) {
        let breaker = breaker();
        // The description: failures in a row, and since when it is open.
        let (mut failures, mut open_until): (u32, Option<u64>) = (0, None);
        let mut now = 0;
        for (wait, outcome) in events {
            now += wait;
            let expected = match open_until {
                None => Some(false),
                Some(until) if now >= until => Some(true),
                Some(_) => None,
            };
            let permit = breaker.allow(at(now));
            prop_assert_eq!(permit.as_ref().ok().map(super::Permit::is_probe), expected);
            let Ok(permit) = permit else { continue };
            match outcome {
                0 => {
                    breaker.success(permit, at(now));
                    (failures, open_until) = (0, None);
                }
                1 | 2 => {
                    breaker.failure(permit, at(now));
                    failures += 1;
                    if failures >= 3 {
                        open_until = Some(now + 30);
                    }
                }
                _ => {
                    breaker.release(permit, at(now));
                    open_until = open_until.map(|_| now);
                }
            }
            prop_assert_eq!(breaker.is_closed(), open_until.is_none());
        }
    }
}
