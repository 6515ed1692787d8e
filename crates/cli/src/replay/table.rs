//! Runs as a table for people.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use crate::number::{counted, grouped};
use crate::replay::explain;
use crate::replay::run::Run;
use crate::replay::runs::View;
use crate::replay::summary;
use crate::replay::totals::Totals;
use crate::terminal::{cut_middle, printable, wrap};

/// Writes rows as runs end. The first few are held back: when there are no more of them, those without a finding are
/// listed too, else only counted.
pub(crate) struct Table<W> {
    out: W,
    width: usize,
    detail: Detail,
    held: Vec<Run>,
    /// Characters of the first column, once the first row is written.
    id_width: Option<usize>,
    skipped: u64,
}

/// How much is told.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Detail {
    pub(crate) explain: bool,
    pub(crate) verbose: bool,
    pub(crate) quiet: bool,
}

impl<W: Write> Table<W> {
    pub(crate) fn new(out: W, width: usize, detail: Detail) -> Self {
        Self { out, width, detail, held: Vec::new(), id_width: None, skipped: 0 }
    }

    /// Writes what is held back.
    fn release(&mut self, with_ok: bool) -> io::Result<()> {
        for run in std::mem::take(&mut self.held) {
            self.row_unless_ok(&run, with_ok)?;
        }
        Ok(())
    }

    fn row_unless_ok(&mut self, run: &Run, with_ok: bool) -> io::Result<()> {
        if !with_ok && run.report.findings.is_empty() {
            self.skipped += 1;
            return Ok(());
        }
        self.row(run)
    }

    fn row(&mut self, run: &Run) -> io::Result<()> {
        let id = printable(&run.id);
        let width = self.id_width.unwrap_or(MIN_ID);
        let verdict = run.report.verdict();
        let style = style_of(verdict);
        let finding = run.headline();
        let cell = |value: Option<String>| value.unwrap_or_else(|| "-".into());
        writeln!(
            self.out,
            "{:width$}  {:>7}  {style}{verdict:<7}{style:#}  {:>7}  {:<14}  {:>5}  {:>6}",
            cut_middle(&id, width),
            grouped(run.report.steps as u64),
            cell(finding.map(|finding| finding.step.to_string())),
            cell(finding.map(|finding| finding.kind.to_string())),
            cell(finding.map(|finding| finding.count.to_string())),
            grouped(run.report.wasted.steps as u64),
        )?;
        if self.detail.explain {
            explain::own_findings(run)
                .try_for_each(|finding| explain::write(&mut self.out, run, finding, self.width))
        } else {
            self.reasons(run)
        }
    }

    fn reasons(&mut self, run: &Run) -> io::Result<()> {
        for finding in run.loops().take(MAX_REASONS) {
            let mut lead = "↳";
            for line in wrap(&printable(&finding.message), self.width.saturating_sub(4).max(20)) {
                writeln!(self.out, "  {DIM}{lead} {line}{DIM:#}")?;
                lead = " ";
            }
        }
        if let Some(more) = run.loops().count().checked_sub(MAX_REASONS).filter(|more| *more > 0) {
            let more = counted(more as u64, "loop", "loops");
            writeln!(self.out, "  {DIM}  … and {more} more in this run; --explain shows all{DIM:#}")?;
        }
        Ok(())
    }

    /// Decides how wide the first column is, and writes what stands over the columns.
    fn head(&mut self) -> io::Result<()> {
        let longest = self.held.iter().map(|run| run.id.chars().count()).max().unwrap_or(0);
        let room = self.width.saturating_sub(OTHER_COLUMNS).clamp(MIN_ID, MAX_ID);
        let width = longest.clamp(MIN_ID, room);
        self.id_width = Some(width);
        writeln!(
            self.out,
            "{HEAD}{:width$}  {:>7}  {:<7}  {:>7}  {:<14}  {:>5}  {:>6}{HEAD:#}",
            "run", "steps", "verdict", "at step", "kind", "count", "wasted"
        )
    }
}

impl<W: Write> View for Table<W> {
    fn run(&mut self, run: &Run) -> io::Result<()> {
        if self.detail.quiet {
            return Ok(());
        }
        if self.id_width.is_none() {
            if self.held.len() < FEW {
                self.held.push(run.clone());
                return Ok(());
            }
            self.head()?;
            self.release(self.detail.verbose)?;
        }
        self.row_unless_ok(run, self.detail.verbose)
    }

    fn end(&mut self, totals: &Totals) -> io::Result<()> {
        if !self.held.is_empty() {
            self.head()?;
            self.release(true)?;
        }
        if self.skipped > 0 {
            let skipped = counted(self.skipped, "run", "runs");
            writeln!(self.out, "{DIM}{skipped} without a finding not listed; -v lists all{DIM:#}")?;
        }
        if !self.detail.quiet && totals.runs > 0 {
            writeln!(self.out)?;
        }
        for line in summary::sentences(totals) {
            writeln!(self.out, "{line}")?;
        }
        self.out.flush()
    }
}

fn style_of(verdict: &str) -> Style {
    match verdict {
        "loop" => AnsiColor::Red.on_default().bold(),
        "warning" => AnsiColor::Yellow.on_default(),
        _ => AnsiColor::Green.on_default(),
    }
}

const HEAD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// So many runs are all listed.
const FEW: usize = 20;
const MAX_REASONS: usize = 3;
const MIN_ID: usize = 16;
const MAX_ID: usize = 60;
/// Characters of all columns but the first, with the spaces between them.
const OTHER_COLUMNS: usize = 2 + 7 + 2 + 7 + 2 + 7 + 2 + 14 + 2 + 5 + 2 + 6;
