//! What a scripted agent is made of.

use loopbreaker::{Status, Step};

/// An agent that always does the same.
pub(super) struct Agent {
    pub(super) name: &'static str,
    /// What it is up to, in one sentence.
    pub(super) about: &'static str,
    /// Why it was, or was not, found to loop.
    pub(super) lesson: &'static str,
    pub(super) steps: Vec<ScriptStep>,
}

/// One step of a script.
pub(super) struct ScriptStep {
    tool: Option<&'static str>,
    /// Arguments of the call, or the words of an answer.
    said: String,
    result: Option<String>,
    status: Option<Status>,
}

impl ScriptStep {
    pub(super) fn as_step(&self) -> Step<'_> {
        let step = match self.tool {
            Some(tool) => Step::call(tool, &self.said),
            None => Step::said(&self.said),
        };
        match &self.result {
            Some(result) => step.answered(result, self.status),
            None => step,
        }
    }
}

/// A call that did what was asked.
pub(super) fn works(tool: &'static str, args: impl Into<String>, result: impl Into<String>) -> ScriptStep {
    let (said, result) = (args.into(), Some(result.into()));
    ScriptStep { tool: Some(tool), said, result, status: Some(Status::Success) }
}

/// A call that did not.
pub(super) fn fails(tool: &'static str, args: impl Into<String>, result: impl Into<String>) -> ScriptStep {
    ScriptStep { status: Some(Status::Failure), ..works(tool, args, result) }
}

/// An answer without a call.
pub(super) fn says(text: impl Into<String>) -> ScriptStep {
    ScriptStep { tool: None, said: text.into(), result: None, status: None }
}
