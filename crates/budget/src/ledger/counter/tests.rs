//! What a counter holds, and for how long.

use proptest::prelude::*;

use super::{Counter, SLOTS};
use crate::{Charge, Limit, Quantity, Standing, Window};

fn sliding(seconds: u32) -> Counter {
    Counter::new(Window::Seconds(seconds))
}

fn standing(counter: &mut Counter, amount: u64, estimate: u64, now: u64) -> Standing {
    let limit = Limit { quantity: Quantity::Tokens, amount, window: Window::Seconds(60) };
    Counter::standing(Some(counter), &Charge { key: 0, limit, estimate }, 0, now)
}

#[test]
fn a_lone_amount_leaves_exactly_with_the_window() {
    let mut counter = sliding(60);
    counter.add(5, 1_234);
    assert_eq!(counter.used(61_233), 5);
    assert_eq!(counter.used(61_234), 0);
}

#[test]
fn amounts_of_one_slot_leave_with_the_last_of_them() {
    let mut counter = sliding(60);
    counter.add(5, 1_000);
    counter.add(3, 1_999);
    assert_eq!(counter.used(61_998), 8);
    assert_eq!(counter.used(61_999), 0);
}

#[test]
fn a_window_without_end_keeps_everything() {
    let mut counter = Counter::new(Window::Session);
    counter.add(5, 0);
    assert_eq!(counter.used(u64::MAX), 5);
}

#[test]
fn a_window_of_no_length_is_one_second() {
    let mut counter = sliding(0);
    counter.add(1, 0);
    assert_eq!((counter.used(999), counter.used(1_000)), (1, 0));
}

#[test]
fn after_a_small_jump_back_time_stands_still() {
    let mut counter = sliding(60);
    counter.add(5, 100_000);
    assert_eq!(counter.used(90_000), 5);
    assert_eq!(counter.add(1, 90_000), 100_000, "counted for the time that the clock has shown already");
    assert_eq!(counter.used(159_999), 6);
    assert_eq!(counter.used(160_000), 0);
}

#[test]
fn after_a_large_jump_back_everything_counts_for_one_more_window() {
    let mut counter = sliding(60);
    counter.add(5, 900_000);
    counter.add(2, 930_000);
    assert_eq!(counter.used(1_000), 7);
    assert_eq!(counter.used(60_999), 7);
    assert_eq!(counter.used(61_000), 0);
}

#[test]
fn what_has_left_cannot_be_taken_back() {
    let mut counter = sliding(60);
    let at = counter.add(5, 0);
    counter.add(7, 61_000);
    counter.take_back(5, at);
    assert_eq!(counter.used(61_000), 7);
}

#[test]
fn no_more_is_taken_back_than_was_counted() {
    let mut counter = sliding(60);
    let at = counter.add(5, 0);
    counter.add(7, 30_000);
    counter.take_back(50, at);
    assert_eq!(counter.used(30_000), 7);
}

#[test]
fn the_number_of_buckets_is_bounded() {
    for seconds in [1, 7, 60, 86_400] {
        let mut counter = sliding(seconds);
        let step = u64::from(seconds).div_ceil(10);
        let most = (0..20_000)
            .map(|count| {
                counter.add(1, count * step);
                counter.ring.as_ref().unwrap().buckets.len() as u64
            })
            .max();
        assert!(most <= Some(SLOTS + 1), "{seconds} s: {most:?}");
    }
}

#[test]
fn the_reset_is_when_enough_has_left() {
    let mut counter = sliding(60);
    for second in 0..10 {
        counter.add(10, second * 1_000);
    }
    assert_eq!(
        standing(&mut counter, 100, 1, 10_000).reset_seconds,
        50,
        "the first bucket makes room for one"
    );
    assert_eq!(standing(&mut counter, 100, 25, 10_000).reset_seconds, 52, "three buckets make room for 25");
    assert_eq!(standing(&mut counter, 200, 1, 10_000).reset_seconds, 50, "it fits, but then there is more");
    assert_eq!(standing(&mut counter, 100, 101, 10_000).reset_seconds, 60, "it never fits");
}

#[test]
fn what_was_taken_back_is_not_waited_for() {
    let mut counter = sliding(60);
    let at = counter.add(5, 0);
    counter.take_back(5, at);
    assert_eq!(standing(&mut counter, 5, 1, 30_000).reset_seconds, 0);
    counter.add(5, 30_000);
    assert_eq!(standing(&mut counter, 9, 1, 30_000).reset_seconds, 60);
}

#[test]
fn after_a_large_jump_back_stages_are_announced_again_one_window_later() {
    let mut counter = sliding(60);
    counter.add(5, 900_000);
    assert!(counter.announce(1, 900_000));
    counter.add(5, 1_000);
    assert!(!counter.announce(1, 1_000));
    assert!(counter.announce(1, 61_000));
}

#[test]
fn a_stage_is_announced_once_a_window() {
    let mut counter = sliding(60);
    assert!(counter.announce(1, 100_000));
    assert!(!counter.announce(1, 130_000));
    assert!(counter.announce(2, 130_000));
    assert!(!counter.announce(1, 189_999), "a lower stage is no news");
    assert!(counter.announce(1, 190_000));
}

#[test]
fn a_stage_is_announced_once_where_the_window_never_ends() {
    let mut counter = Counter::new(Window::Session);
    assert!(counter.announce(1, 0));
    assert!(!counter.announce(1, u64::MAX));
}

#[derive(Debug, Clone)]
enum Event {
    Add { wait: u64, amount: u64 },
    TakeBack { wait: u64, which: usize, amount: u64 },
}

fn event() -> impl Strategy<Value = Event> {
    let wait = prop_oneof![0_u64..50, 0_u64..5_000];
    prop_oneof![
        3 => (wait.clone(), 0_u64..100).prop_map(|(wait, amount)| Event::Add { wait, amount }),
        1 => (wait, any::<usize>(), 0_u64..100).prop_map(|(wait, which, amount)| Event::TakeBack { wait, which, amount }),
    ]
}

proptest! {
    #[test]
    fn it_holds_what_a_plain_list_holds_and_at_most_one_slot_longer(
        seconds in 1_u32..20,
        events in proptest::collection::vec(event(), 1..80),
    ) {
        let mut counter = sliding(seconds);
        let (window, width) = (u64::from(seconds) * 1_000, (u64::from(seconds) * 1_000).div_ceil(SLOTS));
        let mut list: Vec<(u64, u64)> = Vec::new();
        let mut now = 1_000_000;
        for event in events {
            match event {
                Event::Add { wait, amount } => {
                    now += wait;
                    prop_assert_eq!(counter.add(amount, now), now);
                    list.push((now, amount));
                }
                Event::TakeBack { wait, which, amount } if !list.is_empty() => {
                    now += wait;
                    let which = which % list.len();
                    let taken = amount.min(list[which].1);
                    list[which].1 -= taken;
                    counter.take_back(taken, list[which].0);
                }
                Event::TakeBack { .. } => {}
            }
            let held = |window| {
                list.iter().filter(|(time, _)| now - time < window).map(|(_, amount)| amount).sum::<u64>()
            };
            let used = counter.used(now);
            prop_assert!(held(window) <= used && used <= held(window + width), "{} of {}", used, held(window));
        }
    }

    #[test]
    fn a_jump_back_never_hands_out_anything(
        times in proptest::collection::vec((0_u64..200_000, 1_u64..10), 1..40),
        back in 0_u64..200_000,
    ) {
        let mut counter = sliding(30);
        let (mut latest, mut before) = (0, 0);
        for (time, amount) in times {
            counter.add(amount, time);
            if time >= latest {
                latest = time;
                before = counter.used(time);
            } else {
                before += amount;
            }
            prop_assert!(counter.used(latest.saturating_sub(back).min(time)) >= amount);
        }
        let now = counter.ring.as_ref().unwrap().buckets.back().unwrap().last;
        let used = counter.used(now);
        prop_assert!(used <= before);
        prop_assert_eq!(counter.used(now.saturating_sub(back)), used);
    }
}
