//! `--html`: the file of the page.

mod escape;
mod finding;
mod page;
mod run;
mod strip;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::replay::shelf::Shelf;
use crate::replay::totals::Totals;

/// The place that the page goes to.
pub(crate) struct PageFile {
    /// As it was named on the command line.
    named: PathBuf,
    place: PathBuf,
    /// The page is written here and moved to its place when it is complete, so that nobody opens half a page, and a
    /// failure leaves an older page as it was. Devices and pipes cannot be replaced, so they have no draft.
    draft: Option<PathBuf>,
}

impl PageFile {
    /// Finds out whether the page can be written there.
    pub(crate) fn prepare(named: &Path, inputs: &[PathBuf]) -> Result<Self, Failure> {
        let fail = |error: &io::Error| cannot_write(named, error);
        // Where the place is a link, what it points to is replaced, not the link.
        let place = fs::canonicalize(named).unwrap_or_else(|_| named.to_owned());
        if inputs.iter().any(|input| fs::canonicalize(input).is_ok_and(|input| input == place)) {
            let message = format!("--html {} would overwrite an input", named.display());
            return Err(Failure::told(message, "give the report a name of its own, such as report.html"));
        }
        if named == Path::new("-") {
            return Err(Failure::told(
                "--html needs a file: stdout is for the runs",
                "name it, such as report.html",
            ));
        }
        if place.is_dir() {
            return Err(fail(&io::ErrorKind::IsADirectory.into()));
        }
        let named = named.to_owned();
        if place.exists() && !place.is_file() {
            return Ok(Self { named, place, draft: None });
        }
        let name = place.file_name().ok_or_else(|| fail(&io::ErrorKind::InvalidInput.into()))?;
        let draft = place.with_file_name(format!(".{}.{}.part", name.to_string_lossy(), std::process::id()));
        // Made and removed again: reading may take minutes, and who interrupts it shall not find an empty draft.
        File::create(&draft).and_then(|_| fs::remove_file(&draft)).map_err(|error| fail(&error))?;
        Ok(Self { named, place, draft: Some(draft) })
    }

    /// Writes the page, and says where it is.
    pub(crate) fn write(
        &self,
        shelf: &Shelf,
        totals: &Totals,
        inputs: &[PathBuf],
    ) -> Result<String, Failure> {
        let written = match &self.draft {
            None => File::options()
                .write(true)
                .open(&self.place)
                .and_then(|file| fill(file, shelf, totals, inputs)),
            Some(draft) => File::create(draft)
                .and_then(|file| fill(file, shelf, totals, inputs))
                .and_then(|()| fs::rename(draft, &self.place))
                // A draft that did not become the page is of no use to anybody.
                .inspect_err(|_| drop(fs::remove_file(draft))),
        };
        written.map_err(|error| cannot_write(&self.named, &error))?;
        Ok(self.named.display().to_string())
    }
}

fn fill(file: File, shelf: &Shelf, totals: &Totals, inputs: &[PathBuf]) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    page::write(&mut out, shelf, totals, inputs)?;
    out.flush()
}

fn cannot_write(out: &Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "make the folder first, or name another place",
        io::ErrorKind::IsADirectory => "name a file in it, such as report.html",
        io::ErrorKind::PermissionDenied => "name a place that you may write to",
        _ => "name another place after --html",
    };
    Failure::told(format!("the report {} could not be written: {error}", out.display()), hint)
}
