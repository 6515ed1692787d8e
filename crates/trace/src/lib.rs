//! Recorded agent runs of many formats, read as a stream of steps.
//!
//! [`read`] takes any reader, finds out by content which [`Format`] it holds, and hands every step to a [`Sink`].
//! Nothing but one line (or one document that is spread over lines) is ever held, so that files of any size are read
//! in flat memory. What cannot be read is reported with its line number, and reading goes on behind it.
//!
//! ```
//! use loopbreaker_trace::{Options, Problem, Sink, read};
//!
//! #[derive(Default)]
//! struct Tools(Vec<String>);
//!
//! impl Sink for Tools {
//!     fn step(&mut self, run: &str, step: &loopbreaker::Step<'_>) {
//!         self.0.push(format!("{run} {}", step.tool.unwrap_or("-")));
//!     }
//!     fn end(&mut self, _run: &str) {}
//!     fn problem(&mut self, _problem: Problem) {}
//! }
//!
//! let input = r#"{"id":"run-7","steps":[{"tool":"bash","args":{"command":"ls"}},{"thought":"done"}]}"#;
//! let mut tools = Tools::default();
//! let summary = read(input.as_bytes(), &Options::named("example"), &mut tools)?;
//! assert_eq!(tools.0, ["run-7 bash", "run-7 -"]);
//! assert_eq!((summary.format.as_str(), summary.runs), ("trace", 1));
//! # Ok::<(), loopbreaker_trace::Error>(())
//! ```

mod chat;
mod claude_code;
mod decision_log;
mod detect;
mod document;
mod error;
mod format;
mod line;
mod openhands;
mod options;
mod otlp;
mod output;
mod recent;
mod record;
mod runs;
mod sink;
mod swe_agent;
mod time;
mod trace;

pub use error::Error;
pub use format::Format;
pub use options::Options;
pub use sink::{Problem, Sink, Summary};

use std::io::BufRead;

use crate::document::{Item, Records};
use crate::output::Output;
use crate::record::Record;

/// Reads everything, and returns the format that was used and how many runs and problems there were.
///
/// Without [`Options::format`], the first record of a known shape decides; records before it are reported as problems.
/// Problems are no errors: a file of which a single line can be read is read.
pub fn read<R: BufRead>(mut input: R, options: &Options<'_>, sink: &mut dyn Sink) -> Result<Summary, Error> {
    error::refuse_compressed(&mut input)?;
    let mut records = Records::new(input, options.max_line);
    let mut out = Output::new(options.name, sink);
    let mut reader = options.format.map(Format::reader);
    let mut format = options.format;
    let mut strangers = 0;

    loop {
        match records.next()? {
            Item::End => break,
            Item::Problem(problem) => out.problem(problem),
            Item::Record(record) => {
                if reader.is_none() {
                    match detect::format_of(record) {
                        Ok(found) => {
                            format = Some(found);
                            reader = Some(found.reader());
                        }
                        Err(problem) => {
                            out.problem(problem);
                            strangers += 1;
                        }
                    }
                }
                if let Some(reader) = &mut reader
                    && let Err(problem) = reader.record(record, &mut out)
                {
                    out.problem(problem);
                }
            }
        }
        out.progress(records.bytes());
        if strangers == MAX_STRANGERS {
            break;
        }
    }

    if let Some(reader) = &mut reader {
        reader.finish(&mut out);
    }
    match format {
        Some(_) if records.bytes() == 0 => Err(Error::Empty),
        Some(format) => Ok(out.summary(format, records.bytes())),
        None if out.problems() == 0 => Err(Error::Empty),
        None => Err(Error::UnknownFormat { records: strangers }),
    }
}

/// What turns the records of one format into steps.
trait Reader {
    /// Reads one record; on a problem, nothing of the record has been passed on.
    fn record(&mut self, record: Record<'_>, out: &mut Output<'_>) -> Result<(), Problem>;

    /// Passes on what was kept back, and ends every open run: no more records will come.
    fn finish(&mut self, _out: &mut Output<'_>) {}
}

// A file whose first hundred records have no known shape is no recorded run, and reading all of it would only bury
// the reason under problems.
const MAX_STRANGERS: u64 = 100;
