//! What a request adds to its conversation, in words that can be compared with what was added before.

use loopbreaker::{Role, Severity, Step};
use xxhash_rust::xxh3::xxh3_64;

use crate::reading::{How, Reading};

/// The newest words and tool calls of a conversation, and what came back.
#[derive(Debug, Default)]
pub struct Delta {
    /// The words.
    pub text: String,
    /// A hash of the results: equal ones are unchanged results.
    pub results: u64,
    /// Whether tools were called.
    pub has_calls: bool,
    round: Option<u64>,
}

impl Delta {
    /// More than this is not compared: an embedding sees the first and the last words only.
    const MAX: usize = 8 << 10;

    /// One more step. A new round begins anew, so that of a long transcript only the end is left.
    pub fn take(&mut self, step: &Step<'_>) {
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

    /// One more step of a conversation that is compared as a whole, as the design document does. Of a long one the
    /// beginning and the end are left: an embedding sees no more.
    pub fn take_all(&mut self, step: &Step<'_>) {
        for words in
            [step.thought, step.tool, step.args].into_iter().flatten().filter(|words| !words.is_empty())
        {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            self.text.push_str(words);
        }
        if self.text.len() > 4 * Self::MAX {
            let is_boundary = |at: &usize| self.text.is_char_boundary(*at);
            let start = (0..=Self::MAX).rev().find(is_boundary).unwrap_or(0);
            let end = (self.text.len() - Self::MAX..self.text.len()).find(is_boundary).unwrap_or(0);
            if start < end {
                self.text.replace_range(start..end, "\n");
            }
        }
    }

    /// What a reading of it means. One call that resembles another is how all work goes on, so only a loop of calls is
    /// worth telling; and where `redundancy` looks at the same steps, equal ones are left to it: it knows a poll that
    /// moves from a loop.
    pub fn severity(&self, reading: &Reading, has_redundancy: bool) -> Option<Severity> {
        let is_known_elsewhere = has_redundancy && reading.how == How::Exact;
        reading
            .severity
            .filter(|severity| !is_known_elsewhere && (!self.has_calls || *severity == Severity::Loop))
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
    fn of_a_whole_conversation_both_ends_are_left() {
        let mut all = Delta::default();
        let long = "ä".repeat(5_000);
        all.take_all(&Step::said("first"));
        (0..20).for_each(|_| all.take_all(&Step::said(&long)));
        all.take_all(&Step::said("last"));
        assert!(all.text.starts_with("first\nä") && all.text.ends_with("ä\nlast"));
        assert!(all.text.len() <= 64 << 10);
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
