//! One process per file: two that write would not hear of each other's events and orders.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{StoreError, Stored};

/// The right to write to a database, for as long as it lives. Whoever only reads needs none.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// The process before this one may still be ending.
    const PATIENCE: Duration = Duration::from_millis(500);
    const AGAIN: Duration = Duration::from_millis(20);

    /// Takes it, on a file beside the database: the system gives it back however the process ends.
    ///
    /// Some file systems have no locks. `None` is what a database gets there: it works as well as it did before.
    pub(super) fn take(database: &Path) -> Stored<Option<Self>> {
        let path = database.with_extension("lock");
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let unopened = |error| StoreError::Other(format!("{} cannot be opened: {error}", path.display()));
        let file = options.open(&path).map_err(unopened)?;
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self(file))),
                Err(TryLockError::Error(_)) => return Ok(None),
                Err(TryLockError::WouldBlock) if started.elapsed() < Self::PATIENCE => {
                    std::thread::sleep(Self::AGAIN);
                }
                Err(TryLockError::WouldBlock) => return Err(StoreError::InUse),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A process that is being started has the same file open for a moment, and would keep the lock. If this fails, it
        // is given back with the file.
        self.0.unlock().ok();
    }
}
