//! Redis loses everything: what a gateway remembers of a session holds.

use super::{gateways, verdicts};
use crate::lab::{Lab, until};
use crate::redis::Redis;
use crate::talk::{Chat, looping, looping_in_every_dialect};

#[test]
fn a_gateway_whose_redis_loses_everything_all_the_time_judges_as_one_that_is_alone() {
    let redis = Redis::start();
    let (alone, labs) = ([Lab::new()], gateways(&redis.url(), ""));
    let dialects = looping_in_every_dialect(1).len();
    for dialect in 0..dialects {
        let path = looping_in_every_dialect(1)[dialect].0;
        let looping = |times: usize| looping_in_every_dialect(times)[dialect].1.clone();
        // Refused, once more as it is, then with another round: never a first time again.
        let bodies: Vec<String> = (1..=6).chain([6, 7, 8, 8, 9]).map(looping).collect();
        let expected = verdicts(&alone, path, &bodies);
        assert!(expected.iter().filter(|(status, ..)| *status == 429).count() > 3, "{path}: {expected:?}");
        let judged = bodies.iter().flat_map(|body| {
            redis.command(&["FLUSHALL"]);
            verdicts(&labs[..1], path, std::slice::from_ref(body))
        });
        assert_eq!(judged.collect::<Vec<_>>(), expected, "{path}");
    }
}

#[test]
fn a_refusal_and_strikes_that_one_gateway_remembers_hold_at_another_again() {
    let redis = Redis::start();
    let labs = gateways(&redis.url(), "");
    for times in 1..=6 {
        labs[0].chat(&[], looping("mend it", times));
    }
    let run = [("x-session-id", "run-17")];
    let long = Chat::new("fix it").again(5);
    let throttled = (200, "throttle".to_owned());
    assert_eq!(labs[0].verdict(&run, long.body()), throttled);
    redis.command(&["FLUSHALL"]);

    let refused = labs[0].chat(&[], looping("mend it", 6));
    let left: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!(refused.status == 429 && (1..=60).contains(&left), "{left}");
    until("the other one refuses it as well", || labs[1].chat(&[], looping("mend it", 6)).status == 429);

    // What a compaction has left shows fewer rounds than there were.
    let short = long.clone().without_history(6);
    assert_eq!(labs[0].verdict(&run, short.body()), throttled);
    assert_eq!(labs[1].verdict(&run, short.user("?").again(3).body()), throttled);
}
