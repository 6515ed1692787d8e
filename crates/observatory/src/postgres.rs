//! The database on a `PostgreSQL` server, which several processes may share.
//!
//! A transaction that writes holds one advisory lock, so that there is one writer at a time over all processes: numbers
//! of events follow the order of commits, and the audit log is one chain.
//!
//! Limits are set on both sides. Ours end every wait for a server that says nothing. The server's end the transaction of
//! a process that stands still or that nobody can reach any more, so that its lock does not stop all others.

mod backoff;
mod cells;
mod link;
mod tls;
mod url;

use std::borrow::Cow;
use std::time::Duration;

use crate::database::{Database, Flavour, Param, Row};
use crate::error::{StoreError, Stored};
use backoff::Backoff;
use link::Link;
use url::Address;

/// A connection to the server; it is made again when it was lost.
pub(crate) struct Postgres {
    address: Address,
    role: Role,
    link: Option<Link>,
    backoff: Backoff,
    in_transaction: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Writer,
    Reader,
}

/// What has to be done to a database, in order; the table `schema_version` says how far it is.
const MIGRATIONS: [&str; 2] = [include_str!("postgres/schema.sql"), include_str!("postgres/version-2.sql")];
/// The advisory lock of whoever writes: "loopbrea" in ASCII.
const LOCK: i64 = 0x6c6f_6f70_6272_6561;
/// How long an update of the database may take: an index over many steps is built with it.
const MIGRATION: Duration = Duration::from_secs(3_600);

impl Role {
    /// How long one statement may take.
    const fn limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::Writer => 5,
            Self::Reader => 32,
        })
    }

    /// The server's own limits are shorter than ours, so that it says itself what takes too long while it can. A
    /// transaction in which nothing happens is over before others give up waiting for its lock.
    const fn settings(self) -> &'static str {
        match self {
            Self::Writer => {
                "SET synchronous_commit = on; SET statement_timeout = '4500ms'; SET lock_timeout = '4s';
                 SET idle_in_transaction_session_timeout = '3s'; SET tcp_user_timeout = '5s'"
            }
            Self::Reader => "SET default_transaction_read_only = on; SET statement_timeout = '30s'",
        }
    }
}

impl Postgres {
    /// Connects for writing, and brings the database up to date.
    pub(crate) fn open(url: &str) -> Stored<Self> {
        let mut postgres = Self::at(url, Role::Writer)?;
        postgres.begin(true)?;
        let migrated = postgres.migrate();
        match migrated {
            Ok(()) => postgres.commit()?,
            Err(error) => {
                postgres.rollback();
                return Err(error);
            }
        }
        Ok(postgres)
    }

    /// Connects for reading only.
    pub(crate) fn open_reader(url: &str) -> Stored<Self> {
        let mut postgres = Self::at(url, Role::Reader)?;
        postgres.link()?;
        Ok(postgres)
    }

    fn at(url: &str, role: Role) -> Stored<Self> {
        let address = Address::parse(url)?;
        Ok(Self { address, role, link: None, backoff: Backoff::default(), in_transaction: false })
    }

    fn migrate(&mut self) -> Stored<()> {
        self.batch("SET LOCAL statement_timeout = 0")?;
        self.batch("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)")?;
        let found = self.query("SELECT coalesce(max(version), 0) FROM schema_version", &[])?;
        let found = found.first().map_or(Ok(0), |row| row.count(0))? as u32;
        let known = MIGRATIONS.len() as u32;
        if found > known {
            return Err(StoreError::TooNew { found, known });
        }
        for migration in &MIGRATIONS[found as usize..] {
            self.ask(|link| link.batch_within(MIGRATION, migration))?;
        }
        self.execute("DELETE FROM schema_version", &[])?;
        self.execute("INSERT INTO schema_version (version) VALUES (?1)", &[Param::from(known)]).map(drop)
    }

    /// Asks the server. What does not answer is closed from our side, and made again after a while.
    fn ask<T>(&mut self, question: impl FnOnce(&mut Link) -> Stored<T>) -> Stored<T> {
        let answer = self.link().and_then(question);
        if let Err(error) = &answer
            && self.link.as_ref().is_some_and(Link::is_given_up)
        {
            self.link = None;
            self.backoff.failed(error.clone());
        }
        answer
    }

    /// The connection; a lost one is made again, but never in the middle of a transaction.
    fn link(&mut self) -> Stored<&mut Link> {
        if self.link.as_ref().is_some_and(Link::is_closed) {
            self.link = None;
        }
        if self.link.is_none() {
            if self.in_transaction {
                return Err(StoreError::Unreachable("the connection was lost".to_owned()));
            }
            self.backoff.is_over()?;
            match Link::connect(&self.address, self.role.settings(), self.role.limit()) {
                Ok(link) => self.link = Some(link),
                Err(error) => {
                    self.backoff.failed(error.clone());
                    return Err(error);
                }
            }
            self.backoff = Backoff::default();
        }
        self.link.as_mut().ok_or_else(|| StoreError::Unreachable("there is no connection".to_owned()))
    }

    fn batch(&mut self, sql: &str) -> Stored<()> {
        self.ask(|link| link.batch(sql))
    }
}

impl Database for Postgres {
    fn begin(&mut self, _relied_on: bool) -> Stored<()> {
        self.link()?;
        self.in_transaction = true;
        self.batch(&format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK})"))
    }

    fn commit(&mut self) -> Stored<()> {
        let committed = self.batch("COMMIT");
        self.in_transaction = false;
        committed.map_err(|error| match error {
            StoreError::Unreachable(why) => StoreError::Unreachable(format!(
                "{why}; this was a commit, so what was sent may be kept or not: send it again, it is kept once"
            )),
            other => other,
        })
    }

    fn rollback(&mut self) {
        if self.in_transaction && self.batch("ROLLBACK").is_err() {
            // The server rolls back what a lost connection has left.
            self.link = None;
        }
        self.in_transaction = false;
    }

    fn execute(&mut self, sql: &str, values: &[Param<'_>]) -> Stored<u64> {
        self.ask(|link| link.execute(sql, values))
    }

    fn insert(&mut self, sql: &str, values: &[Param<'_>]) -> Stored<Option<i64>> {
        let rows = self.query(&format!("{sql} RETURNING id"), values)?;
        rows.first().map(|row| row.int(0)).transpose()
    }

    fn query(&mut self, sql: &str, values: &[Param<'_>]) -> Stored<Vec<Row>> {
        let is_reader = self.role == Role::Reader;
        let question = |link: &mut Link| {
            if is_reader {
                link.greet()?;
            }
            link.query(sql, values)
        };
        let mut rows = self.ask(question);
        // A server that has started again has closed what was open before, which is seen only now. Reading twice does no
        // harm. Nobody waits twice for one that is silent, or that could not be reached: there is no link to it any more.
        if is_reader && matches!(rows, Err(StoreError::Unreachable(_))) && self.link.take().is_some() {
            rows = self.ask(question);
        }
        rows?.iter().map(cells::row).collect()
    }

    fn flavour(&self) -> Flavour {
        Flavour::Postgres
    }

    /// Files do not shrink when rows are deleted, so what they take says little of what is kept.
    fn used_bytes(&mut self) -> Stored<Option<u64>> {
        Ok(None)
    }

    fn give_space_back(&mut self) -> Stored<bool> {
        // The server's own vacuum does that.
        Ok(false)
    }

    fn cut_files(&mut self) -> Stored<bool> {
        Ok(true)
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        use tokio_postgres::error::SqlState;
        match error.code() {
            Some(&SqlState::DISK_FULL) => Self::Full,
            Some(&SqlState::LOCK_NOT_AVAILABLE) => Self::Locked,
            Some(&SqlState::QUERY_CANCELED) => Self::Busy,
            Some(&SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED) => Self::Corrupt(in_words(&error)),
            Some(code) if code.code().starts_with("57P") || code.code().starts_with("08") => {
                Self::Unreachable(in_words(&error))
            }
            Some(_) => Self::Other(in_words(&error)),
            None => Self::Unreachable(in_words(&error)),
        }
    }
}

/// An error with its causes: alone it says only `db error`.
fn in_words(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let all: Vec<Cow<'_, str>> = std::iter::once(error.to_string().into())
        .chain(causes.map(|cause| cause.to_string().into()))
        .collect();
    all.join(": ")
}
