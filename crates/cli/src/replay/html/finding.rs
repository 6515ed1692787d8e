//! The findings of a run on the page.

use std::io::{self, Write};

use loopbreaker::Finding;

use super::escape::{Escaped, Sentence};
use crate::number::{counted, grouped};
use crate::replay::explain::own_findings;
use crate::replay::run::Run;

/// Writes every finding; those beyond the first few are folded.
pub(super) fn write_all<W: Write>(out: &mut W, run: &Run) -> io::Result<()> {
    let findings: Vec<_> = own_findings(run).collect();
    let (open, folded) = findings.split_at(findings.len().min(MAX_OPEN));
    write_list(out, run, open)?;
    if !folded.is_empty() {
        let more = counted(folded.len() as u64, "more finding", "more findings");
        writeln!(out, "<details class=\"more\"><summary>{more} in this run</summary>")?;
        write_list(out, run, folded)?;
        out.write_all(b"</details>\n")?;
    }
    Ok(())
}

fn write_list<W: Write>(out: &mut W, run: &Run, findings: &[&Finding]) -> io::Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    out.write_all(b"<ul class=\"findings\">\n")?;
    findings.iter().try_for_each(|finding| write(out, run, finding))?;
    out.write_all(b"</ul>\n")
}

fn write<W: Write>(out: &mut W, run: &Run, finding: &Finding) -> io::Result<()> {
    let (kind, severity, count, step) = (finding.kind, finding.severity, finding.count, finding.step);
    let times = if finding.period > 1 {
        format!("{} steps × {count}", finding.period)
    } else {
        format!("× {count}")
    };
    writeln!(
        out,
        r#"<li class="{severity}"><p class="kind">{kind} <small>{times}, certain at step {step}</small></p><p class="reason">{}</p>"#,
        Sentence(&finding.message)
    )?;
    out.write_all(b"<dl><dt>evidence</dt><dd>")?;
    write_evidence(out, run, finding)?;
    let prevention = Escaped(finding.prevented_by);
    writeln!(out, "</dd><dt>would not have fired with</dt><dd>{prevention}</dd></dl></li>")
}

/// One copy of what repeats in words, as far as there is room, and the numbers of the other steps.
fn write_evidence<W: Write>(out: &mut W, run: &Run, finding: &Finding) -> io::Result<()> {
    let evidence = finding.evidence.len();
    let quotable =
        if evidence <= MAX_QUOTED { evidence } else { finding.period.clamp(MIN_QUOTED, MAX_QUOTED) };
    let (quoted, rest) = finding.evidence.split_at(quotable);
    for step in quoted {
        write!(out, r#"<p class="quote"><span class="n">step {step}</span>"#)?;
        if let Some(note) = run.notes.get(*step) {
            write!(out, " <code><b>{}</b> {}</code>", Escaped(note.name()), Escaped(&note.said))?;
            if let Some(result) = note.result.as_deref().filter(|result| !result.is_empty()) {
                write!(out, r#" <code class="result">{}</code>"#, Escaped(result))?;
            }
        }
        out.write_all(b"</p>")?;
    }
    if !rest.is_empty() {
        let shown: Vec<_> = rest.iter().take(MAX_NUMBERS).map(usize::to_string).collect();
        let steps = if rest.len() == 1 { "step" } else { "steps" };
        write!(out, "<p>and {steps} {}", shown.join(", "))?;
        if rest.len() > MAX_NUMBERS {
            write!(out, " and {} more", grouped((rest.len() - MAX_NUMBERS) as u64))?;
        }
        out.write_all(b"</p>")?;
    }
    Ok(())
}

const MAX_OPEN: usize = 2;
const MIN_QUOTED: usize = 2;
const MAX_QUOTED: usize = 3;
const MAX_NUMBERS: usize = 24;
