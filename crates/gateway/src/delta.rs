//! What a request adds to its conversation, in words that can be compared with what was added before.

use loopbreaker::{Role, Step};
use loopbreaker_dialect::{Conversation, Dialect, Event, read_request};
use xxhash_rust::xxh3::xxh3_64;

/// The newest words and tool calls of a conversation, and what came back.
#[derive(Debug, Default)]
pub(crate) struct Delta {
    pub(crate) text: String,
    /// A hash of the results: equal ones are unchanged results.
    pub(crate) results: u64,
    /// Whether tools were called.
    pub(crate) has_calls: bool,
    round: Option<u64>,
}

impl Delta {
    /// More than this is not compared: an embedding sees the first and the last words only.
    const MAX: usize = 8 << 10;

    /// One more step. A new round begins anew, so that of a long transcript only the end is left.
    pub(crate) fn take(&mut self, step: &Step<'_>) {
        if step.round.is_none() || step.round != self.round {
            *self = Self { round: step.round, ..Self::default() };
        }
        self.say(step.thought);
        if matches!(step.role, Role::Agent(_)) {
            self.say(step.tool);
            self.say(step.args);
            self.has_calls |= step.tool.is_some();
            if let Some(result) = step.result {
                self.results = self.results.rotate_left(7) ^ xxh3_64(result.as_bytes());
            }
        }
    }

    /// All that a transcript says, as the design document compares it.
    pub(crate) fn of_all(dialect: Dialect, body: &[u8]) -> Self {
        let mut all = Self::default();
        let mut hear = |step: &Step<'_>| {
            all.say(step.thought);
            all.say(step.tool);
            all.say(step.args);
        };
        let mut conversation = Conversation::default();
        // What was understood before the body turned strange is all that there is.
        drop(read_request(dialect, body, None, &mut |message| {
            message.events(&mut |event: Event<'_>| conversation.take(event, &mut hear));
        }));
        conversation.finish(&mut hear);
        all
    }

    fn say(&mut self, words: Option<&str>) {
        let Some(words) = words.filter(|words| !words.is_empty()) else { return };
        if self.text.len() >= Self::MAX {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let left = Self::MAX - self.text.len().min(Self::MAX);
        let end = (0..=words.len().min(left)).rev().find(|end| words.is_char_boundary(*end)).unwrap_or(0);
        self.text.push_str(&words[..end]);
    }
}

#[cfg(test)]
mod tests {
    use loopbreaker::Step;

    use super::Delta;

    #[test]
    fn only_the_newest_round_is_left_of_a_long_transcript() {
        let mut delta = Delta::default();
        delta.take(&Step::call("ls", r#"{"path":"a"}"#).answered("x", None).in_round(1));
        delta.take(&Step::call("ls", r#"{"path":"b"}"#).answered("y", None).in_round(2));
        delta.take(&Step::call("cat", r#"{"path":"c"}"#).answered("z", None).in_round(2));
        assert_eq!(delta.text, "ls\n{\"path\":\"b\"}\ncat\n{\"path\":\"c\"}");
    }

    #[test]
    fn other_results_are_told_apart_and_are_no_words() {
        let of = |result| {
            let mut delta = Delta::default();
            delta.take(&Step::call("ls", "{}").answered(result, None).in_round(1));
            delta
        };
        assert_eq!(of("a").text, of("b").text);
        assert_ne!(of("a").results, of("b").results);
        assert_eq!(of("a").results, of("a").results);
    }

    #[test]
    fn what_is_compared_is_bounded() {
        let mut delta = Delta::default();
        let long = "ä".repeat(20_000);
        delta.take(&Step::said(&long).in_round(1));
        delta.take(&Step::said(&long).in_round(1));
        assert!(delta.text.len() <= 8 << 10);
    }
}
