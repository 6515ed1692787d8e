//! A model that cannot stop.

use super::script::{Agent, says, works};

pub(super) fn agent() -> Agent {
    let chant = "I need to check the configuration again to be sure that it is right. ".repeat(40);
    Agent {
        name: "chant",
        about: "falls into one sentence in the middle of an answer",
        lesson: "one answer is enough: its tail is one sentence over and over",
        steps: vec![
            works("read_file", r#"{"path":"app.yaml"}"#, "replicas: 3"),
            says(format!("The file sets three replicas. {chant}")),
        ],
    }
}
