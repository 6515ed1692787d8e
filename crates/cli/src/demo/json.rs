//! `--json`: one object per agent and line.

use std::io::{self, Write};

use loopbreaker::Action;
use serde::Serialize;

use super::View;
use super::event::{Event, Outcome, Run};
use super::script::Agent;

/// Writes each agent as soon as it ends, and nothing else.
pub(super) struct JsonLines<W> {
    out: W,
}

impl<W: Write> JsonLines<W> {
    pub(super) const fn new(out: W) -> Self {
        Self { out }
    }
}

impl<W: Write> View for JsonLines<W> {
    fn event(&mut self, agents: &[Agent], event: &Event) -> io::Result<()> {
        if let Event::Ended { agent, run } = event {
            serde_json::to_writer(&mut self.out, &Line::of(&agents[*agent], run))?;
            writeln!(self.out)?;
            self.out.flush()?;
        }
        Ok(())
    }

    fn end(&mut self, _agents: &[Agent]) -> io::Result<()> {
        Ok(())
    }
}

// The order of the fields is the order on the wire. What `replay --json` has too has the same name there.
#[derive(Serialize)]
struct Line<'a> {
    id: &'static str,
    dialect: &'static str,
    model: &'static str,
    steps: usize,
    verdict: &'static str,
    kind: Option<&'a str>,
    actions: Vec<ActionLine>,
    stopped_at: Option<usize>,
    saved: Option<SavedLine>,
}

#[derive(Serialize)]
struct ActionLine {
    step: usize,
    action: &'static str,
}

#[derive(Serialize)]
struct SavedLine {
    steps: usize,
    tokens: u64,
    cost_usd: f64,
    /// Always: nobody knows what has not happened.
    estimated: bool,
}

impl<'a> Line<'a> {
    fn of(agent: &Agent, run: &'a Run) -> Self {
        let acted = run.met.iter().filter(|met| met.outcome > Outcome::Verdict(Action::Warn));
        Self {
            id: agent.name,
            dialect: agent.voice.dialect.as_str(),
            model: agent.voice.model,
            steps: run.steps(),
            verdict: run.verdict(),
            kind: run.worst().and_then(|met| met.kind()),
            actions: acted.map(|met| ActionLine { step: met.step, action: met.outcome.as_str() }).collect(),
            stopped_at: run.stopped_at(),
            saved: run.saved.map(|saved| SavedLine {
                steps: saved.steps,
                tokens: saved.tokens,
                // Sums of micro-dollars end in …0000004.
                cost_usd: (saved.cost_usd * 1e6).round() / 1e6,
                estimated: true,
            }),
        }
    }
}
