//! An agent that does the same again and hopes.

use loopbreaker_dialect::Dialect;

use crate::demo::script::{Agent, Voice, fails, works};

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
        task: "Deploy the shop.",
        voice: Voice { dialect: Dialect::Anthropic, model: "claude-sonnet-5-5", streams: false },
        lesson: "runs a failing deployment again and again: the same call, the same error, nothing changed in between",
        steps,
    }
}
