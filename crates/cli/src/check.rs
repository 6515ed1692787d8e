//! `loopbreaker check`: is a config sound, and what does it do.

mod document;
mod snippet;

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use anstyle::{AnsiColor, Style};
use loopbreaker::Timestamp;
use loopbreaker_budget::Prices;
use loopbreaker_config::{Config, Problem};
use loopbreaker_gateway::{BadCertificate, check_certificate};

use crate::args::CheckArgs;
use crate::config_file::{self, ConfigFile};
use crate::exit::Exit;
use crate::failure::{Failure, tell, warn};
use crate::number::counted;
use crate::terminal::{self, printable, wrap};

pub(crate) fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    let mut file = match config_file::find(args.config.file.as_deref()) {
        // A machine reads this, too.
        Err(Failure::Told { message, hint }) if args.json => {
            let name = args.config.file.as_ref().map(|path| path.display().to_string());
            let (path, hint) = (String::new(), Some(hint));
            let problem = Problem { file: None, line: 1, column: 1, path, message, hint };
            document::write(io::stdout().lock(), name.as_deref(), &Err(vec![problem]))?;
            return Ok(Exit::Problem);
        }
        found => found?,
    };
    let mut checked = file.as_mut().map_or_else(|| Ok(Config::default()), ConfigFile::parse);
    if let (Some(file), Ok(config)) = (&file, &checked)
        && let Some(problem) = bad_certificate(file, config)
    {
        checked = Err(vec![problem]);
    }
    if args.json {
        document::write(io::stdout().lock(), file.as_ref().map(|file| &*file.name), &checked)?;
    } else {
        show(&mut anstream::stdout().lock(), file.as_ref(), &checked)?;
    }
    warn_of_old_prices();
    match (file, checked) {
        (Some(file), Err(problems)) => {
            if !args.json {
                let count = counted(problems.len() as u64, "problem", "problems");
                tell(&format!("{count} in {}", file.name), "mend the first one and check again");
            }
            Ok(Exit::Problem)
        }
        _ => Ok(Exit::Fine),
    }
}

/// A certificate that nobody could listen with, as `serve` would find out.
fn bad_certificate(file: &ConfigFile, config: &Config) -> Option<Problem> {
    let tls = config.tls.as_ref()?;
    let bad = check_certificate(&tls.cert, &tls.key).err()?;
    let (key, hint) = match bad {
        BadCertificate::Chain(..) => (
            "cert",
            "name the PEM file with the chain, the server's own certificate first; a relative path starts where `serve` \
             is started",
        ),
        BadCertificate::Key(..) => (
            "key",
            "name the PEM file with the private key of that certificate, without a password; a relative path starts \
             where `serve` is started",
        ),
    };
    Some(file.problem_at(&["tls", key], bad.to_string(), hint))
}

/// Prices change, and budgets in dollars with them.
fn warn_of_old_prices() {
    let prices = Prices::builtin();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if prices.is_stale(Timestamp::from_secs(since.as_secs())) {
        let days = Prices::STALE_AFTER_DAYS;
        warn(&format!(
            "the list of prices is of {}, more than {days} days ago: update the program, or write what has changed \
             under `prices`",
            prices.as_of()
        ));
    }
}

fn show<W: Write>(
    out: &mut W,
    file: Option<&ConfigFile>,
    checked: &Result<Config, Vec<Problem>>,
) -> io::Result<()> {
    match (file, checked) {
        (Some(file), Err(problems)) => show_problems(out, file, problems)?,
        (Some(file), Ok(config)) => {
            stage(out, Stage::Passed, "read")?;
            stage(out, Stage::Passed, "syntax and meaning")?;
            for notice in &config.notices {
                write!(out, "{WARNING}warning:{WARNING:#} ")?;
                show_problem(out, file, notice)?;
            }
            writeln!(out, "\n{} is sound. In force:", printable(&file.name))?;
            explain(out, config)?;
        }
        (None, Ok(config)) => {
            writeln!(out, "there is no config here, so the defaults are in force:")?;
            explain(out, config)?;
            writeln!(out, "\nto change them, write loopbreaker.yaml or name a file with `-c`")?;
        }
        (None, Err(_)) => {}
    }
    out.flush()
}

fn show_problems<W: Write>(out: &mut W, file: &ConfigFile, problems: &[Problem]) -> io::Result<()> {
    stage(out, Stage::Passed, "read")?;
    stage(out, Stage::Failed, "syntax and meaning")?;
    for problem in problems {
        writeln!(out)?;
        show_problem(out, file, problem)?;
    }
    writeln!(out)?;
    stage(out, Stage::Skipped, "explanation skipped (mend the problems first)")
}

fn show_problem<W: Write>(out: &mut W, file: &ConfigFile, problem: &Problem) -> io::Result<()> {
    let key = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
    let (name, text) = file.place_of(problem);
    let place = format!("{name}:{}:{}", problem.line, problem.column);
    let (place, message) = (printable(&place), format!("{key}{}", problem.message));
    writeln!(out, "{BOLD}{place}{BOLD:#}: {}", printable(&message))?;
    snippet::write(out, text, problem.line, problem.column)?;
    match &problem.hint {
        Some(hint) => writeln!(out, "  {HINT}hint:{HINT:#} {}", printable(hint)),
        None => Ok(()),
    }
}

fn explain<W: Write>(out: &mut W, config: &Config) -> io::Result<()> {
    let width = terminal::width().saturating_sub(4).max(20);
    for sentence in config.explain() {
        let mut lead = "-";
        for line in wrap(&printable(&sentence), width) {
            writeln!(out, "  {lead} {line}")?;
            lead = " ";
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Passed,
    Failed,
    Skipped,
}

fn stage<W: Write>(out: &mut W, stage: Stage, name: &str) -> io::Result<()> {
    let (sign, style) = match stage {
        Stage::Passed => ("✓", AnsiColor::Green.on_default()),
        Stage::Failed => ("✗", AnsiColor::Red.on_default().bold()),
        Stage::Skipped => ("-", Style::new().dimmed()),
    };
    writeln!(out, "{style}{sign}{style:#} {name}")
}

const BOLD: Style = Style::new().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
