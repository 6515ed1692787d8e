//! Parts of ours that requests can go without.

use std::fmt;

/// A part of ours that may fail or be late without stopping a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Reading the body: it is not what its path promises, too large to look at, or absent.
    Body,
    /// Putting a hint where the provider accepts it.
    Hint,
    /// A detector: it failed.
    Detector,
    /// The embeddings of the semantic detector.
    Semantic,
    /// Shared state (Redis).
    State,
    /// The decision-log store.
    Store,
    /// The folder for what outlives a restart.
    DataDir,
    /// The config file: the running settings are older than it.
    Config,
    /// Log lines.
    Log,
    /// Spans for the collector.
    Otlp,
}

impl Part {
    /// Every part.
    pub const ALL: [Self; 10] = [
        Self::Body,
        Self::Hint,
        Self::Detector,
        Self::Semantic,
        Self::State,
        Self::Store,
        Self::DataDir,
        Self::Config,
        Self::Log,
        Self::Otlp,
    ];

    /// The part's name on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Hint => "hint",
            Self::Detector => "detector",
            Self::Semantic => "semantic",
            Self::State => "state",
            Self::Store => "store",
            Self::DataDir => "data_dir",
            Self::Config => "config",
            Self::Log => "log",
            Self::Otlp => "otlp",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The parts that one request went without.
///
/// ```
/// use loopbreaker_telemetry::{Degraded, Part};
///
/// let mut degraded = Degraded::default();
/// assert!(degraded.is_empty());
/// degraded.insert(Part::State);
/// degraded.insert(Part::Hint);
/// assert_eq!(degraded.to_string(), "hint,state");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Degraded(u16);

impl Degraded {
    /// Adds a part.
    pub fn insert(&mut self, part: Part) {
        self.0 |= Self::bit(part);
    }

    /// Whether a part was missing.
    pub fn contains(self, part: Part) -> bool {
        self.0 & Self::bit(part) != 0
    }

    /// Whether nothing was missing.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The parts, in the order of [`Part::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Part> {
        Part::ALL.into_iter().filter(move |part| self.contains(*part))
    }

    const fn bit(part: Part) -> u16 {
        1 << part as u16
    }
}

impl From<Part> for Degraded {
    fn from(part: Part) -> Self {
        Self(Self::bit(part))
    }
}

impl FromIterator<Part> for Degraded {
    fn from_iter<I: IntoIterator<Item = Part>>(parts: I) -> Self {
        parts.into_iter().fold(Self::default(), |all, part| Self(all.0 | Self::bit(part)))
    }
}

impl fmt::Display for Degraded {
    /// The names with commas between, as in the header `X-Loopbreaker-Degraded`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            f.write_str(part.as_str())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Degraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{Degraded, Part};

    #[test]
    fn every_part_has_a_bit_and_a_name_of_its_own() {
        let all: Degraded = Part::ALL.into_iter().collect();
        assert_eq!(all.iter().count(), Part::ALL.len());
        let mut names = Part::ALL.map(Part::as_str).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Part::ALL.len());
    }

    #[test]
    fn a_part_is_there_once_it_was_inserted_and_only_then() {
        let mut degraded = Degraded::from(Part::Otlp);
        assert!(degraded.contains(Part::Otlp) && !degraded.contains(Part::Body));
        degraded.insert(Part::Otlp);
        assert_eq!(degraded.iter().collect::<Vec<_>>(), [Part::Otlp]);
    }
}
