//! Config files: they load whole or tell every problem with its place; a policy that is shown can be put back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopbreaker_config::Config;
use serde_json::json;

fuzz_target!(|text: &str| match Config::parse(text) {
    Ok(config) => {
        for policy in config.policies_in_force().iter() {
            let shown = policy.to_json();
            let text = json!({ "policies": [{ "id": shown["id"], "spec": shown["spec"] }] }).to_string();
            let again = Config::parse(&text).expect("what is shown can be put back");
            assert_eq!(again.policies, [policy.clone()], "{text}");
        }
    }
    Err(problems) => {
        assert!(!problems.is_empty());
        // In YAML a lone carriage return ends a line, too, and the end of the text is the beginning of another one.
        let lines = text.replace("\r\n", "\n").split(['\n', '\r']).count() as u64 + 1;
        for problem in problems {
            assert!((1..=lines).contains(&problem.line), "{problem} in {lines} lines");
            assert!(problem.column >= 1 && !problem.message.is_empty(), "{problem}");
        }
    }
});
