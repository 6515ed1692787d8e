//! An agent that does the same again and hopes.

use super::script::{Agent, fails, works};

pub(super) fn agent() -> Agent {
    let mut steps = vec![
        works("read_file", r#"{"path":"README.md"}"#, "# shop\nRun `make deploy`."),
        works("bash", r#"{"command":"git status"}"#, "nothing to commit, working tree clean"),
    ];
    for _ in 0..10 {
        let denied = "make: *** [deploy] Error 1: DEPLOY_TOKEN is not set";
        steps.push(fails("bash", r#"{"command":"make deploy"}"#, denied));
    }
    Agent {
        name: "exact-loop",
        about: "runs a failing deployment again and again",
        lesson: "the same call, the same error, nothing changed in between",
        steps,
    }
}
