//! Reserving, settling and refunding, alone and at the same time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use loopbreaker::Timestamp;
use proptest::prelude::*;

use super::Ledger;
use crate::{Actual, Charge, Limit, Quantity, Reservation, Stages, Window};

const NOW: Timestamp = Timestamp::from_secs(1_000);

fn limit(quantity: Quantity, amount: u64, window: Window) -> Limit {
    Limit { quantity, amount, window }
}

fn requests(key: u128, amount: u64) -> Charge {
    Charge { key, limit: limit(Quantity::Requests, amount, Window::Seconds(60)), estimate: 1 }
}

fn money(key: u128, amount: u64, estimate: u64) -> Charge {
    Charge { key, limit: limit(Quantity::Money, amount, Window::Session), estimate }
}

fn used(ledger: &Ledger, charge: Charge, now: Timestamp) -> u64 {
    ledger.standings(&[charge], now)[0].used
}

fn costing(money_micros: u64) -> Actual {
    Actual { tokens: 0, money_micros }
}

#[test]
fn a_handle_can_be_shared_by_threads() {
    fn is_shared<T: Send + Sync + Clone>() {}
    is_shared::<Ledger>();
}

#[test]
fn sixty_four_threads_get_exactly_what_the_limit_allows() {
    let ledger = Ledger::new(100_000);
    let admitted = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                for _ in 0..100 {
                    if ledger.reserve(&[requests(1, 1_000)], NOW).is_ok() {
                        admitted.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(admitted.into_inner(), 1_000);
    assert_eq!(used(&ledger, requests(1, 1_000), NOW), 1_000);
}

#[test]
fn many_charges_are_all_reserved_or_none_in_any_order_by_any_thread() {
    let ledger = Ledger::new(100_000);
    // Six keys in different shards, of which the fourth is the scarcest.
    let charges: Vec<Charge> =
        (0..6).map(|key| requests(key * 0x1234_5678_9ABC, if key == 3 { 500 } else { 700 })).collect();
    let admitted = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..64 {
            let (mut charges, ledger, admitted) = (charges.clone(), &ledger, &admitted);
            scope.spawn(move || {
                charges.rotate_left(thread % 6);
                if thread % 2 == 0 {
                    charges.reverse();
                }
                for _ in 0..50 {
                    if let Ok(reservation) = ledger.reserve(&charges, NOW) {
                        // Some fail at the provider and are given back.
                        if admitted.fetch_add(1, Ordering::Relaxed) % 10 == 0 {
                            admitted.fetch_sub(1, Ordering::Relaxed);
                            ledger.refund(reservation, NOW);
                        }
                    }
                }
            });
        }
    });
    while ledger.reserve(&charges, NOW).is_ok() {
        admitted.fetch_add(1, Ordering::Relaxed);
    }
    let standings = ledger.standings(&charges, NOW);
    assert_eq!(standings.iter().map(|standing| standing.used).collect::<Vec<_>>(), [500; 6]);
    assert_eq!(admitted.into_inner(), 500);
}

#[test]
fn the_first_charge_that_does_not_fit_is_named_and_nothing_is_reserved() {
    let ledger = Ledger::new(1_000);
    let charges = [requests(1, 10), money(2, 100, 101), money(3, 0, 1)];
    let exceeded = ledger.reserve(&charges, NOW).unwrap_err();
    assert_eq!((exceeded.index, exceeded.standing.remaining), (1, 100));
    assert_eq!(ledger.check(&charges, NOW), Err(exceeded));
    assert!(ledger.is_empty(), "a refused request leaves no count behind");
}

#[test]
fn checking_reserves_nothing() {
    let ledger = Ledger::new(1_000);
    for _ in 0..10 {
        assert_eq!(ledger.check(&[requests(1, 1)], NOW), Ok(()));
    }
    assert!(ledger.is_empty());
}

#[test]
fn charges_of_one_request_to_one_count_are_added_up() {
    let ledger = Ledger::new(1_000);
    let twice = [money(1, 100, 60), money(1, 100, 60)];
    assert_eq!(ledger.check(&twice, NOW).unwrap_err().index, 1);
    assert_eq!(ledger.reserve(&twice, NOW).unwrap_err().standing.used, 60);
    assert!(ledger.reserve(&[money(1, 100, 50), money(1, 100, 50)], NOW).is_ok());
}

#[test]
fn one_key_may_have_several_limits() {
    let ledger = Ledger::new(1_000);
    let of = |quantity, window| Charge { key: 1, limit: limit(quantity, 100, window), estimate: 1 };
    let charges = [
        of(Quantity::Requests, Window::Seconds(60)),
        of(Quantity::Requests, Window::Seconds(3_600)),
        of(Quantity::Tokens, Window::Seconds(60)),
        of(Quantity::Money, Window::Seconds(60)),
        of(Quantity::Money, Window::Session),
    ];
    let reservation = ledger.reserve(&charges, NOW).unwrap();
    ledger.settle(reservation, &Actual { tokens: 20, money_micros: 30 }, NOW);
    let used: Vec<u64> = ledger.standings(&charges, NOW).iter().map(|standing| standing.used).collect();
    assert_eq!(used, [1, 1, 20, 30, 30]);
}

#[test]
fn settling_takes_back_what_was_estimated_too_high() {
    let ledger = Ledger::new(1_000);
    let charge = money(1, 100, 80);
    let reservation = ledger.reserve(&[charge], NOW).unwrap();
    ledger.settle(reservation, &costing(30), NOW);
    assert_eq!(used(&ledger, charge, NOW), 30);
}

#[test]
fn settling_counts_what_was_estimated_too_low_and_the_next_request_is_refused() {
    let ledger = Ledger::new(1_000);
    let charge = money(1, 100, 10);
    let reservation = ledger.reserve(&[charge], NOW).unwrap();
    ledger.settle(reservation, &costing(150), NOW);
    let exceeded = ledger.check(&[Charge { estimate: 0, ..charge }], NOW).unwrap_err();
    assert_eq!((exceeded.standing.used, exceeded.standing.remaining), (150, 0));
}

#[test]
fn a_refund_takes_back_the_request_too() {
    let ledger = Ledger::new(1_000);
    let charges = [requests(1, 5), money(2, 100, 10)];
    let reservation = ledger.reserve(&charges, NOW).unwrap();
    ledger.refund(reservation, NOW);
    assert!(ledger.standings(&charges, NOW).iter().all(|standing| standing.used == 0));
}

#[test]
fn a_reservation_that_is_dropped_stays_counted_at_its_estimate() {
    let ledger = Ledger::new(1_000);
    let charges = [money(1, 100, 10), Charge { estimate: 10, ..requests(2, 100) }];
    drop(ledger.reserve(&charges, NOW).unwrap());
    let later = Timestamp::from_secs(1_060);
    assert_eq!(charges.map(|charge| used(&ledger, charge, NOW)), [10, 10]);
    assert_eq!(charges.map(|charge| used(&ledger, charge, later)), [10, 0], "it left with the window");
}

#[test]
fn a_slow_answer_counts_its_excess_from_its_end_on() {
    let ledger = Ledger::new(1_000);
    let charge = Charge { key: 1, limit: limit(Quantity::Tokens, 1_000, Window::Seconds(60)), estimate: 100 };
    let reservation = ledger.reserve(&[charge], NOW).unwrap();
    let end = Timestamp::from_secs(1_600);
    ledger.settle(reservation, &Actual { tokens: 950, money_micros: 0 }, end);
    assert_eq!(used(&ledger, charge, end), 850);
    assert_eq!(used(&ledger, charge, Timestamp::from_secs(1_660)), 0);
}

#[test]
fn a_refund_after_the_window_gives_nothing_to_later_requests() {
    let ledger = Ledger::new(1_000);
    let charge = requests(1, 5);
    let reservation = ledger.reserve(&[charge], NOW).unwrap();
    let later = Timestamp::from_secs(1_060);
    drop(ledger.reserve(&[charge], later).unwrap());
    ledger.refund(reservation, later);
    assert_eq!(used(&ledger, charge, later), 1);
}

#[test]
fn a_count_that_was_evicted_in_between_is_settled_in_full() {
    let sliding = Charge { limit: limit(Quantity::Money, 100, Window::Seconds(60)), ..money(1, 100, 10) };
    for charge in [money(1, 100, 10), sliding] {
        let ledger = Ledger::new(1);
        let reservation = ledger.reserve(&[charge], NOW).unwrap();
        drop(ledger.reserve(&[money(2, 100, 10)], NOW).unwrap());
        assert_eq!((ledger.len(), ledger.evicted()), (1, 1));
        ledger.settle(reservation, &costing(4), NOW);
        assert_eq!(used(&ledger, charge, NOW), 4);
    }
}

#[test]
fn a_reservation_from_before_a_fresh_budget_takes_nothing_from_it() {
    let ledger = Ledger::new(1_000);
    let charge = money(1, 100, 60);
    let before = ledger.reserve(&[charge], NOW).unwrap();
    assert!(ledger.forget(charge.key, charge.limit));
    assert!(!ledger.forget(charge.key, charge.limit));
    drop(ledger.reserve(&[charge], NOW).unwrap());
    ledger.settle(before, &costing(5), NOW);
    assert_eq!(used(&ledger, charge, NOW), 65);
}

#[test]
fn a_key_that_is_only_refused_is_not_forgotten() {
    let ledger = Ledger::new(10);
    let spent = money(0, 10, 10);
    drop(ledger.reserve(&[spent], NOW).unwrap());
    for key in 1..100 {
        assert!(ledger.reserve(&[spent], NOW).is_err());
        drop(ledger.reserve(&[money(key, 10, 1)], NOW).unwrap());
    }
    assert_eq!(ledger.len(), 10);
}

#[test]
fn the_number_of_counts_is_bounded() {
    for max_keys in [0, 1, 1_000, 5_000, 50_000] {
        let ledger = Ledger::new(max_keys);
        for key in 0..60_000_u128 {
            drop(ledger.reserve(&[money(key.wrapping_mul(0x9E37_79B9_7F4A_7C15), 10, 1)], NOW).unwrap());
        }
        let len = ledger.len();
        assert!(len <= max_keys.max(1) && len * 100 >= max_keys * 99, "{len} of {max_keys}");
    }
}

#[test]
fn a_stage_is_announced_by_the_request_or_the_settlement_that_crosses_it() {
    let ledger = Ledger::new(1_000);
    let stages = Stages::new(&[0.5, 0.8, 1.0]).unwrap();
    let charge = money(1, 100, 60);
    let announced = || ledger.announce(&charge, &stages, NOW).map(|stage| stage.to_string());
    assert_eq!(announced(), None, "nothing is counted");
    let reservation = ledger.reserve(&[charge], NOW).unwrap();
    assert_eq!(announced().as_deref(), Some("50%"));
    assert_eq!(announced(), None);
    ledger.settle(reservation, &costing(120), NOW);
    assert_eq!(announced().as_deref(), Some("100%"), "only the highest of several");
    assert_eq!(announced(), None);
}

#[test]
fn an_error_says_what_to_do() {
    let problem = |charge| Ledger::new(1).check(&[charge], NOW).unwrap_err().to_string();
    assert_eq!(problem(money(1, 5, 6)), "0 of 5 are used; raise the limit, or ask for less");
    assert_eq!(problem(requests(1, 0)), "0 of 0 are used; wait 60 s, or raise the limit");
}

#[derive(Debug, Clone)]
enum Event {
    Reserve { estimates: [u64; 3] },
    Settle { which: usize, actual: u64 },
    Refund { which: usize },
    Wait { millis: u64 },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => [0_u64..60, 0_u64..60, 0_u64..60].prop_map(|estimates| Event::Reserve { estimates }),
        2 => (any::<usize>(), 0_u64..120).prop_map(|(which, actual)| Event::Settle { which, actual }),
        1 => any::<usize>().prop_map(|which| Event::Refund { which }),
        2 => prop_oneof![0_u64..100, 0_u64..20_000].prop_map(|millis| Event::Wait { millis }),
    ]
}

/// A plain list of what was counted for one key, and when.
#[derive(Debug, Default)]
struct Listed(Vec<(u64, u64)>);

impl Listed {
    fn within(&self, now: u64, window: u64) -> u64 {
        self.0.iter().filter(|(time, _)| now - time < window).map(|(_, amount)| amount).sum()
    }
}

proptest! {
    #[test]
    fn no_window_ever_lets_in_more_than_its_limit(events in proptest::collection::vec(event(), 1..120)) {
        const AMOUNT: u64 = 100;
        let windows = [Window::Seconds(10), Window::Seconds(60), Window::Session];
        let charge = |which: usize, estimate| Charge {
            key: which as u128 % 2,
            limit: limit(Quantity::Tokens, AMOUNT, windows[which]),
            estimate,
        };
        let length = |which: usize| windows[which].millis().unwrap_or(u64::MAX);
        let longest = |which: usize| length(which).saturating_add(length(which) / 60 + 1);
        let ledger = Ledger::new(1_000);
        let mut lists: [Listed; 3] = Default::default();
        // Where in the three lists each open reservation is, and what was estimated.
        let mut open: Vec<(Reservation, [usize; 3])> = Vec::new();
        let mut now = 0;
        for event in events {
            let at = Timestamp::from_millis(now);
            match event {
                Event::Reserve { estimates } => {
                    let charges = [0, 1, 2].map(|which| charge(which, estimates[which]));
                    let fits = |longer: bool| (0..3).all(|which| {
                        let window = if longer { longest(which) } else { length(which) };
                        let used = lists[which].within(now, window);
                        used < AMOUNT && used + estimates[which] <= AMOUNT
                    });
                    match ledger.reserve(&charges, at) {
                        Ok(reservation) => {
                            prop_assert!(fits(false), "too much was let in");
                            let places = [0, 1, 2].map(|which| {
                                lists[which].0.push((now, estimates[which]));
                                lists[which].0.len() - 1
                            });
                            open.push((reservation, places));
                        }
                        Err(_) => prop_assert!(!fits(true), "it would have fitted"),
                    }
                }
                Event::Settle { which, actual } if !open.is_empty() => {
                    let (reservation, places) = open.swap_remove(which % open.len());
                    ledger.settle(reservation, &Actual { tokens: actual, money_micros: 0 }, at);
                    for (list, place) in lists.iter_mut().zip(places) {
                        let estimate = list.0[place].1;
                        list.0[place].1 = estimate.min(actual);
                        list.0.push((now, actual.saturating_sub(estimate)));
                    }
                }
                Event::Refund { which } if !open.is_empty() => {
                    let (reservation, places) = open.swap_remove(which % open.len());
                    ledger.refund(reservation, at);
                    for (list, place) in lists.iter_mut().zip(places) {
                        list.0[place].1 = 0;
                    }
                }
                Event::Settle { .. } | Event::Refund { .. } => {}
                Event::Wait { millis } => now += millis,
            }
            for (which, list) in lists.iter().enumerate() {
                let used = used(&ledger, charge(which, 0), Timestamp::from_millis(now));
                let (least, most) = (list.within(now, length(which)), list.within(now, longest(which)));
                prop_assert!(least <= used && used <= most, "{} to {}, not {}", least, most, used);
            }
        }
    }

    #[test]
    fn after_the_reset_a_charge_fits(
        charges in proptest::collection::vec((1_u64..40, 0_u64..3_000), 1..40),
        estimate in 1_u64..=100,
    ) {
        let ledger = Ledger::new(1_000);
        let of = |estimate| Charge { key: 9, limit: limit(Quantity::Tokens, 100, Window::Seconds(30)), estimate };
        let mut now = 0;
        for (amount, wait) in charges {
            now += wait;
            let reserved = ledger.reserve(&[of(amount)], Timestamp::from_millis(now)).is_ok();
            prop_assert!(reserved || used(&ledger, of(0), Timestamp::from_millis(now)) + amount > 100);
        }
        if let Err(exceeded) = ledger.check(&[of(estimate)], Timestamp::from_millis(now)) {
            let reset = exceeded.standing.reset_seconds;
            prop_assert!((1..=30).contains(&reset));
            let later = |seconds: u64| Timestamp::from_millis(now + seconds * 1_000);
            prop_assert!(ledger.check(&[of(estimate)], later(reset - 1)).is_err(), "not a second too long");
            prop_assert!(ledger.check(&[of(estimate)], later(reset)).is_ok());
        }
    }
}
