//! What the observatory is opened with.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use loopbreaker::DetectorsConfig;

use crate::error::{StoreError, Stored};
use crate::postgres::Postgres;
use crate::sqlite::Sqlite;
use crate::store::Store;

/// What the observatory is opened with.
///
/// ```
/// use std::path::Path;
/// use loopbreaker_observatory::Options;
///
/// let in_a_file = Options::parse("sqlite", Path::new("/var/lib/loopbreaker"))?;
/// assert!(format!("{in_a_file:?}").contains("observatory.db"));
/// let on_a_server = Options::parse("postgres://observatory:secret@db/loops", Path::new("."))?;
/// assert!(!format!("{on_a_server:?}").contains("secret"));
/// assert!(Options::parse("mysql://db", Path::new(".")).is_err());
/// # Ok::<(), loopbreaker_observatory::StoreError>(())
/// ```
#[derive(Clone)]
pub struct Options {
    /// Where logs are kept.
    pub(crate) source: Source,
    /// Logs that are older are forgotten.
    pub max_age: Duration,
    /// When the database holds more, the oldest logs are forgotten.
    pub max_bytes: u64,
    /// Whether words are kept, or only their hashes.
    pub keep_prompts: bool,
    /// Whether whoever notes traffic looks for loops in all of it, and says which sessions were in one
    /// ([`Note::Looped`](crate::Note::Looped)): others waste nothing, and are not looked at again.
    pub traffic_is_judged: bool,
    /// A pause that nobody decided about for so long becomes a rejection.
    pub pause_timeout: Duration,
    /// The thresholds, unless they were changed at run time.
    pub detectors: DetectorsConfig,
    /// Events that are kept for listeners that come back.
    pub events_kept: usize,
    /// Milliseconds since 1970.
    pub clock: Arc<dyn Fn() -> i64 + Send + Sync>,
}

/// Where logs are kept.
#[derive(Clone)]
pub(crate) enum Source {
    File(PathBuf),
    Server(String),
}

impl Options {
    /// The defaults, with this `SQLite` file; made if it is not there.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self::from(Source::File(path.into()))
    }

    /// The defaults, with a `PostgreSQL` database: `postgres://user:password@host:port/database`. With
    /// `sslmode=require` the connection is encrypted, and the server's certificate is checked.
    pub fn url(url: impl Into<String>) -> Self {
        Self::from(Source::Server(url.into()))
    }

    /// The defaults, with what a configuration says: `sqlite` (a file in the folder), `sqlite:` and a path, or
    /// `postgres://…`.
    pub fn parse(url: &str, folder: &Path) -> Result<Self, StoreError> {
        if url == "sqlite" {
            Ok(Self::at(folder.join("observatory.db")))
        } else if let Some(path) = url.strip_prefix("sqlite:") {
            Ok(Self::at(folder.join(path)))
        } else if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            Ok(Self::url(url))
        } else {
            Err(StoreError::Other("the url of the log must be sqlite or start with postgres://".to_owned()))
        }
    }

    fn from(source: Source) -> Self {
        Self {
            source,
            max_age: Duration::from_secs(30 * 24 * 3_600),
            max_bytes: 10 << 30,
            keep_prompts: true,
            traffic_is_judged: false,
            pause_timeout: Duration::from_secs(30 * 60),
            detectors: DetectorsConfig::default(),
            events_kept: 16_384,
            clock: Arc::new(system_clock),
        }
    }
}

impl Source {
    /// Opens it for writing, and brings it up to date.
    pub(crate) fn open(&self) -> Stored<Store> {
        match self {
            Self::File(path) => Sqlite::open_alone(path).map(Store::new),
            Self::Server(url) => Postgres::open(url).map(Store::new),
        }
    }

    /// Opens it for reading only.
    pub(crate) fn open_reader(&self) -> Stored<Store> {
        match self {
            Self::File(path) => Sqlite::open_reader(path).map(Store::new),
            Self::Server(url) => Postgres::open_reader(url).map(Store::new),
        }
    }
}

fn system_clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("source", &self.source).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            // A URL may hold a password.
            Self::Server(_) => f.write_str("Server"),
        }
    }
}
