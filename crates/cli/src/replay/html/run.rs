//! One run on the page.

use std::io::{self, Write};

use loopbreaker::Action;

use super::escape::Escaped;
use super::{finding, strip};
use crate::number::{counted, grouped, percent};
use crate::replay::marks::{Mark, marks};
use crate::replay::note::StepNote;
use crate::replay::run::Run;
use crate::replay::runs::MAX_NOTES;
use crate::replay::summary::amounts;

pub(super) fn write<W: Write>(out: &mut W, run: &Run, index: usize) -> io::Result<()> {
    let verdict = run.report.verdict();
    let marks = marks(&run.report, MAX_NOTES);
    let id = Escaped(&run.id);
    writeln!(out, r#"<article class="run" data-verdict="{verdict}" id="run{index}">"#)?;
    writeln!(out, r#"<header><span class="badge {verdict}">{verdict}</span><h2>{id}</h2></header>"#)?;
    writeln!(out, r#"<p class="facts">{}</p>"#, facts(run))?;
    strip::write(out, run, &marks)?;
    finding::write_all(out, run)?;
    if let Some(saving) = saving(run) {
        writeln!(out, r#"<p class="saving">{saving}</p>"#)?;
    }
    write_steps(out, run, &marks, index)?;
    out.write_all(b"</article>\n")
}

fn facts(run: &Run) -> String {
    let report = &run.report;
    let mut facts = vec![counted(report.steps as u64, "step", "steps")];
    if let Some(finding) = run.headline() {
        facts.push(format!("from step {}, certain at step {}", finding.onset, finding.step));
    }
    if report.wasted.steps > 0 {
        let share = percent(report.wasted.steps as u64, report.steps as u64);
        facts.push(format!("<b>{} wasted</b> ({share})", amounts(&report.wasted)));
    }
    facts.join(" · ")
}

/// What the ladder would have done, and what that would have saved.
fn saving(run: &Run) -> Option<String> {
    let (told_at, first) = run.report.actions.first()?;
    let stopped = run.stop().map(|(step, after)| {
        let after = counted(after as u64, "step", "steps");
        format!("the run would have been stopped at step {step}, {after} before its end.")
    });
    let obeyed = match run.avoidable_steps as u64 {
        0 => format!("The first {first} would have come at step {told_at}; no redundant step followed."),
        saved => {
            let saved = counted(saved, "redundant step", "redundant steps");
            format!("Obeying the first {first} (step {told_at}) would have saved <b>{saved}</b>.")
        }
    };
    Some(match stopped {
        Some(stopped) if *first == Action::Reject => format!("By the ladder, {stopped}"),
        Some(stopped) => format!("{obeyed} Ignoring it, {stopped}"),
        None => obeyed,
    })
}

fn write_steps<W: Write>(out: &mut W, run: &Run, marks: &[Mark], index: usize) -> io::Result<()> {
    if run.notes.is_empty() {
        return Ok(());
    }
    let shown = counted(run.notes.len() as u64, "step", "steps");
    writeln!(out, r#"<details class="steps"><summary>{shown}</summary><ol>"#)?;
    for (step, note) in run.notes.iter().enumerate() {
        let mark = marks.get(step).copied().unwrap_or_default();
        write_step(out, note, mark, step, index)?;
    }
    out.write_all(b"</ol>")?;
    if run.notes.len() < run.report.steps {
        let hidden = grouped((run.report.steps - run.notes.len()) as u64);
        write!(out, "<p>The {hidden} steps behind these were judged too; their words are not kept.</p>")?;
    }
    out.write_all(b"</details>\n")
}

fn write_step<W: Write>(
    out: &mut W,
    note: &StepNote,
    mark: Mark,
    step: usize,
    index: usize,
) -> io::Result<()> {
    let class = strip::class_of(mark);
    let letter = mark.letter().map(String::from).unwrap_or_default();
    let status = note.status.map_or("", loopbreaker::Status::as_str);
    write!(
        out,
        r#"<li id="run{index}-{step}" class="{class}"><span class="n">{step}</span><span class="m">{letter}</span><span class="tool">{}</span><code>{}</code>"#,
        Escaped(note.name()),
        Escaped(&note.said)
    )?;
    if let Some(result) = note.result.as_deref().filter(|result| !result.is_empty()) {
        write!(out, r#"<code class="result {status}">{}</code>"#, Escaped(result))?;
    }
    out.write_all(b"</li>\n")
}
