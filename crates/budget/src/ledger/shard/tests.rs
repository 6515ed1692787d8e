//! Who stays when a shard is full, and what a key costs.

use proptest::prelude::*;

use super::{CounterKey, Shard, Slot};
use crate::Window;

const MINUTE: Window = Window::Seconds(60);
const DAY: Window = Window::Seconds(86_400);

fn key(number: u64) -> CounterKey {
    [number, 0]
}

fn has(shard: &Shard, number: u64) -> bool {
    shard.find(key(number)).is_some()
}

fn bytes_per_counter(shard: &Shard) -> usize {
    (shard.slots.capacity() * size_of::<Slot>() + shard.index.allocation_size()) / shard.len()
}

#[test]
fn a_key_of_a_session_costs_about_64_bytes() {
    assert_eq!(size_of::<Slot>(), 48);
    let mut shard = Shard::new(100_000);
    let mut sizes = Vec::new();
    for number in 0..100_000 {
        shard.get_or_insert(key(number), Window::Session, 0).add(1, 0);
        if number % 1_000 == 999 {
            sizes.push(bytes_per_counter(&shard));
        }
    }
    let mean = sizes.iter().sum::<usize>() / sizes.len();
    assert!(mean <= 64 && sizes.iter().all(|size| *size <= 70), "{mean}: {sizes:?}");
}

#[test]
fn a_counter_that_holds_nothing_goes_before_one_that_was_used_longer_ago() {
    let mut shard = Shard::new(3);
    shard.get_or_insert(key(1), Window::Session, 0).add(1, 0);
    shard.get_or_insert(key(2), DAY, 0).add(1, 0);
    shard.get_or_insert(key(3), MINUTE, 30_000).add(1, 30_000);
    shard.get_or_insert(key(4), Window::Session, 90_000).add(1, 90_000);
    assert_eq!([1, 2, 3, 4].map(|number| has(&shard, number)), [true, true, false, true]);
    assert_eq!(shard.evicted(), 0);
}

#[test]
fn where_all_hold_something_the_one_that_was_used_longest_ago_goes() {
    let mut shard = Shard::new(3);
    shard.get_or_insert(key(1), DAY, 0).add(1, 0);
    shard.get_or_insert(key(2), Window::Session, 1_000).add(1, 1_000);
    shard.get_or_insert(key(3), MINUTE, 2_000).add(1, 2_000);
    assert!(shard.get(key(1), 3_000).is_some());
    shard.get_or_insert(key(4), MINUTE, 4_000).add(1, 4_000);
    assert_eq!([1, 2, 3, 4].map(|number| has(&shard, number)), [true, false, true, true]);
    assert_eq!(shard.evicted(), 1);
}

#[test]
fn memory_follows_what_is_in_use() {
    let mut shard = Shard::new(1_000);
    for number in 0..500 {
        shard.get_or_insert(key(number), MINUTE, 0).add(1, 0);
    }
    for number in 500..1_000 {
        shard.get_or_insert(key(number), MINUTE, 60_000).add(1, 60_000);
    }
    assert_eq!(
        (shard.len(), shard.slots.len()),
        (500, 500),
        "every new one took the place of an expired one"
    );
}

#[test]
fn windows_that_are_no_longer_used_leave_no_queues() {
    let mut shard = Shard::new(10);
    for number in 1..1_000 {
        let now = u64::from(number) * 10_000_000;
        shard.get_or_insert(key(1), Window::Seconds(number), now).add(1, now);
        assert!(shard.remove(key(1)));
    }
    assert_eq!(shard.queues.len(), 1);
}

#[test]
fn more_windows_than_queues_share_the_last_one() {
    let mut shard = Shard::new(1_000);
    for number in 1..=1_000 {
        shard.get_or_insert(key(number), Window::Seconds(number as u32 * 1_000), number).add(1, number);
    }
    assert_eq!((shard.queues.len(), shard.len()), (256, 1_000));
    shard.get_or_insert(key(0), Window::Session, 2_000).add(1, 2_000);
    assert_eq!((shard.len(), shard.evicted(), has(&shard, 0)), (1_000, 1, true));
}

#[test]
fn a_counter_that_was_dropped_is_known_by_its_generation() {
    let mut shard = Shard::new(10);
    let first = shard.get_or_insert(key(1), MINUTE, 0).generation;
    shard.remove(key(1));
    assert!(!shard.remove(key(1)));
    assert_ne!(shard.get_or_insert(key(1), MINUTE, 0).generation, first);
}

proptest! {
    #[test]
    fn the_last_used_stay_as_in_a_plain_list(uses in proptest::collection::vec((0_u64..24, any::<bool>()), 1..300)) {
        let mut shard = Shard::new(8);
        // The one that was used last at the end.
        let mut list: Vec<u64> = Vec::new();
        for (second, (number, removed)) in uses.into_iter().enumerate() {
            let now = second as u64 * 1_000;
            let known = list.iter().position(|other| *other == number);
            if let Some(at) = known {
                list.remove(at);
            }
            if removed && number % 3 == 0 {
                prop_assert_eq!(shard.remove(key(number)), known.is_some());
                continue;
            }
            if known.is_none() && list.len() == 8 {
                list.remove(0);
            }
            list.push(number);
            let window = [Window::Session, DAY][number as usize % 2];
            shard.get_or_insert(key(number), window, now).add(1, now);
            let kept: Vec<u64> = (0..24).filter(|number| has(&shard, *number)).collect();
            let mut expected = list.clone();
            expected.sort_unstable();
            prop_assert_eq!(kept, expected);
        }
    }
}
