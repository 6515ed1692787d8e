//! The database on a `PostgreSQL` server, which several processes may share.
//!
//! A transaction that writes holds one advisory lock, so that there is one writer at a time over all processes: numbers
//! of events follow the order of commits, and the audit log is one chain.

mod tls;
mod url;

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Config, NoTls, Statement};

use crate::database::{Cell, Database, Flavour, Param, Row};
use crate::error::{StoreError, Stored};
use url::Address;

/// A connection to the server; it is made again when it was lost.
pub(crate) struct Postgres {
    address: Address,
    role: Role,
    link: Option<Link>,
    in_transaction: bool,
}

struct Link {
    client: Client,
    statements: HashMap<String, Statement>,
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
/// How long to wait for the server, and for its lock.
const PATIENCE: Duration = Duration::from_secs(5);

impl Postgres {
    /// Connects for writing, and brings the database up to date.
    pub(crate) fn open(url: &str) -> Stored<Self> {
        let mut postgres = Self::at(url, Role::Writer)?;
        postgres.begin()?;
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
        Ok(Self { address: Address::parse(url)?, role, link: None, in_transaction: false })
    }

    fn migrate(&mut self) -> Stored<()> {
        self.batch("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)")?;
        let found = self.query("SELECT coalesce(max(version), 0) FROM schema_version", &[])?;
        let found = found.first().map_or(Ok(0), |row| row.count(0))? as u32;
        let known = MIGRATIONS.len() as u32;
        if found > known {
            return Err(StoreError::TooNew { found, known });
        }
        for migration in &MIGRATIONS[found as usize..] {
            self.batch(migration)?;
        }
        self.execute("DELETE FROM schema_version", &[])?;
        self.execute("INSERT INTO schema_version (version) VALUES (?1)", &[Param::from(known)]).map(drop)
    }

    /// The connection; a lost one is made again, but never in the middle of a transaction.
    fn link(&mut self) -> Stored<&mut Link> {
        if self.link.as_ref().is_some_and(|link| link.client.is_closed()) {
            self.link = None;
        }
        if self.link.is_none() {
            if self.in_transaction {
                return Err(StoreError::Unreachable("the connection was lost".to_owned()));
            }
            self.link = Some(self.connect()?);
        }
        self.link.as_mut().ok_or_else(|| StoreError::Unreachable("there is no connection".to_owned()))
    }

    fn connect(&self) -> Stored<Link> {
        let mut config: Config = self.address.config.clone();
        config.connect_timeout(PATIENCE).application_name("loopbreaker");
        let connected = match self.address.tls()? {
            Some(tls) => config.connect(tls),
            None => config.connect(NoTls),
        };
        let mut client = connected.map_err(|error| StoreError::Unreachable(in_words(&error)))?;
        let settings = match self.role {
            Role::Writer => "SET synchronous_commit = on; SET lock_timeout = '5s'",
            Role::Reader => "SET default_transaction_read_only = on; SET statement_timeout = '30s'",
        };
        client.batch_execute(settings)?;
        Ok(Link { client, statements: HashMap::new() })
    }

    fn batch(&mut self, sql: &str) -> Stored<()> {
        Ok(self.link()?.client.batch_execute(sql)?)
    }
}

impl Link {
    /// Statements that are kept prepared; there are fewer of them in the program.
    const MAX_STATEMENTS: usize = 256;

    fn prepared(&mut self, sql: &str) -> Stored<Statement> {
        if let Some(known) = self.statements.get(sql) {
            return Ok(known.clone());
        }
        let statement = self.client.prepare(&spelt(sql))?;
        if self.statements.len() >= Self::MAX_STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// A statement in this server's spelling.
fn spelt(sql: &str) -> String {
    sql.replace('?', "$").replace("CROSS JOIN", "JOIN")
}

impl Database for Postgres {
    fn begin(&mut self) -> Stored<()> {
        self.batch("BEGIN")?;
        self.in_transaction = true;
        self.query("SELECT 1 FROM (SELECT pg_advisory_xact_lock(?1)) AS locked", &[Param::Int(LOCK)])
            .map(drop)
    }

    fn commit(&mut self) -> Stored<()> {
        let committed = self.batch("COMMIT");
        self.in_transaction = false;
        committed
    }

    fn rollback(&mut self) {
        if self.in_transaction && self.batch("ROLLBACK").is_err() {
            // The server rolls back what a lost connection has left.
            self.link = None;
        }
        self.in_transaction = false;
    }

    fn execute(&mut self, sql: &str, values: &[Param<'_>]) -> Stored<u64> {
        let link = self.link()?;
        let statement = link.prepared(sql)?;
        Ok(link.client.execute(&statement, &borrowed(values))?)
    }

    fn insert(&mut self, sql: &str, values: &[Param<'_>]) -> Stored<i64> {
        let rows = self.query(&format!("{sql} RETURNING id"), values)?;
        let row = rows.first().ok_or_else(|| StoreError::Other("a new row has no id".to_owned()))?;
        row.int(0)
    }

    fn query(&mut self, sql: &str, values: &[Param<'_>]) -> Stored<Vec<Row>> {
        let link = self.link()?;
        let statement = link.prepared(sql)?;
        link.client.query(&statement, &borrowed(values))?.iter().map(row).collect()
    }

    fn flavour(&self) -> Flavour {
        Flavour::Postgres
    }

    /// Files do not shrink when rows are deleted, so what is kept is worked out from the steps: their number, and the
    /// size of the newest. Indexes take about as much again.
    fn used_bytes(&mut self) -> Stored<u64> {
        let sql =
            "SELECT coalesce(max(id) - min(id) + 1, 0), coalesce((SELECT CAST(avg(pg_column_size(newest.*))
                AS BIGINT) FROM (SELECT * FROM steps ORDER BY id DESC LIMIT 1000) AS newest), 0)
             FROM steps";
        let rows = self.query(sql, &[])?;
        let Some(row) = rows.first() else { return Ok(0) };
        let each = row.maybe(1, Row::count)?.unwrap_or(0);
        Ok(row.count(0)?.saturating_mul(each).saturating_mul(2))
    }

    fn give_space_back(&mut self) -> Stored<()> {
        // The server's own vacuum does that.
        Ok(())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(link) = self.link.take() {
            // The client has a runtime of its own, which must not end inside of another one.
            drop(std::thread::spawn(move || drop(link)).join());
        }
    }
}

fn borrowed<'a>(values: &'a [Param<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

impl ToSql for Param<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut bytes::BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match *self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) if *kind == Type::INT4 => i32::try_from(number)?.to_sql(kind, out),
            Self::Int(number) if *kind == Type::FLOAT8 => (number as f64).to_sql(kind, out),
            Self::Int(number) => number.to_sql(kind, out),
            Self::Real(number) => number.to_sql(kind, out),
            // The server's texts cannot hold a zero.
            Self::Text(text) if text.contains('\0') => text.replace('\0', "\u{fffd}").to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Blob(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        [Type::INT4, Type::INT8, Type::FLOAT8, Type::TEXT, Type::BYTEA].contains(kind)
    }

    to_sql_checked!();
}

fn row(row: &postgres::Row) -> Stored<Row> {
    let cell = |(index, column): (usize, &postgres::Column)| {
        let cell = match *column.type_() {
            Type::INT4 => row.try_get::<_, Option<i32>>(index)?.map(|number| Cell::Int(number.into())),
            Type::INT8 => row.try_get::<_, Option<i64>>(index)?.map(Cell::Int),
            Type::FLOAT8 => row.try_get::<_, Option<f64>>(index)?.map(Cell::Real),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(index)?.map(Cell::Blob),
            _ => row.try_get::<_, Option<String>>(index)?.map(Cell::Text),
        };
        Ok(cell.unwrap_or(Cell::Null))
    };
    let cells: Result<Vec<Cell>, postgres::Error> = row.columns().iter().enumerate().map(cell).collect();
    Ok(Row(cells?))
}

impl From<postgres::Error> for StoreError {
    fn from(error: postgres::Error) -> Self {
        use postgres::error::SqlState;
        match error.code() {
            Some(&SqlState::DISK_FULL) => Self::Full,
            Some(&SqlState::LOCK_NOT_AVAILABLE) => Self::Locked,
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

#[cfg(test)]
mod tests {
    use super::spelt;

    #[test]
    fn statements_are_spelt_as_the_server_likes_them() {
        assert_eq!(spelt("SELECT ?1 FROM a CROSS JOIN b ON ?12"), "SELECT $1 FROM a JOIN b ON $12");
    }
}
