//! The demo for people: a line for each request as it comes, then a table.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use loopbreaker::Action;

use super::View;
use super::event::{Event, Met, Outcome, Run};
use super::script::Agent;
use crate::number::{dollars, grouped};
use crate::terminal::{cut_middle, printable, wrap};
use crate::told::style_of;

/// Lines on a terminal.
pub(super) struct Screen<W> {
    out: W,
    width: usize,
    /// The runs that have ended, by agent.
    ended: Vec<Option<Run>>,
    begun: bool,
}

impl<W: Write> Screen<W> {
    pub(super) const fn new(out: W, width: usize) -> Self {
        Self { out, width, ended: Vec::new(), begun: false }
    }

    fn begin(&mut self) -> io::Result<()> {
        self.begun = true;
        writeln!(
            self.out,
            "six small agents, a scripted model, and the gateway between them: no key, no network"
        )?;
        writeln!(
            self.out,
            "the agents are stubborn: they ignore every hint, and stop for nothing but a refusal\n"
        )?;
        writeln!(
            self.out,
            "{BOLD}{:NAME$}  step  {:VERDICT$}  {:SEEN$}  what the model said{BOLD:#}",
            "agent", "verdict", "loop"
        )
    }

    fn step(&mut self, agent: &Agent, met: &Met) -> io::Result<()> {
        let style = look_of(met.outcome);
        let refused = met.outcome == Outcome::Verdict(Action::Reject);
        write!(
            self.out,
            "{:NAME$}  {:>4}  {style}{:VERDICT$}{style:#}",
            agent.name,
            met.step,
            met.outcome.as_str()
        )?;
        if refused {
            writeln!(self.out, "  {}", met.loop_in_words())?;
        } else {
            let room = self.width.saturating_sub(BEFORE_WORDS).max(20);
            let words = printable(&met.words);
            let words = cut_middle(words.trim_end(), room);
            writeln!(self.out, "  {:SEEN$}  {DIM}{words}{DIM:#}", met.loop_in_words())?;
        }
        if refused {
            self.aside(&met.words, NAME + 2)?;
        }
        self.out.flush()
    }

    /// Something said under a line.
    fn aside(&mut self, words: &str, indent: usize) -> io::Result<()> {
        let mut lead = "↳";
        for line in wrap(&printable(words), self.width.saturating_sub(indent + 2).max(20)) {
            writeln!(self.out, "{:indent$}{DIM}{lead} {line}{DIM:#}", "")?;
            lead = " ";
        }
        Ok(())
    }

    fn row(&mut self, agent: &Agent, run: &Run) -> io::Result<()> {
        let outcome = run.worst().map_or(Outcome::Verdict(Action::Allow), |met| met.outcome);
        let style = look_of(outcome);
        let cell = |value: Option<String>| value.unwrap_or_else(|| "-".into());
        writeln!(
            self.out,
            "{:NAME$}  {:DIALECT$}  {:>5}  {style}{:VERDICT$}{style:#}  {:KIND$}  {:>10}  {:>6}  {:>7}  {:>8}",
            agent.name,
            agent.voice.dialect.as_str(),
            run.steps(),
            outcome.as_str(),
            run.worst().and_then(Met::kind).unwrap_or("-"),
            cell(run.stopped_at().map(|step| step.to_string())),
            cell(
                run.saved.map(|saved| saved.steps).filter(|steps| *steps > 0).map(|steps| steps.to_string())
            ),
            cell(run.saved.map(|saved| format!("≈{}", grouped(saved.tokens)))),
            cell(run.saved.map(|saved| format!("≈{}", dollars(saved.cost_usd)))),
        )?;
        self.aside(agent.lesson, 2)
    }
}

impl<W: Write> View for Screen<W> {
    fn event(&mut self, agents: &[Agent], event: &Event) -> io::Result<()> {
        if !self.begun {
            self.begin()?;
        }
        match event {
            Event::Step { agent, step } => self.step(&agents[*agent], step),
            Event::Ended { agent, run } => {
                self.ended.resize_with(agents.len(), || None);
                self.ended[*agent] = Some(run.clone());
                Ok(())
            }
        }
    }

    fn end(&mut self, agents: &[Agent]) -> io::Result<()> {
        writeln!(
            self.out,
            "\n{BOLD}{:NAME$}  {:DIALECT$}  {:>5}  {:VERDICT$}  {:KIND$}  {:>10}  {:>6}  {:>7}  {:>8}{BOLD:#}",
            "agent", "dialect", "steps", "verdict", "loop", "stopped at", "spared", "tokens", "money"
        )?;
        for (agent, run) in agents.iter().zip(std::mem::take(&mut self.ended)) {
            if let Some(run) = run {
                self.row(agent, &run)?;
            }
        }
        writeln!(
            self.out,
            "\n≈ an estimate: the steps that the script still held, each at the tokens of the last one,"
        )?;
        writeln!(self.out, "  or the words that were not said any more; at list prices")?;
        self.out.flush()
    }
}

fn look_of(outcome: Outcome) -> Style {
    match outcome {
        Outcome::Verdict(action) => style_of(action),
        Outcome::Cut => AnsiColor::Red.on_default().bold(),
    }
}

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
/// Characters of the longest word in each column.
const NAME: usize = 15;
const DIALECT: usize = 9;
const VERDICT: usize = 8;
const SEEN: usize = 18;
const KIND: usize = 14;
/// Characters of a step's line before the words.
const BEFORE_WORDS: usize = NAME + 2 + 4 + 2 + VERDICT + 2 + SEEN + 2;
