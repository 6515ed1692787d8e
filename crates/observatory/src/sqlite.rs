//! The database in one `SQLite` file, in WAL mode.

mod lock;

use std::path::Path;
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use crate::database::{Cell, Database, Flavour, Param, Row};
use crate::error::{StoreError, Stored};
use lock::Lock;

/// A connection to the file.
#[derive(Debug)]
pub(crate) struct Sqlite {
    db: Connection,
    /// Whether each commit waits for the disk.
    syncs: bool,
    /// Held by the one who writes. It is given back after the connection is closed.
    _lock: Option<Lock>,
}

/// What has to be done to a database, in order; its `user_version` says how far it is.
const MIGRATIONS: [&str; 5] = [
    include_str!("sqlite/schema.sql"),
    include_str!("sqlite/version-2.sql"),
    include_str!("sqlite/version-3.sql"),
    include_str!("sqlite/version-4.sql"),
    include_str!("sqlite/version-5.sql"),
];
/// Pages that are given back to the disk in one transaction.
const PAGES_AT_ONCE: i64 = 2_000;
/// Longer than any commit of ours takes, shorter than anybody likes to wait.
const BUSY: Duration = Duration::from_secs(2);

impl Sqlite {
    /// Opens the file as the only process that writes to it.
    pub(crate) fn open_alone(path: &Path) -> Stored<Self> {
        let lock = Lock::take(path)?;
        Ok(Self { _lock: lock, ..Self::open(path)? })
    }

    /// Opens the file for writing, makes it if it is not there, and brings it up to date.
    pub(crate) fn open(path: &Path) -> Stored<Self> {
        make_private(path)?;
        let db = Connection::open(path)?;
        db.busy_timeout(BUSY)?;
        db.set_prepared_statement_cache_capacity(128);
        // Only a new file takes these. Steps are appended, a kilobyte or two each, and a page is written as a whole, twice.
        db.pragma_update(None, "page_size", 8_192)?;
        // It lets retention give space back.
        db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "FULL")?;
        db.pragma_update(None, "foreign_keys", "OFF")?;
        // Each commit behind which a page was split walks the whole cache, so it is no larger than it has to be: what it
        // does not hold is in the system's.
        db.pragma_update(None, "cache_size", -16_384)?;
        // 32 MiB of pages gather before they are put into the file: each of them is written there once, however often
        // it has changed since, and half as much is left of the log of changes afterwards.
        let pages = (32 << 20) / db.query_row("PRAGMA page_size", [], |row| row.get::<_, i64>(0))?.max(512);
        db.pragma_update(None, "wal_autocheckpoint", pages)?;
        db.pragma_update(None, "journal_size_limit", 64 << 20)?;
        let mut sqlite = Self { db, syncs: true, _lock: None };
        sqlite.migrate()?;
        Ok(sqlite)
    }

    /// Opens the file for reading only.
    pub(crate) fn open_reader(path: &Path) -> Stored<Self> {
        let db = Connection::open(path)?;
        db.busy_timeout(BUSY)?;
        db.set_prepared_statement_cache_capacity(64);
        db.pragma_update(None, "query_only", "ON")?;
        Ok(Self { db, syncs: true, _lock: None })
    }

    fn migrate(&mut self) -> Stored<()> {
        let transaction = self.db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let found: u32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let known = MIGRATIONS.len() as u32;
        if found > known {
            return Err(StoreError::TooNew { found, known });
        }
        for migration in &MIGRATIONS[found as usize..] {
            transaction.execute_batch(migration)?;
        }
        transaction.pragma_update(None, "user_version", known)?;
        Ok(transaction.commit()?)
    }

    fn pragma(&self, name: &str) -> Stored<i64> {
        Ok(self.db.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))?)
    }

    #[cfg(test)]
    pub(crate) fn connection(&self) -> &Connection {
        &self.db
    }
}

/// Makes the file, if it is not there, for its owner alone; `SQLite` gives its journal the same rights.
fn make_private(path: &Path) -> Stored<()> {
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let opened = options.open(path);
    opened
        .map(drop)
        .map_err(|error| StoreError::Other(format!("{} cannot be opened: {error}", path.display())))
}

impl Database for Sqlite {
    fn begin(&mut self, relied_on: bool) -> Stored<()> {
        if self.syncs != relied_on {
            // The next commit that syncs takes those before it along.
            self.db.pragma_update(None, "synchronous", if relied_on { "FULL" } else { "NORMAL" })?;
            self.syncs = relied_on;
        }
        self.execute("BEGIN IMMEDIATE", &[]).map(drop)
    }

    fn commit(&mut self) -> Stored<()> {
        self.execute("COMMIT", &[]).map(drop)
    }

    fn rollback(&mut self) {
        if !self.db.is_autocommit() {
            // A rollback that fails leaves a transaction that the next begin reports.
            drop(self.execute("ROLLBACK", &[]));
        }
    }

    fn execute(&mut self, sql: &str, values: &[Param<'_>]) -> Stored<u64> {
        Ok(self.db.prepare_cached(sql)?.execute(params_from_iter(values))? as u64)
    }

    fn insert(&mut self, sql: &str, values: &[Param<'_>]) -> Stored<Option<i64>> {
        // With `RETURNING` every page that the statement touches would be copied before.
        let made = self.execute(sql, values)?;
        Ok((made > 0).then(|| self.db.last_insert_rowid()))
    }

    fn query(&mut self, sql: &str, values: &[Param<'_>]) -> Stored<Vec<Row>> {
        let mut statement = self.db.prepare_cached(sql)?;
        let columns = statement.column_count();
        let rows = statement.query_map(params_from_iter(values), |row| {
            (0..columns).map(|column| row.get_ref(column).map(cell)).collect::<Result<_, _>>().map(Row)
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn flavour(&self) -> Flavour {
        Flavour::Sqlite
    }

    fn used_bytes(&mut self) -> Stored<Option<u64>> {
        let pages = self.pragma("page_count")? - self.pragma("freelist_count")?;
        Ok(Some((pages * self.pragma("page_size")?).max(0).cast_unsigned()))
    }

    fn give_space_back(&mut self) -> Stored<bool> {
        let (free, all) = (self.pragma("freelist_count")?, self.pragma("page_count")?);
        // Some are left for the steps that come next.
        let spare = (free - all / 16).min(PAGES_AT_ONCE);
        if spare <= 0 {
            return Ok(false);
        }
        // Each row of its answer is one page, so all of them are read.
        self.query(&format!("PRAGMA incremental_vacuum({spare})"), &[])?;
        // A file that was made without that keeps its size.
        Ok(self.pragma("freelist_count")? < free)
    }

    fn cut_files(&mut self) -> Stored<bool> {
        // Nobody is waited for: whoever writes next would wait behind us.
        self.db.busy_timeout(Duration::ZERO)?;
        let busy = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        self.db.busy_timeout(BUSY)?;
        Ok(busy? == 0)
    }
}

impl ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(number),
            Self::Real(number) => ValueRef::Real(number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Int(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
    }
}

#[cfg(test)]
mod tests;
