//! Recorded runs of every format: the same steps however the bytes come, and every step belongs to one run that ends.
#![no_main]

use std::collections::BTreeMap;
use std::io::BufReader;

use libfuzzer_sys::fuzz_target;
use loopbreaker::Step;
use loopbreaker_trace::{Options, Problem, Sink, read};

fuzz_target!(|data: &[u8]| {
    let at_once = heard(data, data.len().max(1));
    assert_eq!(at_once, heard(data, 7), "read in pieces");
});

#[derive(Debug, Default, PartialEq)]
struct Heard {
    /// Steps of runs, and how often each run ended.
    runs: BTreeMap<String, (Vec<String>, u32)>,
    problems: Vec<Problem>,
}

impl Sink for Heard {
    fn step(&mut self, run: &str, step: &Step<'_>) {
        let (steps, ended) = self.runs.entry(run.to_owned()).or_default();
        assert_eq!(*ended, 0, "a run that has ended goes on");
        steps.push(format!("{step:?}"));
    }

    fn end(&mut self, run: &str) {
        self.runs.entry(run.to_owned()).or_default().1 += 1;
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }
}

/// What is heard, and the summary of it or why there is none.
fn heard(data: &[u8], at_a_time: usize) -> (Heard, String) {
    let mut heard = Heard::default();
    // Short lines are too long here, so that this is tried too.
    let options = Options { max_line: 4_096, ..Options::named("run") };
    let summary = match read(BufReader::with_capacity(at_a_time, data), &options, &mut heard) {
        Ok(summary) => {
            assert_eq!(summary.problems, heard.problems.len() as u64);
            assert_eq!(summary.steps, heard.runs.values().map(|(steps, _)| steps.len() as u64).sum::<u64>());
            format!("{summary:?}")
        }
        Err(error) => error.to_string(),
    };
    assert!(heard.runs.values().all(|(_, ended)| *ended == 1), "each run ends once: {:?}", heard.runs);
    (heard, summary)
}
