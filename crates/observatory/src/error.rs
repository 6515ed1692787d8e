//! What can go wrong with the store.

/// Why the store could not do what was asked.
///
/// It is cheap to clone: one failure is told to everybody whose work was in the same batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The disk, or the space that the database may take, is full.
    #[error("the disk of the store is full: make room or lower the retention")]
    Full,
    /// Somebody else holds the database.
    #[error("the store is locked by another process")]
    Locked,
    /// Another process has the file for itself.
    #[error(
        "another loopbreaker uses this data folder: give this one its own with `--data-dir`, or a PostgreSQL log"
    )]
    InUse,
    /// The file is damaged, or no database at all.
    #[error("the store is damaged: {0}; move the file away and restart")]
    Corrupt(String),
    /// The database was written by a newer program.
    #[error("the store has version {found}, this program knows up to {known}: update it")]
    TooNew {
        /// The version of the database.
        found: u32,
        /// The version of this program.
        known: u32,
    },
    /// The server does not answer.
    #[error("the store cannot be reached: {0}; check its url and that the server runs")]
    Unreachable(String),
    /// More work waits for the store than it may.
    #[error("the store is busy: send it again later, what it knows already is kept once")]
    Busy,
    /// Anything else.
    #[error("the store failed: {0}")]
    Other(String),
}

impl StoreError {
    /// The error's name on the wire.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Full => "disk_full",
            Self::Locked => "locked",
            Self::InUse => "in_use",
            Self::Corrupt(_) => "corrupt",
            Self::TooNew { .. } => "too_new",
            Self::Unreachable(_) => "unreachable",
            Self::Busy => "busy",
            Self::Other(_) => "failed",
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt(error.to_string()),
            _ => Self::Other(error.to_string()),
        }
    }
}

/// Short for results of the store.
pub(crate) type Stored<T> = Result<T, StoreError>;
