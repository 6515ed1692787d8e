//! The files that are read.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use loopbreaker_trace::Error;

use crate::failure::Failure;

/// One file (or stdin) that could be opened.
pub(crate) struct Input {
    /// What to call it in messages.
    pub(crate) name: String,
    /// What its runs are called when they have no id of their own.
    pub(crate) stem: String,
    pub(crate) reader: Stoppable<BufReader<Box<dyn Read>>>,
}

impl Input {
    pub(crate) fn open(path: &Path, stop: Rc<Cell<bool>>) -> Result<Self, Failure> {
        let (name, stem, source): (_, _, Box<dyn Read>) = if path == Path::new("-") {
            ("<stdin>".into(), "stdin".into(), Box::new(io::stdin().lock()))
        } else {
            let name = path.display().to_string();
            let stem = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            let file = open(path).map_err(|error| cannot_open(&name, &error))?;
            (name, stem, Box::new(file))
        };
        let reader = Stoppable { reader: BufReader::with_capacity(BUFFER, source), stop };
        Ok(Self { name, stem, reader })
    }
}

/// Why an input that was opened could not be read: the reader's words, told like all our errors.
pub(crate) fn unreadable(name: &str, error: &Error) -> Failure {
    let text = error.to_string();
    let (message, hint) = text.split_once("; ").unwrap_or((&text, ""));
    let message = message.strip_prefix("the input ").unwrap_or(message);
    let hint = hint.replace("FILE | …", &format!("{name} | loopbreaker replay -"));
    Failure::told(format!("{name} {message}"), hint)
}

/// A reader that is at its end as soon as the sign is set.
pub(crate) struct Stoppable<R> {
    reader: R,
    stop: Rc<Cell<bool>>,
}

impl<R: BufRead> Read for Stoppable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.get() { Ok(0) } else { self.reader.read(buffer) }
    }
}

impl<R: BufRead> BufRead for Stoppable<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.stop.get() { Ok(&[]) } else { self.reader.fill_buf() }
    }

    fn consume(&mut self, amount: usize) {
        self.reader.consume(amount);
    }
}

/// Opening a directory works on Unix and only reading it fails, so it is asked for by name.
fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(file) }
}

fn cannot_open(name: &str, error: &io::Error) -> Failure {
    let (why, hint) = match error.kind() {
        io::ErrorKind::NotFound => ("is not there".into(), "check the path; `-` reads stdin".into()),
        io::ErrorKind::IsADirectory => (
            "is a directory".into(),
            format!(
                "name the files in it, for example `loopbreaker replay {}/*.jsonl`",
                name.trim_end_matches('/')
            ),
        ),
        io::ErrorKind::PermissionDenied => {
            ("may not be read by you".into(), format!("look at `ls -l {name}`"))
        }
        _ => (format!("could not be opened: {error}"), "check that the file is there and readable".into()),
    };
    Failure::told(format!("{name} {why}"), hint)
}

const BUFFER: usize = 256 << 10;
