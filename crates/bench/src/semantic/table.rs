//! Rows as they come, floors at the end.

use std::io::{self, Write};
use std::time::Duration;

/// What was measured, printed as Markdown on the way.
pub(crate) struct Report {
    out: io::Stdout,
    floors: Vec<(String, bool)>,
    load: String,
}

impl Report {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { out: io::stdout(), floors: Vec::new(), load: load()? })
    }

    /// Begins a table.
    pub(crate) fn table(&mut self, title: &str, columns: &[&str]) -> io::Result<()> {
        let rule = vec!["---"; columns.len()].join("|");
        writeln!(self.out, "\n### {title}\n\n|{}|\n|{rule}|", columns.join("|"))
    }

    /// One row of it.
    pub(crate) fn row(&mut self, cells: &[String]) -> io::Result<()> {
        writeln!(self.out, "|{}|", cells.join("|"))
    }

    /// Something that has to hold.
    pub(crate) fn floor(&mut self, what: String, holds: bool) {
        self.floors.push((what, holds));
    }

    pub(crate) fn finish(&mut self) -> io::Result<()> {
        writeln!(self.out, "\n### Floors\n")?;
        for (what, holds) in &self.floors {
            writeln!(self.out, "- {} {what}", if *holds { "holds:" } else { "MISSED:" })?;
        }
        writeln!(self.out, "\nLoad average before and after: {} / {}.", self.load, load()?)
    }

    pub(crate) fn holds(&self) -> bool {
        self.floors.iter().all(|(_, holds)| *holds)
    }
}

/// How long calls took.
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// Milliseconds below which this share of the calls stays.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        #[expect(clippy::cast_sign_loss, reason = "a place in a list is not negative")]
        let at = ((self.0.len() as f64 - 1.0).max(0.0) * share).round() as usize;
        self.0.get(at).map_or(0.0, |time| time.as_secs_f64() * 1_000.0)
    }

    /// The middle, and in brackets what one in twenty exceeds.
    pub(crate) fn shown(&self) -> String {
        format!("{:.1} ({:.1})", self.quantile(0.5), self.quantile(0.95))
    }
}

fn load() -> io::Result<String> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').take(3).collect::<Vec<_>>().join(" "))
}
