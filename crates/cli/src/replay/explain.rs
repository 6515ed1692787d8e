//! `--explain`: what a finding stands on, and what would have kept it from being made.

use std::io::{self, Write};

use loopbreaker::{Finding, Severity};

use crate::number::grouped;
use crate::replay::run::Run;
use crate::terminal::{cut_middle, printable, wrap};

/// Writes one finding with its evidence.
pub(crate) fn write<W: Write>(out: &mut W, run: &Run, finding: &Finding, width: usize) -> io::Result<()> {
    let step = finding.step;
    let (kind, severity) = (finding.kind, finding.severity);
    let (onset, count) = (finding.onset, finding.count);
    writeln!(
        out,
        "  {severity} at step {step}: {kind}, {count} times since step {onset} (rule {})",
        finding.rule
    )?;
    for line in wrap(&printable(&finding.message), width.saturating_sub(4).max(20)) {
        writeln!(out, "    {line}")?;
    }
    writeln!(out, "    evidence:")?;
    let width = width.saturating_sub(6).max(20);
    for step in finding.evidence.iter().take(MAX_EVIDENCE) {
        writeln!(out, "      {}", cut_middle(&evidence(run, *step), width))?;
    }
    if let Some(more) = finding.evidence.len().checked_sub(MAX_EVIDENCE).filter(|more| *more > 0) {
        writeln!(out, "      … and {} more", grouped(more as u64))?;
    }
    writeln!(out, "    would not have fired with: {}", finding.prevented_by)
}

/// The findings that say something of their own: a warning that became a loop is told as the loop.
pub(crate) fn own_findings(run: &Run) -> impl Iterator<Item = &Finding> {
    let grew = |warning: &Finding| run.loops().any(|found| found.identity == warning.identity);
    run.report.findings.iter().filter(move |finding| finding.severity == Severity::Loop || !grew(finding))
}

fn evidence(run: &Run, step: usize) -> String {
    let Some(note) = run.notes.get(step) else { return format!("step {step}") };
    let mut line = format!("step {step}  {} {}", note.name(), note.said);
    if let Some(result) = note.result.as_deref().filter(|result| !result.is_empty()) {
        line.push_str(" → ");
        line.push_str(result);
    }
    printable(&line).into_owned()
}

const MAX_EVIDENCE: usize = 12;
