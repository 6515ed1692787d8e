//! The timeline of one run: a cell per step.

use std::io::{self, Write};

use loopbreaker::{Action, Severity};

use crate::replay::marks::Mark;
use crate::replay::note::{Doer, StepNote};
use crate::replay::run::Run;

/// Writes the cells. A cell says by its letter what it says by its colour.
pub(super) fn write<W: Write>(out: &mut W, run: &Run, marks: &[Mark]) -> io::Result<()> {
    write!(out, r#"<div class="strip" role="img" aria-label="{}">"#, in_words(run, marks))?;
    for (step, mark) in marks.iter().enumerate() {
        let class = class_of(*mark);
        // Every tenth cell bears its number, to find a step without counting.
        let number = if step.is_multiple_of(10) { format!(r#" data-n="{step}""#) } else { String::new() };
        let letter = mark.letter().unwrap_or_else(|| plain(run.notes.get(step)));
        if class.is_empty() {
            write!(out, "<i{number}>{letter}</i>")?;
        } else {
            write!(out, r#"<i class="{class}"{number}>{letter}</i>"#)?;
        }
    }
    out.write_all(b"</div>\n")
}

/// The class of a step, for its cell and for its line in the list.
pub(super) fn class_of(mark: Mark) -> String {
    let mut classes = Vec::new();
    match mark.action {
        Some(Action::Hint) => classes.push("hint"),
        Some(Action::Throttle) => classes.push("throttle"),
        Some(Action::Pause) => classes.push("pause"),
        Some(Action::Reject) => classes.push("reject"),
        Some(Action::Allow | Action::Warn) | None => {}
    }
    if classes.is_empty() {
        match mark {
            Mark { repeat: true, .. } => classes.push("repeat"),
            Mark { certain: Some(Severity::Warning), .. } => classes.push("warned"),
            Mark { onset: true, .. } => classes.push("onset"),
            _ => {}
        }
    }
    if mark.certain == Some(Severity::Loop) {
        classes.push("certain");
    }
    if mark.spared {
        classes.push("spared");
    }
    classes.join(" ")
}

/// What a step was that is like any other.
fn plain(note: Option<&StepNote>) -> char {
    match note.map(|note| &note.doer) {
        Some(Doer::Tool(_)) | None => '·',
        Some(Doer::Agent) => '–',
        Some(Doer::Outside) => 'u',
        Some(Doer::Compaction) => 'c',
    }
}

/// The timeline for those who do not see it.
fn in_words(run: &Run, marks: &[Mark]) -> String {
    let report = &run.report;
    let mut words = vec![format!("Timeline of {} steps", report.steps)];
    if marks.len() < report.steps {
        words.push(format!("the first {} shown", marks.len()));
    }
    if let Some(finding) = run.headline() {
        let (severity, onset, step) = (finding.severity, finding.onset, finding.step);
        words.push(format!("{severity} from step {onset}, certain at step {step}"));
    }
    if report.wasted.steps > 0 {
        words.push(format!("{} redundant", report.wasted.steps));
    }
    let actions = report.actions.iter().take(MAX_ACTIONS);
    words.extend(actions.map(|(step, action)| format!("{action} at step {step}")));
    words.join("; ")
}

/// Actions that are told in words; nobody listens to more.
const MAX_ACTIONS: usize = 8;
