//! A sink that writes down what it is given.

use loopbreaker::{Role, Step};
use loopbreaker_trace::{Error, Options, Problem, Sink, Summary, read};

/// Everything that came, one thing per line.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) text: String,
    pub(crate) problems: Vec<Problem>,
    pub(crate) ended: Vec<String>,
}

impl Sink for Recorder {
    fn step(&mut self, run: &str, step: &Step<'_>) {
        assert!(!self.ended.iter().any(|ended| ended == run), "a step after the end of {run}");
        let round = step.round.map_or("-".to_owned(), |round| round.to_string());
        let role = match step.role {
            Role::Agent(name) => name,
            Role::Outside => "(outside)",
            Role::Compaction => "(compaction)",
        };
        let words = |name: &str, value: Option<&str>| {
            value.map(|value| format!("{name}={}", value.replace('\n', "\\n")))
        };
        let parts = [
            Some(run.to_owned()),
            Some(format!("{round} {role}")),
            words("thought", step.thought),
            words("tool", step.tool),
            words("args", step.args),
            words("result", step.result),
            step.status.map(|status| status.as_str().to_owned()),
            step.time.map(|time| format!("at {}", time.as_millis())),
            step.tokens.map(|tokens| format!("{tokens} tokens")),
            step.cost_usd.map(|cost| format!("${cost}")),
        ];
        self.note(&parts.into_iter().flatten().collect::<Vec<_>>().join(" | "));
    }

    fn end(&mut self, run: &str) {
        assert!(!self.ended.iter().any(|ended| ended == run), "a second end of {run}");
        self.ended.push(run.to_owned());
        self.note(&format!("{run} ends"));
    }

    fn problem(&mut self, problem: Problem) {
        self.note(&format!("problem on {problem}"));
        self.problems.push(problem);
    }
}

impl Recorder {
    fn note(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

/// Reads all of the input.
pub(crate) fn record(input: &[u8], options: &Options<'_>) -> (Recorder, Result<Summary, Error>) {
    let mut recorder = Recorder::default();
    let summary = read(input, options, &mut recorder);
    (recorder, summary)
}
