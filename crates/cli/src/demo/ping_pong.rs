//! An agent that goes to and fro.

use super::script::{Agent, says, works};

pub(super) fn agent() -> Agent {
    let mut steps = vec![says("I will compare the two settings files.")];
    for _ in 0..8 {
        steps.push(works("read_file", r#"{"path":"config/dev.toml"}"#, "port = 8080\ndebug = true"));
        steps.push(works("read_file", r#"{"path":"config/prod.toml"}"#, "port = 80\ndebug = false"));
    }
    Agent {
        name: "a-b-a-b",
        about: "reads one file, then the other, then the first again",
        lesson: "no call follows itself, so counting equal calls in a row never sees it",
        steps,
    }
}
