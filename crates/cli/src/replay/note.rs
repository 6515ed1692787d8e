//! What is kept of a step's words: enough to recognise it, and no more.

use std::borrow::Cow;

use loopbreaker::{Role, Status, Step};
use loopbreaker_telemetry::mask;

/// A step in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StepNote {
    pub(crate) doer: Doer,
    /// The arguments of a call, or the words of a step without one.
    pub(crate) said: Box<str>,
    /// What the tool answered.
    pub(crate) result: Option<Box<str>>,
    pub(crate) status: Option<Status>,
}

/// Who or what did a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Doer {
    /// A call of this tool.
    Tool(Box<str>),
    /// The agent spoke, without calling a tool.
    Agent,
    /// A person or the environment spoke.
    Outside,
    /// The history was compacted.
    Compaction,
}

impl StepNote {
    pub(crate) fn of(step: &Step<'_>) -> Self {
        let doer = match (step.tool, step.role) {
            (Some(tool), _) => Doer::Tool(excerpt(tool, MAX_TOOL)),
            (None, Role::Agent(_)) => Doer::Agent,
            (None, Role::Outside) => Doer::Outside,
            (None, Role::Compaction) => Doer::Compaction,
        };
        let said = match step.tool {
            Some(_) => step.args.map(unquoted),
            None => step.thought.map(Cow::from),
        };
        Self {
            doer,
            said: excerpt(&said.unwrap_or_default(), MAX_EXCERPT),
            result: step.result.map(|result| excerpt(result, MAX_EXCERPT)),
            status: step.status,
        }
    }

    /// What stands where a tool's name would.
    pub(crate) fn name(&self) -> &str {
        match &self.doer {
            Doer::Tool(name) => name,
            Doer::Agent => "(answer)",
            Doer::Outside => "(outside)",
            Doer::Compaction => "(compaction)",
        }
    }

    /// About how many bytes it holds.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.name().len()
            + self.said.len()
            + self.result.as_ref().map_or(0, |text| text.len())
    }
}

/// Arguments that are one JSON string, without its quotes and backslashes; all others as they are.
fn unquoted(args: &str) -> Cow<'_, str> {
    let text = args.starts_with('"').then(|| serde_json::from_str::<String>(args).ok()).flatten();
    text.map_or(args.into(), Cow::from)
}

/// The first `max` characters on one line, without credentials, and with an ellipsis where something is left out.
fn excerpt(text: &str, max: usize) -> Box<str> {
    let mut short = String::new();
    let mut length = 0;
    // A result of megabytes that are all white space shall not be walked through for a line of text.
    let start: String = text.chars().take(max * 16).collect();
    // Masked before anything is folded or cut: half a credential is no longer known for one.
    for word in mask(&start).split_whitespace() {
        let gap = (length > 0).then_some(' ');
        for c in gap.into_iter().chain(word.chars()) {
            if length == max {
                short.pop();
                short.push('…');
                return short.into();
            }
            short.push(c);
            length += 1;
        }
    }
    short.into()
}

/// The longest arguments and results that are kept, in characters.
const MAX_EXCERPT: usize = 160;
/// The longest tool name that is kept, in characters.
const MAX_TOOL: usize = 60;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn white_space_is_folded_and_the_rest_is_cut() {
        assert_eq!(&*excerpt("a\n\n  b\tc", 10), "a b c");
        assert_eq!(&*excerpt("abcdef", 4), "abc…");
        assert_eq!(&*excerpt("abcd", 4), "abcd");
    }

    #[test]
    fn a_credential_is_masked_before_the_text_is_cut() {
        let text = format!("{} sk-abcdefghijklmnop", "x".repeat(150));
        assert!(excerpt(&text, 160).ends_with("x sk-***"), "{}", excerpt(&text, 160));
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----";
        assert_eq!(&*excerpt(key, 160), "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----");
    }

    #[test]
    fn a_step_without_a_tool_is_noted_by_its_words() {
        let note = StepNote::of(&Step::heard("please go on"));
        assert_eq!((note.name(), &*note.said, note.result.as_deref()), ("(outside)", "please go on", None));
    }

    #[test]
    fn arguments_that_are_one_string_are_shown_as_it_reads() {
        assert_eq!(&*StepNote::of(&Step::call("ls", r#""-l \"a b\"""#)).said, "-l \"a b\"");
        assert_eq!(&*StepNote::of(&Step::call("ls", r#"{"a":1}"#)).said, r#"{"a":1}"#);
    }

    proptest! {
        #[test]
        fn an_excerpt_is_never_too_long(text in "\\PC{0,60}", max in 1_usize..20) {
            prop_assert!(excerpt(&text, max).chars().count() <= max);
        }
    }
}
