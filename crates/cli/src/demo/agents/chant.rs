//! A model that cannot stop.

use loopbreaker_dialect::Dialect;

use crate::demo::script::{Agent, Voice, says, works};

pub(super) fn agent() -> Agent {
    let chant = "I need to check the configuration again to be sure that it is right. ".repeat(40);
    Agent {
        name: "chant",
        task: "How many replicas does the app have?",
        voice: Voice { dialect: Dialect::Chat, model: "gpt-6-sol", streams: true },
        lesson: "falls into one sentence in the middle of an answer: the stream is cut, and closed as clients expect it",
        steps: vec![
            works("read_file", r#"{"path":"app.yaml"}"#, "replicas: 3"),
            says(format!("The file sets three replicas. {chant}")),
        ],
    }
}
