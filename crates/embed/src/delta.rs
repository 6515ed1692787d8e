//! What a request adds to its conversation, in words that can be compared with what was added before.

use loopbreaker::{
    Effect, Outcome, RedundancyConfig, Role, Severity, Step, Upshot, asks_in_words, effect_of_call,
    runs_a_command,
};
use serde_json::Value;
use twox_hash::XxHash3_128;

use crate::phrases::out_of_quotes;
use crate::reading::{How, Reading, Results, Rule};

/// The newest deed of an agent: the calls of one round, or the words of an answer without any; and what came of it.
///
/// Where tools are called, the calls are the intent. The thoughts around them are worded anew each time, and would only
/// make equal deeds look different and different ones alike.
#[derive(Debug, Default)]
pub struct Delta {
    /// The calls, or the words.
    pub text: String,
    /// What came of it.
    pub results: Results,
    /// Whether tools were called.
    pub has_calls: bool,
    /// An order as long as every one of them asks somebody in plain language.
    rule: Rule,
    /// Whether an agent spoke, and not a person before any agent did.
    by_agent: bool,
    /// Whether somebody has replied.
    is_replied: bool,
    round: Option<u64>,
}

impl Delta {
    /// More than this is not compared: an embedding sees the first and the last words only.
    const MAX: usize = 8 << 10;

    /// Whether a step begins another delta: a new round of an agent does, and words from outside do unless they reply
    /// to one.
    pub fn ends_before(&self, step: &Step<'_>) -> bool {
        match step.role {
            Role::Agent(_) => step.round.is_none() || step.round != self.round || self.is_replied,
            Role::Outside => !self.by_agent,
            Role::Compaction => true,
        }
    }

    /// One more step. A new round begins anew, so that of a long transcript only the end is left.
    pub fn take(&mut self, step: &Step<'_>) {
        if self.ends_before(step) {
            *self = Self { round: step.round, ..Self::default() };
        }
        match step.role {
            Role::Agent(_) => {
                self.by_agent = true;
                if let Some(tool) = step.tool {
                    if !std::mem::replace(&mut self.has_calls, true) {
                        self.text.clear();
                        self.rule = Rule::Order;
                    }
                    self.say(step.tool);
                    let args = step.args.unwrap_or_default();
                    if asks_in_words(tool, step.args, &RedundancyConfig::default()) {
                        self.say(Some(&unwrapped(args)));
                    } else {
                        self.rule = Rule::Intent;
                        // A command line is made of words that name things.
                        if runs_a_command(tool, step.args) {
                            self.say(Some(args));
                        } else {
                            self.say(Some(&out_of_quotes(args)));
                        }
                    }
                    self.learn(step.result.and_then(|result| upshot(tool, step.args, result)));
                } else if !self.has_calls {
                    self.say(step.thought);
                    if let Some(reply) = step.result {
                        self.hear(reply);
                    }
                }
            }
            // What a person or the environment says to an answer is what came of it.
            Role::Outside if self.by_agent => {
                self.is_replied = true;
                self.hear(step.thought.unwrap_or_default());
            }
            Role::Outside => self.say(step.thought),
            Role::Compaction => {}
        }
    }

    fn hear(&mut self, reply: &str) {
        self.learn(Some(Upshot::Gave(XxHash3_128::oneshot(reply.trim().as_bytes()))));
    }

    fn learn(&mut self, upshot: Option<Upshot>) {
        let mix = |before: u64, next: u64| before.rotate_left(7) ^ next;
        self.results = match (self.results, upshot) {
            (Results::Unclear, _) | (_, None) => Results::Unclear,
            (Results::None, Some(Upshot::Failed(class))) => Results::Failed(class),
            (Results::Failed(before), Some(Upshot::Failed(class))) => Results::Failed(mix(before, class)),
            (Results::None, Some(Upshot::Gave(result))) => Results::Gave(result as u64),
            (Results::Gave(before) | Results::Failed(before), Some(Upshot::Gave(result))) => {
                Results::Gave(mix(before, result as u64))
            }
            (Results::Gave(before), Some(Upshot::Failed(class))) => Results::Gave(mix(before, class)),
        };
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

    /// What makes a loop of it and others like it.
    pub fn rule(&self) -> Rule {
        // An order that carries code is a piece of work.
        if self.has_code() { Rule::Intent } else { self.rule }
    }

    fn has_code(&self) -> bool {
        self.text.contains("```")
    }

    /// What a reading of it means. One call that resembles another is how all work goes on, so only a loop of calls is
    /// worth telling; an answer that carries code is a piece of work, however like the last one it looks; and where
    /// `redundancy` looks at the same steps, equal ones are left to it: it knows a poll that moves from a loop.
    pub fn severity(&self, reading: &Reading, has_redundancy: bool) -> Option<Severity> {
        let is_known_elsewhere = has_redundancy && reading.how == How::Exact;
        let is_work = !self.has_calls && self.has_code();
        let severity = reading.severity.filter(|_| !is_known_elsewhere && !is_work)?;
        (!self.has_calls || severity == Severity::Loop).then_some(severity)
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

/// The sentences of an order without the JSON around them: in its quotes they would look like names.
fn unwrapped(args: &str) -> String {
    fn collect(value: &Value, words: &mut String) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| collect(value, words)),
            Value::Object(fields) => fields.values().for_each(|value| collect(value, words)),
            Value::String(said) => {
                words.push_str(said);
                words.push('\n');
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                words.push_str(&value.to_string());
                words.push('\n');
            }
        }
    }
    let Ok(value) = serde_json::from_str(args) else { return args.to_owned() };
    let mut words = String::with_capacity(args.len());
    collect(&value, &mut words);
    words
}

/// What came of a call. That a change was made is told in the same words each time, and is no answer.
fn upshot(tool: &str, args: Option<&str>, result: &str) -> Option<Upshot> {
    let upshot = Outcome::of(result).upshot()?;
    let is_told = || effect_of_call(tool, args, &RedundancyConfig::default()) != Some(Effect::Write);
    (matches!(upshot, Upshot::Failed(_)) || is_told()).then_some(upshot)
}

#[cfg(test)]
mod tests {
    use loopbreaker::Step;

    use super::{Delta, Results, Rule};

    #[test]
    fn only_the_newest_round_is_left_of_a_long_transcript() {
        let mut delta = Delta::default();
        delta.take(&Step::call("ls", r#"{"path":"a"}"#).answered("x", None).in_round(1));
        delta.take(&Step::call("ls", r#"{"path":"b"}"#).answered("y", None).in_round(2));
        delta.take(&Step::call("cat", r#"{"path":"c"}"#).answered("z", None).in_round(2));
        assert_eq!(delta.text, "ls\n{\"path\":\"b\"}\ncat\n{\"path\":\"c\"}");
    }

    fn of<'a>(steps: impl IntoIterator<Item = Step<'a>>) -> Delta {
        let mut delta = Delta::default();
        steps.into_iter().for_each(|step| delta.take(&step));
        delta
    }

    #[test]
    fn where_tools_are_called_the_calls_are_the_intent() {
        let thinking = Step { thought: Some("let me see"), ..Step::call("ls", r#"{"path":"a"}"#) };
        assert_eq!(of([thinking.in_round(1)]).text, "ls\n{\"path\":\"a\"}");
        assert_eq!(
            of([Step::said("let me see").in_round(1), Step::call("ls", "{}").in_round(1)]).text,
            "ls\n{}"
        );
        assert_eq!(of([Step::said("let me see").in_round(1)]).text, "let me see");
    }

    #[test]
    fn other_results_are_told_apart_and_are_no_words() {
        let gave = |result| of([Step::call("ls", "{}").answered(result, None).in_round(1)]);
        assert_eq!(gave("a.txt is here").text, gave("b.txt is here").text);
        assert_ne!(gave("a.txt is here").results, gave("b.txt is here").results);
        assert_eq!(gave("a.txt is here").results, gave("a.txt is here").results);
    }

    #[test]
    fn failures_of_one_kind_are_the_same_and_trouble_that_passes_says_nothing() {
        let called = |args, result| of([Step::call("cat", args).answered(result, None).in_round(1)]).results;
        let gave = |result| called("{}", result);
        let missing = called(r#"{"path":"a.txt"}"#, "Error: no such file or directory: /srv/a.txt");
        assert!(matches!(missing, Results::Failed(_)), "{missing:?}");
        // What an error only repeats of its call makes it no other failure.
        assert_eq!(missing, called(r#"{"path":"b.txt"}"#, "Error: no such file or directory: /srv/b.txt"));
        assert_eq!((gave(""), gave("ok")), (Results::Unclear, Results::Unclear));
        assert_eq!(gave("Error: 429 Too Many Requests"), Results::Unclear);
        let wrote =
            Step::call("write_file", r#"{"path":"a"}"#).answered("The file a is now 3 lines long.", None);
        assert_eq!(of([wrote.in_round(1)]).results, Results::Unclear);
    }

    #[test]
    fn a_reply_is_what_came_of_an_answer() {
        let said = |reply| of([Step::said("shall I go on?").in_round(1), Step::heard(reply)]);
        assert_eq!(said("yes").text, "shall I go on?");
        assert_eq!(said("yes").results, said("yes").results);
        assert_ne!(said("yes").results, said("no").results);
        let answered = |reply| of([Step::said("shall I go on?").answered(reply, None)]).results;
        assert_eq!((answered("yes"), answered("no")), (said("yes").results, said("no").results));
        assert_eq!(of([Step::heard("fix the build")]).text, "fix the build");
        assert_eq!(of([Step::heard("fix it"), Step::heard("please")]).text, "please");
    }

    #[test]
    fn only_what_asks_somebody_in_words_is_an_order() {
        let rule = |tool, args| of([Step::call(tool, args).in_round(1)]).rule();
        let order = r#"{"task":"Please scan the video and note when two birds are in the picture."}"#;
        assert_eq!(rule("WebSurfer", order), Rule::Order);
        assert_eq!(rule("WebSurfer", r#"{"page":3}"#), Rule::Intent);
        assert_eq!(
            of([Step::call("WebSurfer", order)]).text.lines().nth(1),
            Some("Please scan the video and note when two birds are in the picture.")
        );
        assert_eq!(rule("read_file", order), Rule::Intent);
        assert_eq!(rule("Coder", "Please run this for me, it is short: ```print(1)```"), Rule::Intent);
        let both = [Step::call("WebSurfer", order).in_round(1), Step::call("ls", "{}").in_round(1)];
        assert_eq!(of(both).rule(), Rule::Intent);
        assert_eq!(
            of([Step::said("Please scan the video and note when two birds are in it.")]).rule(),
            Rule::Intent
        );
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
