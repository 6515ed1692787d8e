//! The demo for people.

use std::io::{self, Write};
use std::thread::sleep;
use std::time::Duration;

use anstyle::{AnsiColor, Style};

use super::script::Agent;
use crate::replay::marks::{Mark, marks};
use crate::replay::run::Run;
use crate::terminal::{self, wrap};

pub(super) fn begin<W: Write>(out: &mut W) -> io::Result<()> {
    writeln!(out, "six scripted agents, each judged step by step as if it were live")?;
    writeln!(
        out,
        "{DIM}· step   O first time   R repeat   H hint   T throttle   X reject: the agent is stopped{DIM:#}\n"
    )
}

/// Writes one agent: its steps as they come, then what was found.
pub(super) fn agent<W: Write>(out: &mut W, agent: &Agent, run: &Run, pace: Duration) -> io::Result<()> {
    write!(out, "{BOLD}{:<NAME$}{BOLD:#}  ", agent.name)?;
    let mut shown = 0;
    for mark in marks(&run.report, usize::MAX).into_iter().take_while(|mark| !mark.spared) {
        let style = style_of(mark);
        write!(out, "{style}{}{style:#}", mark.letter().unwrap_or('·'))?;
        out.flush()?;
        sleep(pace);
        shown += 1;
    }
    let verdict = run.report.verdict();
    let style =
        if verdict == "ok" { AnsiColor::Green.on_default() } else { AnsiColor::Red.on_default().bold() };
    writeln!(
        out,
        "{:pad$}{style}{verdict}{style:#}{}",
        "",
        ending(run),
        pad = STRIP.saturating_sub(shown) + 2
    )?;
    let width = terminal::width().saturating_sub(NAME + 2).max(20);
    for text in [agent.about, agent.lesson] {
        for line in wrap(text, width) {
            writeln!(out, "{:NAME$}  {DIM}{line}{DIM:#}", "")?;
        }
    }
    writeln!(out)
}

pub(super) fn end<W: Write>(out: &mut W) -> io::Result<()> {
    writeln!(out, "next: `loopbreaker replay your-run.jsonl` judges a run of your own in the same way")?;
    out.flush()
}

/// `: churn at step 3, stopped at step 6, 4 steps spared`.
fn ending(run: &Run) -> String {
    let found = run.headline().map(|finding| format!(": {} at step {}", finding.kind, finding.step));
    let stopped = run.stop().map(|(step, spared)| format!(", stopped at step {step}, {spared} steps spared"));
    found.unwrap_or_default() + &stopped.unwrap_or_default()
}

fn style_of(mark: Mark) -> Style {
    match mark.letter() {
        Some('R') => AnsiColor::Red.on_default(),
        Some('O') => AnsiColor::Blue.on_default(),
        Some('H') => AnsiColor::Cyan.on_default().bold(),
        Some('T') => AnsiColor::Yellow.on_default().bold(),
        Some('X') => AnsiColor::Red.on_default().bold().invert(),
        _ => DIM,
    }
}

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
/// Characters of the longest name.
const NAME: usize = 15;
/// Steps that are aligned; a longer strip pushes its verdict to the right.
const STRIP: usize = 14;
