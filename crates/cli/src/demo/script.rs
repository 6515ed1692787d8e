//! What a scripted agent is made of.

use loopbreaker_dialect::Dialect;
use loopbreaker_mock::Turn;

use super::stage::Pace;

/// An agent that always does the same, whatever it is told.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) name: &'static str,
    /// What somebody asked it to do.
    pub(super) task: &'static str,
    pub(super) voice: Voice,
    /// What it is up to, and why that was or was not found to be a loop.
    pub(super) lesson: &'static str,
    pub(super) steps: Vec<ScriptStep>,
}

/// How an agent speaks with its model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Voice {
    pub(super) dialect: Dialect,
    pub(super) model: &'static str,
    /// Whether it wants its answers piece by piece.
    pub(super) streams: bool,
}

/// One step: what the model answers, and what comes of it.
#[derive(Debug)]
pub(super) struct ScriptStep {
    tool: Option<&'static str>,
    /// Arguments of the call, or the words of an answer.
    said: String,
    /// What the tool gives back.
    pub(super) result: String,
    pub(super) failed: bool,
}

impl ScriptStep {
    /// The step as the model plays it.
    pub(super) fn turn(&self, pace: Pace) -> Turn {
        let turn = match self.tool {
            Some(tool) => Turn::call(tool, &self.said),
            None => Turn::text(&self.said),
        };
        turn.delay_ms(pace.think.as_millis() as u64).chunk_delay_ms(pace.word.as_millis() as u64)
    }

    /// The step in a few words.
    pub(super) fn in_short(&self) -> String {
        match self.tool {
            Some(tool) => format!("{tool} {}", self.said.replace(['{', '}', '"'], "")),
            None => self.said.clone(),
        }
    }

    /// How many bytes of an answer in words are missing, when only so many came.
    pub(super) fn missing(&self, came: u64) -> u64 {
        if self.tool.is_some() { 0 } else { (self.said.len() as u64).saturating_sub(came) }
    }
}

/// A call that did what was asked.
pub(super) fn works(tool: &'static str, args: impl Into<String>, result: impl Into<String>) -> ScriptStep {
    ScriptStep { tool: Some(tool), said: args.into(), result: result.into(), failed: false }
}

/// A call that did not.
pub(super) fn fails(tool: &'static str, args: impl Into<String>, result: impl Into<String>) -> ScriptStep {
    ScriptStep { failed: true, ..works(tool, args, result) }
}

/// An answer without a call, with which the agent ends.
pub(super) fn says(text: impl Into<String>) -> ScriptStep {
    ScriptStep { tool: None, said: text.into(), result: String::new(), failed: false }
}
