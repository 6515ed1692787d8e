//! Shared state on a Redis that is spoken to by TLS.

use super::{gateways, verdicts};
use crate::encrypted::Encrypted;
use crate::lab::{Bench, Lab, until};
use crate::talk::{looping_in_every_dialect, question};

#[test]
fn gateways_share_their_state_through_a_redis_whose_certificate_they_trust() {
    let redis = Encrypted::start();
    let (one, three) = (vec![Lab::new()], gateways(&format!("{}?{}", redis.url(), redis.trust()), ""));
    let path = looping_in_every_dialect(1)[0].0;
    let bodies: Vec<String> = (1..=8).map(|times| looping_in_every_dialect(times)[0].1.clone()).collect();
    let alone = verdicts(&one, path, &bodies);
    assert!(alone.iter().any(|(status, ..)| *status == 429), "{alone:?}");
    assert_eq!(verdicts(&three, path, &bodies), alone);
}

#[test]
fn a_certificate_that_is_not_trusted_is_told_with_what_to_do_and_stops_no_request() {
    let redis = Encrypted::start();
    let lab = Bench::new().config(&format!("state: \"{}\"", redis.url())).start();
    assert_eq!(lab.chat(&[], question("a")).status, 200);
    assert_eq!(lab.readiness()["degraded"], serde_json::json!(["state"]));
    until("it is told", || lab.log().contains("sslrootcert=/path/ca.pem"));

    let state = format!("state: \"{}?sslrootcert=/nowhere.pem\"", redis.url());
    let lab = Bench::new().config(&state).start();
    assert_eq!(lab.chat(&[], question("a")).status, 200);
    until("the missing file is told", || {
        lab.log().contains("the certificates of /nowhere.pem cannot be read")
    });
}
