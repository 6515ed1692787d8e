//! `loopbreaker replay`: what would have fired in recorded runs.

mod explain;
mod html;
mod input;
mod json;
mod likeness;
mod marks;
mod note;
mod problems;
mod progress;
mod run;
mod runs;
mod shelf;
mod summary;
mod table;
mod totals;

use std::io;
use std::path::Path;

use clap::CommandFactory as _;
use clap::error::ErrorKind;
use loopbreaker::{Ladder, ReplayRules};
use loopbreaker_config::{Config, Mode, Policy};
use loopbreaker_trace::Options;

use crate::args::{Args, ReplayArgs};
use crate::config_file;
use crate::exit::Exit;
use crate::failure::{Failure, tell, warn};
use html::PageFile;
use input::Input;
use json::JsonLines;
use likeness::Likeness;
use progress::Progress;
use runs::{Keep, Runs};
use shelf::Shelf;
use table::Table;
use totals::Totals;

pub(crate) fn run(args: &ReplayArgs) -> Result<Exit, Failure> {
    refuse_two_readers_of_stdin(args);
    let config = config(args)?;
    let rules = ReplayRules::new(&config.detectors).with_ladder(ladder(&config));
    let likeness = args.semantic.then(|| Likeness::new(&config)).transpose()?;
    // Nobody wants to learn after ten minutes that the page cannot be written.
    let page = args.html.as_deref().map(|out| PageFile::prepare(out, &args.files)).transpose()?;
    let keep = Keep { notes: args.explain && !args.json, shelf: page.as_ref().map(|_| Shelf::default()) };
    let progress = Progress::over(&args.files, args.quiet);
    let mut runs = Runs::new(rules, likeness, view(args), keep, progress);

    let mut unread = 0_u64;
    for file in &args.files {
        if !read(file, args, &mut runs) {
            unread += 1;
        }
        if runs.stopped() {
            break;
        }
    }
    let done = runs.finish()?;

    if let (Some(page), Some(shelf)) = (page, &done.shelf) {
        let out = page.write(shelf, &done.totals, &args.files)?;
        if !args.quiet {
            crate::failure::say(&format!("the report is in {out}\n"));
        }
    }
    done.problems.report();
    Ok(exit(unread + done.problems.count(), &done.totals, args.fail_on_loop))
}

/// An incomplete answer is worse news than a loop: who asks for loops in CI must know that not all was looked at.
fn exit(unread: u64, totals: &Totals, fail_on_loop: bool) -> Exit {
    match (unread, totals.loops) {
        (1.., _) => Exit::Problem,
        (_, 1..) if fail_on_loop => Exit::Loop,
        _ => Exit::Fine,
    }
}

/// Reads one file; `false` when it could not be read at all, which is told at once.
fn read(file: &Path, args: &ReplayArgs, runs: &mut Runs<'_>) -> bool {
    let told = Input::open(file, runs.stop_sign()).and_then(|input| {
        runs.begin(&input.name);
        let options = Options { format: args.format, ..Options::named(&input.stem) };
        let outcome = loopbreaker_trace::read(input.reader, &options, runs);
        outcome.map(drop).map_err(|error| input::unreadable(&input.name, &error))
    });
    match told {
        Err(Failure::Told { message, hint }) if !runs.stopped() => {
            runs.suspended(|| tell(&message, &hint));
            false
        }
        _ => true,
    }
}

fn view(args: &ReplayArgs) -> Box<dyn runs::View> {
    if args.json {
        Box::new(JsonLines::new(io::stdout().lock(), args.explain))
    } else {
        let detail = table::Detail { explain: args.explain, verbose: args.verbose, quiet: args.quiet };
        Box::new(Table::new(anstream::stdout().lock(), crate::terminal::width(), detail))
    }
}

/// What is done at each strike; nothing where there are policies and none of them looks at tool loops.
fn ladder(config: &Config) -> Option<Ladder> {
    let looks = |policy: &Policy| policy.mode != Mode::Off && policy.tool_loops.is_some();
    let is_done = config.policies.is_empty() || config.policies.iter().any(looks);
    is_done.then(|| config.detectors.ladder.clone())
}

fn config(args: &ReplayArgs) -> Result<Config, Failure> {
    let Some(mut file) = config_file::find(args.config.file.as_deref())? else {
        return Ok(Config::default());
    };
    match file.parse() {
        Ok(config) => {
            for notice in config.notices.iter().filter(|_| !args.quiet) {
                let (name, _) = file.place_of(notice);
                warn(&format!(
                    "{name}:{}:{}: {}: {}",
                    notice.line, notice.column, notice.path, notice.message
                ));
            }
            Ok(config)
        }
        Err(problems) => {
            let first = problems.first().map(|problem| {
                let (name, _) = file.place_of(problem);
                format!("{name}:{}:{}: {}", problem.line, problem.column, problem.message)
            });
            let message = format!("the config is not sound: {}", first.unwrap_or_default());
            let name = &file.name;
            Err(Failure::told(message, format!("`loopbreaker check -c {name}` tells all of it")))
        }
    }
}

fn refuse_two_readers_of_stdin(args: &ReplayArgs) {
    let is_stdin = |path: &Path| path == Path::new("-");
    let readers = args.files.iter().map(|file| &**file).chain(args.config.file.as_deref());
    if readers.filter(|path| is_stdin(path)).count() > 1 {
        let message = "`-` (stdin) can be read only once: name a file for the others";
        Args::command().error(ErrorKind::ArgumentConflict, message).exit();
    }
}
