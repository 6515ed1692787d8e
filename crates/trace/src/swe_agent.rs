//! `swe-agent`: trajectories (`.traj`).

use std::borrow::Cow;

use loopbreaker::Step;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::output::Output;
use crate::record::Record;
use crate::{Problem, Reader};
use loopbreaker_dialect::json::{Text, words};

/// Reads documents with a `trajectory`. Each is a run.
pub(crate) struct SweAgent;

impl Reader for SweAgent {
    fn record(&mut self, record: Record<'_>, out: &mut Output<'_>) -> Result<(), Problem> {
        let document: Document<'_> = record.parse()?;
        let id = document.instance_id.map_or_else(|| Cow::Owned(out.id_of(record)), words);
        // All turns are read once before the first is passed on, since half a run would be judged as if it were all.
        record.each(document.trajectory.get(), |_: Turn<'_>| Ok(()))?;
        let name = out.begin(&id);
        let mut round = 0;
        record.each(document.trajectory.get(), |turn: Turn<'_>| {
            turn.show(round, |step| out.step(&name, step));
            round += 1;
            Ok(())
        })?;
        out.end(&name);
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(expecting = "a document with a `trajectory`")]
struct Document<'a> {
    #[serde(borrow)]
    instance_id: Option<&'a RawValue>,
    #[serde(borrow)]
    trajectory: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(expecting = "a turn of a trajectory")]
struct Turn<'a> {
    #[serde(borrow)]
    action: Option<Text<'a>>,
    #[serde(borrow)]
    observation: Option<&'a RawValue>,
    #[serde(borrow)]
    thought: Option<Text<'a>>,
    #[serde(borrow)]
    response: Option<Text<'a>>,
}

impl Turn<'_> {
    fn show(&self, round: u64, emit: impl FnOnce(&Step<'_>)) {
        let said =
            |text: &'_ Option<Text<'_>>| text.as_ref().is_some_and(|text| !text.0.trim_ascii().is_empty());
        let thought = if said(&self.thought) { &self.thought } else { &self.response };
        let action = self.action.as_ref().map_or("", |action| action.0.trim_ascii());
        let call = Call::of(action);
        let result = self.observation.map(words);
        emit(&Step {
            round: Some(round),
            thought: thought.as_ref().map(|text| &*text.0),
            tool: call.as_ref().map(|call| call.tool),
            args: call.as_ref().map(|call| &*call.args),
            result: result.as_deref(),
            ..Step::default()
        });
    }
}

/// An action of SWE-agent is a command line. Its own commands are tools of their own, with the rest of the line as
/// arguments; every other line is run by the shell.
struct Call<'a> {
    tool: &'a str,
    args: Cow<'a, str>,
}

impl<'a> Call<'a> {
    fn of(action: &'a str) -> Option<Self> {
        if action.is_empty() {
            return None;
        }
        let (first, rest) = action.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((action, ""));
        if COMMANDS.contains(&first) {
            return Some(Self { tool: first, args: Cow::Borrowed(rest.trim_ascii_start()) });
        }
        let command = serde_json::Value::from(action);
        Some(Self { tool: "bash", args: Cow::Owned(format!("{{\"command\":{command}}}")) })
    }
}

const COMMANDS: [&str; 27] = [
    "open", "goto", "scroll_up", "scroll_down", "create", "edit", "insert", "append", "search_dir",
    "search_file", "find_file", "filemap", "submit", "exit_cost", "exit_context", "exit_format",
    "exit_forfeit", "str_replace_editor", "view", "view_image", "undo_edit", "get_symbols", "click_mouse",
    "type_text", "debug_start", "connect_start", "connect_sendline",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_command_is_a_tool_and_the_rest_of_the_line_its_arguments() {
        let call = Call::of("open src/lib.rs 40").unwrap();
        assert_eq!((call.tool, &*call.args), ("open", "src/lib.rs 40"));
        let call = Call::of("submit").unwrap();
        assert_eq!((call.tool, &*call.args), ("submit", ""));
    }

    #[test]
    fn any_other_line_is_run_by_the_shell() {
        let call = Call::of("grep -rn \"x\" .").unwrap();
        assert_eq!((call.tool, &*call.args), ("bash", r#"{"command":"grep -rn \"x\" ."}"#));
    }

    #[test]
    fn no_action_is_no_call() {
        assert!(Call::of("").is_none());
    }
}
