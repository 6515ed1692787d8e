//! Which answers of read-only calls still hold.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::config::Effect;
use crate::effect::effect;
use crate::fingerprint::Fingerprint;
use crate::outcome::Outcome;
use crate::redundancy::rules::Rules;
use crate::step::{Role, Status, Step};

/// The last calls that only read and were answered, since something was last changed. It keeps fingerprints and
/// places, never an answer: the agent has that in its transcript.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// Newest last.
    answered: VecDeque<(Fingerprint, usize)>,
    /// Steps that were reported.
    steps: usize,
}

impl Reads {
    const MAX: usize = 64;

    /// Takes a step in. A call that may have changed something takes every earlier answer with it, and so do new words
    /// from outside: they may tell of a change that no tool made.
    pub(super) fn take(&mut self, step: &Step<'_>, rules: &Arc<Rules>) {
        self.steps += 1;
        let Some(tool) = step.tool.filter(|_| matches!(step.role, Role::Agent(_))) else {
            if !matches!(step.role, Role::Agent(_)) {
                self.answered.clear();
            }
            return;
        };
        if matches!(step.status, Some(Status::Skipped)) {
            return;
        }
        let declared = rules.profile(tool).and_then(|profile| profile.effect);
        if effect(tool, step.args, declared) != Some(Effect::Read) {
            self.answered.clear();
            return;
        }
        let call = Fingerprint::of_call(tool, step.args);
        let Some(result) = step.result else { return };
        let failed = match step.status {
            Some(Status::Failure | Status::Pending) => true,
            Some(_) => false,
            None => Outcome::of(result).failed(),
        };
        self.answered.retain(|(known, _)| *known != call);
        if failed {
            return;
        }
        if self.answered.len() >= Self::MAX {
            self.answered.pop_front();
        }
        self.answered.push_back((call, self.steps));
    }

    /// The step that gave this call its answer, if that still holds.
    pub(super) fn unchanged_since(&self, call: &Fingerprint) -> Option<usize> {
        self.answered.iter().rev().find(|(known, _)| known == call).map(|(_, step)| *step)
    }
}

#[cfg(test)]
mod tests {
    use super::Reads;
    use crate::redundancy::rules::Rules;
    use crate::{Effect, Fingerprint, RedundancyConfig, Step, ToolPattern, ToolProfile};

    fn read() -> Step<'static> {
        Step::call("read_file", r#"{"path":"a.rs"}"#).answered("fn main() {}", None)
    }

    fn since(config: &RedundancyConfig, steps: &[Step<'_>]) -> Option<usize> {
        let rules = Rules::compile(config);
        let mut reads = Reads::default();
        for step in steps {
            reads.take(step, &rules);
        }
        reads.unchanged_since(&Fingerprint::of_call("read_file", Some(r#"{ "path": "a.rs" }"#)))
    }

    #[test]
    fn the_answer_of_a_read_holds_until_something_is_changed() {
        let config = RedundancyConfig::default();
        let other = Step::call("read_file", r#"{"path":"b.rs"}"#).answered("mod b;", None);
        let edit = Step::call("write_file", r#"{"path":"c.rs","content":"x"}"#).answered("ok", None);
        assert_eq!(since(&config, &[read()]), Some(1));
        assert_eq!(since(&config, &[other, read(), other]), Some(2));
        assert_eq!(since(&config, &[read(), edit]), None);
        assert_eq!(since(&config, &[read(), edit, read()]), Some(3));
    }

    #[test]
    fn what_is_not_known_to_read_changes_something() {
        let unknown = Step::call("frobnicate", "{}").answered("done", None);
        assert_eq!(since(&RedundancyConfig::default(), &[read(), unknown]), None);
        let reads = ToolProfile { effect: Some(Effect::Read), ..ToolProfile::default() };
        let config = RedundancyConfig::default().with_tool(ToolPattern::new("frob*"), reads).unwrap();
        assert_eq!(since(&config, &[read(), unknown]), Some(1));
    }

    #[test]
    fn a_tool_that_is_marked_as_writing_is_never_offered() {
        let writes = ToolProfile { effect: Some(Effect::Write), ..ToolProfile::default() };
        let config = RedundancyConfig::default().with_tool(ToolPattern::new("read_file"), writes).unwrap();
        assert_eq!(since(&config, &[read()]), None);
    }

    #[test]
    fn a_read_that_failed_has_no_answer() {
        let failed = Step::call("read_file", r#"{"path":"a.rs"}"#).answered("Error: no such file", None);
        assert_eq!(since(&RedundancyConfig::default(), &[read(), failed]), None);
    }

    #[test]
    fn new_words_from_outside_may_tell_of_a_change() {
        assert_eq!(since(&RedundancyConfig::default(), &[read(), Step::heard("I have edited it.")]), None);
    }

    #[test]
    fn only_the_last_answers_are_known() {
        let args: Vec<String> = (0..100).map(|number| format!(r#"{{"path":"{number}"}}"#)).collect();
        let others: Vec<_> =
            args.iter().map(|args| Step::call("read_file", args).answered("x", None)).collect();
        assert_eq!(since(&RedundancyConfig::default(), &[&[read()][..], &others[..]].concat()), None);
    }
}
