//! An agent that goes to and fro.

use loopbreaker_dialect::Dialect;

use crate::demo::script::{Agent, Voice, works};

pub(super) fn agent() -> Agent {
    let mut steps = Vec::new();
    for _ in 0..8 {
        steps.push(works("read_file", r#"{"path":"config/dev.toml"}"#, "port = 8080\ndebug = true"));
        steps.push(works("read_file", r#"{"path":"config/prod.toml"}"#, "port = 80\ndebug = false"));
    }
    Agent {
        name: "a-b-a-b",
        task: "Compare the two settings files.",
        voice: Voice { dialect: Dialect::Responses, model: "gpt-6-sol", streams: false },
        lesson: "reads one file, then the other, then the first again: no call follows itself, and its client does not \
                 even resend the history",
        steps,
    }
}
