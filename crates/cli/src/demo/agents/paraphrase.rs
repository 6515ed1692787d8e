//! An agent that says the same in other words.

use loopbreaker_dialect::Dialect;

use crate::demo::script::{Agent, Voice, fails, works};

pub(super) fn agent() -> Agent {
    let mut steps = vec![works("search", r#"{"query":"internal wiki address"}"#, "wiki.corp.example")];
    let attempts = [
        "ssh deploy@wiki.corp.example",
        "ssh -v deploy@wiki.corp.example",
        "ssh -o ConnectTimeout=5 deploy@wiki.corp.example",
        "ssh -o StrictHostKeyChecking=no deploy@wiki.corp.example",
        "ssh -p 22 deploy@wiki.corp.example",
        "ssh -4 deploy@wiki.corp.example",
        "ssh -tt deploy@wiki.corp.example",
        "ssh -o PreferredAuthentications=publickey deploy@wiki.corp.example",
        "ssh -o BatchMode=yes deploy@wiki.corp.example",
        "ssh -q deploy@wiki.corp.example",
    ];
    for command in attempts {
        let args = format!(r#"{{"command":"{command}"}}"#);
        steps.push(fails("bash", args, "deploy@wiki.corp.example: Permission denied (publickey)."));
    }
    Agent {
        name: "paraphrase-loop",
        task: "Restart the wiki.",
        voice: Voice { dialect: Dialect::Gemini, model: "gemini-3.1-pro", streams: false },
        lesson: "tries another flag each time and is denied each time: no two calls are equal, but all come to the same",
        steps,
    }
}
