//! Decision logs: what is taken can be written and read again, and is the same; what is refused is refused by name.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopbreaker_record::{DecisionLog, Rejection};

fuzz_target!(|data: &[u8]| match DecisionLog::parse(data) {
    Ok(log) => {
        let written = serde_json::to_vec(&log).expect("a log can be written");
        let again = DecisionLog::parse(&written).expect("what was taken is taken again");
        assert_eq!(again, log);
        assert_eq!(again.content().as_bytes(), log.content().as_bytes());
    }
    Err(rejection) => {
        let answer = rejection.answer();
        assert!(answer["error"].is_string() && rejection.status() >= 400);
        if let Rejection::Invalid(violations) = &rejection {
            assert!(!violations.is_empty() && violations.iter().all(|wrong| !wrong.message.is_empty()));
        }
    }
});
