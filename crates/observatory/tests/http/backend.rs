//! Where these tests keep their logs: in a file.

use std::path::Path;

use loopbreaker_observatory::Options;

/// The store of a folder.
pub(crate) fn options(folder: &Path) -> Options {
    Options::at(folder.join("log.db"))
}
