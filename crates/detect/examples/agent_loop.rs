//! An agent with a bug, and the few lines that keep it from burning the budget.
//!
//! ```sh
//! cargo run -p loopbreaker --example agent_loop
//! ```

use std::io::{self, Write};

use loopbreaker::{DetectorsConfig, Guard, Step};

/// A model that has one idea: run the tests. It changes its mind when it is told that this leads nowhere.
struct Model {
    told_to_stop: bool,
}

impl Model {
    fn next_call(&self) -> Option<(&'static str, &'static str)> {
        (!self.told_to_stop).then_some(("bash", r#"{"command":"cargo test"}"#))
    }

    fn hears(&mut self, text: &str) {
        self.told_to_stop |= text.starts_with("Loopbreaker");
    }
}

/// A tool that always says the same.
fn run_tool(_tool: &str, _args: &str) -> &'static str {
    "test parser::empty_input ... FAILED\n1 failed; finished in 0.40s"
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    let guard = Guard::new(&DetectorsConfig::default());
    let session = guard.session("example-run");
    let mut model = Model { told_to_stop: false };

    // The dispatch loop that every agent has, with two calls added: `check` before the tool, `outcome` after it.
    while let Some((tool, args)) = model.next_call() {
        let verdict = session.check(tool, Some(args));
        if let Some(feedback) = verdict.feedback.filter(|_| !verdict.allowed) {
            writeln!(out, "blocked  {feedback}")?;
            model.hears(&feedback);
            continue;
        }
        let result = run_tool(tool, args);
        let report = session.outcome(&Step::call(tool, args).answered(result, None));
        writeln!(out, "{:<8} {tool} {args}", report.action.as_str())?;
        model.hears(result);
    }
    writeln!(out, "the agent stopped by itself")
}
