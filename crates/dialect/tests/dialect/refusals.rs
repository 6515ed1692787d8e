//! Refusals in the shape of each dialect.

use std::fmt::Write as _;

use loopbreaker_dialect::{Dialect, Refusal, refusal};
use serde_json::Value;

use crate::golden;

fn status(refusal: Refusal) -> u16 {
    match refusal {
        Refusal::LoopDetected | Refusal::BudgetExceeded | Refusal::Paused => 429,
        Refusal::RejectedByOperator | Refusal::KillSwitch => 403,
        Refusal::UpstreamUnavailable => 503,
        Refusal::TooLarge => 413,
    }
}

#[test]
fn every_refusal_has_the_shape_of_its_dialect() {
    for dialect in Dialect::ALL {
        let mut text = String::new();
        for reason in Refusal::ALL {
            let body = refusal(Some(dialect), reason, status(reason), "`bash` gave the same 3 times:\n\"ö\"");
            serde_json::from_str::<Value>(&body).unwrap();
            writeln!(text, "{} {body}", status(reason)).unwrap();
        }
        for other in [400, 502] {
            writeln!(text, "{other} {}", refusal(Some(dialect), Refusal::LoopDetected, other, "x")).unwrap();
        }
        golden::check(dialect, "refusals", &text);
    }
}

#[test]
fn a_client_of_no_known_dialect_gets_the_most_common_shape() {
    let unknown = refusal(None, Refusal::KillSwitch, 403, "off");
    assert_eq!(unknown, refusal(Some(Dialect::Chat), Refusal::KillSwitch, 403, "off"));
    assert_eq!(
        unknown,
        r#"{"error":{"message":"off","type":"kill_switch","code":"kill_switch","param":null}}"#
    );
}
