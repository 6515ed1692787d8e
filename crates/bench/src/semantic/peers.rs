//! The same texts through Python's onnxruntime and sentence-transformers.

use std::error::Error;
use std::fmt::Write as _;
use std::process::{Command, Stdio};

use crate::Places;
use crate::embeddings::LENGTHS;
use crate::table::Report;
use crate::texts::text;

const PROGRAM: &str = include_str!("peers.py");

pub(crate) fn measure(places: &Places, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let Some(python) = &places.python else { return Ok(()) };
    report.table(
        "Python peers, the same texts: milliseconds p50 (p95); eight texts of 64 tokens: texts per second",
        &["who", "threads", "16", "64", "128", "256 (not cut)", "8 × 64"],
    )?;
    let mut texts = String::new();
    for length in LENGTHS {
        for number in 0..places.calls {
            writeln!(texts, "{length}\t{}", text(length, number))?;
        }
    }
    let folder = tempfile::tempdir()?;
    let (program, input) = (folder.path().join("peers.py"), folder.path().join("texts"));
    std::fs::write(&program, PROGRAM)?;
    std::fs::write(&input, texts)?;
    for threads in ["1", "2"] {
        let mut command = Command::new(python);
        command.arg(&program).arg(&input).arg(threads).stderr(Stdio::null());
        command.env("OMP_NUM_THREADS", threads);
        let output = command.output()?;
        for row in String::from_utf8_lossy(&output.stdout).lines() {
            report.row(&row.split('\t').map(str::to_owned).collect::<Vec<_>>())?;
        }
    }
    Ok(())
}
