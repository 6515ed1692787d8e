//! `check --json`: one document.

use std::io::{self, Write};

use loopbreaker_config::{Config, Problem};
use serde::Serialize;

/// Writes the document; without a file the defaults are in force.
pub(super) fn write<W: Write>(
    mut out: W,
    file: Option<&str>,
    checked: &Result<Config, Vec<Problem>>,
) -> io::Result<()> {
    let (problems, notices) = match checked {
        Ok(config) => (&[][..], &config.notices[..]),
        Err(problems) => (&problems[..], &[][..]),
    };
    let document = Document {
        file,
        ok: checked.is_ok(),
        problems: problems.iter().map(ProblemEntry::of).collect(),
        notices: notices.iter().map(ProblemEntry::of).collect(),
        explain: checked.as_ref().map(Config::explain).unwrap_or_default(),
    };
    let mut text = serde_json::to_vec(&document)?;
    text.push(b'\n');
    out.write_all(&text)?;
    out.flush()
}

#[derive(Serialize)]
struct Document<'a> {
    file: Option<&'a str>,
    ok: bool,
    problems: Vec<ProblemEntry<'a>>,
    notices: Vec<ProblemEntry<'a>>,
    explain: Vec<String>,
}

#[derive(Serialize)]
struct ProblemEntry<'a> {
    /// The policy file that it stands in, when it is not the config itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    line: u64,
    column: u64,
    path: &'a str,
    message: &'a str,
    hint: Option<&'a str>,
}

impl<'a> ProblemEntry<'a> {
    fn of(problem: &'a Problem) -> Self {
        let Problem { file, line, column, path, message, hint } = problem;
        let (file, hint) = (file.as_deref(), hint.as_deref());
        Self { file, line: *line, column: *column, path, message, hint }
    }
}
