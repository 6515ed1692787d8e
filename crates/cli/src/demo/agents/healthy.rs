//! An agent that makes progress.

use loopbreaker_dialect::Dialect;

use crate::demo::script::{Agent, Voice, fails, says, works};

pub(super) fn agent() -> Agent {
    let test = r#"{"command":"cargo test"}"#;
    let edit = |old: &str, new: &str| format!(r#"{{"path":"src/lib.rs","old":"{old}","new":"{new}"}}"#);
    Agent {
        name: "healthy",
        task: "Make the tests of this crate pass.",
        voice: Voice { dialect: Dialect::Chat, model: "gpt-6-sol", streams: false },
        lesson: "runs the same test four times, but something was changed before each of them: that is work",
        steps: vec![
            works("read_file", r#"{"path":"src/lib.rs"}"#, "pub fn add(a: i32, b: i32) -> i32 { a - b }"),
            fails("bash", test, "test adds ... FAILED\n2 passed; 3 failed"),
            works("edit", edit("a - b", "a + b"), "edited src/lib.rs"),
            fails("bash", test, "test doubles ... FAILED\n4 passed; 1 failed"),
            works("edit", edit("x + 2", "x * 2"), "edited src/lib.rs"),
            fails("bash", test, "test doubles ... FAILED\n4 passed; 1 failed"),
            works("edit", edit("x * 2", "x.wrapping_mul(2)"), "edited src/lib.rs"),
            works("bash", test, "5 passed; 0 failed"),
            says("All five tests pass."),
        ],
    }
}
