//! An agent that waits, as it should.

use loopbreaker_dialect::Dialect;

use crate::demo::script::{Agent, Voice, says, works};

pub(super) fn agent() -> Agent {
    let mut steps = vec![works("start_job", r#"{"job":"reindex"}"#, r#"{"id":"job-7","state":"queued"}"#)];
    for percent in (10..=100).step_by(10) {
        let state = if percent < 100 { "running" } else { "done" };
        let answer = format!(r#"{{"id":"job-7","state":"{state}","percent":{percent}}}"#);
        steps.push(works("job_status", r#"{"id":"job-7"}"#, answer));
    }
    steps.push(says("The index is rebuilt."));
    Agent {
        name: "polling",
        task: "Rebuild the search index.",
        voice: Voice { dialect: Dialect::Anthropic, model: "claude-sonnet-5-5", streams: false },
        lesson: "asks ten times how far a job is, and each answer is new: waiting is not looping",
        steps,
    }
}
