//! How far reading has come, for the person who waits.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on stderr, over the bytes of all files. It shows only on a terminal, and only when the work takes longer
/// than a second.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    wanted: bool,
    since: Instant,
    /// Bytes of all files; unknown when one of them is a pipe.
    total: Option<u64>,
    /// Bytes of the inputs before this one, and of this one.
    before: u64,
    here: u64,
}

impl Progress {
    pub(crate) fn over(files: &[PathBuf], quiet: bool) -> Self {
        let wanted = !quiet && std::io::stderr().is_terminal();
        let total = if wanted { files.iter().map(|file| size(file)).sum() } else { None };
        Self { bar: None, wanted, since: Instant::now(), total, before: 0, here: 0 }
    }

    /// The next input begins.
    pub(crate) fn begin(&mut self) {
        self.before += std::mem::take(&mut self.here);
    }

    /// This many bytes of the input are read.
    pub(crate) fn at(&mut self, bytes: u64) {
        self.here = bytes;
        if !self.wanted {
            return;
        }
        if self.bar.is_none() && self.since.elapsed() > PATIENCE {
            // The bar appears late, and would else take what is read by then for the work of an instant.
            self.bar = Some(bar(self.total).with_elapsed(self.since.elapsed()));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.before + bytes);
        }
    }

    /// Says something while the bar is out of the way.
    pub(crate) fn suspended<T>(&self, say: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(say),
            None => say(),
        }
    }

    pub(crate) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn bar(total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (ProgressBar::new(total), "{bar:40} {bytes} of {total_bytes}, {eta} left"),
        None => (ProgressBar::new_spinner(), "{spinner} {bytes} read, {bytes_per_sec}"),
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn size(file: &Path) -> Option<u64> {
    if file == Path::new("-") {
        return None;
    }
    // A file that is missing has nothing to read, and is told elsewhere.
    file.metadata().map_or(Some(0), |metadata| metadata.is_file().then_some(metadata.len()))
}

const PATIENCE: Duration = Duration::from_secs(1);
